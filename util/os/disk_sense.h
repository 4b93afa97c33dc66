// The disk sense of a thread tells whether the reads of that thread have lately gone to the disk.
//
// Telling the kernel of a read ahead of time lets the disk work on several reads at once, but costs
// a system call, which is half of a read of what the kernel holds in memory. So a cursor that knows
// what it will read next asks the disk sense first. The kernel counts the blocks that it has read
// for a thread, by calls, by page faults of mappings and ahead of time; the sense looks at that
// number once in a while.
//
// Thread-safety: a sense belongs to one thread.
#pragma once

#include <cstdint>

namespace varve {

class DiskSense {
 public:
  // The verdict holds for so many calls.
  static constexpr uint32_t kCallsAVerdict = 32;

  // Returns how many blocks the kernel has read from disks for the calling thread.
  static uint64_t BlocksReadForThread();

  explicit DiskSense(uint64_t (*blocks_read)() = BlocksReadForThread)
      : blocks_read_(blocks_read), last_(blocks_read()) {}

  bool ReadsDisk() {
    if (++calls_ >= kCallsAVerdict) [[unlikely]]
      Look();
    return verdict_;
  }

 private:
  void Look() {
    const uint64_t now = blocks_read_();
    verdict_ = now != last_;
    last_ = now;
    calls_ = 0;
  }

  uint64_t (*const blocks_read_)();
  uint64_t last_;
  uint32_t calls_ = 0;
  bool verdict_ = false;
};

// Asks the sense of the calling thread.
bool ThreadReadsDisk();

}  // namespace varve
