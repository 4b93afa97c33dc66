// The scan history of a segment counts what long scans read of it past the block cache, and decides
// from it whether a scan is worth the cache's memory.
//
// Fresh memory for a cache entry costs as much as reading the entry from the kernel's cache three
// times over, so the first scans of a segment look at what they read in a buffer of their own. They
// come soon after a fill, as a rule, when the segment is about to be merged into another one. A
// segment of which scans have read all twice is likely to be read again, and then the cache keeps
// it.
//
// Thread-safety: all functions may be called by any thread.
#pragma once

#include <atomic>
#include <cstdint>

namespace varve {

class ScanHistory {
 public:
  static constexpr uint64_t kScansBeforeFill = 2;

  void Note(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // Returns whether a scan may leave blocks of a segment with so much data in the cache.
  bool MayFill(uint64_t data_size) const {
    return bytes_.load(std::memory_order_relaxed) >= kScansBeforeFill * data_size;
  }

 private:
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace varve
