// The key counter counts the keys of every namespace exactly, at no cost to writers, flushes and
// merges.
//
// The number of keys is the sum of what each layer changes; the layers are the segments
// (db/counting/segment_key_counts.h) and the write buffers. What a layer changes stays true while
// the layers below it are merged, so it is counted once: by a count of keys, which counts the
// layers that were written since the last one, or by the compactor's thread when the store is at
// rest. A merge to the bottom of the tree counts its output on the way. A clone's number includes
// the keys of its parent at the fork point, which are counted once.
//
// A count notes its findings for later counts only if they hold after a crash, too: a crash could
// undo the emptying of a namespace.
//
// Thread-safety: all functions may be called on any thread; those whose name ends in Locked need
// the commit lock (SuperVersions::mutex()). Counting goes on under count_mutex_, which is held
// across I/O and is acquired before the commit lock.
// Invariants:
//   (1) the segment counts describe the present version;
//   (2) findings of an earlier epoch are not noted in a later one.
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
#include "db/counting/layer_change.h"
#include "db/counting/segment_key_counts.h"
#include "db/format/key_counts.h"
#include "db/format/manifest_contents.h"
#include "db/iterators/store_iterator.h"
#include "db/version/super_versions.h"

namespace varve {

class KeyCounter {
 public:
  // A point is everything that a count starts from, as of one moment.
  struct Point {
    std::shared_ptr<const SuperVersion> state;
    SequenceNumber at = kNoSequence;  // the state holds everything up to here, and nothing newer
    SegmentKeyCounts segment_counts;  // of the state's version
    // The change of each counted write buffer, by the sequence up to which it was counted.
    std::map<SequenceNumber, GenerationKeyCounts> buffers;
    uint64_t epoch = 0;
    GenerationKeyCounts parents;  // as Manifest::parent_counts

    // Returns the uncounted segments that hold records of a generation in use.
    std::vector<SegmentKeyCounts::UncountedSegment> Uncounted() const;
  };
  // A clone of a namespace, with the point just before it, from which the parent's keys are
  // counted.
  struct Clone {
    NamespaceFork fork;
    Point before;
  };
  // The counts after an install. The installing thread makes them before it writes the manifest and
  // takes the commit lock for the install.
  struct Follow {
    SegmentKeyCounts segment_counts;
    GenerationKeyCounts parents;
  };
  // Brings the segment counts of the present tree to the `next` one.
  using Follower = absl::FunctionRef<void(const Version& next, SegmentKeyCounts* segment_counts)>;

  // `durable_sequence` may be called on any thread. With more than `most_full_buffers` full write
  // buffers the counter counts keys by a scan.
  KeyCounter(SuperVersions* versions, std::function<SequenceNumber()> durable_sequence,
             int most_full_buffers);

  // Begins with the counts that the manifest holds.
  void StartLocked(const Version& version, const Manifest& manifest);

  // --- Counting ---
  struct Counted {
    KeyCounts counts;
    SequenceNumber at = kNoSequence;
  };
  // Counts the keys of a namespace, or of a generation in use, as of now, with those that have
  // expired. Returns NoSuchNamespace if there is no such namespace.
  [[nodiscard]] absl::StatusOr<Counted> CountNamespace(NamespaceId space);
  [[nodiscard]] absl::StatusOr<KeyCounts> CountGeneration(NamespaceGeneration generation);
  // Counts the keys of all namespaces together, as of now, with those that have expired.
  [[nodiscard]] absl::StatusOr<Counted> CountAllNamespaces();
  // Counts the keys of [lower, upper) by reading them. Stores in `*required` the durable-after
  // sequence that the result has because it leaves out expired keys.
  [[nodiscard]] static absl::StatusOr<KeyCounts> CountByScan(
      const std::shared_ptr<const SuperVersion>& state, SequenceNumber at, std::string lower,
      std::string upper, IteratorClock clock, SequenceNumber* required);
  // Counts segments, oldest first, until all are counted or `stays_at_rest` returns false. Returns
  // whether all are counted. On damage it logs the error and returns true, as another try would
  // fail, too.
  bool CountAtRest(absl::FunctionRef<bool()> stays_at_rest);
  // Returns how many segments are uncounted.
  uint64_t UncountedSegments() const { return NewPoint().Uncounted().size(); }

  // --- Clones ---
  Point NewPointLocked() const;
  // Notes that a namespace was just cloned.
  void NoteCloneLocked(std::unique_ptr<Clone> clone) noexcept;
  // Counts the parent of the last clone if that costs little.
  void CountLastClone();

  // --- Installing (db/engine/version_set.h) ---
  Point NewPoint() const;
  // Returns what the buffer changes, if it was counted.
  std::optional<GenerationKeyCounts> ChangeOfBuffer(const WriteBuffer& full) const;
  // Return the counts of the `next` tree, made from those of `point` or from the present ones,
  // without parents that `forks` does not hold any more.
  static Follow FollowFrom(const Point& point, const Version& next, const NamespaceForks& forks,
                           Follower follow);
  Follow FollowLocked(const Version& next, const NamespaceForks& forks, Follower follow) const;
  // Makes `next` the present counts. `sees_less` says that records are gone which newer layers may
  // have replaced, so that the counts of those layers hold no longer. `flushed` is null, or points
  // to the sequence up to which segments hold everything.
  void ApplyLocked(Follow next, bool sees_less, const SequenceNumber* flushed) noexcept;
  // Writes the counts into the manifest of a clean end.
  void WriteToLocked(Manifest* manifest) const;

 private:
  // Counts one generation, and notes in `*point` what it finds out about the layers.
  absl::StatusOr<KeyCounts> CountAll(Point* point, NamespaceGeneration generation)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  void CountParent(const Clone& clone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  // Returns what the parent held at the fork point.
  absl::StatusOr<KeyCounts> CountsOfParent(const Point& point, const NamespaceFork& fork);
  void NoteParent(NamespaceGeneration generation, const KeyCounts& counts);
  absl::Status CountSegments(Point* point);
  absl::StatusOr<GenerationKeyCounts> CountBuffer(const Point& point,
                                                  const std::shared_ptr<WriteBuffer>& buffer,
                                                  SequenceNumber end)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(count_mutex_);
  // Returns whether findings from this point would hold after a crash, too.
  bool MayNote(const Point& point) const;
  // Note what was counted, if it still holds.
  void NoteSegments(Point* point, CountedGroup group);
  void NoteBuffer(const Point& point, const WriteBuffer& buffer, SequenceNumber end,
                  const GenerationKeyCounts& change);

  SuperVersions* const versions_;
  const std::function<SequenceNumber()> durable_sequence_;
  const size_t most_full_buffers_;

  SegmentKeyCounts segment_counts_ ABSL_GUARDED_BY(versions_->mutex());
  uint64_t epoch_ ABSL_GUARDED_BY(versions_->mutex()) = 0;
  // The change of each counted write buffer, by the sequence up to which it was counted.
  std::map<SequenceNumber, GenerationKeyCounts> buffers_ ABSL_GUARDED_BY(versions_->mutex());
  GenerationKeyCounts parents_ ABSL_GUARDED_BY(versions_->mutex());  // as Manifest::parent_counts
  std::unique_ptr<Clone> last_clone_ ABSL_GUARDED_BY(versions_->mutex());

  absl::Mutex count_mutex_ ABSL_ACQUIRED_BEFORE(versions_->mutex());
  // The walk through the buffer that was active at the last count.
  BufferProgress walk_ ABSL_GUARDED_BY(count_mutex_);
};

}  // namespace varve
