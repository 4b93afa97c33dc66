#include "util/os/clock.h"

#include <time.h>

namespace varve {
namespace {

class MachineClock final : public Clock {
 public:
  uint64_t WallMillis() const override { return Read(CLOCK_REALTIME) / 1'000'000; }
  uint64_t MonotonicNanos() const override { return Read(CLOCK_MONOTONIC); }

 private:
  static uint64_t Read(clockid_t id) {
    timespec now;
    clock_gettime(id, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  }
};

}  // namespace

const Clock& RealClock() {
  static const MachineClock clock;
  return clock;
}

}  // namespace varve
