// The log syncer syncs the log files that the log's writer has written.
//
// A full log file that no thread waits for stays unsynced, and the next sync syncs it first. So a
// block may be on disk while one in an earlier file is not. The durable mark of that block is then
// lower than the missing operations, so recovery takes what is missing for a tear. At most
// kMostUnsynced files stay unsynced, so that a sync stays bounded. This makes unsynced fills of
// 1000 bytes 20 % faster (docs/decisions/0011).
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

  // Leaves a full file, whose last operation is `last`, to the next sync. Syncs it now if
  // kMostUnsynced files are unsynced already. Requires: files come in the order of their
  // operations.
  [[nodiscard]] absl::Status Leave(const std::shared_ptr<File>& file, SequenceNumber last)
      ABSL_LOCKS_EXCLUDED(sync_mutex_, mutex_);
  // Syncs the unsynced files and then `file`, so that everything up to `target` is durable. A
  // failure is a final failure of the log.
  // Requires: everything up to `target` is written to those files and to `file`.
  [[nodiscard]] absl::Status Sync(const std::shared_ptr<File>& file, SequenceNumber target)
      ABSL_LOCKS_EXCLUDED(sync_mutex_, mutex_);

 private:
  struct UnsyncedFile {
    std::shared_ptr<File> file;
    SequenceNumber last = kNoSequence;
  };
  static constexpr size_t kMostUnsynced = 4;
  using UnsyncedFiles = std::array<UnsyncedFile, kMostUnsynced>;

  // Returns the unsynced files that hold nothing behind `target`.
  UnsyncedFiles UnsyncedUpTo(SequenceNumber target) ABSL_LOCKS_EXCLUDED(mutex_);
  void Forget(SequenceNumber target) ABSL_LOCKS_EXCLUDED(mutex_);

  LogProgress* const progress_;
  absl::Mutex sync_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // held over a sync
  absl::Mutex mutex_;
  UnsyncedFiles unsynced_ ABSL_GUARDED_BY(mutex_);  // oldest first
  size_t unsynced_count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
