// The touched keys of some generations: those of which something was written after a sequence, with
// the ranges that range tombstones have deleted since, in the order of user keys. Segments and
// write buffers that hold nothing newer are left out.
//
// Thread-safety: one thread uses them. They hold the super version that they read.
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
  // The keys of [lower, upper) (empty: no end).
  TouchedKeys(std::shared_ptr<const SuperVersion> state, const std::vector<DifferingLevel>& levels,
              std::string_view lower, std::string_view upper);

  // Finds the first key at or behind `from` that some record speaks of. Takes at most `*steps`
  // steps, and takes them off; with none left, it returns false, and is to be called again. Else
  // `*found` says whether there is one, which `*key` shows until the next call.
  // Requires: `from` never falls.
  bool Find(std::string_view from, size_t* steps, bool* found, std::string_view* key);
  // The ranges of keys that were deleted, disjoint and ascending.
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
