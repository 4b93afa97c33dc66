#include "util/os/thread_pace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <string_view>
#include <thread>
#include <utility>

#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kStep(2), kLongestRest(20);
constexpr std::chrono::milliseconds kYieldingStep(100), kLongestShare(500);
constexpr int64_t kNoticeable = 32;  // that part of the step
constexpr int64_t kLeast = 10;       // likewise, to work in

std::atomic<bool> switched_off{false};

}  // namespace

void ThreadPace::SwitchOff() { switched_off = true; }

ThreadPace::~ThreadPace() {
  TakeShare();
  if (file_ >= 0) close(file_);
}

bool ThreadPace::Yield() {
  if (may_yield_ && !yields_) yields_ = may_yield_ = YieldToEveryone();
  return yields_;
}

void ThreadPace::TakeShare() {
  if (std::exchange(yields_, false)) YieldToForeground();
}

uint64_t ThreadPace::Waited() {
  if (!opened_) {
    opened_ = true;
    file_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  }
  char text[96];  // time on a processor, time waited for one, turns
  const ssize_t size = file_ < 0 ? 0 : pread(file_, text, sizeof(text), 0);
  if (size <= 1 || text[0] == '0') {  // a kernel that doesn't count writes zeros
    may_yield_ = false;
    return waited_;
  }
  const std::string_view fields(text, static_cast<size_t>(size));
  const size_t second = fields.find(' ') + 1;
  uint64_t nanos = 0;
  std::from_chars(fields.data() + second, fields.data() + fields.size(), nanos);
  return nanos;
}

void ThreadPace::Rest(bool is_urgent) {
  if (switched_off.load(std::memory_order_relaxed)) return;
  SteadyTime now = SteadyNow();
  const std::chrono::nanoseconds taken = now - begun_;
  if (taken < step_ && !(is_urgent && yields_)) return;
  uint64_t waited = Waited();
  const auto missed = static_cast<int64_t>(waited - waited_);
  step_ = kStep;
  if (is_urgent) {
    TakeShare();
  } else if (yields_ && missed > taken.count() / kLeast * (kLeast - 1)) {
    TakeShare();
    step_ = std::min<std::chrono::nanoseconds>(taken / 3, kLongestShare);
  } else if (Yield()) {
    step_ = kYieldingStep;
    // One that began long ago was not all work.
  } else if (missed > taken.count() / kNoticeable && taken < kStep * 100) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(2 * taken, kLongestRest));
    const SteadyTime end = SteadyNow();
    rested_ += end - now;
    now = end;
    waited = Waited();
  }
  begun_ = now;
  waited_ = waited;
}

}  // namespace varve
