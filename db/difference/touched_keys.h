// The touched keys of some generations are those of which something was written after a sequence,
// in the order of user keys, and the ranges that range tombstones have deleted since. Segments and
// write buffers that hold nothing newer are not read.
//
// Thread-safety: one thread at a time uses an object. It holds the super version that it reads.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "db/difference/lineage.h"
#include "db/format/internal_iterator.h"
#include "db/version/super_version.h"

namespace varve {

// User keys in [begin, end); an empty end: no end.
struct UserKeyRange {
  std::string begin;
  std::string end;

  bool Reaches(std::string_view key) const { return end.empty() || key < end; }
};

// Returns the ranges as disjoint ones, ascending.
std::vector<UserKeyRange> Disjoint(std::vector<UserKeyRange> ranges);

class TouchedKeys {
 public:
  // Looks for keys in [lower, upper) (empty: no end).
  TouchedKeys(std::shared_ptr<const SuperVersion> state, const std::vector<DifferingLevel>& levels,
              std::string_view lower, std::string_view upper);

  // Finds the first touched key at or behind `from`. Subtracts the steps that it takes from
  // `*steps`. Returns false once none is left; then another call goes on. Otherwise `*found` says
  // whether there is such a key, and `*key` is that key until the next call.
  // Requires: `from` never falls.
  bool Find(std::string_view from, size_t* steps, bool* found, std::string_view* key);
  // Returns the ranges of keys that were deleted, disjoint and ascending.
  const std::vector<UserKeyRange>& ranges() const { return ranges_; }
  [[nodiscard]] absl::Status status() const;

 private:
  struct Source {
    DifferingLevel level;
    std::vector<std::vector<std::shared_ptr<Segment>>> segments = {};  // that the records are in
    std::unique_ptr<InternalIterator> records = nullptr;
    bool begun = false;
  };

  void AddRanges(const DifferingLevel& level, std::string_view lower, std::string_view upper);

  const std::shared_ptr<const SuperVersion> state_;
  std::vector<Source> sources_;
  std::vector<UserKeyRange> ranges_;
};

}  // namespace varve
