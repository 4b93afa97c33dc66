// The scan history of a segment knows what scans have read of it past the block cache: how much in
// all, and how far they come behind a seek.
//
// It decides whether a scan is worth the cache's memory. Fresh memory for a cache entry costs as
// much as reading the entry from the kernel's cache three times over, so the first scans of a
// segment look at what they read in a buffer of their own. They come soon after a fill, as a rule,
// when the segment is about to be merged into another one. A segment of which scans have read all
// twice is likely to be read again, and then the cache keeps it.
//
// It also tells a scan how much to read at once. Scans of one kind come about as far as those
// before them, and one read of all that they need waits for the disk once.
//
// Thread-safety: all functions may be called by any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace varve {

class ScanHistory {
 public:
  static constexpr uint64_t kScansBeforeFill = 2;
  static constexpr uint64_t kMostReach = uint64_t{128} << 10;

  // The history begins with the reach that another one has left in `*usual_reach`, and leaves its
  // own there: a segment that was just made holds what scans read of others before. Null: it begins
  // with nothing.
  // Requires: `usual_reach` outlives the history.
  explicit ScanHistory(std::atomic<uint64_t>* usual_reach)
      : reach_(usual_reach == nullptr ? 0 : usual_reach->load(std::memory_order_relaxed)),
        usual_reach_(usual_reach) {}

  // Notes that a scan has read so much past the cache.
  void Note(uint64_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // Returns whether a scan may leave blocks of a segment with so much data in the cache.
  bool MayFill(uint64_t data_size) const {
    return bytes_.load(std::memory_order_relaxed) >= kScansBeforeFill * data_size;
  }

  // Notes that a scan which had to read came so many bytes behind its seek.
  void NoteReach(uint64_t bytes) {
    const uint64_t before = reach(), now = std::min(bytes, kMostReach);
    const uint64_t after =
        now > before ? before + (now - before) / kUp : before - (before - now) / kDown;
    // Threads that scan the same segment leave each other's cache line alone where all is known.
    if (after + kExact >= before && before + kExact >= after) return;
    reach_.store(after, std::memory_order_relaxed);
    if (usual_reach_ != nullptr) usual_reach_->store(after, std::memory_order_relaxed);
  }
  // Returns the mean of these bytes, in which those of long scans weigh more; 0: none were noted.
  uint64_t reach() const { return reach_.load(std::memory_order_relaxed); }

 private:
  // The reach rises four times as fast as it falls, so that most scans of one kind stay within it.
  static constexpr uint64_t kUp = 4, kDown = 16;
  static constexpr uint64_t kExact = 128;  // bytes

  std::atomic<uint64_t> bytes_{0};
  std::atomic<uint64_t> reach_;
  std::atomic<uint64_t>* const usual_reach_;
};

}  // namespace varve
