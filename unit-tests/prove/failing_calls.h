// Has strace fail the n-th fdatasync, fsync or pwrite of each of the server's threads with EIO, for
// one n after the other, while the server is started and written to. The call that fails is not
// executed; where a file system of our own can be had, its power is cut afterwards, so that what
// was acknowledged on the strength of it is really gone. What must hold: who was told of an error
// is told so from then on, by every connection; INFO says why; a server that can't start says why;
// and the next start has everything that was acknowledged.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "unit-tests/prove/fleet.h"
#include "unit-tests/prove/kill_cycles.h"

namespace varve::prove {

struct FailureFigures {
  Figures figures;
  uint64_t failed_calls = 0;   // that strace reports
  uint64_t refusing = 0;       // cycles in which the server took no more writes
  uint64_t failed_starts = 0;  // cycles in which it didn't come up
  bool power_was_cut = false;  // after each
};

// options.cycles: how many n for each of the three calls. Ends with the first cycle in which
// something is wrong. Unavailable: strace isn't there, or may not trace.
[[nodiscard]] absl::StatusOr<FailureFigures> RunFailingCalls(const CycleOptions& options);

}  // namespace varve::prove
