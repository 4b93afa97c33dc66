// Reads everything of a store that no server runs on, and names each place that is damaged.
//
// Opens nothing for writing. Memory: the log files one by one, and 8 bytes a key of the segment at
// hand.
// Thread-safety: a function without state of its own.
// Requires: no server has the store open.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "util/os/file_system.h"

namespace varve {

struct StoreFinding {
  enum class Kind : uint8_t {
    kDamage,    // bytes that are wrong or missing
    kTear,      // the end of a log that a crash cut off before it was acknowledged
    kLeftover,  // a file that a crash left behind and the next start removes
    kUnused,    // damage in a value file where nothing leads to: it goes when the file does
  };
  Kind kind = Kind::kDamage;
  std::string file;  // its name in the directory
  uint64_t offset = 0;
  std::string what;  // what is wrong, and what it costs
};

struct VerifyReport {
  std::vector<StoreFinding> findings;
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t records = 0;     // good ones in segments
  uint64_t operations = 0;  // in the log that aren't in segments
  uint64_t damaged_places = 0;
};

// The reading thread calls it now and then with the bytes that were read, and of how many.
using VerifyProgress = std::function<void(uint64_t done, uint64_t total)>;

struct VerifyOptions {
  // Says of a file, by its name in the directory, whether every byte of it is known to be good.
  // Such a segment is read no further than its footer, such a file with values not at all, nor are
  // its values that other segments lead to. Empty: of none.
  std::function<bool(const std::string& name)> is_known;
};

// FailedPrecondition: a server has the store open. NotFound: there is no store. Damage is no error,
// nor is what the device can't read.
[[nodiscard]] absl::StatusOr<VerifyReport> VerifyStore(FileSystem* file_system,
                                                       const std::string& directory,
                                                       const VerifyProgress& progress,
                                                       const VerifyOptions& options = {});

}  // namespace varve
