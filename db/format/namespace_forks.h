// Namespace forks say which generations are clones. A fork records that one generation is a
// copy-on-write clone of another one, its parent, as of a sequence, the fork point. The clone
// shares the parent's contents until either side changes.
//
// Cloning writes one record to the log and touches no data. The clone gets a generation of its own,
// which is empty. The fork point is the sequence of that record. Writers of the source go on in its
// generation and know nothing of the clone. No other record is about the clone; the rest follows
// from the fork:
//
//   reading    A reader looks in the clone's own generation first. If neither a record nor a range
//              tombstone there says anything about the key, the reader looks in the parent as of
//              the fork point, then in the parent's parent, and so on.
//   scanning   The parent's records up to the fork point are merged in as if they were the clone's
//              (db/iterators/parent_iterator.h). All of them are older than what writers put into
//              the clone, so a reader takes the newest record of a key and hides what the clone's
//              range tombstones cover, as in any namespace.
//   merging    In the parent a fork point acts as a snapshot: a merge keeps what was visible at it.
//              In a clone a merge keeps tombstones, because the records that they hide lie in the
//              parent's range of the tree and not below them.
//   living     A parent lives while a live generation descends from it, whatever becomes of the
//              namespace that it was cloned from: dropping, emptying or swapping that namespace and
//              deleting ranges of it come after the fork point.
//   the past   The fork point may be older than the clone (WriteBatch::CloneNamespaceAt). Nobody
//              removes what had expired when such a clone was made, so the fork says up to which
//              instant its readers leave out what expired in the parent.
//   counting   A clone holds what its parent held at the fork point, which is counted once and
//              recorded (Manifest::parent_counts), and what its own layers change (db/counting). A
//              segment does not tell that by itself (SegmentInfo::of_clones).
//   expiring   An entry of the expiry index speaks for every namespace whose generation is its
//              key's or descends from that. When it is due, the sweeper removes the key where it
//              has expired; in a clone, by a tombstone in the clone's generation.
//   replaying  The fork point is the record's own sequence, so a restart arrives at the same forks.
//              The record of a clone of the past holds the fork point and the parent with its
//              forks: a manifest that was written meanwhile may have forgotten them.
//
// Only clones and their parents pay for this. A reader of a clone looks into the clone's own
// generation first, where for most keys an offset table answers that there is no record; and while
// a clone lives, merges keep one version more of each key that writers change in the source.
//
// Thread-safety: a plain value; copies share their entries.
// Invariants: all() ascends by generation, each once.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "type/record.h"
#include "type/tree_key.h"
#include "varve/types.h"

namespace varve {

// The greatest depth of clones of clones. Each level costs readers of the last clone one lookup.
inline constexpr size_t kMaxCloneDepth = 32;

struct NamespaceFork {
  NamespaceGeneration generation = kNoGeneration;  // of the clone
  NamespaceGeneration parent = kNoGeneration;
  SequenceNumber fork_point = kNoSequence;  // the clone sees the parent as of it
  // The clone does not have what had expired in the parent by then; 0: it was made at its fork
  // point, so the sweeper removes that.
  uint64_t expired_by_ms = 0;

  // Returns whether the clone does not have the parent's record.
  bool Hides(const RecordView& record) const {
    return record.expiry_ms != 0 && record.expiry_ms <= expired_by_ms &&
           record.kind == RecordKind::kValue;
  }
  friend bool operator==(const NamespaceFork&, const NamespaceFork&) = default;
};

class NamespaceForks {
 public:
  NamespaceForks() = default;
  // Requires: `forks` ascend by generation, each once.
  explicit NamespaceForks(std::vector<NamespaceFork> forks);

  // Returns the fork that made the generation; null if it is no clone. Valid until the value
  // changes.
  const NamespaceFork* Of(NamespaceGeneration generation) const {
    if (forks_ == nullptr) [[likely]]
      return nullptr;
    return Find(generation);
  }
  bool empty() const { return forks_ == nullptr; }
  // Returns all forks, ascending by generation.
  const std::vector<NamespaceFork>& all() const;

  void Add(const NamespaceFork& fork);
  // Returns how many ancestors the generation has.
  size_t DepthOf(NamespaceGeneration generation) const;
  bool IsParent(NamespaceGeneration generation) const;
  // Returns whether the generation is `ancestor` or descends from it.
  bool IsOrDescendsFrom(NamespaceGeneration generation, NamespaceGeneration ancestor) const;
  // Returns the forks of these generations and of all their ancestors.
  NamespaceForks AncestryOf(const std::vector<NamespaceGeneration>& generations) const;

  friend bool operator==(const NamespaceForks& a, const NamespaceForks& b) {
    return a.all() == b.all();
  }

 private:
  const NamespaceFork* Find(NamespaceGeneration generation) const;

  std::shared_ptr<const std::vector<NamespaceFork>> forks_;  // null: none
};

}  // namespace varve
