#include "tools/archive/archive_files_ahead.h"

#include <utility>

#include "util/base/hash.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {

ArchiveFilesAhead::ArchiveFilesAhead(FileSystem* file_system, std::vector<std::string> paths)
    : file_system_(file_system), paths_(std::move(paths)), thread_([this] { Run(); }) {}

ArchiveFilesAhead::~ArchiveFilesAhead() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

absl::StatusOr<const ArchiveFilesAhead::Entry*> ArchiveFilesAhead::Next() {
  absl::MutexLock lock(&mutex_);
  if (taken_ == paths_.size()) return nullptr;
  mutex_.Await(absl::Condition(this, &ArchiveFilesAhead::MayTake));
  if (loaded_ == taken_) return UnsharedCopy(failed_);
  return &entries_[taken_++ % kEntries];
}

void ArchiveFilesAhead::Run() {
  NameThread("varve-archive");
  for (size_t i = 0; i < paths_.size(); ++i) {
    {
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &ArchiveFilesAhead::MayLoad));
      if (stopped_) return;
    }
    absl::Status loaded = Load(paths_[i], &entries_[i % kEntries]);
    absl::MutexLock lock(&mutex_);
    if (!loaded.ok()) {
      failed_ = std::move(loaded);
      return;
    }
    ++loaded_;
  }
}

absl::Status ArchiveFilesAhead::Load(const std::string& path, Entry* entry) const {
  VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
  entry->checksum = HashKey(bytes);
  return DecodeArchiveFile(bytes, path, &entry->file);
}

}  // namespace varve
