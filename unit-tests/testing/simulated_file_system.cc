#include "unit-tests/testing/simulated_file_system.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve::testing {

class SimulatedFileSystem::SimulatedFile : public File {
 public:
  SimulatedFile(SimulatedFileSystem* owner, std::string path, uint64_t inode, bool writable)
      : owner_(owner), path_(std::move(path)), inode_(inode), writable_(writable) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    absl::MutexLock lock(&owner_->mutex_);
    VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kRead, path_));
    const std::string& content = owner_->disk_.Content(inode_);
    if (offset >= content.size()) return 0;
    return content.copy(buffer, size, offset);
  }

  absl::Status Write(uint64_t offset, std::string_view data) override {
    return Write(offset, std::make_shared<const std::string>(data));
  }

  // The write and its way to the disk are two calls, between which others may come.
  absl::Status WriteDurably(uint64_t offset, std::string_view data) override {
    const auto bytes = std::make_shared<const std::string>(data);
    VARVE_RETURN_IF_ERROR(Write(offset, bytes));
    return Sync(
        {.type = DiskEvent::Type::kSyncWrite, .inode = inode_, .offset = offset, .data = bytes});
  }

  absl::Status Sync() override { return Sync({.type = DiskEvent::Type::kSync, .inode = inode_}); }

  void StartWriteback(uint64_t, uint64_t) override {}

  absl::Status Truncate(uint64_t size) override {
    absl::MutexLock lock(&owner_->mutex_);
    VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kTruncate, path_));
    if (!writable_) return IoError(EBADF, "truncate", path_, size);
    const uint64_t old_size = owner_->disk_.Content(inode_).size();
    owner_->GiveSpace(old_size - std::min(old_size, size));
    owner_->Do({.type = DiskEvent::Type::kTruncate, .inode = inode_, .offset = size});
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Size() const override {
    absl::MutexLock lock(&owner_->mutex_);
    VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kSize, path_));
    return owner_->disk_.Content(inode_).size();
  }

  absl::StatusOr<uint64_t> CountLinks() const override {
    absl::MutexLock lock(&owner_->mutex_);
    VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kSize, path_));
    return owner_->disk_.CountLinks(inode_);
  }

  bool Prefetch(uint64_t, uint64_t) const override { return false; }
  const std::string& path() const override { return path_; }

 private:
  absl::Status Write(uint64_t offset, std::shared_ptr<const std::string> data) {
    absl::MutexLock lock(&owner_->mutex_);
    VARVE_RETURN_IF_ERROR(owner_->Enter(FileOperation::kWrite, path_));
    if (!writable_) return IoError(EBADF, "write", path_, offset);
    const uint64_t size = owner_->disk_.Content(inode_).size();
    const uint64_t end = offset + data->size();
    if (end > size) VARVE_RETURN_IF_ERROR(owner_->TakeSpace(end - size, path_));
    owner_->Do({.type = DiskEvent::Type::kWrite,
                .inode = inode_,
                .offset = offset,
                .data = std::move(data)});
    return absl::OkStatus();
  }

  absl::Status Sync(DiskEvent sync) {
    absl::MutexLock lock(&owner_->mutex_);
    const absl::Status entered = owner_->Enter(FileOperation::kSync, path_);
    if (owner_->stopped_) return entered;
    if (!entered.ok()) {
      sync = {
          .type = DiskEvent::Type::kFailedSync, .inode = inode_, .offset = owner_->trace_.size()};
    }
    owner_->Do(std::move(sync));
    return entered;
  }

  SimulatedFileSystem* const owner_;
  const std::string path_;
  const uint64_t inode_;
  const bool writable_;
};

class SimulatedFileSystem::SimulatedLock : public FileLock {
 public:
  SimulatedLock(SimulatedFileSystem* owner, std::string path)
      : owner_(owner), path_(std::move(path)) {}
  ~SimulatedLock() override {
    absl::MutexLock lock(&owner_->mutex_);
    owner_->locks_.erase(path_);
  }

 private:
  SimulatedFileSystem* const owner_;
  const std::string path_;
};

// --- Power ---------------------------------------------------------------------------------------

void SimulatedFileSystem::StopHere() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

void SimulatedFileSystem::StopAfter(uint64_t calls) {
  absl::MutexLock lock(&mutex_);
  calls_until_stop_ = calls;
}

void SimulatedFileSystem::GoOn() {
  absl::MutexLock lock(&mutex_);
  stopped_ = false;
  calls_until_stop_ = kUnlimited;
}

void SimulatedFileSystem::RestorePower(uint64_t choice) {
  absl::MutexLock lock(&mutex_);
  disk_ = disk_.CutPower(choice);
  trace_.clear();
  stopped_ = false;
  calls_until_stop_ = kUnlimited;
}

SimulatedDisk SimulatedFileSystem::disk() const {
  absl::MutexLock lock(&mutex_);
  return disk_;
}

uint64_t SimulatedFileSystem::trace_size() const {
  absl::MutexLock lock(&mutex_);
  return trace_.size();
}

absl::Status SimulatedFileSystem::Enter(FileOperation operation, const std::string& path) {
  if (before_each_call_) {
    mutex_.Unlock();
    before_each_call_();
    mutex_.Lock();
  }
  const bool changes = operation != FileOperation::kOpen && operation != FileOperation::kRead &&
                       operation != FileOperation::kSize && operation != FileOperation::kList;
  if (changes && calls_until_stop_ != kUnlimited && calls_until_stop_-- == 0) {
    stopped_ = true;
    calls_until_stop_ = kUnlimited;
  }
  if (stopped_)
    return absl::InternalError(fmt::format("{} {}: the power is off", NameOf(operation), path));
  return Count(operation, path);
}

void SimulatedFileSystem::Do(DiskEvent event) {
  disk_.Apply(event);
  trace_.push_back(std::move(event));
}

uint64_t SimulatedFileSystem::SpaceOf(uint64_t inode) const {
  return disk_.CountLinks(inode) == 1 ? disk_.Content(inode).size() : 0;
}

absl::StatusOr<uint64_t> SimulatedFileSystem::Find(const std::string& path,
                                                   const char* operation) const {
  const std::optional<uint64_t> inode = disk_.Find(path);
  if (!inode) return IoError(ENOENT, operation, path);
  return *inode;
}

// --- Calls ---------------------------------------------------------------------------------------

absl::StatusOr<std::unique_ptr<File>> SimulatedFileSystem::OpenForRead(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kOpen, path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t inode, Find(path, "open"));
  return std::make_unique<SimulatedFile>(this, path, inode, /*writable=*/false);
}

absl::StatusOr<std::unique_ptr<File>> SimulatedFileSystem::OpenForWrite(const std::string& path,
                                                                        bool create) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(create ? FileOperation::kCreate : FileOperation::kOpen, path));
  if (create) {
    if (const std::optional<uint64_t> old = disk_.Find(path)) {
      GiveSpace(disk_.Content(*old).size());
      Do({.type = DiskEvent::Type::kTruncate, .inode = *old, .offset = 0});
    } else {
      if (!disk_.IsDirectory(SimulatedDisk::ParentOf(path))) return IoError(ENOENT, "open", path);
      Do({.type = DiskEvent::Type::kCreate, .path = path});
    }
  }
  VARVE_ASSIGN_OR_RETURN(const uint64_t inode, Find(path, "open"));
  return std::make_unique<SimulatedFile>(this, path, inode, /*writable=*/true);
}

absl::Status SimulatedFileSystem::Rename(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kRename, from));
  VARVE_RETURN_IF_ERROR(Find(from, "rename").status());
  if (const std::optional<uint64_t> old = disk_.Find(to)) GiveSpace(SpaceOf(*old));
  Do({.type = DiskEvent::Type::kRename, .path = from, .to = to});
  return absl::OkStatus();
}

absl::Status SimulatedFileSystem::Link(const std::string& from, const std::string& to) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kLink, to));
  VARVE_RETURN_IF_ERROR(Find(from, "link").status());
  if (disk_.Find(to)) return IoError(EEXIST, "link", to);
  if (!disk_.IsDirectory(SimulatedDisk::ParentOf(to))) return IoError(ENOENT, "link", to);
  Do({.type = DiskEvent::Type::kLink, .path = from, .to = to});
  return absl::OkStatus();
}

absl::Status SimulatedFileSystem::Remove(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kRemove, path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t inode, Find(path, "remove"));
  GiveSpace(SpaceOf(inode));
  Do({.type = DiskEvent::Type::kRemove, .path = path});
  return absl::OkStatus();
}

absl::Status SimulatedFileSystem::SyncDirectory(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kSyncDirectory, path));
  if (!disk_.IsDirectory(path)) return IoError(ENOENT, "open", path);
  Do({.type = DiskEvent::Type::kSyncDirectory, .path = path});
  return absl::OkStatus();
}

absl::Status SimulatedFileSystem::CreateDirectory(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kCreateDirectory, path));
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string directory = path.substr(0, end);
    if (disk_.Find(directory)) return IoError(ENOTDIR, "create directory", directory);
    if (!disk_.IsDirectory(directory))
      Do({.type = DiskEvent::Type::kMakeDirectory, .path = directory});
    if (end == std::string::npos) return absl::OkStatus();
    Do({.type = DiskEvent::Type::kSyncDirectory, .path = SimulatedDisk::ParentOf(directory)});
  }
}

absl::StatusOr<std::vector<std::string>> SimulatedFileSystem::List(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kList, path));
  if (!disk_.IsDirectory(path)) return IoError(ENOENT, "list", path);
  return disk_.List(path);
}

absl::StatusOr<std::unique_ptr<FileLock>> SimulatedFileSystem::Lock(const std::string& path) {
  absl::MutexLock lock(&mutex_);
  VARVE_RETURN_IF_ERROR(Enter(FileOperation::kLock, path));
  if (!disk_.IsDirectory(SimulatedDisk::ParentOf(path))) return IoError(ENOENT, "open", path);
  if (!locks_.insert(path).second) {
    return absl::FailedPreconditionError(fmt::format(
        "lock {}: held by another process or store; stop it, or choose another directory", path));
  }
  if (!disk_.Find(path)) Do({.type = DiskEvent::Type::kCreate, .path = path});
  return std::make_unique<SimulatedLock>(this, path);
}

}  // namespace varve::testing
