// A client that does not block: it runs on an asio::io_context of the caller, has any number of
// requests under way, and answers each by a callback.
//
//   asio::io_context context;
//   varve::AsyncClient client(context, {.port = 7777});
//   client.Call({"GET", "city:1"}, [](absl::StatusOr<varve::Reply> reply) { ... });
//   context.run();
//
// It connects with the first request, and again when the connection is lost, as client/pipeline.h
// describes; the errors of requests are the same, error replies come as replies. Callbacks come in
// the order of the requests, each exactly once, from a thread that runs the io_context, one at a
// time, never from inside Call(). Call() and Close() may be called from any thread, and from
// callbacks. The object may go at any time before its io_context: what is pending then ends with
// Cancelled, if the io_context goes on running. A connected client keeps the io_context busy until
// Close(), or until the object goes; one that listens (subscriptions, MONITOR) makes a lost
// connection again without being asked, for as long as that takes.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "asio/io_context.hpp"
#include "client/client_options.h"
#include "type/reply.h"

namespace varve {

class AsyncClient {
 public:
  using Callback = std::function<void(absl::StatusOr<Reply>)>;

  AsyncClient(asio::io_context& context, ClientOptions options);
  ~AsyncClient();
  AsyncClient(const AsyncClient&) = delete;
  AsyncClient& operator=(const AsyncClient&) = delete;

  void Call(absl::Span<const std::string_view> arguments, Callback callback,
            WhenLost when_lost = WhenLost::kByCommand);
  // Ends what is pending with Cancelled and closes the connection; later calls are Cancelled, too.
  void Close();

 private:
  class Connection;

  std::shared_ptr<Connection> connection_;
};

}  // namespace varve
