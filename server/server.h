// The server as an object: it listens, hands connections to its I/O loops, and stops without losing
// what it has read. The store is not owned and stays open, though Stop() tells it that it will be
// closed; no other thread may use it from Stop() on until it is.
//
// Thread-safety: one thread calls Start() and Stop(), once each. Stop() or the destructor returns
// when no thread of the server runs any more.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/execution/server_state.h"
#include "server/following/failover.h"
#include "server/following/following.h"
#include "server/net/io_loop.h"
#include "server/net/listener.h"
#include "server/net/passed_sockets.h"
#include "server/net/refusals.h"
#include "server/net/upkeep_pool.h"
#include "server/status/server_health.h"
#include "structure/elastic_pool.h"
#include "structure/thread_pool.h"
#include "type/server_options.h"
#include "varve/store.h"

namespace varve {

// Returns whether a connection from there is served, as far as protected mode goes.
inline bool MayEnter(const Listener::Peer& peer, bool protected_mode, bool password_needed) {
  return !protected_mode || password_needed || peer.on_this_machine;
}

class Server {
 public:
  // Starts to serve with config.server; the rest of `config`, which is in force too, is for CONFIG
  // to show. FailedPrecondition: the address can't be listened on. ResourceExhausted: the system
  // gives too few threads.
  //
  // `accept_on`: the loop in which connections are accepted; null: the server runs one of its own,
  // on a thread of its own. Requires: some thread runs it until Stop() has returned.
  // `passed`: sockets that take the place of those that the settings name.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Server>> Start(
      Store* store, ServerConfig config, ServerProgram program = {},
      asio::io_context* accept_on = nullptr, PassedSockets passed = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // 0: no TCP.
  uint16_t port() const { return listener_.port(); }
  // 0: no port for TLS alone.
  uint16_t tls_port() const { return listener_.tls_port(); }
  // Returns the port that a follower tells its primary.
  uint16_t ServedPort() const;
  // Returns where it listens, for people. Called before Stop().
  std::string Places() const { return listener_.Places(); }
  const ServerState& state() const { return state_; }
  ServerState& state() { return state_; }

  // Returns whether every I/O thread comes round, or is held up by what a new start would not help.
  bool Responsive() const { return LivenessProblem(state_).empty(); }

  // Has a worker execute the task. Returns false if too many tasks wait, or after Stop().
  [[nodiscard]] bool RunOnPool(std::function<void()> task) {
    return pool_.TrySubmit(std::move(task));
  }

  // Accepts and reads nothing more, answers what was read (at most drain_timeout long), closes all
  // connections.
  void Stop();

 private:
  Server(Store* store, ServerConfig config, ServerProgram program, asio::io_context* accept_on);

  absl::Status Listen(PassedSockets* passed);
  absl::Status StartThreads();
  // Has the server's state call the functions of replication.
  void WireReplication();
  void OnAccepted(int descriptor, Listener::Peer peer);
  // Returns what a connection from there may begin with.
  Door DoorOf(const Listener::Peer& peer) const;
  void Refuse(int descriptor, const Door& door, std::string_view reply);
  // Has the pool look at the files of certificates now and then.
  void WatchTlsFiles();
  void StopAccepting();
  void JoinLoops();
  void JoinThreads();

  ServerState state_;
  ThreadPool pool_;
  UpkeepPool maintenance_;
  ElasticPool store_threads_;  // wait for a store on other machines
  std::vector<std::unique_ptr<IoLoop>> loops_;
  std::vector<std::thread> loop_threads_;
  size_t next_loop_ = 0;

  asio::io_context own_io_{1};  // where no other loop accepts
  asio::io_context& accept_io_;
  Listener listener_;
  Refusals refusals_;
  asio::steady_timer tls_timer_;
  std::thread accept_thread_;  // runs own_io_
  bool accepting_ = false;
  Following following_;
  Failover failover_;
  uint64_t listener_token_ = 0;
  uint64_t change_token_ = 0;
  bool listening_to_store_ = false;
};

}  // namespace varve
