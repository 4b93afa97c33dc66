// A cache of byte buffers under a byte budget, evicting by CLOCK (Corbató, "A Paging Experiment
// with the Multics System"): a hit sets a bit instead of moving a list node; the hand takes the
// first entry whose bit has been cleared since.
//
// An entry is one allocation: header and bytes; in a large cache it comes from slabs
// (structure/slab_allocator.h), which hold up to a fifth more than the budget while entries of one
// size give way to those of another. It is handed out as a reference-counted Handle, which keeps
// the bytes in place also when the cache drops the entry. A buffer is first made outside the cache
// (New), filled by its only owner, and shared by Insert. Thread-safe; a hit takes the spin lock of
// one of up to 64 shards, allocates nothing and moves nothing: it touches one line of the shard's
// open-addressing table (linear probing, hashes beside the pointers, at most half full), and the
// entry's header. Prefetching takes no lock: it may look at a table that is being changed, or was
// replaced, and so asks for the wrong lines now and then. Invariants: usage() <= capacity(),
// headers and tables included; entries that are handed out are never evicted; an entry that a shard
// can't take (too large, or everything else is in use) still works, it just isn't kept. With a
// capacity of 0 nothing is kept.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "structure/slab_allocator.h"
#include "structure/spin_lock.h"
#include "util/os/aligned_bytes.h"

namespace varve {

class ClockCache {
 private:
  struct Entry {
    uint64_t first = 0;  // key
    uint64_t second = 0;
    uint64_t hash = 0;
    uint64_t base = 0;  // of the user
    size_t size = 0;    // of the bytes behind the entry
    std::atomic<uint32_t> references{1};
    uint32_t ring_position = 0;
    std::atomic<bool> recently_used{false};
    bool flagged = false;
    bool in_slab = false;
    bool outside = false;  // of slabs, in a cache that has some

    char* bytes() { return reinterpret_cast<char*>(this + 1); }
  };

 public:
  // Keeps an entry's bytes in place. Movable; empty by default and after a move.
  class Handle {
   public:
    Handle() = default;
    Handle(Handle&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
    Handle& operator=(Handle&& other) noexcept {
      if (this != &other) {
        Release();
        entry_ = std::exchange(other.entry_, nullptr);
      }
      return *this;
    }
    ~Handle() { Release(); }

    explicit operator bool() const { return entry_ != nullptr; }
    std::string_view data() const { return {entry_->bytes(), entry_->size}; }
    // A number and a bit for the user, set before Insert.
    uint64_t base() const { return entry_->base; }
    bool flagged() const { return entry_->flagged; }

    // Only between New and Insert, while this handle is the only one.
    char* mutable_data() { return entry_->bytes(); }
    void set_base(uint64_t base) { entry_->base = base; }
    void set_flagged() { entry_->flagged = true; }

    void Release() {
      if (entry_ == nullptr) return;
      if (entry_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) Free(entry_);
      entry_ = nullptr;
    }

   private:
    friend class ClockCache;
    explicit Handle(Entry* entry) : entry_(entry) {}
    Entry* entry_ = nullptr;
  };

  explicit ClockCache(size_t capacity);
  ~ClockCache();
  ClockCache(const ClockCache&) = delete;
  ClockCache& operator=(const ClockCache&) = delete;

  // A buffer of `size` bytes, not initialized, outside the cache; it may outlive it.
  Handle New(size_t size) const;

  // The entry of the key, or an empty handle. `position`, counted as the entry's base is, and
  // `size` say which of its bytes will be read: the first lines of them are fetched into the
  // processor's cache beside the header.
  Handle Lookup(uint64_t first, uint64_t second, uint64_t position, size_t size = 0);
  // For lookups of several keys, each of which first does the one, then the other: bring the slot,
  // and what Lookup will touch of the entry, on their way into the processor's cache. The second
  // says where the bytes seem to be (null: nowhere), for asking memory for more of them: they may
  // be gone by then.
  void PrefetchSlot(uint64_t first, uint64_t second) const;
  const char* PrefetchEntry(uint64_t first, uint64_t second, uint64_t position) const;
  // Drops the entry of the key, if there is one; whoever holds it keeps it.
  void Erase(uint64_t first, uint64_t second);
  // Gives the buffer to the cache under the key. Returns the entry that now stands there: another
  // thread's if it was faster.
  Handle Insert(uint64_t first, uint64_t second, Handle buffer);

  size_t capacity() const { return capacity_; }
  // Bytes that entries in the cache take, with their headers and tables.
  size_t usage() const;

 private:
  // Changed under the shard's lock.
  struct Slot {
    std::atomic<uint32_t> hash{0};       // its low half
    std::atomic<uint32_t> base{0};       // the low half of the entry's base
    std::atomic<Entry*> entry{nullptr};  // null: free

    void Set(uint32_t new_hash, uint32_t new_base, Entry* new_entry) {
      hash.store(new_hash, std::memory_order_relaxed);
      base.store(new_base, std::memory_order_relaxed);
      entry.store(new_entry, std::memory_order_relaxed);
    }
    void Set(const Slot& other) {
      Set(other.hash.load(std::memory_order_relaxed), other.base.load(std::memory_order_relaxed),
          other.entry.load(std::memory_order_relaxed));
    }
  };
  class Table {
   public:
    explicit Table(size_t slots);  // a power of two
    size_t size() const { return mask_ + 1; }
    // The slot where looking for `i` begins, or goes on.
    Slot& operator[](size_t i) const { return slots_[i & mask_]; }
    // For when nobody looks for anything here but prefetches that came late.
    void Empty() { DropMemory(memory_.data(), memory_.size()); }

   private:
    const AlignedBytes memory_;
    Slot* const slots_;
    const size_t mask_;
  };
  struct Shard {
    // The last one; null: nothing was inserted yet.
    alignas(64) std::atomic<const Table*> table{nullptr};
    alignas(64) mutable SpinLock lock;
    std::vector<std::unique_ptr<Table>> tables ABSL_GUARDED_BY(lock);  // those before it are empty
    std::vector<Entry*> ring ABSL_GUARDED_BY(lock);
    size_t hand ABSL_GUARDED_BY(lock) = 0;
    std::atomic<size_t> usage{0};               // changed under the lock
    size_t in_slabs ABSL_GUARDED_BY(lock) = 0;  // entries
  };

  static void Free(Entry* entry);
  // What an entry is charged: its bytes and header, in a slab the slot, and its share of slots and
  // ring.
  static size_t ChargeOf(const Entry& entry) {
    const size_t size = sizeof(Entry) + entry.size;
    return (entry.in_slab ? SlabAllocator::SlotSizeFor(size) : size) + 4 * sizeof(Slot) +
           2 * sizeof(Entry*);
  }
  static uint64_t Mix(uint64_t first, uint64_t second);
  Shard& ShardOf(uint64_t hash) const { return shards_[hash >> 58 & (shard_count_ - 1)]; }

  static const Table* TableOf(const Shard& shard) {
    return shard.table.load(std::memory_order_acquire);
  }
  // What one slot held when it was looked at.
  struct Match {
    Entry* entry = nullptr;
    uint32_t base = 0;
  };
  // Of the next slot, from `*i` on, with such a hash; null: there is none. `*i` is behind it then.
  static Match NextMatch(const Table& table, uint64_t hash, size_t* i);
  static const char* PrefetchBytes(const Match& match, uint64_t position, size_t size);
  static Entry* Find(const Shard& shard, uint64_t hash, uint64_t first, uint64_t second,
                     uint64_t position, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  bool UsesSlabs() const;
  // Whether so much of the slabs is unused, beside what a full cache holds, that what lies in them
  // had better go: a slab goes back as a whole, and when entries of another size come, each slab
  // would keep a few of the former for long. How full the cache is, is told from one shard.
  bool IsFragmented(const Shard& shard) const;
  // Drops the entry, unless it is in use.
  static bool Evict(Shard& shard, Entry* entry, std::vector<Handle>* victims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  // Drops up to so many bytes of entries in slabs, whether they were used or not.
  static void Drain(Shard& shard, size_t bytes, std::vector<Handle>* victims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  // Evicts until `charge` more bytes fit; entries to be freed by the caller go to `*victims`.
  bool MakeRoom(Shard& shard, size_t charge, std::vector<Handle>* victims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  static void Link(const Table& table, Entry* entry);
  static void Unlink(Shard& shard, Entry* entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  static void Grow(Shard& shard) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);

  const size_t capacity_;
  size_t shard_count_;
  size_t shard_capacity_;
  std::unique_ptr<Shard[]> shards_;
};

}  // namespace varve
