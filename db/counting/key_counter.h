// The key counter keeps the exact number of keys of every namespace, at no cost to writers, flushes
// and merges.
//
// The number is the sum of what each layer changes: the segments (db/counting/key_ledger.h) and the
// write buffers. What a layer changes stays true while the layers below it are merged, so it is
// found out once: by a count, for what was written since the count before, or by the compactor's
// thread when the store is at rest. Merges reconcile what they bring to the bottom on the way. For
// a clone the keys of its parent at the fork point are added, which are counted once.
//
// What a count finds out may be noted for later ones only if it holds after a crash, too: a crash
// could take back that a namespace was emptied.
//
// Thread-safety: all functions may be called on any thread; those whose name ends in Locked need
// the commit lock (SuperVersions::mutex()). Counting goes on under count_mutex_, which is held
// across I/O and is acquired before the commit lock.
// Invariants:
//   (1) the ledger describes the present version;
//   (2) what was found out in an earlier epoch is not noted in a later one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/counting/key_ledger.h"
#include "db/counting/layer_change.h"
#include "db/format/key_tally.h"
#include "db/format/manifest_contents.h"
#include "db/iterators/store_iterator.h"
#include "db/version/super_versions.h"

namespace varve {

class KeyCounter {
 public:
  // Everything that a count starts from, as of one moment.
  struct Point {
    std::shared_ptr<const SuperVersion> state;
    SequenceNumber at = kNoSequence;  // everything up to here is in the state, and nothing newer
    KeyLedger ledger;                 // of the state's version
    // By the sequence at its end, what a write buffer changes.
    std::map<SequenceNumber, KeyTallies> buffers;
    uint64_t epoch = 0;
    KeyTallies parents;  // as Manifest::base_tallies

    // Returns the segments of the tree for which nothing is known, and which hold something of a
    // generation in use.
    std::vector<KeyLedger::UnsettledSegment> Unsettled() const;
  };
  // The moment at which a namespace was cloned: the parent held what `before` says.
  struct Clone {
    NamespaceBase base;
    Point before;
  };
  // The counts as they are after an install. The installing thread makes them before it writes the
  // manifest and takes the commit lock for good.
  struct Follow {
    KeyLedger ledger;
    KeyTallies parents;
  };
  // Brings the ledger of the present tree to the `next` one.
  using Follower = absl::FunctionRef<void(const Version& next, KeyLedger* ledger)>;

  // `durable_sequence` is asked on any thread. With more than `most_full_buffers` full write
  // buffers keys are counted by a scan.
  KeyCounter(SuperVersions* versions, std::function<SequenceNumber()> durable_sequence,
             int most_full_buffers);

  // Begins with what the manifest knows.
  void StartLocked(const Version& version, const Manifest& manifest);

  // --- Counting ---
  struct Counted {
    KeyTally tally;
    SequenceNumber at = kNoSequence;
  };
  // Counts the keys of a namespace, or of a generation in use, as of now. Records that have expired
  // count. NoSuchNamespace.
  [[nodiscard]] absl::StatusOr<Counted> CountNamespace(NamespaceId space);
  [[nodiscard]] absl::StatusOr<KeyTally> CountGeneration(NamespaceGeneration generation);
  // Counts the keys of [lower, upper) by reading them; `*required` is the sequence that the result
  // depends on for what it leaves out as expired.
  [[nodiscard]] static absl::StatusOr<KeyTally> CountByScan(
      const std::shared_ptr<const SuperVersion>& state, SequenceNumber at, std::string lower,
      std::string upper, IteratorClock clock, SequenceNumber* required);
  // Reconciles segments, oldest first, until all are, or `stays_at_rest` returns false. Returns
  // whether all are. Not an error: damage, which is logged.
  bool ReconcileAtRest(absl::FunctionRef<bool()> stays_at_rest);
  // Returns how many segments have not been reconciled.
  uint64_t UnsettledSegments() const { return NewPoint().Unsettled().size(); }

  // --- Clones ---
  Point NewPointLocked() const;
  // A namespace was just cloned.
  void NoteCloneLocked(std::unique_ptr<Clone> clone) noexcept;
  // Counts the parent of the last clone, where that costs little.
  void CountLastClone();

  // --- Installing (db/engine/version_set.h) ---
  Point NewPoint() const;
  // Returns what the buffer changes, if that is known.
  std::optional<KeyTallies> ChangeOfBuffer(const WriteBuffer& full) const;
  // Returns the counts of the `next` tree, from those of `point` or from the present ones. Parents
  // that `bases` does not know any more are left out.
  static Follow FollowFrom(const Point& point, const Version& next, const NamespaceBases& bases,
                           Follower follow);
  Follow FollowLocked(const Version& next, const NamespaceBases& bases, Follower follow) const;
  // The tree changes. `sees_less`: keys that layers above replaced may be gone, so that what was
  // found out of these holds no longer. `flushed`: null, or up to where buffers became segments.
  void ApplyLocked(Follow next, bool sees_less, const SequenceNumber* flushed) noexcept;
  // Writes what is known into the manifest of a clean end.
  void WriteToLocked(Manifest* manifest) const;

 private:
  absl::StatusOr<KeyTally> CountAll(Point point, NamespaceGeneration generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  void CountParent(const Clone& clone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  // Returns what the parent held at the fork point.
  absl::StatusOr<KeyTally> TallyOfParent(const Point& point, const NamespaceBase& base);
  void NoteParent(NamespaceGeneration generation, const KeyTally& tally);
  absl::Status ReconcileSegments(Point* point);
  absl::StatusOr<KeyTallies> ReconcileBuffer(const Point& point,
                                             const std::shared_ptr<WriteBuffer>& buffer,
                                             SequenceNumber end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  // Returns whether what is found out from this point on holds after a crash, too.
  bool MayNote(const Point& point) const;
  // Notes what was found out, if it still holds.
  void NoteSegments(Point* point, SettledGroup group);
  void NoteBuffer(const Point& point, const WriteBuffer& buffer, SequenceNumber end,
                  const KeyTallies& change);

  SuperVersions* const versions_;
  const std::function<SequenceNumber()> durable_sequence_;
  const size_t most_full_buffers_;

  KeyLedger ledger_ ABSL_GUARDED_BY(versions_->mutex());
  uint64_t epoch_ ABSL_GUARDED_BY(versions_->mutex()) = 0;
  // By the sequence up to which it was looked through, what a write buffer changes.
  std::map<SequenceNumber, KeyTallies> buffers_ ABSL_GUARDED_BY(versions_->mutex());
  KeyTallies parents_ ABSL_GUARDED_BY(versions_->mutex());  // as Manifest::base_tallies
  std::unique_ptr<Clone> last_clone_ ABSL_GUARDED_BY(versions_->mutex());

  absl::Mutex count_mutex_ ABSL_ACQUIRED_BEFORE(versions_->mutex());
  // The walk through the buffer that was active at the last count.
  BufferProgress walk_ ABSL_GUARDED_BY(count_mutex_);
};

}  // namespace varve
