// Quotas limit how many keys, and how many bytes of keys and values, a namespace may hold, and how
// many bytes all namespaces together.
//
// The rule: a batch is refused if it adds to a namespace and the namespace would then hold more
// than its quota, or if it adds to all together and they would then hold more than their limit. The
// rule is exact, also with concurrent writers. Contents that were there before the quota was set,
// or that came by a swap, stay; a clone may pass the limit of all. Reads, deletes, and writes that
// make a namespace smaller are never refused.
//
// The cost: writes into namespaces with a quota go one at a time through quota_mutex_. Each
// generation has an upper bound, to which a batch adds all that it writes, as if each key was new.
// Only when the bound reaches the quota does Submit() look up what the batch replaces, and only
// when that does not fit either does it count the keys (db/counting/key_counter.h), which lowers
// the bound by what was deleted. Writes into other namespaces only read a flag. The limit of all
// has such a bound, too (data_bound.h): while that is below the limit, writes do not come here.
//
// Thread-safety: Submit() may be called on any thread. quota_mutex_ is held across I/O and a whole
// commit; it is acquired before the sweeper's, the key counter's and the commit lock.
// Invariants: no generation holds more than its bound; one without a bound was not counted yet. The
// bounds are forgotten whenever a namespace changes.
#pragma once

#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/commit/commit.h"
#include "db/commit/commit_pipeline.h"
#include "db/commit/data_bound.h"
#include "db/counting/key_counter.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/expiry/store_clock.h"
#include "db/format/key_counts.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/store.h"

namespace varve {

// The parts of the engine that quotas depend on. All outlive them.
struct QuotaParts {
  SuperVersions* versions = nullptr;
  LogView* log = nullptr;
  StoreClock* clock = nullptr;
  KeyCounter* counter = nullptr;
  ExpirySweeper* sweeper = nullptr;
  CommitPipeline* pipeline = nullptr;
  DataBound* data_bound = nullptr;  // null: data has no limit
  std::function<NamespaceGeneration()> new_generation;
};

class Quotas {
 public:
  explicit Quotas(QuotaParts parts) : parts_(std::move(parts)) {}

  // Commits the batch if it is within the quotas of its namespaces and the limit of all, else
  // NamespaceIsFull or StoreIsFull.
  [[nodiscard]] absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch)
      ABSL_LOCKS_EXCLUDED(quota_mutex_);

 private:
  // Returns OK if the batch fits. Stores in `*added` what it adds to each generation with a quota,
  // and in `*checked` as of when it fits.
  absl::Status Check(WriteBatch* batch, CheckedBatch* checked, GenerationKeyCounts* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  // Checks the batch against the limit of all.
  absl::Status CheckData(const Commit& commit, CheckedBatch* checked)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  // Returns by how many bytes the batch changes all namespaces together now.
  absl::StatusOr<int64_t> BytesOf(const Commit& commit) const;
  absl::Status CheckOne(const Commit& commit, const NamespaceDescription& space,
                        NamespaceGeneration generation, bool is_new, GenerationKeyCounts* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  absl::Status Count(NamespaceGeneration generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  // Returns exactly what the batch would change in the generation now, as readers see it: they do
  // not see what has expired.
  absl::StatusOr<KeyCounts> ChangeOf(const Commit& commit, NamespaceGeneration generation) const;

  const QuotaParts parts_;
  absl::Mutex quota_mutex_;
  GenerationKeyCounts bounds_ ABSL_GUARDED_BY(quota_mutex_);
  // The change of namespaces since which the bounds hold.
  SequenceNumber bounds_at_ ABSL_GUARDED_BY(quota_mutex_) = kNoSequence;
};

}  // namespace varve
