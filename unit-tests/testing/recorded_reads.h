// A file system that records which reads its files were told of ahead of time, and which were made.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/forwarding_file.h"
#include "util/os/forwarding_file_system.h"

namespace varve::testing {

// Thread-safety: all functions may be called on any thread.
class RecordedReads final : public ForwardingFileSystem {
 public:
  struct Call {
    std::string path;
    bool ahead = false;  // Prefetch(), else Read()
    uint64_t offset = 0;
    uint64_t size = 0;

    bool Covers(const Call& other) const {
      return path == other.path && offset <= other.offset &&
             other.offset + other.size <= offset + size;
    }
  };

  RecordedReads() : ForwardingFileSystem(PosixFileSystem()) {}

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    absl::StatusOr<std::unique_ptr<File>> file = ForwardingFileSystem::OpenForRead(path);
    if (!file.ok()) return file;
    return std::make_unique<RecordedFile>(this, *std::move(file));
  }

  // Returns the calls since the last Take(), in their order.
  std::vector<Call> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(calls_, {});
  }

 private:
  class RecordedFile final : public ForwardingFile {
   public:
    RecordedFile(RecordedReads* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}
    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      owner_->Note({path(), false, offset, size});
      return ForwardingFile::Read(offset, size, buffer);
    }
    void Prefetch(uint64_t offset, uint64_t size) const override {
      owner_->Note({path(), true, offset, size});
      ForwardingFile::Prefetch(offset, size);
    }

   private:
    RecordedReads* const owner_;
  };

  void Note(Call call) {
    absl::MutexLock lock(&mutex_);
    calls_.push_back(std::move(call));
  }

  absl::Mutex mutex_;
  std::vector<Call> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve::testing
