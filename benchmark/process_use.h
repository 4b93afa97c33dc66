// Functions that measure the processor time, the I/O and the disk space of a process, and a limit
// on its memory. They read the kernel's figures and work on Linux only.
//
// Thread-safety: all functions may be called from any thread; a MemoryLimit belongs to one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace varve::bench {

// The use of a process, all threads together; process 0 is this one.
struct ProcessUse {
  double cpu_seconds = 0;    // user and system
  uint64_t write_calls = 0;  // bytes given to write calls
  uint64_t disk_read = 0;    // bytes that came from a disk
  // Bytes sent to a disk, or made dirty in the page cache, which count once until they are written
  // back.
  uint64_t disk_written = 0;

  static ProcessUse Now(pid_t process = 0);
};

// Seconds without work until a store counts as settled: more than Varve puts merges off for
// (docs/compaction.md).
inline constexpr double kRestSeconds = 1.5;
// The same before its memory and its files are measured. Varve gives free memory and the files of
// its log back 2 to 3 seconds after the last write (db/engine/log_tidier.h), and does nothing
// before that.
inline constexpr double kFootprintRestSeconds = 5;

// Waits until a process (0: this one) has used next to no processor time and written next to
// nothing for `rest_seconds`, so that the engine has finished its work in the background.
void WaitUntilIdle(double rest_seconds, pid_t process = 0);

// Returns how many reads the disk below `directory` has served so far, for all processes; 0 if the
// kernel doesn't tell.
uint64_t DiskReads(const std::string& directory);

// Returns how many bytes the files below `directory` take on disk (du).
uint64_t BytesOnDisk(const std::string& directory);

// Syncs the files below `directory` and drops them from the page cache.
void DropFromPageCache(const std::string& directory);

// A memory limit, page cache included: a cgroup below that of this process, which a child enters
// before it does anything else. The destructor removes the cgroup. Requires: the object outlives
// the child.
class MemoryLimit {
 public:
  explicit MemoryLimit(uint64_t bytes);
  ~MemoryLimit();
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

  // Returns the path of the cgroup; empty if this user may not make one, and then there is no
  // limit.
  const std::string& group() const { return group_; }

  // Returns whether the kernel has killed a process of the group because of the limit.
  bool WasExceeded() const;

  // Moves this process into the group.
  static void Enter(const std::string& group);

 private:
  std::string group_;
};

}  // namespace varve::bench
