// A comparison reads the same keys at both sides of a move and notes those that differ in their
// value, expiry or metadata, or are missing at one side.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/move/move_options.h"
#include "client/move/moved_record.h"

namespace varve {

class Comparison {
 public:
  struct Difference {
    std::string space;
    std::string key;
    std::string what;
  };

  // Ends with Cancelled once `stopped` returns true. Requires: the options outlive the object.
  Comparison(const MoveOptions* options, std::function<bool()> stopped)
      : options_(*options), stopped_(std::move(stopped)) {}

  // Compares all keys of the spaces. ResourceExhausted is not among its errors: it ends after a
  // hundred thousand differences, with those.
  [[nodiscard]] absl::Status CompareAll(const std::vector<std::string>& spaces);
  // Reads the keys that differ again, and forgets those that no longer do.
  [[nodiscard]] absl::Status CompareAgain();

  const std::vector<Difference>& differences() const { return differences_; }
  // Returns what was found, for people.
  std::vector<std::string> Lines() const;

 private:
  absl::Status Compare(const std::string& space);
  void Note(const std::string& space, const std::string& key, const std::string& what);

  const MoveOptions& options_;
  const std::function<bool()> stopped_;
  std::vector<Difference> differences_;
  uint64_t keys_ = 0;  // of the source
  std::vector<std::string> counts_;
};

}  // namespace varve
