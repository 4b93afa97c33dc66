// The noted reads are the keys that clients have read since the last round of the read journal. A
// read leaves the hash of its key here and writes nothing; the journal takes all of them four times
// a second and hands them to the kernel together.
//
// The memory is bounded: kShards * kSlots entries of 16 bytes, and as much again while they are
// taken. A read that finds no free entry near the place of its hash is not noted, and counted in
// dropped(). A key that was read often takes one entry.
//
// A key may have been deleted and made again since the access index heard of it, which a hash can't
// tell. So each entry says how many uses a key has that was written when this one was, and never
// read since.
//
// Thread-safety: Add() and Find() may be called on any thread and take the spin lock of one shard.
// SetAges() may be called on any thread. One thread at a time calls Take().
// Invariants: a slot with count 0 is free; no key has two entries in one table.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "structure/spin_lock.h"
#include "varve/types.h"

namespace varve {

struct Touch {
  uint64_t hash = 0;  // HashKey() of the key
  NamespaceId space = kDefaultNamespace;
  uint16_t count = 0;      // reads of it, up to kMostCount; 0: the entry is free
  uint8_t least_uses = 0;  // its count of uses before these reads was not below this one

  static constexpr uint16_t kMostCount = 0xffff;
};

class NotedReads {
 public:
  static constexpr size_t kShards = 16;
  static constexpr size_t kSlots = 16384;  // of a shard
  static constexpr size_t kBytes = 2 * kShards * kSlots * sizeof(Touch);
  // A key that nobody reads has so many uses when it is written, and one less each minute.
  static constexpr size_t kAges = 5;
  // By minutes: the newest version that was written so many minutes ago and one more, or earlier.
  using Ages = std::array<SequenceNumber, kAges>;

  // Takes the memory. Throws std::bad_alloc.
  // Requires: no other thread uses the object yet.
  void Start();

  // Until the first call, all versions count as new.
  void SetAges(const Ages& ages);
  // Notes a read of a key whose value is of this version; kNoSequence: of a new one.
  // Requires: Start() was called.
  void Add(NamespaceId space, std::string_view key, SequenceNumber version = kNoSequence);
  // Returns the reads of the key since the last Take(); of none the count is 0.
  Touch Find(NamespaceId space, uint64_t hash) const;
  // Removes all that was noted and returns it, in no order. What there is no memory for stays.
  std::vector<Touch> Take();

  // Counts reads that were noted and could not be kept.
  void NoteDropped(uint64_t reads) { dropped_.fetch_add(reads, std::memory_order_relaxed); }
  // Returns how many reads were lost for want of room.
  void ResetDropped() { dropped_.store(0, std::memory_order_relaxed); }
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kMostProbes = 32;

  struct Shard {
    mutable SpinLock lock;
    std::vector<Touch> slots ABSL_GUARDED_BY(lock);
    size_t used ABSL_GUARDED_BY(lock) = 0;
  };

  // Makes the shard's table the spare one, unless it has more entries than there is room for.
  // Returns how many it has had.
  size_t TakeShard(Shard* shard, size_t room);
  uint8_t UsesOf(SequenceNumber version) const;
  static size_t ShardOf(uint64_t hash) { return hash >> 60; }
  static size_t SlotOf(uint64_t hash) { return (hash >> 20) % kSlots; }

  std::array<Shard, kShards> shards_;
  std::vector<Touch> spare_;  // free entries, for the shard that is taken next
  std::array<std::atomic<SequenceNumber>, kAges> ages_{};
  std::atomic<uint64_t> dropped_{0};
};

}  // namespace varve
