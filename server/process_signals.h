// The signals of the process, and the loop of its main thread. SIGTERM and SIGINT stop the process,
// SIGHUP has files opened anew. Signals wait from construction on until they can be obeyed.
//
// Thread-safety: one thread constructs the object and waits; RequestStop() may be called on any.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <thread>

namespace varve {

class ProcessSignals {
 public:
  ProcessSignals();
  ~ProcessSignals();

  // Returns when the process is to stop: a signal came, or RequestStop() was called. Until then it
  // calls `on_hangup` for each SIGHUP, and `on_tick` each `tick` (0: never). From then on another
  // signal to stop ends the process at once, which the log survives, and SIGHUP does nothing.
  void WaitForStop(std::function<void()> on_hangup, std::chrono::microseconds tick,
                   std::function<void()> on_tick);
  void RequestStop();

  // The loop that the main thread runs in WaitForStop(), and that a thread of its own runs from
  // then on until this object is destroyed: other work of the main thread, too, may be put there.
  asio::io_context* io() { return &io_; }

 private:
  void WaitForSignal();
  void WaitForHangup();
  void WaitForTick();
  void OnStop(const char* why);

  asio::io_context io_{1};
  asio::signal_set stop_signals_;
  asio::signal_set hangup_signals_;
  asio::steady_timer ticks_;
  std::function<void()> on_hangup_;
  std::chrono::microseconds tick_{0};
  std::function<void()> on_tick_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace varve
