// A socket of the load generator, with at most one pipeline of requests under way.
//
// Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/server/exchange.h"

namespace varve::bench {

class LoadConnection {
 public:
  using Clock = std::chrono::steady_clock;

  // Is told of by `epoll` with its own address, whenever something arrives.
  LoadConnection(Exchange* exchange, int epoll);
  ~LoadConnection();
  LoadConnection(const LoadConnection&) = delete;
  LoadConnection& operator=(const LoadConnection&) = delete;

  // The time that the requests under way are counted from.
  Clock::time_point since() const { return since_; }
  bool done() const { return answered_ == slots_.size(); }

  void SendPipeline(Clock::time_point since);
  // When there is room again.
  void ContinueSending();
  // Takes what arrived; returns how many replies were completed.
  uint64_t Receive();

 private:
  struct Slot {
    const Form* form = nullptr;
    size_t at = 0;  // of the request in out_
  };

  // Draws the requests; only what isn't there from the last time is copied.
  void MakeRequests();

  Exchange* const exchange_;
  const int epoll_;
  const int fd_;
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

// Connects to 127.0.0.1:`port`; -1 when nobody listens.
int ConnectTo(uint16_t port);

}  // namespace varve::bench
