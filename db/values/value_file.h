// A value file is a file with values that segments point to: a log file, or a file that a flush or
// a collection wrote (db/values/value_file_format.h). ValueFiles is the registry of the value files
// in use.
//
// While the log uses a file `NNNNNN.log`, only the log may remove or recycle it. When the log gives
// it up and segments still point into it, the engine renames it to `NNNNNN.val` (LeaveLog). When no
// manifest names the file any more, the engine calls MarkObsolete(), and the last holder to release
// the file has it removed. Segments hold the files that they point into; versions and readers hold
// the segments.
//
// The first read opens the file, under either name. A reader that meets damage gets an error with
// file and offset, and the value file logs each place once.
//
// Thread-safety: all functions may be called on any thread.
// Invariants: a registry has at most one object for a number.
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
#include "db/format/value_handle.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

class FileRemover;
class ValueFiles;

// Verifies that `bytes`, which were read at `handle`, are the operation of this user key and
// sequence. Returns what is wrong with them; empty if nothing is, and then `record` views into
// them; its value may be compressed.
std::string_view DamageOfValue(std::string_view bytes, const ValueHandle& handle,
                               std::string_view user_key, SequenceNumber sequence,
                               RecordView* record);
// Decompresses the value of an operation, if it is compressed, into `*buffer`, which only grows,
// and has `record` view it there. Returns what is wrong with it; empty if nothing is.
std::string_view DecompressOperation(RecordView* record, std::string* buffer);

class ValueFile {
 public:
  ValueFile(ValueFiles* registry, FileSystem* file_system, std::string directory, uint64_t number);
  ~ValueFile();
  ValueFile(const ValueFile&) = delete;
  ValueFile& operator=(const ValueFile&) = delete;

  uint64_t number() const { return number_; }

  // Reads the bytes at [offset, offset + size), fewer at the end of the file; returns how many.
  [[nodiscard]] absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer);
  // Tells the kernel that the bytes will be read soon. Returns true if they seem to be in memory
  // (File::Prefetch). Does nothing if the file isn't open yet.
  bool Prefetch(uint64_t offset, size_t size) const {
    const File* const file = open_.load(std::memory_order_acquire);
    return file != nullptr && file->Prefetch(offset, size);
  }
  // Reads the operation at `handle` into `*bytes`, which only grows, and verifies that it is
  // undamaged and is the one of this user key and sequence. `record` views into `*bytes` and has
  // the plain value. A value that the device fails to read counts as damage of the file.
  [[nodiscard]] absl::Status ReadOperation(const ValueHandle& handle, std::string_view user_key,
                                           SequenceNumber sequence, std::string* bytes,
                                           RecordView* record);
  // Does the same, but leaves the value as it is stored.
  [[nodiscard]] absl::Status ReadStoredOperation(const ValueHandle& handle,
                                                 std::string_view user_key, SequenceNumber sequence,
                                                 std::string* bytes, RecordView* record);
  // Notes that the bytes at `offset` are not what was written there, and logs it once. Returns the
  // DataLoss status for it.
  absl::Status Damaged(uint64_t offset, std::string_view what);
  // Returns whether some read has found that not all of its values can be read.
  bool is_damaged() const { return is_damaged_.load(std::memory_order_relaxed); }

  // Returns the size of the file on disk; 0 if it is not known or the file is a log file.
  uint64_t Size();
  // Returns the same without a look at the disk; 0 if nobody has asked before.
  uint64_t known_size() const { return is_of_log() ? 0 : size_.load(std::memory_order_relaxed); }
  bool is_of_log() const { return is_of_log_.load(std::memory_order_acquire); }
  // Notes that the file has the name of a value file. Its values end at `size` (0: at the end of
  // the file).
  void TakeOver(uint64_t size);
  // Renames the file, which the log has given up, to the name of a value file. Its values end at
  // `end` (0: at the end of the file).
  [[nodiscard]] absl::Status LeaveLog(uint64_t end);

  // Has `remover` remove the file when its last holder releases it; null undoes that.
  void MarkObsolete(FileRemover* remover) { remover_.store(remover, std::memory_order_release); }

 private:
  absl::StatusOr<const File*> Open();
  // Notes that the file is damaged, logs `error` once, and returns it.
  absl::Status NoteDamage(absl::Status error);

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
  // Returns the one object for the file. A new object stands for a log file until TakeOver() or
  // LeaveLog() is called.
  std::shared_ptr<ValueFile> Acquire(FileSystem* file_system, const std::string& directory,
                                     uint64_t number);
  // Returns null if the file has no holder.
  std::shared_ptr<ValueFile> Find(uint64_t number) const;
  // Returns whether the file has a holder and is still a log file.
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
