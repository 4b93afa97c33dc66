// What a process used so far, as the kernel counts it; what its files take on disk; and a limit on
// its memory, the page cache included. Linux only.
//
// Thread-safety: all of it may be called from any thread; a MemoryLimit belongs to one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace varve::bench {

// Of a process, all threads together; 0: this one.
struct ProcessUse {
  double cpu_seconds = 0;    // user and system
  uint64_t write_calls = 0;  // bytes given to write calls
  uint64_t disk_read = 0;    // bytes that came from a disk
  // Bytes sent to a disk or made dirty in the page cache, once until they are written back.
  uint64_t disk_written = 0;

  static ProcessUse Now(pid_t process = 0);
};

// Seconds without work until a store counts as settled: more than Varve puts merges off for
// (docs/compaction.md).
inline constexpr double kRestSeconds = 1.5;

// Waits until a process (0: this one) has used next to no processor time and written next to
// nothing for so long: whatever an engine does in the background is done.
void WaitUntilIdle(double rest_seconds, pid_t process = 0);

// Reads that the disk below `directory` has served so far, for whomever; 0 where the kernel doesn't
// tell.
uint64_t DiskReads(const std::string& directory);

// Bytes that the files below `directory` take on disk (du).
uint64_t BytesOnDisk(const std::string& directory);

// Puts the files below `directory` on disk and out of the page cache.
void DropFromPageCache(const std::string& directory);

// A memory cgroup below that of this process, for a child that enters it before it does anything
// else. Goes with the object, which must outlive the child.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // Empty where this user may make none: then there is no limit.
  const std::string& group() const { return group_; }

  // Moves this process into the group.
  static void Enter(const std::string& group);

 private:
  std::string group_;
};

}  // namespace varve::bench
