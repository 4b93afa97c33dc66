#include "util/os/file_system.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_;
};

// Makes the call until no signal comes in between. That says nothing of what the call was to do: a
// sync, too, may be made again then.
template <typename Call>
auto Uninterrupted(const Call& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

absl::StatusOr<Descriptor> OpenDescriptor(const std::string& path, int flags) {
  const int fd = Uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, kFileMode); });
  if (fd < 0) return IoError(errno, "open", path);
  return Descriptor(fd);
}

class PosixFile : public File {
 public:
  PosixFile(std::string path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    size_t done = 0;
    while (done < size) {
      const ssize_t n = Uninterrupted([&] {
        return ::pread(descriptor_.get(), buffer + done, size - done,
                       static_cast<off_t>(offset + done));
      });
      if (n == 0) break;
      if (n < 0) return IoError(errno, "read", path_, offset + done);
      done += static_cast<size_t>(n);
    }
    return done;
  }

  absl::Status Write(uint64_t offset, std::string_view data) override {
    while (!data.empty()) {
      const ssize_t n = Uninterrupted([&] {
        return ::pwrite(descriptor_.get(), data.data(), data.size(), static_cast<off_t>(offset));
      });
      if (n < 0) return IoError(errno, "write", path_, offset);
      if (n == 0) return IoError(EIO, "write", path_, offset);  // else it would never end
      data.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    if (const int error = writeback_error_.load(); error != 0)
      return IoError(error, "write back", path_);
    if (Uninterrupted([&] { return ::fdatasync(descriptor_.get()); }) != 0)
      return IoError(errno, "fdatasync", path_);
    return absl::OkStatus();
  }

  // Around the kernel's cache, through a descriptor of its own, which the first such write opens.
  absl::Status WriteDurably(uint64_t offset, std::string_view data) override {
    const bool aligned =
        (reinterpret_cast<uintptr_t>(data.data()) | offset | data.size()) % kDirectAlignment == 0;
    if (!aligned) return File::WriteDurably(offset, data);
    std::call_once(direct_once_, [this] {
      char same[32];  // the file may have been renamed
      *fmt::format_to_n(same, sizeof(same) - 1, "/proc/self/fd/{}", descriptor_.get()).out = '\0';
      direct_ = Descriptor(Uninterrupted(
          [&same] { return ::open(same, O_WRONLY | O_DIRECT | O_DSYNC | O_CLOEXEC); }));
    });
    while (direct_.get() >= 0 && !data.empty()) {
      const ssize_t n = Uninterrupted([&] {
        return ::pwrite(direct_.get(), data.data(), data.size(), static_cast<off_t>(offset));
      });
      // Not with this file system, or not with what is left of a short write.
      if (n < 0 && errno == EINVAL) break;
      if (n < 0) return IoError(errno, "write", path_, offset);
      if (n == 0) return IoError(EIO, "write", path_, offset);
      data.remove_prefix(static_cast<size_t>(n));
      offset += static_cast<uint64_t>(n);
    }
    return data.empty() ? absl::OkStatus() : File::WriteDurably(offset, data);
  }

  void StartWriteback(uint64_t offset, uint64_t size) override {
    if (offset == 0 || SyncRange(0, offset, SYNC_FILE_RANGE_WAIT_BEFORE)) {
      SyncRange(offset, size, SYNC_FILE_RANGE_WRITE);
    }
  }

  absl::Status Allocate(uint64_t begin, uint64_t end) override {
    const int result = Uninterrupted([&] {
      return ::fallocate(descriptor_.get(), 0, static_cast<off_t>(begin),
                         static_cast<off_t>(end - begin));
    });
    if (result == 0) return absl::OkStatus();
    if (errno == EOPNOTSUPP || errno == ENOSYS) return File::Allocate(begin, end);
    return IoError(errno, "fallocate", path_, begin);
  }

  absl::Status Truncate(uint64_t size) override {
    if (Uninterrupted([&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size)); }) !=
        0)
      return IoError(errno, "truncate", path_, size);
    return absl::OkStatus();
  }

  absl::StatusOr<uint64_t> Size() const override {
    struct stat info;
    if (::fstat(descriptor_.get(), &info) != 0) return IoError(errno, "stat", path_);
    return static_cast<uint64_t>(info.st_size);
  }

  absl::StatusOr<uint64_t> CountLinks() const override {
    struct stat info;
    if (::fstat(descriptor_.get(), &info) != 0) return IoError(errno, "stat", path_);
    return static_cast<uint64_t>(info.st_nlink);
  }

  bool Prefetch(uint64_t offset, uint64_t size) const override {
    if (IsCached(offset)) return true;
    ::posix_fadvise(descriptor_.get(), static_cast<off_t>(offset), static_cast<off_t>(size),
                    POSIX_FADV_WILLNEED);
    return false;
  }

  const char* Map(uint64_t size) const override {
    void* const begin =
        ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor_.get(), /*offset=*/0);
    if (begin == MAP_FAILED) return nullptr;
    ::madvise(begin, size, MADV_RANDOM);  // a fault reads one page from the disk, not 32
    return static_cast<const char*>(begin);
  }

  const std::string& path() const override { return path_; }

 private:
  // Returns whether the kernel has the byte at `offset` in memory; false also where it cannot tell.
  bool IsCached(uint64_t offset) const {
    if (!tells_cached_.load(std::memory_order_relaxed)) return false;
    char byte = 0;
    const iovec one{&byte, 1};
    const ssize_t n = ::preadv2(descriptor_.get(), &one, 1, static_cast<off_t>(offset), RWF_NOWAIT);
    // This file system, or the sandbox, has no such read.
    if (n < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EPERM))
      tells_cached_.store(false, std::memory_order_relaxed);
    return n == 1;
  }
  // The kernel tells a descriptor only once of what could not be written: fdatasync is silent about
  // what was said here.
  bool SyncRange(uint64_t offset, uint64_t size, unsigned flags) {
    if (writeback_error_.load() != 0) return false;
    const int result = Uninterrupted([&] {
      return ::sync_file_range(descriptor_.get(), static_cast<off_t>(offset),
                               static_cast<off_t>(size), flags);
    });
    if (result == 0) return true;
    const bool is_refused =
        // No such call here.
        errno == EINVAL || errno == ENOSYS || errno == ESPIPE || errno == EPERM;
    if (!is_refused) writeback_error_.store(errno);
    return false;
  }

  const std::string path_;
  const Descriptor descriptor_;
  mutable std::atomic<bool> tells_cached_{true};  // false: IsCached() has no way to tell
  std::atomic<int> writeback_error_{0};           // errno; final
  std::once_flag direct_once_;
  Descriptor direct_{-1};  // where it can't be opened, the file does without
};

// flock belongs to the open file, so that it also excludes a second store of this process.
class PosixFileLock : public FileLock {
 public:
  explicit PosixFileLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}

 private:
  const Descriptor descriptor_;
};

class RealFileSystem : public FileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(Descriptor descriptor, OpenDescriptor(path, O_RDONLY));
    return std::make_unique<PosixFile>(path, std::move(descriptor));
  }

  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    VARVE_ASSIGN_OR_RETURN(Descriptor descriptor,
                           OpenDescriptor(path, O_RDWR | (create ? O_CREAT | O_TRUNC : 0)));
    return std::make_unique<PosixFile>(path, std::move(descriptor));
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0)
      return IoError(errno, fmt::format("rename to {}:", to), from);
    return absl::OkStatus();
  }

  absl::Status Link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) != 0)
      return IoError(errno, fmt::format("link as {}:", to), from);
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (::remove(path.c_str()) != 0) return IoError(errno, "remove", path);
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(const Descriptor descriptor,
                           OpenDescriptor(path, O_RDONLY | O_DIRECTORY));
    if (Uninterrupted([&] { return ::fsync(descriptor.get()); }) != 0)
      return IoError(errno, "fsync directory", path);
    return absl::OkStatus();
  }

  absl::Status CreateDirectory(const std::string& path) override {
    if (::mkdir(path.c_str(), kDirectoryMode) == 0) return absl::OkStatus();
    if (errno == ENOENT) {
      const std::string parent = ParentDirectory(path);
      if (parent == "." || parent == path) return IoError(ENOENT, "create directory", path);
      VARVE_RETURN_IF_ERROR(CreateDirectory(parent));
      VARVE_RETURN_IF_ERROR(SyncDirectory(ParentDirectory(parent)));
      if (::mkdir(path.c_str(), kDirectoryMode) == 0) return absl::OkStatus();
    }
    const int error = errno;
    struct stat info;
    if (error == EEXIST && ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode))
      return absl::OkStatus();
    return IoError(error, "create directory", path);
  }

  absl::StatusOr<std::vector<std::string>> List(const std::string& path) override {
    std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
    if (directory == nullptr) return IoError(errno, "list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      errno = 0;
    }
    if (errno != 0) return IoError(errno, "list", path);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::StatusOr<uint64_t> FreeSpace(const std::string& path) override {
    struct statvfs info;
    if (Uninterrupted([&] { return ::statvfs(path.c_str(), &info); }) != 0)
      return IoError(errno, "statvfs", path);
    return uint64_t{info.f_bavail} * info.f_frsize;
  }

  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) override {
    VARVE_ASSIGN_OR_RETURN(Descriptor descriptor, OpenDescriptor(path, O_RDWR | O_CREAT));
    if (Uninterrupted([&] { return ::flock(descriptor.get(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) return IoError(errno, "lock", path);
      return absl::FailedPreconditionError(fmt::format(
          "lock {}: held by another process or store; stop it, or choose another directory", path));
    }
    return std::make_unique<PosixFileLock>(std::move(descriptor));
  }
};

}  // namespace

absl::Status File::Allocate(uint64_t begin, uint64_t end) {
  const std::string zeros(std::min<uint64_t>(end - begin, 64u << 10), '\0');
  while (begin < end) {
    const size_t size = std::min<uint64_t>(end - begin, zeros.size());
    VARVE_RETURN_IF_ERROR(Write(begin, std::string_view(zeros).substr(0, size)));
    begin += size;
  }
  return absl::OkStatus();
}

void RemoveFile(FileSystem* file_system, const std::string& path) noexcept {
  TryWithMemory([&] { file_system->Remove(path).IgnoreError(); });
}

std::string ParentDirectory(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.find_last_of('/');
  if (slash == std::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

FileSystem* PosixFileSystem() {
  static RealFileSystem file_system;  // has no state, so that its end at exit harms nobody
  return &file_system;
}

}  // namespace varve
