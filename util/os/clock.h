// A clock tells the time, behind an interface, so that what depends on time (expiry, rates, delays)
// can be tested without waiting.
//
// There are two readings that are never mixed: wall time places an event in the calendar, may jump
// when somebody sets the clock, and is what is written to disk; monotonic time only measures spans
// within this process and never goes back.
//
// Thread-safety: every Clock may be read from any thread.
#pragma once

#include <cstdint>

namespace varve {

class Clock {
 public:
  virtual ~Clock() = default;

  // Returns the milliseconds since 1970-01-01 00:00 UTC.
  virtual uint64_t WallMillis() const = 0;

  // Returns the nanoseconds since a moment that is fixed for the life of this process.
  virtual uint64_t MonotonicNanos() const = 0;
};

// The machine's clock, which lives as long as the process. A reading takes tens of nanoseconds and
// no system call.
const Clock& RealClock();

}  // namespace varve
