#include "db/log/log_syncer.h"

#include <algorithm>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

absl::Status LogSyncer::Leave(const std::shared_ptr<File>& file, SequenceNumber last) {
  {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(file != nullptr && unsynced_count_ <= kMostUnsynced);
    VARVE_ASSERT(unsynced_count_ == 0 || unsynced_[unsynced_count_ - 1].last <= last);
    if (progress_->durable() >= last) return absl::OkStatus();
    if (unsynced_count_ < kMostUnsynced) {
      unsynced_[unsynced_count_++] = {file, last};
      return absl::OkStatus();
    }
  }
  return Sync(file, last);
}

LogSyncer::UnsyncedFiles LogSyncer::UnsyncedUpTo(SequenceNumber target) {
  UnsyncedFiles files;
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(unsynced_count_ <= kMostUnsynced);
  std::copy_if(unsynced_.begin(), unsynced_.begin() + unsynced_count_, files.begin(),
               // A file that was left since is none of this sync's.
               [target](const UnsyncedFile& unsynced) { return unsynced.last <= target; });
  return files;
}

void LogSyncer::Forget(SequenceNumber target) {
  absl::MutexLock lock(&mutex_);
  const auto end = unsynced_.begin() + unsynced_count_;
  const auto kept = std::remove_if(unsynced_.begin(), end, [target](const UnsyncedFile& unsynced) {
    return unsynced.last <= target;
  });
  unsynced_count_ = static_cast<size_t>(kept - unsynced_.begin());
  std::fill(kept, end, UnsyncedFile());
  VARVE_ASSERT(unsynced_count_ == 0 || unsynced_.front().last > target);
}

absl::Status LogSyncer::Sync(const std::shared_ptr<File>& file, SequenceNumber target) {
  VARVE_ASSERT(target <= progress_->written() || progress_->failed());
  VARVE_ASSERT(file != nullptr);
  absl::MutexLock lock(&sync_mutex_);
  if (progress_->failed()) return progress_->status();
  if (progress_->durable() >= target) return absl::OkStatus();
  const UnsyncedFiles unsynced_files = UnsyncedUpTo(target);  // closed when the mutex is free again
  const absl::Status status = GuardMemory("syncing the log", [&] {
    for (const UnsyncedFile& unsynced : unsynced_files) {
      if (unsynced.file == nullptr || unsynced.file == file) continue;
      progress_->CountSync();
      VARVE_RETURN_IF_ERROR(unsynced.file->Sync());
    }
    progress_->CountSync();
    return file->Sync();
  });
  if (!status.ok()) return progress_->Fail(status);
  progress_->Durable(target);
  Forget(target);
  return absl::OkStatus();
}

}  // namespace varve
