// The backup service makes the files of one backup at a time and keeps them until somebody has
// copied them. Its states and words are those of Redis 8.10's BACKUP.
//
// Start() makes a checkpoint of the store (varve/checkpoint.h) in a directory below the store's, so
// that a copy can begin. Seal() makes it anew with all that was written since, which is the backup:
// its files never change, and together they are a store. Files of the first checkpoint stay until
// the backup goes, for whoever copies them. Hard links keep the files; the store replaces and
// removes its own as ever.
//
//   idle -> snapshotting -> incrementing -> snapshotting -> sealed -> idle
//   an error or Abort(): -> failed, without files
//
// A backup that nobody has asked about for `backup-sealed-ttl` goes by itself. A restart finds no
// backup: it removes the files.
//
// Thread-safety: all functions may be called on any thread. Start(), Seal(), Abort() and Cleanup()
// wait for each other; the others never wait for the disk, but Fetch() for its read.
// Requires: the store outlives the service.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "varve/checkpoint.h"
#include "varve/store.h"

namespace varve {

enum class BackupState : uint8_t { kIdle, kSnapshotting, kIncrementing, kSealed, kFailed };
std::string_view NameOf(BackupState state);

// The totals count what was done since the server's start.
struct BackupTotals {
  uint64_t sealed = 0;
  uint64_t failed = 0;                        // steps that failed; aborted backups do not count
  int64_t last_time = 0;                      // Unix seconds of the last seal; 0: none
  SequenceNumber last_version = kNoSequence;  // that it holds
};

struct BackupReport {
  BackupState state = BackupState::kIdle;
  std::string error;       // why it failed
  int64_t start_time = 0;  // Unix seconds; 0: none was started
  int64_t end_time = 0;    // of the seal
  std::string directory;   // absolute
  Checkpoint checkpoint;   // the files so far, or the sealed ones
  BackupTotals totals;

  // Returns the bytes of all files.
  uint64_t bytes() const;
};

class BackupService {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr uint64_t kLongestFetch = uint64_t{4} << 20;  // bytes

  // `name` names the directory of the files, within the store's directory.
  BackupService(Store* store, std::string name);

  // Removes what an earlier process left.
  void RemoveLeftovers() ABSL_LOCKS_EXCLUDED(work_mutex_, mutex_);

  // FailedPrecondition: a backup is under way or sealed, or the directory holds foreign files.
  [[nodiscard]] absl::Status Start() ABSL_LOCKS_EXCLUDED(work_mutex_, mutex_);
  // FailedPrecondition: none was started.
  [[nodiscard]] absl::Status Seal() ABSL_LOCKS_EXCLUDED(work_mutex_, mutex_);
  // FailedPrecondition: none is under way, or it is sealed.
  [[nodiscard]] absl::Status Abort() ABSL_LOCKS_EXCLUDED(work_mutex_, mutex_);
  // Removes the files of a sealed or failed backup. FailedPrecondition: one is under way.
  [[nodiscard]] absl::Status Cleanup() ABSL_LOCKS_EXCLUDED(work_mutex_, mutex_);
  // Ends a backup that nobody has asked about for `ttl` before `now`. Zero: none ends.
  void EndIdle(Time now, std::chrono::seconds ttl) ABSL_LOCKS_EXCLUDED(work_mutex_, mutex_);

  // Returns what there is to tell. `is_use`: the question keeps the backup from ending by itself.
  BackupReport Report(bool is_use) ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads bytes of a sealed file, fewer at its end. FailedPrecondition: no backup is sealed.
  // NotFound: it has no such file.
  [[nodiscard]] absl::StatusOr<std::string> Fetch(std::string_view name, uint64_t offset,
                                                  uint64_t length) ABSL_LOCKS_EXCLUDED(mutex_);
  // Return whether a backup holds files, and whether one is begun and not sealed. They take no
  // lock.
  bool holds_files() const { return holds_files_.load(std::memory_order_relaxed); }
  bool in_progress() const { return in_progress_.load(std::memory_order_relaxed); }

 private:
  absl::StatusOr<std::string> Directory() const;
  absl::StatusOr<Checkpoint> MakeSealed(const std::string& directory) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);
  void Enter(BackupState state, std::string error = "") ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes a step that failed, and returns its error.
  absl::Status Fail(absl::Status error) ABSL_LOCKS_EXCLUDED(mutex_);
  // Forgets the backup, but not the totals.
  void Forget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveFiles() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(work_mutex_);

  Store& store_;
  const std::string name_;
  absl::Mutex work_mutex_;  // held while files are made and removed
  mutable absl::Mutex mutex_ ABSL_ACQUIRED_AFTER(work_mutex_);
  BackupReport report_ ABSL_GUARDED_BY(mutex_);
  Time last_use_ ABSL_GUARDED_BY(mutex_);
  std::atomic<bool> holds_files_{false};
  std::atomic<bool> in_progress_{false};
};

}  // namespace varve
