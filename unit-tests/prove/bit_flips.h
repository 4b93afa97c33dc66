// Flips one bit of a store's files at a time, each time in a fresh copy, has `client_main verify`
// look at it, starts a server on it and reads everything, by point reads and by scans. The store is
// one that was killed under load: segments, a manifest, and a log whose writes are in no segment
// yet. Each flip is then found (an error names the file: of a key, of a scan, or of the start) or
// harmless (everything is as it was); a wrong value, or a key that is missing without a word, is
// what must not be. Only the manifest and the log may keep the server from starting. The verifier
// finds whatever anybody finds, and every flip but those in the log that harm nothing: there it
// lies in what is in segments already, or in room for what is to come.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "unit-tests/prove/kill_cycles.h"

namespace varve::prove {

struct FlipFigures {
  uint64_t flips = 0;
  uint64_t refused = 0;    // the server did not start, and named the file
  uint64_t reported = 0;   // it did, and reading named the file
  uint64_t harmless = 0;   // everything was as before
  uint64_t verified = 0;   // of all flips, those that the verifier named
  uint64_t unnoticed = 0;  // keys that were wrong or missing without a word
  uint64_t files = 0;      // of the store
  uint64_t bytes = 0;      // of them all
  std::vector<std::string> complaints;
};

// options.cycles: how many flips. Ends with the first that goes unnoticed. `client_main`: the
// program that verifies.
[[nodiscard]] absl::StatusOr<FlipFigures> RunBitFlips(const CycleOptions& options,
                                                      const std::string& client_main);

}  // namespace varve::prove
