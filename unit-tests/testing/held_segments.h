// A file system on which one thread of the engine waits before it makes a segment, so that a flush
// or a merge stays under way for as long as a test wants.
#pragma once

#include <pthread.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/synchronization/notification.h"
#include "unit-tests/testing/fault_file_system.h"

namespace varve::testing {

inline std::string NameOfThread() {
  char name[16] = "";
  ::pthread_getname_np(::pthread_self(), name, sizeof(name));
  return name;
}

// Has the thread of that name wait before it makes a segment.
class HeldSegments final : public FaultFileSystem {
 public:
  explicit HeldSegments(std::string thread) : thread_(std::move(thread)) {}
  ~HeldSegments() override { Release(); }

  void Release() {
    if (!released_.HasBeenNotified()) released_.Notify();
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    if (path.ends_with(".seg") && NameOfThread() == thread_) released_.WaitForNotification();
    return FaultFileSystem::OpenForWrite(path, create);
  }

 private:
  const std::string thread_;
  absl::Notification released_;
};

}  // namespace varve::testing
