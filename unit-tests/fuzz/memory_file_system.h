// Files in memory, for fuzz targets: nothing is left behind, and nothing fails but what an input says. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/file_system.h"

namespace varve::fuzz {

class MemoryFileSystem final : public FileSystem {
 public:
  using Bytes = std::shared_ptr<std::string>;

  void Put(const std::string& path, std::string bytes) {
    files_[path] = std::make_shared<std::string>(std::move(bytes));
  }
  // Null: there is no such file.
  Bytes Find(const std::string& path) const {
    const auto file = files_.find(path);
    return file == files_.end() ? nullptr : file->second;
  }

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    const Bytes bytes = Find(path);
    if (bytes == nullptr) return absl::NotFoundError(path);
    return std::make_unique<MemoryFile>(path, bytes);
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path, bool create) override {
    if (create) Put(path, "");
    return OpenForRead(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    const Bytes bytes = Find(from);
    if (bytes == nullptr) return absl::NotFoundError(from);
    files_.erase(from);
    files_[to] = bytes;
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    return files_.erase(path) == 1 ? absl::OkStatus() : absl::NotFoundError(path);
  }
  absl::Status SyncDirectory(const std::string&) override { return absl::OkStatus(); }
  absl::Status CreateDirectory(const std::string&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    std::vector<std::string> names;
    for (const auto& [name, bytes] : files_) {
      if (name.starts_with(path + "/")) names.push_back(name.substr(path.size() + 1));
    }
    return names;
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string&) override { return std::make_unique<FileLock>(); }

 private:
  class MemoryFile final : public File {
   public:
    MemoryFile(std::string path, Bytes bytes) : path_(std::move(path)), bytes_(std::move(bytes)) {}

    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      if (offset >= bytes_->size()) return size_t{0};
      const size_t read = std::min<uint64_t>(size, bytes_->size() - offset);
      if (read > 0) std::memcpy(buffer, bytes_->data() + offset, read);
      return read;
    }
    absl::Status Write(uint64_t offset, std::string_view data) override {
      if (bytes_->size() < offset + data.size()) bytes_->resize(offset + data.size());
      if (!data.empty()) std::memcpy(bytes_->data() + offset, data.data(), data.size());
      return absl::OkStatus();
    }
    absl::Status Sync() override { return absl::OkStatus(); }
    void StartWriteback(uint64_t, uint64_t) override {}
    absl::Status Truncate(uint64_t size) override {
      bytes_->resize(size);
      return absl::OkStatus();
    }
    absl::StatusOr<uint64_t> Size() const override { return bytes_->size(); }
    void Prefetch(uint64_t, uint64_t) const override {}
    const std::string& path() const override { return path_; }

   private:
    const std::string path_;
    const Bytes bytes_;
  };

  std::map<std::string, Bytes> files_;
};

}  // namespace varve::fuzz
