// A forked namespace is a copy that shares its contents with what it was cloned from until either
// side changes (the field's copy-on-write clone). NamespaceBases says which generation was forked
// from which other one, its base (the field's parent), and at which sequence.
//
// Cloning writes one record to the log and touches no data. The copy gets a generation of its own,
// which is empty and stands on the source's generation, its base, as of the sequence of that
// record, the cut (the field's fork point). The source goes on in its generation and knows nothing
// of it. That is all that is ever written about a clone; the rest follows:
//
//   reading    A reader looks in the own generation first. What that knows nothing of, neither by a
//              record nor by a range tombstone, is read in the base as of the cut, and so on down
//              if the base stands on another one.
//   scanning   The base's records up to the cut are merged in as if they were the own generation's
//              (db/iterators/base_iterator.h). All of them are older than what was written into it,
//              so "the newest counts" and its range tombstones do the rest.
//   merging    For the base a cut is what a snapshot is: what was visible at it stays. In a
//              generation that stands on another one tombstones stay, too: what they hide isn't
//              older in their own stretch of the tree, but in the base's.
//   living     A base lives while a live generation stands on it, whatever becomes of the namespace
//              that it was cloned from: dropping, emptying and swapping that, and deleting ranges
//              of it, come after the cut.
//   counting   A clone holds what its base held at the cut, which is counted once and recorded
//              (Manifest::base_tallies), and what its own layers change (db/counting). A segment
//              does not tell that by itself (SegmentInfo::of_clones).
//   expiring   An entry of the expiry index speaks for all namespaces whose generation is its key's
//              or stands on that: when it is due, the key is removed where it has expired; in a
//              clone, by a tombstone there.
//   replaying  The cut is the record's own sequence, so a restart comes to the same.
//
// Only clones and what they were cloned from pay: reading what a clone has not changed looks into
// its own generation first, where mostly a fingerprint says no, and while a clone lives, one
// version more is kept of each key that the source changes.
//
// Thread-safety: a plain value; copies share their entries.
// Invariants: all() ascends by generation, each once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

// The most clones of clones: each costs the readers of the last one a look.
inline constexpr size_t kMaxCloneDepth = 32;

struct NamespaceBase {
  NamespaceGeneration generation = kNoGeneration;  // stands on
  NamespaceGeneration base = kNoGeneration;        // what this one held
  SequenceNumber cut = kNoSequence;                // at this sequence

  friend bool operator==(const NamespaceBase&, const NamespaceBase&) = default;
};

class NamespaceBases {
 public:
  NamespaceBases() = default;
  // Requires: `bases` ascend by generation, each once.
  explicit NamespaceBases(std::vector<NamespaceBase> bases);

  // Returns what the generation stands on, or null. Valid until the value changes.
  const NamespaceBase* Of(NamespaceGeneration generation) const {
    if (bases_ == nullptr) [[likely]]
      return nullptr;
    return Find(generation);
  }
  bool empty() const { return bases_ == nullptr; }
  // Ascending by generation.
  const std::vector<NamespaceBase>& all() const;

  void Add(const NamespaceBase& base);
  // Returns how many bases there are below the generation.
  size_t DepthOf(NamespaceGeneration generation) const;
  bool IsBase(NamespaceGeneration generation) const;
  // Returns whether the generation is `below` or stands on it, directly or not.
  bool Reaches(NamespaceGeneration generation, NamespaceGeneration below) const;
  // Returns what these generations stand on, directly or not.
  NamespaceBases Under(const std::vector<NamespaceGeneration>& generations) const;

  friend bool operator==(const NamespaceBases& a, const NamespaceBases& b) {
    return a.all() == b.all();
  }

 private:
  const NamespaceBase* Find(NamespaceGeneration generation) const;

  std::shared_ptr<const std::vector<NamespaceBase>> bases_;  // null: none
};

}  // namespace varve
