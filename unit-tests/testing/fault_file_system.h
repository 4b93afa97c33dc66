// A file system that fails on command, has a size, and whose power can be cut. For tests; passes everything on to another one.
//
//   Fail(op, n, error)      the n-th call of `op` from now fails with `error`, and all later ones too unless said otherwise
//   SetFreeBytes(n)         files grow by n bytes altogether, then growing them is ResourceExhausted; removing gives back
//   CutPower()              from now on every call fails and changes nothing
//   RestorePower(seed)      what was not synced is lost, or kept, or torn, as `seed` decides sector by sector; calls work again
//
// Writes go to the real files at once, as to the kernel's cache. Until a file is synced, the bytes it had before are kept by
// sectors; until a directory is synced, names that were created, renamed or removed in it are kept as steps to be undone.
//
// A sync does not reach the device: what it protects from here is RestorePower(). Thread-safe. Files must not outlive their
// file system, nor be used after RestorePower().
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "util/file_system.h"
#include "util/status.h"

namespace varve::testing {

enum class FileOperation { kOpen, kRead, kWrite, kSync, kTruncate, kRename, kRemove, kSyncDirectory, kCount };

class FaultFileSystem : public FileSystem {
 public:
  static constexpr size_t kSectorSize = 512;
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  explicit FaultFileSystem(FileSystem* base = PosixFileSystem()) : base_(base) {}

  // Only calls on paths that contain `path_part` count. `times`: how many calls fail.
  void Fail(FileOperation operation, int nth, absl::Status error, uint64_t times = kUnlimited,
            std::string path_part = "") {
    absl::MutexLock lock(&mutex_);
    faults_.push_back({operation, nth, times, std::move(error), std::move(path_part)});
  }
  void ClearFaults() {
    absl::MutexLock lock(&mutex_);
    faults_.clear();
  }
  void SetFreeBytes(uint64_t bytes) {
    absl::MutexLock lock(&mutex_);
    free_bytes_ = bytes;
  }
  // Nothing is written, created, renamed or removed while `look` runs: what a process leaves that is killed at this moment.
  // `look` must not use this file system.
  void StandStill(const std::function<void()>& look) {
    absl::MutexLock lock(&mutex_);
    look();
  }
  uint64_t calls(FileOperation operation) const {
    absl::MutexLock lock(&mutex_);
    return calls_[static_cast<size_t>(operation)];
  }

  void CutPower() {
    absl::MutexLock lock(&mutex_);
    power_ = false;
  }
  // Cuts the power in the middle of things: once `calls` more writes, syncs and changes of names were made.
  void CutPowerAfter(uint64_t calls) {
    absl::MutexLock lock(&mutex_);
    calls_until_cut_ = calls;
  }
  // No seed: everything that was not synced is lost.
  void RestorePower(std::optional<uint64_t> seed = std::nullopt) {
    absl::MutexLock lock(&mutex_);
    std::minstd_rand random(static_cast<uint32_t>(seed.value_or(0)));
    const auto survives = [&] { return seed.has_value() && random() % 2 == 0; };
    for (auto& [content, path] : contents_) LoseUnsynced(content, survives);
    // Names survive from the oldest change on, up to some point: file systems keep their journal in order.
    size_t kept = seed.has_value() ? random() % (names_.size() + 1) : 0;
    for (size_t i = names_.size(); i > kept; --i) names_[i - 1].undo();
    while (kept > 0) names_[--kept].settle();
    names_.clear();
    contents_.clear();
    power_ = true;
    calls_until_cut_ = kUnlimited;
  }

  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    VARVE_RETURN_IF_ERROR(Enter(FileOperation::kOpen, path));
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_->OpenForRead(path));
    return Wrap(std::move(file), path);
  }
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path, bool create) override {
    VARVE_RETURN_IF_ERROR(Enter(FileOperation::kOpen, path));
    absl::MutexLock lock(&mutex_);
    if (create) {
      const bool existed = base_->OpenForRead(path).ok();
      if (existed) VARVE_RETURN_IF_ERROR(SetAside(path));
      VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_->OpenForWrite(path, true));
      const std::string copy = path;
      names_.push_back({ParentOf(path), [this, copy] { base_->Remove(copy).IgnoreError(); }, [] {}});
      return WrapLocked(std::move(file), path);
    }
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_->OpenForWrite(path, false));
    return WrapLocked(std::move(file), path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    VARVE_RETURN_IF_ERROR(Enter(FileOperation::kRename, from));
    absl::MutexLock lock(&mutex_);
    const bool existed = base_->OpenForRead(to).ok();
    if (existed) VARVE_RETURN_IF_ERROR(SetAside(to));
    VARVE_RETURN_IF_ERROR(base_->Rename(from, to));
    for (auto& [content, path] : contents_) {
      if (path == from) path = to;
    }
    NameChange change{ParentOf(to), [this, from, to] { base_->Rename(to, from).IgnoreError(); }, [] {}};
    if (existed) {
      // One step: a power cut leaves the old file or the new one under the name, never none.
      change.undo = [rename_back = std::move(change.undo), bring_back = std::move(names_.back().undo)] {
        rename_back();
        bring_back();
      };
      change.settle = std::move(names_.back().settle);
      names_.pop_back();
    }
    names_.push_back(std::move(change));
    return absl::OkStatus();
  }
  absl::Status Remove(const std::string& path) override {
    VARVE_RETURN_IF_ERROR(Enter(FileOperation::kRemove, path));
    absl::MutexLock lock(&mutex_);
    if (absl::StatusOr<std::unique_ptr<File>> file = base_->OpenForRead(path); !file.ok()) return file.status();
    return SetAside(path);
  }
  absl::Status SyncDirectory(const std::string& path) override {
    VARVE_RETURN_IF_ERROR(Enter(FileOperation::kSyncDirectory, path));
    VARVE_RETURN_IF_ERROR(base_->SyncDirectory(path));
    absl::MutexLock lock(&mutex_);
    std::vector<NameChange> others;
    for (NameChange& change : names_) {
      if (change.directory == path) {
        change.settle();
      } else {
        others.push_back(std::move(change));
      }
    }
    names_ = std::move(others);
    return absl::OkStatus();
  }
  absl::Status CreateDirectory(const std::string& path) override { return base_->CreateDirectory(path); }
  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(std::vector<std::string> names, base_->List(path));
    std::erase_if(names, [](const std::string& name) { return name.find(kAside) != std::string::npos; });
    return names;
  }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override { return base_->Lock(path); }

 private:
  static constexpr std::string_view kAside = ".set-aside-";

  struct Fault {
    FileOperation operation;
    int calls_before;  // this one is hit when it has counted down to zero
    uint64_t times;
    absl::Status error;
    std::string path_part;
  };

  // One inode: its unsynced past.
  struct Content {
    std::shared_ptr<File> file;
    std::map<uint64_t, std::string> before;  // sector number -> bytes since the last sync
    std::optional<uint64_t> size_before;     // set while anything is unsynced
  };
  using ContentPtr = std::shared_ptr<Content>;

  struct NameChange {
    std::string directory;
    std::function<void()> undo;
    std::function<void()> settle;  // when it can no longer be lost
  };

  class FaultFile : public File {
   public:
    FaultFile(FaultFileSystem* owner, std::unique_ptr<File> file, ContentPtr content)
        : owner_(owner), file_(std::move(file)), content_(std::move(content)) {}

    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kRead, path()));
      return file_->Read(offset, size, buffer);
    }
    absl::Status Write(uint64_t offset, std::string_view data) override {
      VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kWrite, path()));
      absl::MutexLock lock(&owner_->mutex_);
      VARVE_RETURN_IF_ERROR(owner_->Remember(content_.get(), *file_, offset, data.size()));
      return file_->Write(offset, data);
    }
    absl::Status Sync() override {
      VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kSync, path()));
      absl::MutexLock lock(&owner_->mutex_);
      content_->before.clear();
      content_->size_before.reset();
      return absl::OkStatus();
    }
    void StartWriteback(uint64_t offset, uint64_t size) override { file_->StartWriteback(offset, size); }
    absl::Status Truncate(uint64_t size) override {
      VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kTruncate, path()));
      absl::MutexLock lock(&owner_->mutex_);
      VARVE_ASSIGN_OR_RETURN(const uint64_t old_size, file_->Size());
      if (size < old_size) VARVE_RETURN_IF_ERROR(owner_->Remember(content_.get(), *file_, size, old_size - size));
      owner_->GiveBack(old_size - std::min(old_size, size));
      return file_->Truncate(size);
    }
    absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
    void Prefetch(uint64_t offset, uint64_t size) const override { file_->Prefetch(offset, size); }
    const std::string& path() const override { return file_->path(); }

   private:
    FaultFileSystem* const owner_;
    const std::unique_ptr<File> file_;
    const ContentPtr content_;
  };

  static std::string ParentOf(const std::string& path) { return path.substr(0, path.find_last_of('/')); }

  // Counts the call; an error if it is to fail.
  absl::Status Enter(FileOperation operation, const std::string& path) {
    absl::MutexLock lock(&mutex_);
    ++calls_[static_cast<size_t>(operation)];
    const bool changes = operation != FileOperation::kOpen && operation != FileOperation::kRead;
    if (changes && calls_until_cut_ != kUnlimited && calls_until_cut_-- == 0) {
      power_ = false;
      calls_until_cut_ = kUnlimited;
    }
    if (!power_) return absl::InternalError("the power is off: " + path);
    for (Fault& fault : faults_) {
      if (fault.operation != operation || path.find(fault.path_part) == std::string::npos) continue;
      if (--fault.calls_before > 0 || fault.times == 0) continue;
      if (fault.times != kUnlimited) --fault.times;
      return fault.error;
    }
    return absl::OkStatus();
  }

  std::unique_ptr<File> Wrap(std::unique_ptr<File> file, const std::string& path) {
    absl::MutexLock lock(&mutex_);
    return WrapLocked(std::move(file), path);
  }
  std::unique_ptr<File> WrapLocked(std::unique_ptr<File> file, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ContentPtr content;
    for (const auto& [known, known_path] : contents_) {
      if (known_path == path) content = known;
    }
    if (content == nullptr) {
      content = std::make_shared<Content>();
      if (absl::StatusOr<std::unique_ptr<File>> own = base_->OpenForWrite(path, false); own.ok())
        content->file = *std::move(own);
      contents_.emplace_back(content, path);
    }
    return std::make_unique<FaultFile>(this, std::move(file), std::move(content));
  }

  // Keeps what [offset, offset + size) holds, and takes growth from the free space.
  absl::Status Remember(Content* content, const File& file, uint64_t offset, uint64_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    VARVE_ASSIGN_OR_RETURN(const uint64_t old_size, file.Size());
    const uint64_t growth = offset + size > old_size ? offset + size - old_size : 0;
    if (free_bytes_ != kUnlimited) {
      if (growth > free_bytes_) return absl::ResourceExhaustedError("no space left on the test's disk: " + file.path());
      free_bytes_ -= growth;
    }
    if (!content->size_before.has_value()) content->size_before = old_size;
    const uint64_t kept_end = std::min(offset + size, *content->size_before);
    for (uint64_t sector = offset / kSectorSize; sector * kSectorSize < kept_end; ++sector) {
      auto [entry, is_new] = content->before.try_emplace(sector);
      if (!is_new) continue;
      entry->second.resize(kSectorSize);
      VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(sector * kSectorSize, kSectorSize, entry->second.data()));
      entry->second.resize(read);
    }
    return absl::OkStatus();
  }

  void GiveBack(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (free_bytes_ != kUnlimited) free_bytes_ += bytes;
  }

  // Takes a name away so that it can come back after a power cut.
  absl::Status SetAside(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const std::string aside = path + std::string(kAside) + std::to_string(++aside_count_);
    if (absl::StatusOr<std::unique_ptr<File>> file = base_->OpenForRead(path); file.ok()) {
      if (absl::StatusOr<uint64_t> size = (*file)->Size(); size.ok()) GiveBack(*size);
    }
    VARVE_RETURN_IF_ERROR(base_->Rename(path, aside));
    for (auto& [content, known] : contents_) {
      if (known == path) known = aside;
    }
    names_.push_back({ParentOf(path), [this, aside, path] { base_->Rename(aside, path).IgnoreError(); },
                      [this, aside] { base_->Remove(aside).IgnoreError(); }});
    return absl::OkStatus();
  }

  template <typename Survives>
  void LoseUnsynced(const ContentPtr& content, const Survives& survives) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!content->size_before.has_value() || content->file == nullptr) return;
    for (const auto& [sector, bytes] : content->before) {
      if (!survives()) content->file->Write(sector * kSectorSize, bytes).IgnoreError();
    }
    const uint64_t old_size = *content->size_before;
    const uint64_t size = content->file->Size().value_or(old_size);
    if (size > old_size && !survives()) {
      content->file->Truncate(old_size).IgnoreError();
      return;
    }
    // The new size got there, which says nothing of the bytes.
    for (uint64_t offset = old_size; offset < size; offset += kSectorSize) {
      if (!survives()) {
        content->file->Write(offset, std::string(std::min<uint64_t>(kSectorSize, size - offset), '\0')).IgnoreError();
      }
    }
  }

  FileSystem* const base_;

  mutable absl::Mutex mutex_;
  bool power_ ABSL_GUARDED_BY(mutex_) = true;
  uint64_t calls_until_cut_ ABSL_GUARDED_BY(mutex_) = kUnlimited;
  uint64_t free_bytes_ ABSL_GUARDED_BY(mutex_) = kUnlimited;
  uint64_t aside_count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t calls_[static_cast<size_t>(FileOperation::kCount)] ABSL_GUARDED_BY(mutex_) = {};
  std::vector<Fault> faults_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<ContentPtr, std::string>> contents_ ABSL_GUARDED_BY(mutex_);  // with their present paths
  std::vector<NameChange> names_ ABSL_GUARDED_BY(mutex_);                             // oldest first
};

}  // namespace varve::testing
