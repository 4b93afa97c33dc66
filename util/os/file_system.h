// The file system is the engine's only way to a disk, and the seam where tests inject faults.
//
// Errors name operation, path and offset; their codes are those of IoError (util/base/status.h): a
// full disk is ResourceExhausted, a missing file NotFound, a failing device Internal.
//
// Thread-safety: one File may be read and written by several threads at once (positions are
// explicit); a FileSystem may be used by all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

inline constexpr size_t kDirectAlignment = 4096;

class File {
 public:
  virtual ~File() = default;  // closes

  // Reads up to `size` bytes at `offset` into `buffer`; fewer only at the end of the file. Retries
  // EINTR and short reads.
  [[nodiscard]] virtual absl::StatusOr<size_t> Read(uint64_t offset, size_t size,
                                                    char* buffer) const = 0;
  // Writes all of `data` at `offset`, growing the file where needed. Retries EINTR and short
  // writes.
  [[nodiscard]] virtual absl::Status Write(uint64_t offset, std::string_view data) = 0;
  // Puts data (and the size, where it changed) on disk. A failure is final for what was written
  // before. Requires: no Sync of this file has failed; a second one would not "retry".
  [[nodiscard]] virtual absl::Status Sync() = 0;
  // Writes these bytes and puts them on disk, them alone: what else was written stays as it is.
  // Several such writes to one file may be under way at once. Fastest where `offset`, data.size()
  // and data.data() are multiples of kDirectAlignment and the bytes lie within the file. A failure
  // is as final as that of Sync.
  [[nodiscard]] virtual absl::Status WriteDurably(uint64_t offset, std::string_view data) {
    const absl::Status written = Write(offset, data);
    return written.ok() ? Sync() : written;
  }
  // Has the kernel begin to put [offset, offset + size) on disk, once it is through with what it
  // began before. So a long file is written while it grows, and other files' syncs do not wait
  // behind all of it. Promises nothing; Sync returns the error if it fails.
  virtual void StartWriteback(uint64_t offset, uint64_t size) = 0;
  // Reserves room on disk for [begin, end): the file grows, and what is new reads as zeros. Cheaper
  // than writing zeros, which is what it does where there is no other way.
  // Requires: `begin` is the file's size, and begin < end.
  [[nodiscard]] virtual absl::Status Allocate(uint64_t begin, uint64_t end);
  [[nodiscard]] virtual absl::Status Truncate(uint64_t size) = 0;
  [[nodiscard]] virtual absl::StatusOr<uint64_t> Size() const = 0;
  // Returns by how many names the file can be reached.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> CountLinks() const = 0;
  // Says that [offset, offset + size) will be read soon. A hint: never fails. Returns true if the
  // bytes seem to be in memory, judged by the first one or by what the thread's last reads waited
  // for; a mapped file then has the processor fetch them. Else has the kernel read them from the
  // disk, and returns false. False also where the file system cannot tell.
  virtual bool Prefetch(uint64_t offset, uint64_t size) const = 0;
  // Maps the first `size` bytes of the file for reading. Returns where; null where files can't be
  // mapped. The caller unmaps them, and has a guard around each look at them
  // (util/os/mapped_reads.h).
  virtual const char* Map(uint64_t size) const {
    (void)size;
    return nullptr;
  }
  virtual const std::string& path() const = 0;
};

// A file lock is held while the object lives; the kernel gives it back when the process dies.
class FileLock {
 public:
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<File>> OpenForRead(
      const std::string& path) = 0;
  // Opens for reading and writing; `create` makes it (mode 0600), and empties it if it exists.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                                           bool create) = 0;
  [[nodiscard]] virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Gives the file `from` a second name, a hard link, in the same file system. AlreadyExists: there
  // is a file `to`, which stays. PermissionDenied: this file system has no hard links.
  [[nodiscard]] virtual absl::Status Link(const std::string& from, const std::string& to) = 0;
  // Removes the file, or the directory if it is empty.
  [[nodiscard]] virtual absl::Status Remove(const std::string& path) = 0;
  // Makes created, renamed and removed names in `path` survive a power cut.
  [[nodiscard]] virtual absl::Status SyncDirectory(const std::string& path) = 0;
  // Creates the directory (mode 0700) and missing parents, which are on disk when it returns; its
  // own name in the last of them is not. Fine if it is there.
  [[nodiscard]] virtual absl::Status CreateDirectory(const std::string& path) = 0;
  // Returns the names (not paths) in the directory, without . and .., sorted.
  [[nodiscard]] virtual absl::StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  // Returns the bytes that the file system which holds `path` has left for this user.
  [[nodiscard]] virtual absl::StatusOr<uint64_t> FreeSpace(const std::string& path) = 0;
  // Takes the lock. FailedPrecondition: another process (or another store of this process) holds
  // it.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path) = 0;
};

// Removes a file that turned out not to be wanted. One that cannot be removed, also for want of
// memory, is left for the next opening of the store.
void RemoveFile(FileSystem* file_system, const std::string& path) noexcept;

// Returns the directory that holds the name of `path`: "a/b" and "a/b/" -> "a", "a" -> ".", "/a" ->
// "/".
std::string ParentDirectory(std::string_view path);

// Returns the file system of the machine, which lives as long as the process.
FileSystem* PosixFileSystem();

}  // namespace varve
