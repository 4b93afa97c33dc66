// The batch applier applies a committed batch to the state in memory: it puts records and entries
// of the expiry index into the active write buffer, range tombstones and changes of namespaces into
// the super version, and tells the watermark of clock marks and the key counter of clones. The
// commit pipeline and the recovery of the log use it.
//
// It works in two steps, so that nothing can fail once a batch is in the log: PrepareLocked() takes
// all the memory, and ApplyLocked() makes the changes and cannot fail. A plain batch
// (Commit::is_plain) needs memory in the buffer alone, and no preparation.
//
// Thread-safety: functions whose name ends in Locked need the commit lock; TakeCleared() may be
// called on any thread.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "db/changes/feed_table.h"
#include "db/commit/commit.h"
#include "db/counting/key_counter.h"
#include "db/expiry/clock_watermark.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/version/super_versions.h"

namespace varve {

class BatchApplier {
 public:
  // The changes that a batch makes beside its own records.
  struct Change {
    std::vector<ExpirySweeper::IndexEntry> expiring;
    uint64_t clock_mark = 0;
    SequenceNumber clock_mark_sequence = kNoSequence;
    std::vector<RangeTombstone> tombstones;
    std::vector<RangeTombstone> buffered_tombstones;  // copies of `tombstones`
    std::vector<RetiredGeneration> retired;
    std::unique_ptr<KeyCounter::Clone> clone;       // null: the batch clones no namespace
    std::shared_ptr<SuperVersion> next;             // null: the super version stays
    std::shared_ptr<const FeedTable::Feeds> feeds;  // null: they stay
  };

  BatchApplier(SuperVersions* versions, ExpirySweeper* sweeper, ClockWatermark* watermark,
               KeyCounter* counter, Horizons* horizons, FeedTable* feeds)
      : versions_(versions),
        sweeper_(sweeper),
        watermark_(watermark),
        counter_(counter),
        horizons_(horizons),
        feeds_(feeds) {}

  // Takes the memory for the operations in the active buffer and makes the next super version.
  // Returns null if nothing but the buffer changes. Stores in `*bytes` what the operations' own
  // records take in the buffer. `counts_clones` says whether the key counter is told of clones.
  // Requires: the operations are numbered, ascending.
  std::unique_ptr<Change> PrepareLocked(const std::vector<Commit::Operation>& operations,
                                        bool counts_clones, size_t* bytes);
  // Puts the operations into the active buffer and publishes the next super version. With
  // `readers_wait` readers wait until the operations are durable.
  // Requires: PrepareLocked() made `bytes` and `change` of the same operations, or they are plain,
  // numbered, and the buffer has reserved `bytes`; and everything before them is applied.
  void ApplyLocked(const std::vector<Commit::Operation>& operations, size_t bytes,
                   bool readers_wait, std::unique_ptr<Change> change) noexcept;

  // Inserts the operations into `buffer`, at `memory`, and notes them in `*batch`. Any number of
  // threads may do so at once.
  // Requires: the operations are numbered; they are plain, or PrepareLocked() returned null; and
  // `memory` has the bytes that they take.
  static void Insert(const std::vector<Commit::Operation>& operations, bool readers_wait,
                     WriteBuffer* buffer, char* memory, WriteBuffer::Batch* batch) noexcept;

  // Returns true, once, when the last change of a namespace's generation has become durable. Merges
  // may then remove what the namespace held.
  bool TakeCleared(SequenceNumber durable);

 private:
  class Preparation;

  SuperVersions* const versions_;
  ExpirySweeper* const sweeper_;
  ClockWatermark* const watermark_;
  KeyCounter* const counter_;
  Horizons* const horizons_;
  FeedTable* const feeds_;
  // The sequence of the last change of a namespace's generation whose space merges have not been
  // told to reclaim. kNoSequence: none.
  std::atomic<SequenceNumber> last_clear_{kNoSequence};
};

}  // namespace varve
