// A value file is a file that segments point into for values that were written once: one of the
// log's, or a file of its own (db/values/value_file_format.h). ValueFiles is the registry of those
// that are in use.
//
// While the log uses a file `NNNNNN.log` only the log may remove it or use it again. When the log
// gives it up and segments still point into it, it becomes a value file: it gets the name
// `NNNNNN.val` (TakeOver), and it is removed when its last holder lets it go and no manifest names
// it (MarkObsolete), as segments are. Segments hold the files that they point into, and so do the
// versions and readers that hold the segments.
//
// Thread-safety: all functions may be called by any thread. Files are opened at first use, and
// found under either name. Damage is reported with file and offset, and logged once.
// Invariants: there is at most one handle of a number in a registry.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/format/value_place.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

class FileRemover;
class ValueFiles;

// Returns what is wrong with the bytes read at `place`, if they are not the operation of this user
// key and sequence; empty if nothing is, and then `record` views into them.
std::string_view DamageOfValue(std::string_view bytes, const ValuePlace& place,
                               std::string_view user_key, SequenceNumber sequence,
                               RecordView* record);

class ValueFile {
 public:
  ValueFile(ValueFiles* registry, FileSystem* file_system, std::string directory, uint64_t number);
  ~ValueFile();
  ValueFile(const ValueFile&) = delete;
  ValueFile& operator=(const ValueFile&) = delete;

  uint64_t number() const { return number_; }

  // Reads the bytes at [offset, offset + size), fewer at the end of the file; returns how many.
  [[nodiscard]] absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer);
  // A hint that the bytes will be read soon; does nothing where the file isn't open yet.
  void Prefetch(uint64_t offset, size_t size) const {
    if (const File* file = open_.load(std::memory_order_acquire); file != nullptr)
      file->Prefetch(offset, size);
  }
  // Reads the whole operation at `place` into `*bytes` and verifies it: that it is undamaged, and
  // that of this user key and sequence. `record` views into `*bytes`, which only grows.
  [[nodiscard]] absl::Status ReadOperation(const ValuePlace& place, std::string_view user_key,
                                           SequenceNumber sequence, std::string* bytes,
                                           RecordView* record);
  // DataLoss: what lies at `offset` is not what was written there. Noted, and logged once.
  absl::Status Damaged(uint64_t offset, std::string_view what);
  bool is_damaged() const { return is_damaged_.load(std::memory_order_relaxed); }

  // Returns the bytes on disk; 0 if they are not known, or the file is the log's.
  uint64_t Size();
  bool is_of_log() const { return is_of_log_.load(std::memory_order_acquire); }
  // Notes that the file has its own name, and ends at `size` (0: at the end of the file).
  void TakeOver(uint64_t size);
  // Gives the file, which the log has given up, its own name. It ends at `end` (0: at the end of
  // the file).
  [[nodiscard]] absl::Status LeaveLog(uint64_t end);

  // From now on the file is removed with its last holder; null takes that back.
  void MarkObsolete(FileRemover* remover) { remover_.store(remover, std::memory_order_release); }

 private:
  absl::StatusOr<const File*> Open();

  ValueFiles* const registry_;
  FileSystem* const file_system_;
  const std::string directory_;
  const uint64_t number_;
  std::atomic<FileRemover*> remover_{nullptr};
  std::atomic<bool> is_of_log_{true};
  std::atomic<bool> is_damaged_{false};
  std::atomic<uint64_t> size_{0};
  std::atomic<const File*> open_{nullptr};
  absl::Mutex mutex_;  // held while the file is opened
  std::unique_ptr<File> file_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> reported_ ABSL_GUARDED_BY(mutex_);  // messages
};

class ValueFiles {
 public:
  // Returns the one handle of the file. A new handle is taken for one of the log's.
  std::shared_ptr<ValueFile> Acquire(FileSystem* file_system, const std::string& directory,
                                     uint64_t number);
  // Returns null if nobody holds the file.
  std::shared_ptr<ValueFile> Find(uint64_t number) const;
  // Returns whether somebody holds the file while it still has the log's name.
  bool HoldsOfLog(uint64_t number) const {
    const std::shared_ptr<ValueFile> file = Find(number);
    return file != nullptr && file->is_of_log();
  }

 private:
  friend class ValueFile;
  void Forget(uint64_t number);

  mutable absl::Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<ValueFile>> files_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
