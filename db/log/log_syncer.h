// The log syncer puts on disk what the log's writer handed to the kernel.
//
// A log file that is full is left unsynced where nobody waits for it; each sync begins with the
// files that were left. So a block may be on disk while one in an earlier file is not; its durable
// mark does not reach that far then, and recovery takes what is missing for a tear. At most
// kMostLeft files are left, so that a sync stays bounded. This gains 20 % for unsynced fills of
// 1000 bytes (docs/decisions/0011).
//
// Thread-safety: all functions may be called from any thread. Syncs run one at a time, since the
// kernel reports an error to one of them only.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "db/log/log_progress.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

class LogSyncer {
 public:
  // Requires: `progress` outlives the syncer.
  explicit LogSyncer(LogProgress* progress) : progress_(progress) {}

  // Leaves a full file, whose last operation is `last`, to the next sync. Syncs it now if too many
  // files were left before. Requires: files are left in the order of their operations.
  [[nodiscard]] absl::Status Leave(const std::shared_ptr<File>& file, SequenceNumber last)
      ABSL_LOCKS_EXCLUDED(sync_mutex_, mutex_);
  // Syncs the files that were left and then `file`: everything up to `target` is durable. A failure
  // is the log's. Requires: everything up to `target` is written, the rest of it to `file`.
  [[nodiscard]] absl::Status Sync(const std::shared_ptr<File>& file, SequenceNumber target)
      ABSL_LOCKS_EXCLUDED(sync_mutex_, mutex_);

 private:
  struct LeftFile {
    std::shared_ptr<File> file;
    SequenceNumber last = kNoSequence;
  };
  static constexpr size_t kMostLeft = 4;
  using LeftFiles = std::array<LeftFile, kMostLeft>;

  // Returns the files that hold nothing behind `target`, and keeps the others.
  LeftFiles LeftUpTo(SequenceNumber target) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(SequenceNumber target) ABSL_LOCKS_EXCLUDED(mutex_);

  LogProgress* const progress_;
  absl::Mutex sync_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // held over a sync
  absl::Mutex mutex_;
  LeftFiles left_ ABSL_GUARDED_BY(mutex_);  // oldest first
  size_t left_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
