#include "server/process_signals.h"

#include <asio/post.hpp>
#include <csignal>
#include <cstdlib>
#include <utility>

#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr int kForcedExit = 130;

}  // namespace

ProcessSignals::ProcessSignals()
    : stop_signals_(io_, SIGTERM, SIGINT), hangup_signals_(io_, SIGHUP), ticks_(io_) {}

ProcessSignals::~ProcessSignals() {
  io_.stop();
  if (thread_.joinable()) thread_.join();
}

void ProcessSignals::WaitForStop(std::function<void()> on_hangup, std::chrono::microseconds tick,
                                 std::function<void()> on_tick) {
  on_hangup_ = std::move(on_hangup);
  tick_ = tick;
  on_tick_ = std::move(on_tick);
  WaitForSignal();
  WaitForHangup();
  if (tick_.count() > 0) WaitForTick();
  while (!stopping_) io_.run_one();
  VARVE_ASSERT(!thread_.joinable());
  thread_ = std::thread([this] {
    NameThread("varve-signals");
    io_.run();
  });
}

void ProcessSignals::RequestStop() {
  asio::post(io_, [this] { OnStop("SHUTDOWN"); });
}

void ProcessSignals::OnStop(const char* why) {
  if (stopping_) return;
  stopping_ = true;
  ticks_.cancel();
  spdlog::info("{}: stopping, a signal to stop now ends at once", why);
}

void ProcessSignals::WaitForSignal() {
  stop_signals_.async_wait([this](const asio::error_code& ended, int signal) {
    if (ended) return;
    if (stopping_) std::_Exit(kForcedExit);
    OnStop(signal == SIGINT ? "SIGINT" : "SIGTERM");
    WaitForSignal();
  });
}

void ProcessSignals::WaitForHangup() {
  hangup_signals_.async_wait([this](const asio::error_code& ended, int) {
    if (ended) return;
    if (!stopping_) on_hangup_();
    WaitForHangup();
  });
}

void ProcessSignals::WaitForTick() {
  ticks_.expires_after(tick_);
  ticks_.async_wait([this](const asio::error_code& ended) {
    if (ended || stopping_) return;
    on_tick_();
    WaitForTick();
  });
}

}  // namespace varve
