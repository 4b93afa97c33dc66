#include "server/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/thread_setup.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kAcceptRetry{100};  // after the process ran out of descriptors
constexpr size_t kMaintenanceQueue = 256;               // COMPACTs that may wait

ServerOptions WithDefaults(ServerOptions options) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (options.io_threads <= 0) options.io_threads = std::clamp(cores / 4, 1, 8);
  if (options.threads <= 0) options.threads = std::max(2, cores);
  return options;
}

std::string AddressText(const asio::ip::tcp::endpoint& endpoint) {
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", endpoint.address().to_string(), endpoint.port())
                                    : fmt::format("{}:{}", endpoint.address().to_string(), endpoint.port());
}

// Asks a peer that was silent for `seconds` whether it is still there, three times at most.
void KeepAlive(int descriptor, int seconds) {
  const int on = 1;
  const int tries = 3;
  const int interval = std::max(1, seconds / tries);
  // Where one of them can't be set the connection works all the same.
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Store* store, ServerOptions options,
                                                      std::vector<std::pair<std::string, std::string>> settings) {
  std::unique_ptr<Server> server(new Server(store, WithDefaults(std::move(options)), std::move(settings)));
  const size_t threads = static_cast<size_t>(server->state_.options.threads);
  if (server->pool_.threads() < threads || server->maintenance_.threads() == 0) {
    return absl::ResourceExhaustedError(fmt::format("--threads={}: the system gives only {}", threads,
                                                    server->pool_.threads() + server->maintenance_.threads()));
  }
  if (const absl::Status status = server->Listen(); !status.ok()) return status;
  if (const absl::Status status = server->StartThreads(); !status.ok()) return status;
  return server;
}

Server::Server(Store* store, ServerOptions options, std::vector<std::pair<std::string, std::string>> settings)
    : state_(store, std::move(options), std::move(settings)),
      pool_("varve-pool", static_cast<size_t>(state_.options.threads), state_.options.pool_queue_capacity),
      maintenance_("varve-upkeep", 1, kMaintenanceQueue) {}

Server::~Server() { Stop(); }

absl::Status Server::Listen() {
  const ServerOptions& options = state_.options;
  const auto failed = [&](std::string_view what, const asio::error_code& error) {
    return absl::FailedPreconditionError(
        fmt::format("can't listen on {}:{}: {}: {}", options.bind, options.port, what, error.message()));
  };
  asio::error_code error;
  const asio::ip::address address =
      asio::ip::make_address(options.bind == "localhost" ? "127.0.0.1" : options.bind, error);
  if (error) return failed("--bind takes an IP address", error);
  const asio::ip::tcp::endpoint endpoint(address, options.port);
  if (acceptor_.open(endpoint.protocol(), error); error) return failed("open", error);
  if (acceptor_.set_option(asio::socket_base::reuse_address(true), error); error) return failed("reuse_address", error);
  if (acceptor_.bind(endpoint, error); error) return failed("bind", error);
  if (acceptor_.listen(asio::socket_base::max_listen_connections, error); error) return failed("listen", error);
  port_ = acceptor_.local_endpoint(error).port();
  // What was left to the server to choose is shown as it was chosen.
  for (auto& [name, value] : state_.settings) {
    if (name == "port") value = fmt::to_string(port_);
    if (name == "threads") value = fmt::to_string(options.threads);
    if (name == "io-threads") value = fmt::to_string(options.io_threads);
  }

  for (int i = 0; i < options.io_threads; ++i)
    loops_.push_back(std::make_unique<IoLoop>(&state_, &pool_, &maintenance_));
  listener_token_ = state_.store->AddDurabilityListener([this] {
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->OnDurabilityChanged();
  });
  listening_to_store_ = true;
  return absl::OkStatus();
}

absl::Status Server::StartThreads() {
  try {
    for (size_t i = 0; i < loops_.size(); ++i) {
      loop_threads_.emplace_back([loop = loops_[i].get(), i] {
        NameThread(fmt::format("varve-io-{}", i));
        loop->Run();
      });
    }
    Accept();
    accept_thread_ = std::thread([this] {
      NameThread("varve-accept");
      accept_io_.run();
    });
  } catch (const std::system_error& failed) {  // the standard library's way to say that there are no more
    return absl::ResourceExhaustedError(fmt::format("--io-threads={}: the system gives only {}: {}",
                                                    state_.options.io_threads, loop_threads_.size(), failed.what()));
  }
  return absl::OkStatus();
}

void Server::Accept() {
  acceptor_.async_accept([this](const asio::error_code& error, asio::ip::tcp::socket socket) {
    if (error == asio::error::operation_aborted || !acceptor_.is_open()) return;
    if (!error) {
      OnAccepted(std::move(socket));
      return Accept();
    }
    spdlog::warn("A connection could not be accepted: {}", error.message());
    accept_retry_.expires_after(kAcceptRetry);
    accept_retry_.async_wait([this](const asio::error_code& stopped) {
      if (!stopped) Accept();
    });
  });
}

void Server::OnAccepted(asio::ip::tcp::socket socket) {
  state_.connections_received.fetch_add(1);
  asio::error_code error;
  socket.non_blocking(true, error);
  if (state_.clients.fetch_add(1) >= state_.options.max_clients) {
    state_.clients.fetch_sub(1);
    state_.connections_rejected.fetch_add(1);
    constexpr std::string_view kFull = "-ERR max number of clients reached\r\n";
    ::send(socket.native_handle(), kFull.data(), kFull.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  socket.set_option(asio::ip::tcp::no_delay(true), error);
  if (state_.options.tcp_keepalive.count() > 0) {
    KeepAlive(socket.native_handle(), static_cast<int>(state_.options.tcp_keepalive.count()));
  }
  const asio::ip::tcp::endpoint peer = socket.remote_endpoint(error);
  const asio::ip::tcp::endpoint local = socket.local_endpoint(error);
  const int descriptor = socket.release(error);
  if (error) {
    state_.clients.fetch_sub(1);
    return;
  }
  loops_[next_loop_++ % loops_.size()]->Adopt(descriptor, AddressText(peer), AddressText(local));
}

void Server::JoinLoops() {
  // A client that doesn't take its replies must not keep the server: after the timeout its connection is cut.
  std::mutex mutex;
  std::condition_variable all_joined;
  bool joined = false;
  std::thread guard([&] {
    std::unique_lock<std::mutex> lock(mutex);
    if (all_joined.wait_for(lock, state_.options.drain_timeout, [&] { return joined; })) return;
    spdlog::warn("Some clients did not take their replies in time, their connections are cut");
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->Abort();
  });
  JoinThreads();
  {
    const std::lock_guard<std::mutex> lock(mutex);
    joined = true;
  }
  all_joined.notify_all();
  guard.join();
}

void Server::JoinThreads() {
  for (std::thread& thread : loop_threads_) thread.join();
  loop_threads_.clear();
}

void Server::Stop() {
  if (accept_thread_.joinable()) {
    asio::post(accept_io_, [this] {
      asio::error_code ignored;
      acceptor_.close(ignored);
      accept_retry_.cancel();
    });
    accept_thread_.join();
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->BeginDrain();
    JoinLoops();
  } else {  // it never served
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->Abort();
    JoinThreads();
  }
  maintenance_.Stop();
  pool_.Stop();
  if (listening_to_store_) {
    state_.store->RemoveDurabilityListener(listener_token_);
    listening_to_store_ = false;
  }
  loops_.clear();
}

}  // namespace varve
