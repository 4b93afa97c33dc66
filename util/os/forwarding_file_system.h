// A forwarding file system passes every call on to another file system: for file systems that do
// something of their own in a few of them.
//
// Thread-safety: that of the file system beneath it, which outlives it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/os/file_system.h"

namespace varve {

class ForwardingFileSystem : public FileSystem {
 public:
  explicit ForwardingFileSystem(FileSystem* base) : base_(base) {}

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    return base_->OpenForRead(path);
  }
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

 protected:
  FileSystem* const base_;
};

}  // namespace varve
