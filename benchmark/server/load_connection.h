// A load connection is a socket of the load generator, with at most one pipeline of requests under
// way.
//
// Thread-safety: one thread uses a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "benchmark/server/exchange.h"
#include "client/tls_stream.h"

namespace varve::bench {

class LoadConnection {
 public:
  using Clock = std::chrono::steady_clock;

  // `epoll` reports the connection with this object's address when bytes arrive.
  LoadConnection(Exchange* exchange, int epoll);
  ~LoadConnection();
  LoadConnection(const LoadConnection&) = delete;
  LoadConnection& operator=(const LoadConnection&) = delete;

  // Returns the time from which the latencies of the requests under way count.
  Clock::time_point since() const { return since_; }
  bool done() const { return answered_ == slots_.size(); }

  void SendPipeline(Clock::time_point since);
  // Sends more. Requires: the socket has room again.
  void ContinueSending();
  // Reads what arrived. Returns how many replies it completed.
  uint64_t Receive();

 private:
  struct Slot {
    const Form* form = nullptr;
    size_t at = 0;  // of the request in out_
  };

  // Draws the requests, and copies only the bytes that differ from the last pipeline.
  void MakeRequests();
  // Waits for the end of the handshake.
  void BeginTls();
  // Has the connection work in the load's namespace.
  void UseNamespace();
  // Hand bytes to the kernel and take them from it; 0: not now.
  size_t SendSome(std::string_view bytes);
  size_t ReceiveSome(char* buffer, size_t size);

  Exchange* const exchange_;
  const int epoll_;
  const int fd_;
  std::unique_ptr<TlsStream> tls_;  // null: plain text
  std::vector<Slot> slots_;
  std::string out_;
  std::string in_;
  size_t sent_ = 0;
  size_t received_ = 0;
  size_t taken_ = 0;     // of what was received
  size_t answered_ = 0;  // slots
  bool waits_to_send_ = false;
  Clock::time_point since_;
};

// Connects to 127.0.0.1:`port`. Returns -1 if no server listens.
int ConnectTo(uint16_t port);

}  // namespace varve::bench
