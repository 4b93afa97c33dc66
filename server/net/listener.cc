#include "server/net/listener.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kRetry{100};  // after the process ran out of descriptors

absl::Status CannotListen(std::string_view where, std::string_view what, std::string_view why) {
  return absl::FailedPreconditionError(fmt::format("can't listen on {}: {}: {}", where, what, why));
}

std::string AddressText(const asio::ip::tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", host, endpoint.port())
                                    : fmt::format("{}:{}", host, endpoint.port());
}

}  // namespace

bool IsLoopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

absl::Status Listener::Open(const ServerOptions& options, PassedSockets* passed) {
  VARVE_RETURN_IF_ERROR(OpenData(options, passed));
  VARVE_RETURN_IF_ERROR(OpenTls(options, passed));
  if (passed->Has(PassedSockets::Role::kUnix))
    return AdoptUnix(passed->Take(PassedSockets::Role::kUnix));
  return options.unix_socket.empty() ? absl::OkStatus() : OpenUnix(options);
}

absl::Status Listener::OpenData(const ServerOptions& options, PassedSockets* passed) {
  using Role = PassedSockets::Role;
  if (passed->Has(Role::kData)) return AdoptTcp(passed->Take(Role::kData), &tcp_, &port_);
  const bool has_other = !options.unix_socket.empty() || passed->Has(Role::kUnix) ||
                         options.tls.port > 0 || passed->Has(Role::kTls);
  if (options.port == 0 && has_other) return absl::OkStatus();
  return OpenTcp(options.bind, options.port, &tcp_, &port_);
}

absl::Status Listener::OpenTls(const ServerOptions& options, PassedSockets* passed) {
  using Role = PassedSockets::Role;
  if (passed->Has(Role::kTls)) return AdoptTcp(passed->Take(Role::kTls), &tls_, &tls_port_);
  if (options.tls.port == 0) return absl::OkStatus();
  const auto wanted = static_cast<uint16_t>(std::max(options.tls.port, 0));
  return OpenTcp(options.bind, wanted, &tls_, &tls_port_);
}

absl::Status Listener::AdoptTcp(int descriptor, asio::ip::tcp::acceptor* acceptor, uint16_t* port) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  asio::error_code error;
  ::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size);
  acceptor->assign(address.ss_family == AF_INET6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(),
                   descriptor, error);
  if (error) {
    ::close(descriptor);
    return CannotListen("a socket that was passed", "assign", error.message());
  }
  *port = acceptor->local_endpoint(error).port();
  return absl::OkStatus();
}

absl::Status Listener::AdoptUnix(int descriptor) {
  asio::error_code error;
  unix_.assign(asio::local::stream_protocol(), descriptor, error);
  if (error) {
    ::close(descriptor);
    return CannotListen("a socket that was passed", "assign", error.message());
  }
  unix_path_ = unix_.local_endpoint(error).path();
  if (!unix_path_.empty() && unix_path_[0] == '\0') unix_path_[0] = '@';  // no file has this name
  return absl::OkStatus();
}

absl::Status Listener::OpenTcp(const std::string& host, uint16_t wanted_port,
                               asio::ip::tcp::acceptor* acceptor, uint16_t* port) {
  const std::string where = fmt::format("{}:{}", host, wanted_port);
  const auto failed = [&](std::string_view what, const asio::error_code& error) {
    return CannotListen(where, what, error.message());
  };
  asio::error_code error;
  const asio::ip::address address =
      asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) return failed("--bind takes an IP address", error);
  const asio::ip::tcp::endpoint endpoint(address, wanted_port);
  if (acceptor->open(endpoint.protocol(), error); error) return failed("open", error);
  if (acceptor->set_option(asio::socket_base::reuse_address(true), error); error)
    return failed("reuse_address", error);
  if (acceptor->bind(endpoint, error); error) return failed("bind", error);
  if (acceptor->listen(asio::socket_base::max_listen_connections, error); error)
    return failed("listen", error);
  *port = acceptor->local_endpoint(error).port();
  return absl::OkStatus();
}

absl::Status Listener::OpenUnix(const ServerOptions& options) {
  const std::string& path = options.unix_socket;
  asio::error_code error;
  const asio::local::stream_protocol::endpoint endpoint(path);
  // A socket that a crash left behind is in the way, but one that somebody serves is not ours to
  // remove.
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode))
      return CannotListen(path, "--unixsocket", "there is a file that is no socket");
    asio::local::stream_protocol::socket probe(io_);
    probe.connect(endpoint, error);
    if (error != asio::error::connection_refused) {
      return CannotListen(path, "--unixsocket",
                          error ? error.message() : "another process serves it");
    }
    ::unlink(path.c_str());
  }
  if (unix_.open(endpoint.protocol(), error); error)
    return CannotListen(path, "open", error.message());
  if (unix_.bind(endpoint, error); error) return CannotListen(path, "bind", error.message());
  unix_path_ = path;
  unlinks_ = true;
  if (::chmod(path.c_str(), static_cast<mode_t>(options.unix_socket_mode)) != 0) {
    return CannotListen(path, "--unixsocketperm", std::strerror(errno));
  }
  if (unix_.listen(asio::socket_base::max_listen_connections, error); error) {
    return CannotListen(path, "listen", error.message());
  }
  return absl::OkStatus();
}

std::string Listener::Places() const {
  std::vector<std::string> places;
  asio::error_code error;  // then the place is an empty address
  if (tcp_.is_open()) places.push_back(AddressText(tcp_.local_endpoint(error)));
  if (tls_.is_open()) places.push_back(AddressText(tls_.local_endpoint(error)) + " (TLS)");
  if (unix_.is_open()) places.push_back(unix_path_);
  return fmt::format("{}", fmt::join(places, " and "));
}

Listener::Peer Listener::PeerOf(const asio::ip::tcp::socket& socket,
                                const asio::ip::tcp::endpoint& peer) const {
  asio::error_code error;  // of a connection that is lost already: its session will find out
  return {.address = AddressText(peer),
          .local_address = AddressText(socket.local_endpoint(error)),
          .on_this_machine = IsLoopback(peer.address())};
}

Listener::Peer Listener::PeerOf(const asio::local::stream_protocol::socket&,
                                const asio::local::stream_protocol::endpoint&) const {
  return {.address = unix_path_ + ":0",
          .local_address = unix_path_ + ":0",
          .tcp = false,
          .on_this_machine = true};
}

template <typename Acceptor>
void Listener::Accept(Acceptor* acceptor, asio::steady_timer* retry, bool tls_alone) {
  using Protocol = typename Acceptor::protocol_type;
  // The kernel tells the peer's address as it hands the connection over. Asked afterwards, it no
  // longer knows the address of a peer that has gone, and the wrong passwords of clients that do
  // not wait for the answer would count for nobody.
  auto peer = std::make_shared<typename Protocol::endpoint>();
  typename Protocol::endpoint* const address = peer.get();
  acceptor->async_accept(
      *address, [this, acceptor, retry, tls_alone, peer = std::move(peer)](
                    const asio::error_code& failed, typename Protocol::socket socket) {
        if (failed == asio::error::operation_aborted || !acceptor->is_open()) return;
        if (failed) {
          spdlog::warn("A connection could not be accepted: {}", failed.message());
          retry->expires_after(kRetry);
          return retry->async_wait([this, acceptor, retry, tls_alone](const asio::error_code& end) {
            if (!end) Accept(acceptor, retry, tls_alone);
          });
        }
        asio::error_code error;
        socket.non_blocking(true, error);
        Peer accepted = PeerOf(socket, *peer);
        accepted.tls_alone = tls_alone;
        if (const int descriptor = socket.release(error); !error)
          on_accepted_(descriptor, std::move(accepted));
        Accept(acceptor, retry, tls_alone);
      });
}

void Listener::Start(OnAccepted on_accepted) {
  VARVE_ASSERT(on_accepted_ == nullptr);
  on_accepted_ = std::move(on_accepted);
  asio::post(io_, [this] {
    if (tcp_.is_open()) Accept(&tcp_, &tcp_retry_, /*tls_alone=*/false);
    if (tls_.is_open()) Accept(&tls_, &tls_retry_, /*tls_alone=*/true);
    if (unix_.is_open()) Accept(&unix_, &unix_retry_, /*tls_alone=*/false);
  });
}

void Listener::Close(std::function<void()> on_closed) {
  asio::post(io_, [this, on_closed = std::move(on_closed)] {
    asio::error_code ignored;
    if (unlinks_) ::unlink(unix_path_.c_str());
    tcp_.close(ignored);
    tls_.close(ignored);
    unix_.close(ignored);
    tcp_retry_.cancel();
    tls_retry_.cancel();
    unix_retry_.cancel();
    // Behind the handlers of what was closed, which look at this listener.
    asio::post(io_, on_closed);
  });
}

}  // namespace varve
