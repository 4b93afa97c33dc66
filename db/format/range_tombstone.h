// A range tombstone deletes a range as a record of its own: every key of [begin, end) that is older
// than `sequence` is deleted.
//
// RangeTombstoneList is an immutable interval list: overlapping tombstones are cut into disjoint
// fragments, sorted by begin. A lookup is one binary search over the fragments; each knows the
// newest sequence that covers it, which answers every read that is not older than it. For older
// reads the sequences hang in a segment tree over the fragments (de Berg et al., "Computational
// Geometry", 10.3): a tombstone stands in O(log n) nodes, so n nested tombstones take O(n log n)
// memory and not n squared.
//
// Thread-safety: a list is immutable and may be shared between threads.
// Invariants: fragments are not empty, disjoint and ascending; `newest` is a sequence of the list.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "varve/types.h"

namespace varve {

struct RangeTombstone {
  std::string begin;  // tree key, inclusive
  // Tree key, exclusive; never empty: the end of a namespace is the first key of the next
  // generation.
  std::string end;
  SequenceNumber sequence = kNoSequence;

  friend bool operator==(const RangeTombstone&, const RangeTombstone&) = default;
};

// Drops empty ranges and joins overlapping and touching ones of the same sequence (pieces of one
// tombstone that was cut at the boundaries of segments); sorts by begin, then newest first.
void CoalesceRangeTombstones(std::vector<RangeTombstone>* tombstones);

class RangeTombstoneList {
 public:
  struct Fragment {
    std::string begin;
    std::string end;
    SequenceNumber newest = kNoSequence;  // the newest tombstone that covers it
  };

  RangeTombstoneList() = default;
  explicit RangeTombstoneList(std::vector<RangeTombstone> tombstones);

  bool empty() const { return fragments_.empty(); }
  size_t size() const { return fragments_.size(); }
  const std::vector<Fragment>& fragments() const { return fragments_; }
  // Returns the tombstones that the list was made of, coalesced.
  const std::vector<RangeTombstone>& tombstones() const { return tombstones_; }

  // Returns the sequence of the newest tombstone not newer than `at` that covers `tree_key`;
  // kNoSequence if there is none.
  SequenceNumber CoveringSequence(std::string_view tree_key, SequenceNumber at) const;
  // Returns the same for every key of fragments()[index], for merges that walk the fragments beside
  // their records.
  // Requires: `index` < size().
  SequenceNumber SequenceInFragment(size_t index, SequenceNumber at) const;
  // Returns the fragment covering `tree_key` with a sequence <= `at`, so that the caller can skip
  // what it covers; null if there is none.
  const Fragment* Covering(std::string_view tree_key, SequenceNumber at) const;

 private:
  // Returns the index of the fragment that holds `tree_key`; size() if none does.
  size_t Find(std::string_view tree_key) const;
  // Sets each fragment's newest sequence, and fills the segment tree if any tombstones overlap.
  void HangSequences();

  std::vector<RangeTombstone> tombstones_;
  std::vector<Fragment> fragments_;
  // The segment tree: node i has the children 2i and 2i + 1, and fragment f is leaf size() + f.
  // Each node holds sequences, newest first. The tree is empty when no two tombstones overlap,
  // since then `newest` says everything.
  std::vector<std::vector<SequenceNumber>> nodes_;
};

}  // namespace varve
