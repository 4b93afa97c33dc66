// Cuts the power of a file system under a server that is being written to, again and again, mounts
// it anew and starts the server: with --sync=always everything that was acknowledged or shown is
// there. With everysec what was acknowledged more than kEverySecondPromise ago is there, with no
// anything may be gone; but in both what is gone is an end: whatever was acknowledged before a
// survivor was sent has survived.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <chrono>

#include "absl/status/statusor.h"
#include "unit-tests/prove/fleet.h"
#include "unit-tests/prove/kill_cycles.h"

namespace varve::prove {

// A sync begins each second; it may take a while on a busy machine.
inline constexpr std::chrono::milliseconds kEverySecondPromise{2500};

struct PowerFigures {
  Figures always;
  Figures every_second;
  Figures none;
};

// Ends with the first cycle in which something is wrong. Unavailable: this machine doesn't allow
// it, the message says why.
[[nodiscard]] absl::StatusOr<PowerFigures> RunPowerCuts(const CycleOptions& options);

}  // namespace varve::prove
