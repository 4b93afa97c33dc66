// A reader of change files that is ahead of whoever applies them: a thread of its own reads,
// verifies and unpacks the next files meanwhile.
//
// Thread-safety: one thread at a time uses a reader.
// Invariants: at most kFilesAhead files are unpacked and not taken yet. Their memory is used again,
// as a file has many thousand small texts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tools/archive/archive_file.h"
#include "util/os/file_system.h"

namespace varve {

class ArchiveFilesAhead {
 public:
  struct Entry {
    ArchiveFile file;
    uint64_t checksum = 0;  // of all of its bytes
  };

  // Begins to read the files. Requires: the file system outlives the reader.
  ArchiveFilesAhead(FileSystem* file_system, std::vector<std::string> paths);
  // Ends the thread, also if files are left.
  ~ArchiveFilesAhead();
  ArchiveFilesAhead(const ArchiveFilesAhead&) = delete;
  ArchiveFilesAhead& operator=(const ArchiveFilesAhead&) = delete;

  // Returns the next file, which is valid until the next call; null: there are no more. An error is
  // that of DecodeArchiveFile() or of the file system; nothing comes behind it.
  [[nodiscard]] absl::StatusOr<const Entry*> Next();

 private:
  static constexpr size_t kFilesAhead = 2;
  static constexpr size_t kEntries = kFilesAhead + 1;  // and one that the caller looks at

  void Run();
  absl::Status Load(const std::string& path, Entry* entry) const;
  bool MayLoad() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || loaded_ - taken_ < kFilesAhead;
  }
  bool MayTake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return loaded_ > taken_ || !failed_.ok();
  }

  FileSystem* const file_system_;
  const std::vector<std::string> paths_;
  // Each entry belongs to one thread at a time: to the caller's from when it is loaded until the
  // next one is taken.
  std::array<Entry, kEntries> entries_;
  absl::Mutex mutex_;
  size_t loaded_ ABSL_GUARDED_BY(mutex_) = 0;  // files so far
  size_t taken_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failed_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace varve
