// A forwarding file passes every call on to another file: for files that do something of their own
// in a few of them. It has no mapping, so that all that is read goes through Read().
//
// Thread-safety: that of the file beneath it, which it owns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/os/file_system.h"

namespace varve {

class ForwardingFile : public File {
 public:
  explicit ForwardingFile(std::unique_ptr<File> file) : file_(std::move(file)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    return file_->Read(offset, size, buffer);
  }
  absl::Status Write(uint64_t offset, std::string_view data) override {
    return file_->Write(offset, data);
  }
  absl::Status Sync() override { return file_->Sync(); }
  void StartWriteback(uint64_t offset, uint64_t size) override {
    file_->StartWriteback(offset, size);
  }
  absl::Status Truncate(uint64_t size) override { return file_->Truncate(size); }
  absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
  absl::StatusOr<uint64_t> CountLinks() const override { return file_->CountLinks(); }
  bool Prefetch(uint64_t offset, uint64_t size) const override {
    return file_->Prefetch(offset, size);
  }
  const std::string& path() const override { return file_->path(); }

 protected:
  const File& file() const { return *file_; }

 private:
  const std::unique_ptr<File> file_;
};

}  // namespace varve
