// A file system in memory whose calls fail on command and whose disk has a size
// (unit-tests/testing/failing_file_system.h), that loses what was not synced, and writes down what
// was done to it.
//
//   StopHere(), GoOn()       in between every call fails and changes nothing: for programs, what a
//                            killed process finds later
//   RestorePower(choice)     GoOn() after a power cut: what was not synced is lost, kept or torn
//                            (SimulatedDisk::CutPower)
//   trace()                  every change so far: crash states are made of its beginnings
//
// A sync that fails loses a random part of what it should have put on disk, for good.
//
// Thread-safety: all functions may be called on any thread.
// Requires: the file system outlives its files and locks. A file that is open when power is
// restored still stands for what it was; nobody uses it any more.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "unit-tests/testing/failing_file_system.h"
#include "unit-tests/testing/simulated_disk.h"
#include "util/os/file_system.h"

namespace varve::testing {

class SimulatedFileSystem : public FailingFileSystem {
 public:
  // `before_each_call`: a place where threads may be switched.
  explicit SimulatedFileSystem(SimulatedDisk disk = {},
                               std::function<void()> before_each_call = nullptr)
      : before_each_call_(std::move(before_each_call)), disk_(std::move(disk)) {}

  void StopHere();
  // Stops in the middle of things: once `calls` more writes, syncs and changes of names were made.
  void StopAfter(uint64_t calls);
  void GoOn();
  void RestorePower(uint64_t choice = SimulatedDisk::kLoseAll);

  SimulatedDisk disk() const;
  uint64_t trace_size() const;
  // Not while others use the file system.
  const std::vector<DiskEvent>& trace() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return trace_; }

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path, bool create) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override;

 private:
  class SimulatedFile;
  class SimulatedLock;

  // Before each call, with the lock that it is made under: what happens to the power falls between
  // calls, never into one. An error if it is to fail. Other threads run in between where they may
  // be switched.
  absl::Status Enter(FileOperation operation, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Applied and written down.
  void Do(DiskEvent event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the space that comes free when the file loses one of its names.
  uint64_t SpaceOf(uint64_t inode) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<uint64_t> Find(const std::string& path, const char* operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<void()> before_each_call_;
  SimulatedDisk disk_ ABSL_GUARDED_BY(mutex_);
  std::vector<DiskEvent> trace_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t calls_until_stop_ ABSL_GUARDED_BY(mutex_) = kUnlimited;
  std::set<std::string> locks_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve::testing
