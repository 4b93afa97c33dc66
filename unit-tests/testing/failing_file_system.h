// What file systems for tests have in common: calls that fail on command, and a size.
//
//   Fail(op, n, error)      the n-th call of `op` from now fails with `error`, and all later ones
//                           too unless said otherwise
//   FailBehind(n)           all calls fail behind the next n
//   SetFreeBytes(n)         files grow by n bytes altogether, then growing them is
//                           ResourceExhausted; cutting and removing gives back
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <errno.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve::testing {

enum class FileOperation {
  kOpen,  // of an existing file
  kCreate,
  kRead,
  kWrite,
  kGrow,  // a write that makes the file larger; it counts as kWrite, too
  kSync,
  kTruncate,
  kSize,
  kRename,
  kLink,
  kRemove,
  kSyncDirectory,
  kCreateDirectory,
  kList,
  kLock,
  kCount,
};

inline const char* NameOf(FileOperation operation) {
  static constexpr const char* kNames[] = {"open",
                                           "create",
                                           "read",
                                           "write",
                                           "growing write",
                                           "sync",
                                           "truncate",
                                           "size",
                                           "rename",
                                           "link",
                                           "remove",
                                           "sync directory",
                                           "create directory",
                                           "list",
                                           "lock"};
  static_assert(std::size(kNames) == static_cast<size_t>(FileOperation::kCount));
  return kNames[static_cast<size_t>(operation)];
}

class FailingFileSystem : public FileSystem {
 public:
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  // Only calls on paths that contain `path_part` count. `times`: how many calls fail.
  void Fail(FileOperation operation, uint64_t nth, absl::Status error, uint64_t times = kUnlimited,
            std::string path_part = "") {
    absl::MutexLock lock(&mutex_);
    faults_.push_back({operation, nth, times, std::move(error), std::move(path_part)});
  }
  // All calls behind the next `calls` ones fail, as after the end of the process.
  void FailBehind(uint64_t calls) {
    absl::MutexLock lock(&mutex_);
    calls_left_ = calls;
  }
  void ClearFaults() {
    absl::MutexLock lock(&mutex_);
    faults_.clear();
  }
  void SetFreeBytes(uint64_t bytes) {
    absl::MutexLock lock(&mutex_);
    free_bytes_ = bytes;
  }
  uint64_t calls(FileOperation operation) const {
    absl::MutexLock lock(&mutex_);
    return calls_[static_cast<size_t>(operation)];
  }
  // How many of all calls have failed on command.
  uint64_t failed_calls() const {
    absl::MutexLock lock(&mutex_);
    return failed_calls_;
  }

  absl::StatusOr<uint64_t> FreeSpace(const std::string&) override {
    absl::MutexLock lock(&mutex_);
    return free_bytes_;
  }

 protected:
  // Counts the call; an error if it is to fail.
  absl::Status Count(FileOperation operation, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++calls_[static_cast<size_t>(operation)];
    if (calls_left_ == 0) {
      ++failed_calls_;
      return absl::InternalError("on command, as all calls from here on: " + path);
    }
    if (calls_left_ != kUnlimited) --calls_left_;
    for (Fault& fault : faults_) {
      if (fault.operation != operation || path.find(fault.path_part) == std::string::npos) continue;
      if (fault.calls_before > 1) {
        --fault.calls_before;
        continue;
      }
      if (fault.times == 0) continue;
      if (fault.times != kUnlimited) --fault.times;
      ++failed_calls_;
      return UnsharedCopy(fault.error);
    }
    return absl::OkStatus();
  }
  // Before a write that makes a file larger.
  absl::Status TakeSpace(uint64_t bytes, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    VARVE_RETURN_IF_ERROR(Count(FileOperation::kGrow, path));
    if (free_bytes_ == kUnlimited) return absl::OkStatus();
    if (bytes > free_bytes_) return IoError(ENOSPC, "write", path);
    free_bytes_ -= bytes;
    return absl::OkStatus();
  }
  void GiveSpace(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (free_bytes_ != kUnlimited) free_bytes_ += bytes;
  }

  mutable absl::Mutex mutex_;

 private:
  struct Fault {
    FileOperation operation;
    uint64_t calls_before;  // this one is hit when it has counted down to zero
    uint64_t times;
    absl::Status error;
    std::string path_part;
  };

  uint64_t calls_left_ ABSL_GUARDED_BY(mutex_) = kUnlimited;
  uint64_t free_bytes_ ABSL_GUARDED_BY(mutex_) = kUnlimited;
  uint64_t failed_calls_ ABSL_GUARDED_BY(mutex_) = 0;
  std::array<uint64_t, static_cast<size_t>(FileOperation::kCount)> calls_
      ABSL_GUARDED_BY(mutex_) = {};
  std::vector<Fault> faults_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve::testing
