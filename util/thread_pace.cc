#include "util/thread_pace.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <string_view>
#include <thread>

namespace varve {
namespace {

constexpr std::chrono::milliseconds kStep(2);
constexpr std::chrono::milliseconds kLongestRest(20);
constexpr uint64_t kNoticeable = 32;  // that part of the step

std::atomic<bool> switched_off{false};

}  // namespace

void ThreadPace::SwitchOff() { switched_off = true; }

ThreadPace::~ThreadPace() {
  if (file_ >= 0) close(file_);
}

uint64_t ThreadPace::Waited() {
  if (!opened_) {
    opened_ = true;
    file_ = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  }
  char text[96];  // time on a processor, time waited for one, turns
  const ssize_t size = file_ < 0 ? 0 : pread(file_, text, sizeof(text), 0);
  if (size <= 0) return waited_;
  const std::string_view fields(text, static_cast<size_t>(size));
  const size_t second = fields.find(' ') + 1;
  uint64_t nanos = 0;
  std::from_chars(fields.data() + second, fields.data() + fields.size(), nanos);
  return nanos;
}

void ThreadPace::Rest(bool hurries) {
  if (switched_off.load(std::memory_order_relaxed)) return;
  SteadyTime now = SteadyNow();
  const std::chrono::nanoseconds worked = now - begun_;
  if (worked < kStep) return;
  uint64_t waited = Waited();
  // A step that began long ago was not all work.
  if (!hurries && worked < kStep * 100 && (waited - waited_) * kNoticeable > static_cast<uint64_t>(worked.count())) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(2 * worked, kLongestRest));
    const SteadyTime end = SteadyNow();
    rested_ += end - now;
    now = end;
    waited = Waited();
  }
  begun_ = now;
  waited_ = waited;
}

}  // namespace varve
