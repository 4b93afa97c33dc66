#include "util/os/bounded_file_system.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "util/base/size_text.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kPartReserved = 8;
constexpr uint64_t kMostReserved = 2u << 30;

std::string WithSlash(std::string directory) {
  if (!directory.ends_with('/')) directory += '/';
  return directory;
}

bool IsSpare(std::string_view path) { return path.ends_with(".spare"); }

// Raises `*value` to `wanted`, and returns by how much.
uint64_t RaiseTo(std::atomic<uint64_t>* value, uint64_t wanted) {
  uint64_t before = value->load();
  while (before < wanted && !value->compare_exchange_weak(before, wanted)) continue;
  return before < wanted ? wanted - before : 0;
}

}  // namespace

class BoundedFileSystem::BoundedFile : public File {
 public:
  BoundedFile(BoundedFileSystem* owner, std::unique_ptr<File> file, uint64_t size)
      : owner_(*owner), file_(std::move(file)), size_(size) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    return file_->Read(offset, size, buffer);
  }
  absl::Status Write(uint64_t offset, std::string_view data) override {
    VARVE_RETURN_IF_ERROR(GrowTo(offset + data.size()));
    return file_->Write(offset, data);
  }
  absl::Status Sync() override { return file_->Sync(); }
  absl::Status WriteDurably(uint64_t offset, std::string_view data) override {
    VARVE_RETURN_IF_ERROR(GrowTo(offset + data.size()));
    return file_->WriteDurably(offset, data);
  }
  void StartWriteback(uint64_t offset, uint64_t size) override {
    file_->StartWriteback(offset, size);
  }
  absl::Status Allocate(uint64_t begin, uint64_t end) override {
    VARVE_RETURN_IF_ERROR(GrowTo(end));
    return file_->Allocate(begin, end);
  }
  absl::Status Truncate(uint64_t size) override {
    VARVE_RETURN_IF_ERROR(GrowTo(size));
    VARVE_RETURN_IF_ERROR(file_->Truncate(size));
    const uint64_t before = size_.exchange(size);
    if (before > size) owner_.GiveBack(before - size);
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> Size() const override { return file_->Size(); }
  absl::StatusOr<uint64_t> CountLinks() const override { return file_->CountLinks(); }
  void Prefetch(uint64_t offset, uint64_t size) const override { file_->Prefetch(offset, size); }
  const char* Map(uint64_t size) const override { return file_->Map(size); }
  const std::string& path() const override { return file_->path(); }

 private:
  // A write that fails after it has taken its room leaves that room taken until Measure(), or until
  // the file goes.
  absl::Status GrowTo(uint64_t end) {
    if (end <= size_.load(std::memory_order_relaxed)) [[likely]]
      return absl::OkStatus();
    const uint64_t before = size_.load();
    if (end > before) VARVE_RETURN_IF_ERROR(owner_.Take(end - before, path()));
    const uint64_t grown = RaiseTo(&size_, end);
    if (end > before && end - before > grown) owner_.GiveBack(end - before - grown);
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
      limit_(limit),
      reserve_(std::min(limit / 2,
                        std::max(std::min(limit / kPartReserved, kMostReserved), least_reserve))) {}

absl::Status BoundedFileSystem::Refusal() const {
  return absl::ResourceExhaustedError(
      fmt::format("the data directory has {} of the {} that max-disk-bytes allows, of which {} are "
                  "kept for merges: delete data, wait until merges have removed it, or raise the "
                  "limit",
                  FormatSize(used()), FormatSize(limit_), FormatSize(reserve_)));
}

absl::Status BoundedFileSystem::Measure() {
  std::error_code error;
  std::filesystem::recursive_directory_iterator entries(directory_, error);
  if (error) return IoError(error.value(), "list", directory_);
  const uint64_t before = used_.load(std::memory_order_relaxed);
  uint64_t bytes = 0, spare = 0;
  std::set<ino_t> shared;  // files of several names
  for (; entries != std::filesystem::recursive_directory_iterator(); entries.increment(error)) {
    struct stat info;
    // What goes meanwhile takes no room.
    if (::lstat(entries->path().c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    if (info.st_nlink > 1 && !shared.insert(info.st_ino).second) continue;
    bytes += static_cast<uint64_t>(info.st_size);
    if (IsSpare(entries->path().native())) spare += static_cast<uint64_t>(info.st_size);
  }
  if (error) return IoError(error.value(), "list", directory_);
  spare_.store(spare, std::memory_order_relaxed);
  // What grew meanwhile may count twice, until the next time.
  bytes > before ? void(used_.fetch_add(bytes - before)) : GiveBack(before - bytes);
  return absl::OkStatus();
}

bool BoundedFileSystem::IsBelow(std::string_view path) const {
  return path.starts_with(directory_);
}

absl::Status BoundedFileSystem::Take(uint64_t bytes, std::string_view path) {
  // "000012.log", and "000012.log.tmp" while it is made.
  const bool is_log =
      path.substr(path.find_last_of('/') + 1).find(".log") != std::string_view::npos;
  uint64_t before = used_.load(std::memory_order_relaxed);
  do {
    if (before + bytes > limit_ || (is_log && needed() + bytes > limit_ - reserve_))
      return Refusal();
  } while (!used_.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
  return absl::OkStatus();
}

void BoundedFileSystem::Lower(std::atomic<uint64_t>* value, uint64_t by) {
  uint64_t before = value->load(std::memory_order_relaxed);
  while (!value->compare_exchange_weak(before, before - std::min(before, by),
                                       std::memory_order_relaxed))
    continue;
}

uint64_t BoundedFileSystem::FreedWith(const std::string& path) {
  struct stat info;
  const bool goes =
      ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1;
  return goes ? static_cast<uint64_t>(info.st_size) : 0;
}

absl::StatusOr<std::unique_ptr<File>> BoundedFileSystem::OpenForRead(const std::string& path) {
  return base_.OpenForRead(path);
}

absl::StatusOr<std::unique_ptr<File>> BoundedFileSystem::OpenForWrite(const std::string& path,
                                                                      bool create) {
  if (!IsBelow(path)) return base_.OpenForWrite(path, create);
  const uint64_t emptied = create ? FreedWith(path) : 0;
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, base_.OpenForWrite(path, create));
  GiveBack(emptied);
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  return std::make_unique<BoundedFile>(this, std::move(file), size);
}

absl::Status BoundedFileSystem::Rename(const std::string& from, const std::string& to) {
  const uint64_t replaced = IsBelow(to) ? FreedWith(to) : 0;
  const uint64_t moved = IsSpare(from) != IsSpare(to) && IsBelow(to) ? FreedWith(from) : 0;
  VARVE_RETURN_IF_ERROR(base_.Rename(from, to));
  GiveBack(replaced);
  IsSpare(to) ? void(spare_.fetch_add(moved, std::memory_order_relaxed)) : Lower(&spare_, moved);
  return absl::OkStatus();
}

absl::Status BoundedFileSystem::Link(const std::string& from, const std::string& to) {
  return base_.Link(from, to);
}

absl::Status BoundedFileSystem::Remove(const std::string& path) {
  const uint64_t freed = IsBelow(path) ? FreedWith(path) : 0;
  VARVE_RETURN_IF_ERROR(base_.Remove(path));
  GiveBack(freed);
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
  const uint64_t used = this->used();
  return IsBelow(path) ? std::min(free, limit_ - std::min(limit_, used)) : free;
}

absl::StatusOr<std::unique_ptr<FileLock>> BoundedFileSystem::Lock(const std::string& path) {
  return base_.Lock(path);
}

}  // namespace varve
