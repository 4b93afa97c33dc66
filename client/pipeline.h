// A blocking connection on which many requests can be under way: the caller sends as many as it
// likes, then collects the replies in the same order. The pipeline reads while it sends, so that
// neither side waits for the other with full buffers.
//
//   auto pipeline = varve::Pipeline::Connect({.port = 7777});
//   for (...) (*pipeline)->Send({"SET", key, value});
//   while ((*pipeline)->outstanding() > 0) { auto reply = (*pipeline)->Receive(); ... }
//
// A lost connection is made again (client/client_options.h says for how long it is tried). Each
// request then ends in one of these: its reply; Unknown: it was sent, is no pure read, and nobody
// knows whether it took effect; Unavailable: a read that could not be repeated, or a request that
// was never executed as no connection was to be had; DeadlineExceeded: a read that took longer than
// options.timeout (the connection is then given up, as later replies could not be told apart).
//
// Thread-safety: One thread at a time uses a pipeline; a program may have any number of pipelines.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/backoff.h"
#include "client/client_options.h"
#include "client/request_queue.h"
#include "client/socket.h"
#include "type/reply.h"

namespace varve {

class Pipeline {
 public:
  // One attempt. Unauthenticated: the password is wrong.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Pipeline>> Connect(ClientOptions options);

  // Puts the request into the send buffer, which is sent by Receive(), Flush(), or when it is large
  // (then it waits for the kernel, not for replies). What goes wrong is reported by the Receive()
  // of the requests concerned.
  void Send(absl::Span<const std::string_view> arguments,
            WhenLost when_lost = WhenLost::kByCommand);
  // The reply is an array that `sink` gets element by element.
  void SendStream(absl::Span<const std::string_view> arguments, ReplySink sink);
  void Flush();
  // The next reply, which may be an error reply. FailedPrecondition when no request is outstanding.
  [[nodiscard]] absl::StatusOr<Reply> Receive();
  // Waits until at least one push message was handed to options.on_push. `timeout` 0: as long as it
  // takes.
  [[nodiscard]] absl::Status WaitForPush(std::chrono::milliseconds timeout);
  // Closes the connection, and with it ends subscriptions and MONITOR; the next request makes a new
  // one. Requests under way end as if it had been lost.
  void Disconnect();

  size_t outstanding() const { return done_.size() + queue_.outstanding(); }
  size_t outstanding_bytes() const { return queue_.outstanding_bytes(); }
  // Messages come unasked: subscriptions, or MONITOR.
  bool listens() const { return queue_.listens(); }
  // The database or namespace in use: "3", "users"; empty: database 0.
  std::string selected() const { return queue_.selected(); }
  // How often a lost connection was made again.
  size_t reconnects() const { return reconnects_; }
  // Lost, and by the options not to be made again.
  bool closed() const { return !socket_.is_open() && options_.reconnect_for.count() == 0; }
  const ClientOptions& options() const { return options_; }

 private:
  using Clock = std::chrono::steady_clock;

  explicit Pipeline(ClientOptions options);

  absl::Status Open();         // a connection with its handshake
  absl::Status ReceiveSome();  // what is there
  absl::Status SendSome();     // what the kernel takes
  bool EnsureOpen();           // false: there is none to be had, and all requests have failed
  void Lose(const absl::Status& why);
  void TakeAll();  // replies that are here, so that a lost connection doesn't lose them
  void DropIfStale();
  void Step();  // sends, waits for something to happen, receives

  const ClientOptions options_;
  RequestQueue queue_;
  Socket socket_;
  Backoff backoff_;
  std::deque<absl::StatusOr<Reply>> done_;  // replies that came before Receive() asked for them
  size_t reconnects_ = 0;
  absl::Status lost_;     // why the connection was lost
  bool fruitful_ = true;  // there was a reply since the last series of attempts began
  Clock::time_point retry_until_;
};

}  // namespace varve
