// A file system whose segments cannot be read for as long as a test wants: a disk that hangs.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "unit-tests/testing/fault_file_system.h"
#include "util/os/forwarding_file.h"

namespace varve::testing {

// Thread-safety: all functions may be called on any thread.
class HeldReads final : public FaultFileSystem {
 public:
  ~HeldReads() override { Release(); }

  // From now on who reads a segment waits for Release().
  void Hold() {
    absl::MutexLock lock(&mutex_);
    held_ = true;
  }
  void Release() {
    absl::MutexLock lock(&mutex_);
    held_ = false;
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    absl::StatusOr<std::unique_ptr<File>> file = FaultFileSystem::OpenForRead(path);
    if (!file.ok() || !path.ends_with(".seg")) return file;
    return std::make_unique<HeldFile>(this, *std::move(file));
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    absl::StatusOr<std::unique_ptr<File>> file = FaultFileSystem::OpenForWrite(path, create);
    if (!file.ok() || !path.ends_with(".seg")) return file;
    return std::make_unique<HeldFile>(this, *std::move(file));
  }

 private:
  class HeldFile final : public ForwardingFile {
   public:
    HeldFile(HeldReads* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}
    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      owner_->AwaitRelease();
      return ForwardingFile::Read(offset, size, buffer);
    }

   private:
    HeldReads* const owner_;
  };

  void AwaitRelease() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](bool* held) { return !*held; }, &held_));
  }

  absl::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace varve::testing
