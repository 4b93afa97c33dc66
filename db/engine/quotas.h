// The quotas of namespaces.
//
// The rule: a batch is refused if, with it, a namespace would hold more keys, or more bytes of keys
// and values, than its quota, and the batch itself adds to them. Exactly so, also among writers at
// the same time; what was there before a quota was set, or came by a swap, stays. Reads, deletes,
// and writes that make a namespace smaller go on.
//
// The cost: writes into namespaces with a quota go one at a time through quota_mutex_. Each
// generation has an upper bound, to which a batch adds all that it writes, as if each key was new.
// Only when that reaches the quota is it looked up what the batch replaces; only when that does not
// fit either are the keys counted (db/counting/key_counter.h), which takes up what was deleted.
// Other namespaces pay one look at a flag.
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
#include "db/counting/key_counter.h"
#include "db/engine/commit.h"
#include "db/engine/commit_pipeline.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/expiry/store_clock.h"
#include "db/format/key_tally.h"
#include "db/version/log_view.h"
#include "db/version/super_versions.h"
#include "varve/store.h"

namespace varve {

// The parts of the engine that quotas stand on. All outlive them.
struct QuotaParts {
  SuperVersions* versions = nullptr;
  LogView* log = nullptr;
  StoreClock* clock = nullptr;
  KeyCounter* counter = nullptr;
  ExpirySweeper* sweeper = nullptr;
  CommitPipeline* pipeline = nullptr;
  std::function<NamespaceGeneration()> new_generation;
};

class Quotas {
 public:
  explicit Quotas(QuotaParts parts) : parts_(std::move(parts)) {}

  // Commits the batch if it is within the quotas of its namespaces, else NamespaceIsFull.
  [[nodiscard]] absl::StatusOr<CommitResult> Submit(const WriteOptions& options, WriteBatch* batch)
      ABSL_LOCKS_EXCLUDED(quota_mutex_);

 private:
  // Returns OK if the batch fits, and stores what it adds to which generation and in `*checked` as
  // of which change of the namespaces.
  absl::Status Check(WriteBatch* batch, SequenceNumber* checked, KeyTallies* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  absl::Status CheckOne(const Commit& commit, const NamespaceDescription& space,
                        NamespaceGeneration generation, bool is_new, KeyTallies* added)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  absl::Status Count(NamespaceGeneration generation) ABSL_EXCLUSIVE_LOCKS_REQUIRED(quota_mutex_);
  // Returns what the batch would change in the generation now, exactly, as its users see it: they
  // do not see what has expired.
  absl::StatusOr<KeyTally> ChangeOf(const Commit& commit, NamespaceGeneration generation) const;

  const QuotaParts parts_;
  absl::Mutex quota_mutex_;
  KeyTallies bounds_ ABSL_GUARDED_BY(quota_mutex_);
  // The change of namespaces since which the bounds hold.
  SequenceNumber bounds_at_ ABSL_GUARDED_BY(quota_mutex_) = kNoSequence;
};

}  // namespace varve
