#include "db/log/log_syncer.h"

#include <algorithm>

#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {

absl::Status LogSyncer::Leave(const std::shared_ptr<File>& file, SequenceNumber last) {
  {
    absl::MutexLock lock(&mutex_);
    VARVE_ASSERT(left_count_ == 0 || left_[left_count_ - 1].last <= last);
    if (progress_->durable() >= last) return absl::OkStatus();
    if (left_count_ < kMostLeft) {
      left_[left_count_++] = {file, last};
      return absl::OkStatus();
    }
  }
  return Sync(file, last);
}

LogSyncer::LeftFiles LogSyncer::LeftUpTo(SequenceNumber target) {
  LeftFiles files;
  absl::MutexLock lock(&mutex_);
  VARVE_ASSERT(left_count_ <= kMostLeft);
  std::copy_if(left_.begin(), left_.begin() + left_count_, files.begin(),
               // A file that was left since is none of this sync's.
               [target](const LeftFile& left) { return left.last <= target; });
  return files;
}

void LogSyncer::Forget(SequenceNumber target) {
  absl::MutexLock lock(&mutex_);
  const auto end = left_.begin() + left_count_;
  const auto kept = std::remove_if(left_.begin(), end,
                                   [target](const LeftFile& left) { return left.last <= target; });
  left_count_ = static_cast<size_t>(kept - left_.begin());
  std::fill(kept, end, LeftFile());
}

absl::Status LogSyncer::Sync(const std::shared_ptr<File>& file, SequenceNumber target) {
  VARVE_ASSERT(target <= progress_->written() || progress_->failed());
  absl::MutexLock lock(&sync_mutex_);
  if (progress_->failed()) return progress_->status();
  if (progress_->durable() >= target) return absl::OkStatus();
  const LeftFiles left_files = LeftUpTo(target);  // closed when the mutex is free again
  const absl::Status status = GuardMemory("syncing the log", [&] {
    for (const LeftFile& left : left_files) {
      if (left.file == nullptr || left.file == file) continue;
      progress_->CountSync();
      VARVE_RETURN_IF_ERROR(left.file->Sync());
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
