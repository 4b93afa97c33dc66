// Files of a device that can't read all of them any more: where it can't, they read as zeros, which
// no checksum passes. A tool that verifies or repairs a store finds such places as damage, and goes
// on with what is behind them.
//
// Thread-safety: as the file system beneath it, which it passes everything else on to.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "util/os/file_system.h"

namespace varve {

class PatchyFileSystem final : public FileSystem {
 public:
  explicit PatchyFileSystem(FileSystem* base) : base_(base) {}

  // Returns what the device said of pages that it couldn't read, each page once, in the order in
  // which they were met.
  std::vector<absl::Status> errors() const;

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    return base_->OpenForWrite(path, create);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return base_->Rename(from, to);
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    return base_->Link(from, to);
  }
  absl::Status Remove(const std::string& path) override { return base_->Remove(path); }
  absl::Status SyncDirectory(const std::string& path) override {
    return base_->SyncDirectory(path);
  }
  absl::Status CreateDirectory(const std::string& path) override {
    return base_->CreateDirectory(path);
  }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    return base_->List(path);
  }
  absl::StatusOr<uint64_t> FreeSpace(const std::string& path) override {
    return base_->FreeSpace(path);
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    return base_->Lock(path);
  }

 private:
  class PatchyFile;
  void Note(const absl::Status& error);

  FileSystem* const base_;
  mutable absl::Mutex mutex_;
  std::vector<absl::Status> errors_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
