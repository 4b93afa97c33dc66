// Deleted ranges, as records of their own: every key of [begin, end) that is older than `sequence` is deleted.
//
// RangeTombstoneList is an immutable interval list: overlapping tombstones are cut into disjoint fragments, sorted by begin, each
// with its sequences newest first, so that a lookup is one binary search. Immutable: safe to share between threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "type/sequence.h"

namespace varve {

struct RangeTombstone {
  std::string begin;  // tree key, inclusive
  std::string end;    // tree key, exclusive; never empty: the end of a namespace is the first key of the next generation
  SequenceNumber sequence = kNoSequence;
};

class RangeTombstoneList {
 public:
  struct Fragment {
    std::string begin;
    std::string end;
    std::vector<SequenceNumber> sequences;  // newest first
  };

  RangeTombstoneList() = default;
  explicit RangeTombstoneList(std::vector<RangeTombstone> tombstones);

  bool empty() const { return fragments_.empty(); }
  size_t size() const { return fragments_.size(); }
  const std::vector<Fragment>& fragments() const { return fragments_; }

  // The newest tombstone not newer than `at` that covers `tree_key`; kNoSequence if none.
  SequenceNumber CoveringSequence(std::string_view tree_key, SequenceNumber at) const;
  // The fragment covering `tree_key` with a sequence <= `at`, for skipping what it covers; null if none.
  const Fragment* Covering(std::string_view tree_key, SequenceNumber at) const;
  // All tombstones (fragments unrolled), optionally cut to [lower, upper); an empty `upper` means no end.
  std::vector<RangeTombstone> Tombstones(std::string_view lower = {}, std::string_view upper = {}) const;

 private:
  std::vector<Fragment> fragments_;
};

}  // namespace varve
