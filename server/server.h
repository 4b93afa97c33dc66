// The server as an object: listens, hands connections to its I/O loops, and stops without losing what it has read. Start() and
// Stop() are called once each, by one thread; Stop() or the destructor returns when no thread of the server runs any more.
// The store is not owned and stays open; nobody but the server may use it from Stop() on until it is closed.
#pragma once

#include <asio.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/store.h"
#include "server/io_loop.h"
#include "server/server_state.h"
#include "structure/thread_pool.h"
#include "type/server_options.h"

namespace varve {

class Server {
 public:
  // Starts to serve. `settings` is what CONFIG GET answers. FailedPrecondition: the address can't be listened on.
  // ResourceExhausted: the system gives too few threads.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Server>> Start(
      Store* store, ServerOptions options, std::vector<std::pair<std::string, std::string>> settings = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  uint16_t port() const { return port_; }
  const ServerState& state() const { return state_; }

  // Accepts and reads nothing more, answers what was read (at most drain_timeout long), closes all connections.
  void Stop();

 private:
  Server(Store* store, ServerOptions options, std::vector<std::pair<std::string, std::string>> settings);

  absl::Status Listen();
  absl::Status StartThreads();
  void Accept();
  void OnAccepted(asio::ip::tcp::socket socket);
  void JoinLoops();
  void JoinThreads();

  ServerState state_;
  ThreadPool pool_;
  ThreadPool maintenance_;
  std::vector<std::unique_ptr<IoLoop>> loops_;
  std::vector<std::thread> loop_threads_;
  size_t next_loop_ = 0;

  asio::io_context accept_io_{1};
  asio::ip::tcp::acceptor acceptor_{accept_io_};
  asio::steady_timer accept_retry_{accept_io_};
  std::thread accept_thread_;
  uint16_t port_ = 0;
  uint64_t listener_token_ = 0;
  bool listening_to_store_ = false;
};

}  // namespace varve
