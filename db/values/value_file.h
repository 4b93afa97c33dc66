// A file that segments point into for values that were written once: one of the log's, or a value
// file of its own (db/values/value_file_format.h). And the registry of those that are in use.
//
// While the log uses a file `NNNNNN.log` it is the log's alone to remove or use again. When the log
// gives it up and segments still point into it, it becomes a value file: it gets the name
// `NNNNNN.val` (TakeOver), and goes when the last who holds it lets it go and no manifest names it
// (MarkObsolete), as segments do. Whoever points into a file holds it: segments, and so the
// Versions and whoever reads them.
//
// Thread-safe. Files are opened at first use, and found under either name. Damage is reported with
// file and offset, and logged once.
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

// What is wrong with the bytes read at `place`, that they are not the operation of this user key
// and sequence; empty: nothing is, and `record` views into them.
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

  // The bytes that lie at [offset, offset + size), fewer at the end of the file.
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

  // Bytes on disk; 0: not known, or it is the log's.
  uint64_t Size();
  bool is_of_log() const { return is_of_log_.load(std::memory_order_acquire); }
  // It has its own name, and ends at `size` (0: where it does).
  void TakeOver(uint64_t size);
  // The log has given it up: it gets its own name, and ends at `end` (0: where it does).
  [[nodiscard]] absl::Status LeaveLog(uint64_t end);

  // Goes with its last user, from now on; null: not any more.
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
  // The one handle of the file, made where nobody has it yet; then it is taken for the log's.
  std::shared_ptr<ValueFile> Acquire(FileSystem* file_system, const std::string& directory,
                                     uint64_t number);
  // Null: nobody holds it.
  std::shared_ptr<ValueFile> Find(uint64_t number) const;
  // Whether somebody holds it while it still goes by the log's name.
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
