// The buffer estimates say about what the write buffers add to each generation.
//
// Thread-safety: all threads may use an object at once; mutex_ is held over one walk in memory.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/counting/buffer_walks.h"
#include "db/format/key_counts.h"
#include "db/version/super_version.h"

namespace varve {

// Returns what a record of a write buffer changes, given the version before it in the same buffer
// (null: none): a new key counts one, a tombstone takes one away.
KeyCounts ChangeOf(const RecordView& record, const RecordView* previous);

class BufferEstimates {
 public:
  static constexpr uint64_t kMostWalked = kMostWalkedRecords;

  // Estimates what the buffers of `state` hold up to the sequence `visible`.
  GenerationKeyCounts Estimate(const SuperVersion& state, SequenceNumber visible)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  BufferWalks<GenerationKeyCounts> walks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
