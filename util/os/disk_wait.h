// Disk waits: what one thread tells of the calls in which the disk may hold it up, so that others
// can tell a thread which waits for the disk from one which works without end.
//
// The code that calls a file makes a DiskWait around the call. A thread whose waits somebody wants
// to see names a DiskWaits first; on other threads a DiskWait does nothing. The clock is the coarse
// one, whose ticks take 4 ms: both looks at it take about 10 ns.
//
// Thread-safety: the thread that called NoteIn() writes; all threads may read.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>

namespace varve {

// The steady clock as of the last tick, at most 4 ms ago: about 5 ns a look.
inline std::chrono::steady_clock::time_point CoarseNow() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::chrono::steady_clock::time_point(std::chrono::seconds(now.tv_sec) +
                                               std::chrono::nanoseconds(now.tv_nsec));
}

class DiskWaits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // From now on the waits of the calling thread are noted in `waits`; null: nowhere. Requires:
  // `waits` lives until the thread ends or names another.
  static void NoteIn(DiskWaits* waits) { of_this_thread_ = waits; }

  // Returns when the thread last came out of a wait, in the nanoseconds of the clock: `now` if it
  // is in one, 0 if there was none.
  int64_t LastNanos(Time now) const {
    return since_.load(std::memory_order_relaxed) != 0 ? Nanos(now)
                                                       : ended_.load(std::memory_order_relaxed);
  }
  // Returns for how long the thread has been in the wait that it is in; 0: it is in none.
  int64_t PresentNanos(Time now) const {
    const int64_t since = since_.load(std::memory_order_relaxed);
    return since == 0 ? 0 : std::max<int64_t>(Nanos(now) - since, 0);
  }
  // Returns for how long the thread has waited altogether.
  int64_t TotalNanos(Time now) const {
    return total_.load(std::memory_order_relaxed) + PresentNanos(now);
  }

 private:
  friend class DiskWait;

  static int64_t Nanos(Time time) { return time.time_since_epoch().count(); }

  void Begin() { since_.store(Nanos(CoarseNow()), std::memory_order_relaxed); }
  void End() {
    const int64_t now = Nanos(CoarseNow());
    total_.store(total_.load(std::memory_order_relaxed) +
                     std::max<int64_t>(now - since_.load(std::memory_order_relaxed), 0),
                 std::memory_order_relaxed);
    ended_.store(now, std::memory_order_relaxed);
    since_.store(0, std::memory_order_relaxed);
  }

  static inline thread_local constinit DiskWaits* of_this_thread_ = nullptr;

  std::atomic<int64_t> since_{0};  // 0: the thread is in no wait
  std::atomic<int64_t> ended_{0};
  std::atomic<int64_t> total_{0};  // in the waits that have ended
};

// The calling thread may wait for the disk while the object lives. One within another says nothing
// new.
class DiskWait {
 public:
  DiskWait() : waits_(DiskWaits::of_this_thread_) {
    if (waits_ == nullptr) return;
    if (waits_->since_.load(std::memory_order_relaxed) != 0) {
      waits_ = nullptr;
    } else {
      waits_->Begin();
    }
  }
  ~DiskWait() {
    if (waits_ != nullptr) waits_->End();
  }
  DiskWait(const DiskWait&) = delete;
  DiskWait& operator=(const DiskWait&) = delete;

 private:
  DiskWaits* waits_;
};

}  // namespace varve
