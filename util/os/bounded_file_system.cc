#include "util/os/bounded_file_system.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/functional/function_ref.h"
#include "util/base/assert.h"
#include "util/base/size_text.h"
#include "util/base/status.h"
#include "util/os/spare_name.h"

namespace varve {
namespace {

std::string WithSlash(std::string directory) {
  if (!directory.ends_with('/')) directory += '/';
  return directory;
}

bool IsSpare(std::string_view path) { return path.ends_with(kSpareSuffix); }

// Raises `*value` to `wanted`, and returns by how much.
uint64_t RaiseTo(std::atomic<uint64_t>* value, uint64_t wanted) {
  uint64_t before = value->load();
  while (before < wanted && !value->compare_exchange_weak(before, wanted)) continue;
  return before < wanted ? wanted - before : 0;
}

void Lower(std::atomic<uint64_t>* value, uint64_t by) {
  uint64_t before = value->load(std::memory_order_relaxed);
  while (!value->compare_exchange_weak(before, before - std::min(before, by),
                                       std::memory_order_relaxed))
    continue;
}

// Returns the size of the file; 0: there is none.
uint64_t SizeOf(const std::string& path) {
  struct stat info;
  const bool is_there = ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  return is_there ? static_cast<uint64_t>(info.st_size) : 0;
}

bool IsDirectory(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

// Returns the bytes that become free when the name goes.
uint64_t FreedWith(const std::string& path) {
  struct stat info;
  const bool goes =
      ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
  return goes ? static_cast<uint64_t>(info.st_size) : 0;
}

struct DirectorySize {
  uint64_t bytes = 0;
  uint64_t spare = 0;  // of these, in spare files
};

// Adds up what the directory and those below it hold. What goes meanwhile takes no room.
absl::StatusOr<DirectorySize> WalkOver(FileSystem* files, const std::string& root) {
  DirectorySize size;
  std::set<std::pair<dev_t, ino_t>> seen;  // a file may have several names, or get a new one
  std::vector<std::string> directories{root};
  while (!directories.empty()) {
    const std::string directory = std::move(directories.back());
    directories.pop_back();
    const absl::StatusOr<std::vector<std::string>> names = files->List(directory);
    if (absl::IsNotFound(names.status()) && directory != root) continue;
    VARVE_RETURN_IF_ERROR(names.status());
    for (const std::string& name : *names) {
      const std::string path = directory + name;
      struct stat info;
      if (::lstat(path.c_str(), &info) != 0) continue;
      if (S_ISDIR(info.st_mode)) directories.push_back(WithSlash(path));
      if (!S_ISREG(info.st_mode) || !seen.emplace(info.st_dev, info.st_ino).second) continue;
      size.bytes += static_cast<uint64_t>(info.st_size);
      if (IsSpare(path)) size.spare += static_cast<uint64_t>(info.st_size);
    }
  }
  return size;
}

}  // namespace

// A change of the directory that a walk may see or miss as long as it is under way.
class BoundedFileSystem::Change {
 public:
  explicit Change(BoundedFileSystem* owner) : owner_(*owner) {}
  ~Change() {
    if (bytes_ == 0) return;
    absl::MutexLock lock(&owner_.mutex_);
    owner_.changes_.under_way -= bytes_;
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

  // Notes that so many bytes, for which room is taken already, are about to go or to move.
  void Begin(uint64_t bytes) {
    if (bytes == 0) return;
    absl::MutexLock lock(&owner_.mutex_);
    BeginLocked(bytes);
  }
  // Takes room for a file that is about to grow, or fails.
  absl::Status Take(uint64_t bytes, std::string_view path) {
    const bool leaves_reserve =
        owner_.keeps_reserve_.load(std::memory_order_relaxed) && owner_.IsOwnLog(path);
    absl::MutexLock lock(&owner_.mutex_);
    const uint64_t after = owner_.used() + bytes;
    const Bound bound = owner_.bound();
    if (after > bound.limit || (leaves_reserve && owner_.needed() + bytes > bound.unreserved()))
      return owner_.Refusal();
    owner_.used_.store(after, std::memory_order_relaxed);
    BeginLocked(bytes);
    return absl::OkStatus();
  }
  // Gives back room that is not taken any more.
  void GiveBack(uint64_t bytes) {
    if (bytes == 0) return;
    absl::MutexLock lock(&owner_.mutex_);
    owner_.used_.store(owner_.used() - std::min(owner_.used(), bytes), std::memory_order_relaxed);
    owner_.changes_.given_back += bytes;
  }

 private:
  void BeginLocked(uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(owner_.mutex_) {
    bytes_ += bytes;
    owner_.changes_.under_way += bytes;
    owner_.changes_.begun += bytes;
  }

  BoundedFileSystem& owner_;
  uint64_t bytes_ = 0;
};

class BoundedFileSystem::BoundedFile : public File {
 public:
  BoundedFile(BoundedFileSystem* owner, std::unique_ptr<File> file, uint64_t size)
      : owner_(*owner), file_(std::move(file)), size_(size) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    return file_->Read(offset, size, buffer);
  }
  absl::Status Write(uint64_t offset, std::string_view data) override {
    return WithRoomUpTo(offset + data.size(), [&] { return file_->Write(offset, data); });
  }
  absl::Status Sync() override { return file_->Sync(); }
  absl::Status WriteDurably(uint64_t offset, std::string_view data) override {
    return WithRoomUpTo(offset + data.size(), [&] { return file_->WriteDurably(offset, data); });
  }
  void StartWriteback(uint64_t offset, uint64_t size) override {
    file_->StartWriteback(offset, size);
  }
  absl::Status Allocate(uint64_t begin, uint64_t end) override {
    return WithRoomUpTo(end, [&] { return file_->Allocate(begin, end); });
  }
  absl::Status Truncate(uint64_t size) override {
    Change change(&owner_);
    VARVE_RETURN_IF_ERROR(NoteSize());
    VARVE_RETURN_IF_ERROR(GrowTo(size, &change));
    const uint64_t before = size_.load();
    if (before > size) change.Begin(before - size);
    VARVE_RETURN_IF_ERROR(file_->Truncate(size));
    size_.store(size);
    if (before > size) change.GiveBack(before - size);
    if (before > size && IsSpare(path())) Lower(&owner_.spare_, before - size);
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
  absl::StatusOr<uint64_t> CountLinks() const override { return file_->CountLinks(); }
  bool Prefetch(uint64_t offset, uint64_t size) const override {
    return file_->Prefetch(offset, size);
  }
  const char* Map(uint64_t size) const override { return file_->Map(size); }
  const std::string& path() const override { return file_->path(); }

 private:
  // Does `write`, which lets the file grow up to `end`. If it fails after it has taken its room,
  // that stays taken until Measure(), or until the file goes.
  absl::Status WithRoomUpTo(uint64_t end, absl::FunctionRef<absl::Status()> write) {
    if (end <= size_.load(std::memory_order_relaxed)) [[likely]]
      return write();
    VARVE_RETURN_IF_ERROR(NoteSize());
    Change growth(&owner_);
    VARVE_RETURN_IF_ERROR(GrowTo(end, &growth));
    return write();
  }
  // Another descriptor may have grown the file, and has taken the room for that.
  absl::Status NoteSize() {
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, file_->Size());
    RaiseTo(&size_, size);
    return absl::OkStatus();
  }
  absl::Status GrowTo(uint64_t end, Change* growth) {
    const uint64_t before = size_.load();
    if (end <= before) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(growth->Take(end - before, path()));
    growth->GiveBack(end - before - RaiseTo(&size_, end));
    return absl::OkStatus();
  }

  BoundedFileSystem& owner_;
  const std::unique_ptr<File> file_;
  std::atomic<uint64_t> size_;  // for which room was taken
};

BoundedFileSystem::BoundedFileSystem(FileSystem* base, std::string directory, uint64_t limit,
                                     uint64_t least_reserve)
    : base_(*base),
      directory_(WithSlash(std::move(directory))),
      least_reserve_(least_reserve),
      limit_(limit) {}

absl::Status BoundedFileSystem::SetLimit(uint64_t limit) {
  VARVE_ASSERT(limit > 0);
  absl::MutexLock lock(&mutex_);
  const Bound wanted = BoundOf(limit);
  if (limit < bound().limit && used() > limit - wanted.reserve / 2) {
    return absl::FailedPreconditionError(
        fmt::format("the data directory has {} bytes already, and merges need {} more", used(),
                    wanted.reserve / 2));
  }
  limit_.store(limit, std::memory_order_relaxed);
  return absl::OkStatus();
}

absl::Status BoundedFileSystem::Refusal() const {
  const Bound bound = this->bound();
  // Nobody can delete anything before the store is open.
  if (!keeps_reserve_.load(std::memory_order_relaxed)) {
    return absl::ResourceExhaustedError(
        fmt::format("the data directory has {} of the {} that max-disk-bytes allows, which is too "
                    "little to open the store: raise the limit",
                    FormatSize(used()), FormatSize(bound.limit)));
  }
  return absl::ResourceExhaustedError(
      fmt::format("the data directory has {} of the {} that max-disk-bytes allows, of which {} are "
                  "kept for merges: delete data, wait until merges have removed it, or raise the "
                  "limit",
                  FormatSize(used()), FormatSize(bound.limit), FormatSize(bound.reserve)));
}

absl::Status BoundedFileSystem::Measure() {
  Changes before;
  {
    absl::MutexLock lock(&mutex_);
    before = changes_;
  }
  uint64_t spare_before = spare_.load(std::memory_order_relaxed);
  VARVE_ASSIGN_OR_RETURN(const DirectorySize size, WalkOver(&base_, directory_));
  // The walk may have seen all or nothing of a spare file that came or went meanwhile, which the
  // count follows; a later call finds what other programs did.
  spare_.compare_exchange_strong(spare_before, size.spare, std::memory_order_relaxed);
  absl::MutexLock lock(&mutex_);
  // Of what came, went or moved since, the walk may have seen all or nothing.
  const uint64_t gone = changes_.given_back - before.given_back;
  const uint64_t least = size.bytes - std::min(size.bytes, gone);
  const uint64_t most = size.bytes + before.under_way + (changes_.begun - before.begun);
  used_.store(std::clamp(used(), least, most), std::memory_order_relaxed);
  return absl::OkStatus();
}

bool BoundedFileSystem::IsBelow(std::string_view path) const {
  return path.starts_with(directory_);
}

bool BoundedFileSystem::IsOwnLog(std::string_view path) const {
  if (!IsBelow(path)) return false;
  path.remove_prefix(directory_.size());
  // The directory may have been named with a slash at its end.
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  // "000012.log", and "000012.log.tmp" while it is made.
  return path.find('/') == std::string_view::npos && path.find(".log") != std::string_view::npos;
}

absl::StatusOr<std::unique_ptr<File>> BoundedFileSystem::OpenForRead(const std::string& path) {
  return base_.OpenForRead(path);
}

absl::StatusOr<std::unique_ptr<File>> BoundedFileSystem::OpenForWrite(const std::string& path,
                                                                      bool create) {
  if (!IsBelow(path)) return base_.OpenForWrite(path, create);
  // A file that is there is emptied, whatever other names it has.
  const uint64_t emptied = create ? SizeOf(path) : 0;
  Change change(this);
  change.Begin(emptied);
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_.OpenForWrite(path, create));
  change.GiveBack(emptied);
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return std::make_unique<BoundedFile>(this, std::move(file), size);
}

absl::Status BoundedFileSystem::Rename(const std::string& from, const std::string& to) {
  const uint64_t replaced = IsBelow(to) ? FreedWith(to) : 0;
  const uint64_t moved = IsBelow(to) ? SizeOf(from) : 0;
  Change change(this);
  // A walk may miss what moves from where it has yet to look to where it has looked. A directory
  // moves with all that it holds.
  change.Begin(replaced + (IsDirectory(from) ? used() : moved));
  VARVE_RETURN_IF_ERROR(base_.Rename(from, to));
  change.GiveBack(replaced);
  if (IsSpare(to) && !IsSpare(from)) spare_.fetch_add(moved, std::memory_order_relaxed);
  if (IsSpare(from) && !IsSpare(to)) Lower(&spare_, moved);
  return absl::OkStatus();
}

absl::Status BoundedFileSystem::Link(const std::string& from, const std::string& to) {
  Change change(this);
  // Should the first name go meanwhile, a walk may have missed both.
  change.Begin(IsBelow(to) ? SizeOf(from) : 0);
  return base_.Link(from, to);
}

absl::Status BoundedFileSystem::Remove(const std::string& path) {
  const uint64_t freed = IsBelow(path) ? FreedWith(path) : 0;
  Change change(this);
  change.Begin(freed);
  VARVE_RETURN_IF_ERROR(base_.Remove(path));
  change.GiveBack(freed);
  if (IsSpare(path)) Lower(&spare_, freed);
  return absl::OkStatus();
}

absl::Status BoundedFileSystem::SyncDirectory(const std::string& path) {
  return base_.SyncDirectory(path);
}
absl::Status BoundedFileSystem::CreateDirectory(const std::string& path) {
  return base_.CreateDirectory(path);
}
absl::StatusOr<std::vector<std::string>> BoundedFileSystem::List(const std::string& path) {
  return base_.List(path);
}

absl::StatusOr<uint64_t> BoundedFileSystem::FreeSpace(const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t free, base_.FreeSpace(path));
  const uint64_t used = this->used(), limit = bound().limit;
  return IsBelow(path) ? std::min(free, limit - std::min(limit, used)) : free;
}

absl::StatusOr<std::unique_ptr<FileLock>> BoundedFileSystem::Lock(const std::string& path) {
  return base_.Lock(path);
}

FileSystem* BoundedOrPlain(BoundedFileSystem* bounded) {
  return bounded != nullptr ? bounded : PosixFileSystem();
}

}  // namespace varve
