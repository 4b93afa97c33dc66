// Files in memory, for fuzz targets and tests that open a store a hundred thousand times. Nothing
// is ever lost: syncs do nothing.
//
// The files of a directory can be taken and put as one value, so that a test damages a copy.
// CutAfter(n) lets n calls that change something succeed and fails all later ones, as if the
// process had been killed there. Paths are plain keys: a directory is what lies before the last
// slash.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <errno.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve::testing {

class MemoryFileSystem final : public FileSystem {
 public:
  using Files = std::map<std::string, std::string>;  // path -> bytes

  MemoryFileSystem() = default;
  explicit MemoryFileSystem(const Files& files) {
    for (const auto& [path, bytes] : files) nodes_[path] = std::make_shared<Node>(bytes);
  }
  // Copies only what is written to. The files must outlive this, unchanged.
  explicit MemoryFileSystem(const Files* files) {
    for (const auto& [path, bytes] : *files) nodes_[path] = std::make_shared<Node>(&bytes);
  }

  Files files() const {
    absl::MutexLock lock(&mutex_);
    Files files;
    for (const auto& [path, node] : nodes_) files[path] = node->Copy();
    return files;
  }
  void CutAfter(uint64_t calls) {
    absl::MutexLock lock(&mutex_);
    calls_left_ = calls;
  }
  // Reads that touch the page at `offset` fail, as on a bad sector.
  void SpoilPage(const std::string& path, uint64_t offset) {
    absl::MutexLock lock(&mutex_);
    Node* const node = nodes_.at(path).get();
    absl::MutexLock node_lock(&node->mutex);
    node->bad_pages.insert(offset / kPage);
  }
  uint64_t changes() const {
    absl::MutexLock lock(&mutex_);
    return changes_;
  }

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    const auto node = nodes_.find(path);
    if (node == nodes_.end()) return absl::NotFoundError("open " + path + ": no such file");
    return std::make_unique<MemoryFile>(this, path, node->second);
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    if (!create) return OpenForRead(path);
    VARVE_RETURN_IF_ERROR(Change());
    absl::MutexLock lock(&mutex_);
    return std::make_unique<MemoryFile>(this, path, nodes_[path] = std::make_shared<Node>(""));
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    VARVE_RETURN_IF_ERROR(Change());
    absl::MutexLock lock(&mutex_);
    const auto node = nodes_.find(from);
    if (node == nodes_.end()) return absl::NotFoundError("rename " + from + ": no such file");
    nodes_[to] = node->second;
    nodes_.erase(from);
    return absl::OkStatus();
  }
  absl::Status Link(const std::string& from, const std::string& to) override {
    VARVE_RETURN_IF_ERROR(Change());
    absl::MutexLock lock(&mutex_);
    const auto node = nodes_.find(from);
    if (node == nodes_.end()) return absl::NotFoundError("link " + from + ": no such file");
    if (!nodes_.try_emplace(to, node->second).second)
      return absl::AlreadyExistsError("link " + to + ": it exists");
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    VARVE_RETURN_IF_ERROR(Change());
    absl::MutexLock lock(&mutex_);
    return nodes_.erase(path) > 0 ? absl::OkStatus()
                                  : absl::NotFoundError("remove " + path + ": no such file");
  }
  absl::Status SyncDirectory(const std::string&) override { return absl::OkStatus(); }
  absl::Status CreateDirectory(const std::string&) override { return absl::OkStatus(); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    const std::string prefix = path + "/";
    std::set<std::string> names;  // of files, and of directories below
    for (auto at = nodes_.lower_bound(prefix); at != nodes_.end() && at->first.starts_with(prefix);
         ++at) {
      const std::string rest = at->first.substr(prefix.size());
      names.insert(rest.substr(0, rest.find('/')));
    }
    return std::vector<std::string>(names.begin(), names.end());
  }
  absl::StatusOr<uint64_t> FreeSpace(const std::string&) override {
    return std::numeric_limits<uint64_t>::max();
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    absl::MutexLock lock(&mutex_);
    if (!locks_.insert(path).second)
      return absl::FailedPreconditionError("lock " + path + ": held");
    return std::make_unique<MemoryLock>(this, path);
  }

 private:
  static constexpr uint64_t kPage = 4096;

  struct Node {
    explicit Node(std::string content) : own(std::move(content)) {}
    explicit Node(const std::string* content) : borrowed(content) {}
    std::string Copy() const {
      absl::ReaderMutexLock lock(&mutex);
      return bytes();
    }
    const std::string& bytes() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
      return borrowed == nullptr ? own : *borrowed;
    }
    // For writing.
    std::string& Own() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      if (borrowed != nullptr) own = *std::exchange(borrowed, nullptr);
      return own;
    }
    mutable absl::Mutex mutex;
    const std::string* borrowed ABSL_GUARDED_BY(mutex) = nullptr;
    std::string own ABSL_GUARDED_BY(mutex);
    std::set<uint64_t> bad_pages ABSL_GUARDED_BY(mutex);
  };

  class MemoryFile final : public File {
   public:
    MemoryFile(MemoryFileSystem* owner, std::string path, std::shared_ptr<Node> node)
        : owner_(owner), path_(std::move(path)), node_(std::move(node)) {}

    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      absl::ReaderMutexLock lock(&node_->mutex);
      const auto bad = node_->bad_pages.lower_bound(offset / kPage);
      if (bad != node_->bad_pages.end() && *bad * kPage < offset + size) {
        return IoError(EIO, "read", path_, std::max(offset, *bad * kPage));
      }
      return offset >= node_->bytes().size() ? 0 : node_->bytes().copy(buffer, size, offset);
    }
    absl::Status Write(uint64_t offset, std::string_view data) override {
      VARVE_RETURN_IF_ERROR(owner_->Change());
      absl::MutexLock lock(&node_->mutex);
      std::string& bytes = node_->Own();
      if (bytes.size() < offset + data.size()) bytes.resize(offset + data.size());
      bytes.replace(offset, data.size(), data);
      return absl::OkStatus();
    }
    absl::Status Sync() override { return absl::OkStatus(); }
    void StartWriteback(uint64_t, uint64_t) override {}
    absl::Status Truncate(uint64_t size) override {
      VARVE_RETURN_IF_ERROR(owner_->Change());
      absl::MutexLock lock(&node_->mutex);
      node_->Own().resize(size);
      return absl::OkStatus();
    }
    absl::StatusOr<uint64_t> Size() const override {
      absl::ReaderMutexLock lock(&node_->mutex);
      return node_->bytes().size();
    }
    absl::StatusOr<uint64_t> CountLinks() const override {
      absl::MutexLock lock(&owner_->mutex_);
      return static_cast<uint64_t>(
          std::count_if(owner_->nodes_.begin(), owner_->nodes_.end(),
                        [&](const auto& entry) { return entry.second == node_; }));
    }
    bool Prefetch(uint64_t, uint64_t) const override { return false; }
    const std::string& path() const override { return path_; }

   private:
    MemoryFileSystem* const owner_;
    const std::string path_;
    const std::shared_ptr<Node> node_;
  };

  class MemoryLock final : public FileLock {
   public:
    MemoryLock(MemoryFileSystem* owner, std::string path) : owner_(owner), path_(std::move(path)) {}
    ~MemoryLock() override {
      absl::MutexLock lock(&owner_->mutex_);
      owner_->locks_.erase(path_);
    }

   private:
    MemoryFileSystem* const owner_;
    const std::string path_;
  };

  absl::Status Change() {
    absl::MutexLock lock(&mutex_);
    if (calls_left_ == 0) return absl::InternalError("the test's process was killed here");
    if (calls_left_ != std::numeric_limits<uint64_t>::max()) --calls_left_;
    ++changes_;
    return absl::OkStatus();
  }

  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Node>> nodes_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> locks_ ABSL_GUARDED_BY(mutex_);
  uint64_t calls_left_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<uint64_t>::max();
  uint64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::testing
