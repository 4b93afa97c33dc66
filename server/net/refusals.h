// The refusals are the connections that are not served, and are told so in TLS or in plain text, as
// their first byte shows. They are dealt with in the loop in which connections are accepted, so
// that neither I/O threads nor workers do a handshake for them.
//
// At most kMost connections are dealt with at a time, and kASecond a second; others are closed
// without a word.
//
// Thread-safety: everything runs on the thread of the loop but Close(), which any thread may call.
#pragma once

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string_view>

#include "server/net/door.h"
#include "server/tls/tls_connection.h"
#include "server/tls/tls_contexts.h"

namespace varve {

class Refusals {
 public:
  static constexpr size_t kMost = 100;
  static constexpr int kASecond = 100;
  static constexpr std::chrono::seconds kTime{2};  // for a handshake, and to take the reply

  // Requires: `io` and `tls` outlive the object.
  Refusals(asio::io_context* io, TlsContexts* tls) : io_(*io), tls_(*tls) {}
  ~Refusals();
  Refusals(const Refusals&) = delete;
  Refusals& operator=(const Refusals&) = delete;

  // Takes over a connected, non-blocking socket that came through the door, sends `reply` and
  // closes it. Requires: `reply` stays.
  void Refuse(int descriptor, const Door& door, std::string_view reply);
  // Closes all of them. `on_closed` is called on the loop's thread, after all work is done.
  void Close(std::function<void()> on_closed);

 private:
  struct Refused {
    Refused(asio::io_context& io, int descriptor) : socket(io, descriptor), timer(io) {}

    asio::posix::stream_descriptor socket;
    asio::steady_timer timer;
    Door door;
    std::string_view reply;
    std::unique_ptr<TlsConnection> tls;
    bool replied = false;
    bool is_over = false;  // its time, or that of the server
  };
  using Place = std::list<Refused>::iterator;

  // Returns whether there is room for one more now.
  bool MayTake();
  void Wait(Place refused, asio::posix::stream_descriptor::wait_type what);
  // The functions below return false when the connection is to be closed.
  bool GoOn(Place refused);
  bool Begin(Place refused);
  bool ShakeHands(Place refused);
  bool Reply(Place refused) { return SendReply(refused) && AwaitEnd(refused); }
  bool SendReply(Place refused);
  bool AwaitEnd(Place refused);
  void End(Refused* refused);
  void Remove(Place refused);

  asio::io_context& io_;
  TlsContexts& tls_;
  std::list<Refused> all_;
  std::chrono::steady_clock::time_point second_{};
  int in_second_ = 0;
};

}  // namespace varve
