// The asynchronous writes are batches that are committed but not durable yet, each with the
// callback of its writer.
//
// Thread-safety: all functions may be called on any thread. The callbacks run without a lock, on
// the thread that calls Complete() or, for a write that is durable or has failed at once, Write().
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/version/log_view.h"
#include "varve/store.h"

namespace varve {

class AsyncWrites {
 public:
  using Done = std::function<void(absl::StatusOr<CommitResult>)>;

  explicit AsyncWrites(const LogView* log) : log_(*log) {}

  // Commits the batch by `submit`. Calls `done` once the batch is as durable as its mode promises,
  // or has failed. Takes the memory for the wait before it commits.
  void Write(absl::FunctionRef<absl::StatusOr<CommitResult>()> submit, Done done)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls the callbacks of the writes that are durable by now; of all writes once the log has
  // failed.
  void Complete() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Waiting = std::multimap<SequenceNumber, std::pair<CommitResult, Done>>;

  const LogView& log_;
  absl::Mutex mutex_;  // never held together with another lock
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
