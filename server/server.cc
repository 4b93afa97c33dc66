#include "server/server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <condition_variable>
#include <future>
#include <mutex>
#include <system_error>

#include "fmt/format.h"
#include "server/config/eviction_policy.h"
#include "server/config/memory_plan.h"
#include "server/user_commands/command_rights.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "util/os/disk_wait.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr std::chrono::seconds kBetweenLooks{10};  // where the settings name no time

// Fills in the settings that were left to the server, by what the machine offers.
ServerConfig ForThisMachine(ServerConfig config) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  config.server.io_threads = IoLoopsOf(config);
  if (config.server.threads <= 0) config.server.threads = std::max(2, cores);
  config.engine.sync_backend = Resolve(config.engine.sync_backend);
  return config;
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

absl::StatusOr<std::unique_ptr<Server>> Server::Start(Store* store, ServerConfig config,
                                                      ServerProgram program,
                                                      asio::io_context* accept_on,
                                                      PassedSockets passed) {
  if (!program.given) program.given = config;
  std::vector<User> users = std::exchange(program.users, {});
  std::unique_ptr<Server> server(
      new Server(store, std::move(config), std::move(program), accept_on));
  Clients& clients = server->state_.clients;
  if (!users.empty()) {
    clients.users.Replace(std::move(users));
  } else if (clients.acl_file.named()) {
    if (const absl::Status loaded = clients.acl_file.Load(&clients.users); !loaded.ok())
      return loaded;
  }
  if (absl::Status loaded = server->following_.Load(); !loaded.ok()) return loaded;
  const absl::Status audited =
      clients.audit.Open([pool = &server->pool_](std::function<void()> task) {
        return pool->TrySubmit(std::move(task));
      });
  if (!audited.ok()) return audited;
  const ServerConfig in_force = server->state_.configuration.in_force();
  const bool evicts =
      ParseEvictionPolicy(in_force.server.max_memory_policy).value_or(EvictionRule()).on();
  server->state_.evictor.Start(in_force.directory + "/" + std::string(kAccessDirectory),
                               EvictionMemory(in_force.memory_limit, evicts), server->state_.disk);
  const size_t threads = static_cast<size_t>(server->state_.options.threads);
  if (server->pool_.threads() < threads) {
    return absl::ResourceExhaustedError(
        fmt::format("--threads={}: the system gives only {}", threads, server->pool_.threads()));
  }
  if (const absl::Status status = server->Listen(&passed); !status.ok()) return status;
  if (const absl::Status status = server->StartThreads(); !status.ok()) return status;
  if (const absl::Status status = server->following_.Start(server->ServedPort()); !status.ok())
    return status;
  return server;
}

Server::Server(Store* store, ServerConfig config, ServerProgram program,
               asio::io_context* accept_on)
    : state_(store, ForThisMachine(std::move(config)), std::move(program), &AccessCatalog()),
      pool_("varve-pool", static_cast<size_t>(state_.options.threads),
            state_.options.pool_queue_capacity),
      store_threads_("varve-store", state_.options.store_threads, RemoteRounds::kMostInFlight),
      accept_io_(accept_on != nullptr ? *accept_on : own_io_),
      listener_(&accept_io_),
      refusals_(&accept_io_, state_.tls.get()),
      tls_timer_(accept_io_),
      following_(&state_),
      failover_(&state_,
                [this](const PrimaryAddress& server) { return following_.ConnectionTo(server); }) {
  state_.run_on_pool = [this](std::function<void()> task) {
    return pool_.TrySubmit(std::move(task));
  };
  state_.pool_idle_nanos = [this] { return pool_.IdleNanos(CoarseNow()); };
  WireReplication();
}

void Server::WireReplication() {
  state_.calls.follow = [this](const PrimaryAddress& primary) {
    const absl::Status followed = following_.Follow(primary);
    // A server that becomes a primary evicts from now on.
    state_.evictor.NoteNamespaces();
    return followed;
  };
  state_.calls.fail_over = [this](const FailoverRequest& request) {
    return failover_.Begin(request);
  };
  state_.calls.retain_for_followers = [this] { return following_.RetainForFollowers(); };
  state_.calls.lineage = [this] { return following_.GetLineage(); };
  state_.calls.release_replies = [this] {
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->OnDurabilityChanged();
    state_.clients.changes.Wake();
  };
  state_.replication.followers.OnChange([this] {
    if (state_.for_followers.gate.Update()) return state_.calls.release_replies();
    state_.clients.changes.Wake();
  });
}

uint16_t Server::ServedPort() const { return port() != 0 ? port() : tls_port(); }

Server::~Server() { Stop(); }

absl::Status Server::Listen(PassedSockets* passed) {
  const ServerOptions& options = state_.options;
  if (options.tls.in_use() && state_.tls->Get() == nullptr)
    VARVE_RETURN_IF_ERROR(state_.tls->Use(options.tls));
  if (absl::Status status = listener_.Open(options, passed); !status.ok()) return status;
  state_.backups.RemoveLeftovers();
  state_.for_followers.copies.RemoveLeftovers();
  state_.configuration.NotePort(port());
  state_.configuration.NoteTlsPort(tls_port());

  for (LoopTimes& times : state_.statistics.loops)
    loops_.push_back(std::make_unique<IoLoop>(
        &state_, LoopPools{&pool_, &maintenance_, &store_threads_}, &times));
  for (const std::unique_ptr<IoLoop>& loop : loops_) {
    if (!loop->valid())
      return absl::ResourceExhaustedError("the system gives no descriptors for an I/O thread");
  }
  listener_token_ = state_.store->AddDurabilityListener([this] {
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->OnDurabilityChanged();
    state_.clients.changes.WakeForDisk();
  });
  state_.ApplySyncReplicas(/*begins=*/following_.retains());
  change_token_ = state_.store->AddChangeListener([this] { state_.clients.changes.Wake(); });
  listening_to_store_ = true;
  state_.store->SetExpiryListener(
      [this](NamespaceId space, std::string_view key, SequenceNumber durable_after) {
        if (state_.clients.events.Tells(kExpiredEvent))
          state_.clients.events.Send("expired", space, key, durable_after);
        if (state_.clients.tracking.Any()) {
          WrittenKeys expired;
          expired.AddKey(space, key);
          state_.clients.tracking.Invalidate(&expired, /*writer=*/0);
        }
      });
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
    asio::post(accept_io_, [this] { WatchTlsFiles(); });
    listener_.Start(
        [this](int descriptor, Listener::Peer peer) { OnAccepted(descriptor, std::move(peer)); });
    if (&accept_io_ == &own_io_) {
      accept_thread_ = std::thread([this] {
        NameThread("varve-accept");
        own_io_.run();
      });
    }
    accepting_ = true;
    // The standard library's way to say that there are no more.
  } catch (const std::system_error& failed) {
    return absl::ResourceExhaustedError(fmt::format("--io-threads={}: the system gives only {}: {}",
                                                    state_.options.io_threads, loop_threads_.size(),
                                                    failed.what()));
  }
  return absl::OkStatus();
}

Door Server::DoorOf(const Listener::Peer& peer) const {
  if (peer.tls_alone) return {.plain = false, .tls = true};
  const TlsMode mode = peer.tcp ? state_.tls->mode() : TlsMode::kOff;
  return {.plain = mode != TlsMode::kRequired, .tls = mode != TlsMode::kOff};
}

void Server::Refuse(int descriptor, const Door& door, std::string_view reply) {
  state_.clients.connected.fetch_sub(1);
  state_.statistics.connections_rejected.fetch_add(1);
  refusals_.Refuse(descriptor, door, reply);
}

void Server::WatchTlsFiles() {
  const std::chrono::seconds interval = state_.tls->reload_interval();
  tls_timer_.expires_after(interval.count() > 0 ? interval : kBetweenLooks);
  tls_timer_.async_wait([this](const asio::error_code& stopped) {
    if (stopped) return;
    // Where the pool is full, the next look is soon enough.
    (void)pool_.TrySubmit(
        [tls = state_.tls] { tls->LookAtFiles(std::chrono::system_clock::now()); });
    WatchTlsFiles();
  });
}

void Server::OnAccepted(int descriptor, Listener::Peer peer) {
  state_.statistics.connections_received.fetch_add(1);
  Door door = DoorOf(peer);
  if (state_.clients.connected.fetch_add(1) >= state_.live.max_clients) {
    state_.statistics.connections_full.fetch_add(1);
    return Refuse(descriptor, door, kFullReply);
  }
  if (!MayEnter(peer, state_.live.protected_mode, state_.clients.users.login_needed())) {
    // A certificate counts as a password.
    door.verified_only = door.tls && state_.tls->verifies();
    if (!door.verified_only) return Refuse(descriptor, door, kProtectedReply);
  }
  if (peer.tcp) {
    const int on = 1;
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (const std::chrono::seconds seconds = state_.live.tcp_keepalive; seconds.count() > 0) {
      KeepAlive(descriptor, static_cast<int>(seconds.count()));
    }
  }
  loops_[next_loop_++ % loops_.size()]->Adopt(
      {descriptor, std::move(peer.address), std::move(peer.local_address), door});
}

void Server::JoinLoops() {
  // A client that doesn't take its replies must not keep the server: after the timeout its
  // connection is cut.
  std::mutex mutex;
  std::condition_variable all_joined;
  bool joined = false;
  std::thread guard([&] {
    NameThread("varve-drain");
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

void Server::StopAccepting() {
  VARVE_ASSERT(accepting_);
  const auto closed = std::make_shared<std::promise<void>>();
  asio::post(accept_io_, [this] { tls_timer_.cancel(); });
  listener_.Close([this, closed] { refusals_.Close([closed] { closed->set_value(); }); });
  closed->get_future().wait();
  accepting_ = false;
  if (accept_thread_.joinable()) accept_thread_.join();
}

void Server::Stop() {
  failover_.Stop();
  following_.Stop();
  state_.draining.store(true, std::memory_order_relaxed);
  if (accepting_) {
    StopAccepting();
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->BeginDrain();
    JoinLoops();
  } else {  // it never served
    for (const std::unique_ptr<IoLoop>& loop : loops_) loop->Abort();
    JoinThreads();
  }
  // Every client has its replies or is cut. What a thread still asks the store is for nobody, and
  // may take long.
  if (listening_to_store_) state_.store->BeginClose();
  maintenance_.Stop();
  pool_.Stop();
  store_threads_.Stop();
  state_.evictor.Stop();
  state_.clients.audit.Stop();
  if (listening_to_store_) {
    state_.store->SetExpiryListener({});
    state_.store->RemoveDurabilityListener(listener_token_);
    state_.store->RemoveChangeListener(change_token_);
    listening_to_store_ = false;
  }
  loops_.clear();
}

}  // namespace varve
