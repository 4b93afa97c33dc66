// The range watches are the watches of a store (include/varve/range_watch.h). A watch looks through
// the write buffers for what was written after the point up to which it has looked, as the
// condition of a batch does (db/commit/range_check.h). The records of a buffer lose the order of
// their arrival with the flush, so the flusher has each watch look through a buffer before that
// buffer goes. So a watch stays exact however long it lives, and keeps no buffer and no snapshot.
//
// Thread-safety: all functions may be called on any thread.
// Invariants: no buffer is flushed that holds a record behind the point up to which a watch has
// looked: a watch that begins while a buffer is flushed begins behind it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "db/commit/commit_pipeline.h"
#include "db/expiry/expiry_sweeper.h"
#include "varve/range_watch.h"

namespace varve {

class RangeWatches {
 public:
  // All outlive the watches.
  struct Parts {
    SuperVersions* versions = nullptr;
    CommitPipeline* pipeline = nullptr;
    ExpirySweeper* sweeper = nullptr;
    const StoreClock* clock = nullptr;
  };

  explicit RangeWatches(const Parts& parts) : parts_(parts) {}
  ~RangeWatches();
  RangeWatches(const RangeWatches&) = delete;
  RangeWatches& operator=(const RangeWatches&) = delete;

  // Begins a watch over [lower, upper); an empty `upper` means to the end of the namespace. Removes
  // what has expired first, so that its later removal is no change. Returns NoSuchNamespace if
  // there is no such namespace.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<RangeWatch>> Begin(NamespaceId space,
                                                                  std::string_view lower,
                                                                  std::string_view upper);
  // Has the watches look through a buffer that is about to be flushed.
  // Requires: the buffer is sealed and still in the flush queue.
  void LookThrough(const WriteBuffer& buffer);
  // Tells the watches of an ingest that changed what lies in [lower, upper), which are tree keys,
  // up to the version `last`.
  // Requires: it was published, and no other write since.
  void NoteIngest(std::string_view lower, std::string_view upper, SequenceNumber last);

 private:
  class Watch;
  class Look;

  const Parts parts_;
  std::atomic<size_t> count_{0};
  absl::Mutex mutex_;
  struct State;  // of a watch, shared with the flusher while that looks through a buffer
  std::unordered_set<std::shared_ptr<State>> states_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
