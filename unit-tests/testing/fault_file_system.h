// Real files whose calls fail on command and whose disk has a size
// (unit-tests/testing/failing_file_system.h). For tests that look at the files by other means, too;
// unit-tests/testing/simulated_file_system.h needs no files, and loses power.
//
// A sync does not reach the device.
//
// Thread-safety: all functions may be called on any thread.
// Requires: the file system outlives its files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "unit-tests/testing/failing_file_system.h"
#include "util/base/status.h"
#include "util/os/file_system.h"
#include "util/os/forwarding_file.h"

namespace varve::testing {

class FaultFileSystem : public FailingFileSystem {
 public:
  // Nothing is written, created, renamed or removed while `look` runs: what a process leaves that
  // is killed at this moment. `look` must not use this file system.
  void StandStill(const std::function<void()>& look) {
    absl::MutexLock lock(&mutex_);
    look();
  }

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    VARVE_RETURN_IF_ERROR(Count(FileOperation::kOpen, path));
    return Wrap(base_->OpenForRead(path));
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    absl::MutexLock lock(&mutex_);
    VARVE_RETURN_IF_ERROR(Count(create ? FileOperation::kCreate : FileOperation::kOpen, path));
    if (create) GiveSpace(SizeOf(path));
    return Wrap(base_->OpenForWrite(path, create));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    absl::MutexLock lock(&mutex_);
    VARVE_RETURN_IF_ERROR(Count(FileOperation::kRename, from));
    GiveSpace(SizeOf(to));
    return base_->Rename(from, to);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    absl::MutexLock lock(&mutex_);
    VARVE_RETURN_IF_ERROR(Count(FileOperation::kLink, to));
    return base_->Link(from, to);
  }
  absl::Status Remove(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    VARVE_RETURN_IF_ERROR(Count(FileOperation::kRemove, path));
    GiveSpace(SizeOf(path));
    return base_->Remove(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    return Count(FileOperation::kSyncDirectory, path);
  }
  absl::Status CreateDirectory(const std::string& path) override {
    return base_->CreateDirectory(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return base_->List(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return base_->Lock(path);
  }

 private:
  class FaultFile : public ForwardingFile {
   public:
    FaultFile(FaultFileSystem* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}

    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      {
        absl::MutexLock lock(&owner_->mutex_);
        VARVE_RETURN_IF_ERROR(owner_->Count(FileOperation::kRead, path()));
      }
      return ForwardingFile::Read(offset, size, buffer);
    }
    absl::Status Write(uint64_t offset, std::string_view data) override {
      absl::MutexLock lock(&owner_->mutex_);
      VARVE_RETURN_IF_ERROR(owner_->Count(FileOperation::kWrite, path()));
      VARVE_ASSIGN_OR_RETURN(const uint64_t size, Size());
      const uint64_t end = offset + data.size();
      if (end > size) VARVE_RETURN_IF_ERROR(owner_->TakeSpace(end - size, path()));
      return ForwardingFile::Write(offset, data);
    }
    absl::Status Sync() override {
      absl::MutexLock lock(&owner_->mutex_);
      return owner_->Count(FileOperation::kSync, path());
    }
    absl::Status Truncate(uint64_t size) override {
      absl::MutexLock lock(&owner_->mutex_);
      VARVE_RETURN_IF_ERROR(owner_->Count(FileOperation::kTruncate, path()));
      VARVE_ASSIGN_OR_RETURN(const uint64_t old_size, Size());
      owner_->GiveSpace(old_size - std::min(old_size, size));
      return ForwardingFile::Truncate(size);
    }

   private:
    FaultFileSystem* const owner_;
  };

  absl::StatusOr<std::unique_ptr<File>> Wrap(absl::StatusOr<std::unique_ptr<File>> file) {
    VARVE_RETURN_IF_ERROR(file.status());
    return std::make_unique<FaultFile>(this, *std::move(file));
  }
  // 0 where there is no file, and for one that has other names.
  uint64_t SizeOf(const std::string& path) const {
    const absl::StatusOr<std::unique_ptr<File>> file = base_->OpenForRead(path);
    if (!file.ok() || (*file)->CountLinks().value_or(1) > 1) return 0;
    return (*file)->Size().value_or(0);
  }

  FileSystem* const base_ = PosixFileSystem();
};

}  // namespace varve::testing
