// Copies of namespaces that share what they are copies of until either side changes (the field's
// copy-on-write clones): which generation stands on which other one, and as of when.
//
// Cloning writes one record to the log and touches no data. The copy gets a generation of its own,
// which is empty and *stands on* the source's generation, its base, as of the sequence of that
// record, the cut. The source goes on in its generation and knows nothing of it. That is all that
// is ever written about a clone; the rest follows:
//
//   reading    The own generation first. What it knows nothing of, neither by a record nor by a
//              range tombstone, is read in the base as of the cut, and so on down, where the base
//              stands on another one.
//   scanning   The base's records up to the cut are merged in as if they were the own generation's
//              (db/iterators/base_iterator.h). All of them are older than what was written into it,
//              so "the newest counts" and its range tombstones do the rest.
//   merging    For the base a cut is what a snapshot is: what was visible at it stays. In a
//              generation that stands on another one tombstones stay, too: what they hide isn't
//              older in their own stretch of the tree, but in the base's.
//   living     A base lives while a live generation stands on it, whatever becomes of the namespace
//              that it was cloned from: dropping, emptying and swapping that, and deleting ranges
//              of it, come after the cut.
//   counting   A clone holds what its base held at the cut, which is found out once and noted
//              (Manifest::base_tallies), and what its own layers change (db/counting/key_ledger.h).
//              Of those a segment doesn't tell by itself (SegmentInfo::of_clones).
//   expiring   An entry of the expiry index speaks for all namespaces whose generation is its key's
//              or stands on that: when it is due, the key is removed where it has expired; in a
//              clone, by a tombstone there.
//   replaying  The cut is the record's own sequence, so a restart comes to the same.
//
// The price is paid by clones and what they were cloned from alone: reading what a clone has not
// changed looks into its own generation first, where mostly a fingerprint says no, and while a
// clone lives, one version more is kept of each key that the source changes.
//
// A plain value; copies share their entries.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

// Of clones of clones: each costs the readers of the last one a look.
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
  // Ascending by generation, each once.
  explicit NamespaceBases(std::vector<NamespaceBase> bases);

  // What the generation stands on; null: nothing. Valid until the value changes.
  const NamespaceBase* Of(NamespaceGeneration generation) const {
    if (bases_ == nullptr) [[likely]]
      return nullptr;
    return Find(generation);
  }
  bool empty() const { return bases_ == nullptr; }
  // Ascending by generation.
  const std::vector<NamespaceBase>& all() const;

  void Add(const NamespaceBase& base);
  // How many there are below the generation.
  size_t DepthOf(NamespaceGeneration generation) const;
  bool IsBase(NamespaceGeneration generation) const;
  // Whether the generation is `below` or stands on it, directly or not.
  bool Reaches(NamespaceGeneration generation, NamespaceGeneration below) const;
  // What these generations stand on, directly or not.
  NamespaceBases Under(const std::vector<NamespaceGeneration>& generations) const;

  friend bool operator==(const NamespaceBases& a, const NamespaceBases& b) {
    return a.all() == b.all();
  }

 private:
  const NamespaceBase* Find(NamespaceGeneration generation) const;

  std::shared_ptr<const std::vector<NamespaceBase>> bases_;  // null: none
};

}  // namespace varve
