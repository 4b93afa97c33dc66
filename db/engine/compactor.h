// The compactor is the thread that merges segments: it removes dead ones, collects values, keeps
// the tree in the shape that the picker asks for, and merges ranges on request. When the store is
// at rest, it counts the keys of uncounted segments, and brings into memory what the map of keys
// lacks.
//
// One merge is under way at a time. Job threads help with the parts of a large one
// (db/compaction/merge_parts.h).
//
// While write buffers are being flushed, and for a second after the last flush, the compactor tells
// the picker that a burst of writes goes on. The picker then puts off merges that can wait, so that
// the runs of a burst are merged once (docs/compaction.md).
//
// A merge that fails is tried again after 1 s, 2 s, 4 s and so on: a damaged segment stays damaged,
// and each try may read and write gigabytes.
//
// Thread-safety: all functions may be called on any thread. mutex_ guards the work to do; it is
// never held across I/O and is acquired after the commit lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/commit/commit_pipeline.h"
#include "db/compaction/purge.h"
#include "db/engine/version_set.h"
#include "db/ingest/ingest_files.h"
#include "util/base/duration_histogram.h"
#include "util/os/steady_condition.h"
#include "varve/compaction_picker.h"

namespace varve {

// The merge that is under way.
struct MergeUnderWay {
  CompactionReason reason = CompactionReason::kPicker;
  std::vector<uint64_t> segments;  // the numbers of its inputs, ascending
  uint64_t bytes = 0;              // of their files
  int output_level = 0;
  size_t parts = 1;  // that are merged at once, as far as there are threads
  SteadyTime began = SteadyTime::min();
};

class Compactor {
 public:
  // `parts` are those of the version set.
  Compactor(VersionSetParts parts, std::shared_ptr<const CompactionPicker> picker,
            VersionSet* version_set, CommitPipeline* pipeline)
      : parts_(std::move(parts)),
        picker_(std::move(picker)),
        version_set_(*version_set),
        pipeline_(*pipeline) {}

  void Start();
  // Cancels the merge that is under way and returns once the thread has ended. Requests that wait
  // get Aborted.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Tells the thread that there may be something to merge.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes that a new tree was installed; `flushed` says whether by a flush.
  void NoteInstalled(bool flushed) noexcept ABSL_LOCKS_EXCLUDED(mutex_);
  // Merges [lower, upper) (tree keys; an empty `upper` means no end) into one run and waits for it.
  // Aborted: the store is being closed.
  [[nodiscard]] absl::Status CompactRange(std::string lower, std::string upper)
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Rewrites the segments that hold something of the key, calls `rewritten` before any other merge
  // begins, and waits for both. Returns how many records have gone, or the error of `rewritten`.
  // Aborted: the store is being closed.
  // Requires: segments hold everything up to purged.up_to.
  [[nodiscard]] absl::StatusOr<uint64_t> Purge(const PurgedKey& purged,
                                               absl::FunctionRef<absl::Status()> rewritten)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Rewrites one segment that points into one of the value files `numbers` (ascending), moves those
  // of its values, and waits for it. Returns false if there is none. Aborted as above.
  [[nodiscard]] absl::StatusOr<bool> EmptyValueFiles(const std::vector<uint64_t>& numbers)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Held by who purges keys: one at a time.
  absl::Mutex& purging() ABSL_LOCK_RETURNED(purge_mutex_) { return purge_mutex_; }
  // The files that a purge leaves alone though no version names them.
  const std::shared_ptr<IngestFiles>& ingest_files() const { return ingest_files_; }

  // Asks for offset tables and fences to be brought into memory once the store is at rest, as far
  // as there is room for them beside those that are there.
  void WantIndexes() ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns nothing if no merge is under way.
  std::optional<MergeUnderWay> under_way() const ABSL_LOCKS_EXCLUDED(mutex_);

  uint64_t compactions() const {
    return std::accumulate(compactions_.begin(), compactions_.end(), uint64_t{0});
  }
  // Returns the number of merges that were made for the reason.
  uint64_t compactions(CompactionReason reason) const {
    return compactions_[static_cast<size_t>(reason)].load();
  }
  DurationCounts times() const { return times_.Read(); }
  // Returns whether the last merge found no space.
  bool lacks_space() const { return lacks_space_.load(std::memory_order_relaxed); }
  // Returns in how many parts the merges were made, those counted as one that were not cut.
  uint64_t parts() const { return merged_parts_.load(); }
  uint64_t failed_compactions() const { return failed_compactions_.load(); }
  uint64_t compacted_bytes() const { return compacted_bytes_.load(); }
  uint64_t input_bytes() const { return input_bytes_.load(); }

 private:
  // A request for merges. It lives on the stack of the thread that waits for it.
  struct Request {
    std::function<absl::Status()> work;
    bool done = false;  // guarded by mutex_, like status
    absl::Status status;
  };
  enum class Work { kStop, kCountKeys, kLoadIndexes, kTrimHistory, kRequest, kMerge };
  struct Next {
    Work work = Work::kStop;
    Request* request = nullptr;
  };
  // The thread's memory of merges that failed. Steps that only remove segments go on meanwhile,
  // because they need no I/O that could fail again.
  struct Retry {
    absl::Status trouble;
    absl::Duration pause;
    SteadyTime next_try = SteadyTime::min();
    SteadyTime look_again_at = kEndOfTime;
  };

  void Loop();
  Next WaitForWork(const Retry& retry) ABSL_LOCKS_EXCLUDED(mutex_);
  bool HasWorkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsInBurst(const Retry& retry) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_stopping() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes what histories need not keep any more, as far as it can be removed without a merge.
  void TrimHistory();
  // Has the thread do the work, and waits for it.
  absl::Status Ask(std::function<absl::Status()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  void Serve(Request* request) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes one step and notes whether it failed.
  void Merge(Retry* retry);
  void NoteSuccess(bool more, bool merged, bool in_burst, Retry* retry);
  void NoteFailure(const absl::Status& failure, Retry* retry);
  void CountKeys();
  void LoadIndexes() ABSL_LOCKS_EXCLUDED(mutex_);
  // Rests for as long as the work since `*since` took. Returns false once there is something else
  // to do.
  bool StaysAtRest(SteadyTime* since) ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the next step towards the tree's shape. Returns false if there is no step to take: the
  // tree has the shape that the picker asks for, given `in_burst`, or the next step is a merge and
  // `may_merge` is false.
  absl::StatusOr<bool> Step(bool may_merge, bool in_burst);
  // Returns how many records were purged.
  absl::StatusOr<uint64_t> Run(const Version& version, const CompactionPlan& plan,
                               const CompactionContext& context) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status RunRange(std::string_view lower, std::string_view upper);
  absl::StatusOr<uint64_t> RunPurge(const PurgedKey& purged);
  CompactionContext NewJob();

  const VersionSetParts parts_;
  const std::shared_ptr<const CompactionPicker> picker_;
  VersionSet& version_set_;
  CommitPipeline& pipeline_;
  std::atomic<bool> cancel_{false};
  std::array<std::atomic<uint64_t>, kCompactionReasons> compactions_{};
  DurationHistogram times_;
  std::atomic<bool> lacks_space_{false};
  std::atomic<uint64_t> failed_compactions_{0}, compacted_bytes_{0}, input_bytes_{0},
      merged_parts_{0};

  mutable absl::Mutex mutex_;
  SteadyCondition work_;
  absl::CondVar request_done_;
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  bool count_due_ ABSL_GUARDED_BY(mutex_) = true;  // the tree has changed since it was done
  bool indexes_wanted_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  SteadyTime last_flush_ ABSL_GUARDED_BY(mutex_) = SteadyTime::min();
  std::deque<Request*> requests_ ABSL_GUARDED_BY(mutex_);
  std::optional<MergeUnderWay> under_way_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
  absl::Mutex purge_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  const std::shared_ptr<IngestFiles> ingest_files_ = std::make_shared<IngestFiles>();
};

}  // namespace varve
