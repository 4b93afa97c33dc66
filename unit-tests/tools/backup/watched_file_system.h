// Real files, whose calls fail on command (unit-tests/testing/fault_file_system.h), and a listener
// that is told before each change of a name: what is on disk then is what a process leaves that is
// killed there.
//
// Thread-safety: as FaultFileSystem; the listener is called on the thread that makes the change.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "unit-tests/testing/fault_file_system.h"

namespace varve::testing {

class WatchedFileSystem final : public FaultFileSystem {
 public:
  explicit WatchedFileSystem(std::function<void()> before_change)
      : before_change_(std::move(before_change)) {}

  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    if (create) Tell();
    return FaultFileSystem::OpenForWrite(path, create);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    Tell();
    return FaultFileSystem::Rename(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    Tell();
    return FaultFileSystem::Remove(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    Tell();
    return FaultFileSystem::SyncDirectory(path);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    Tell();
    return FaultFileSystem::Link(from, to);
  }

 private:
  // Other threads of an engine make no changes meanwhile.
  void Tell() { StandStill(before_change_); }

  const std::function<void()> before_change_;
};

}  // namespace varve::testing
