// The clock cache keeps byte buffers under a byte budget and evicts by CLOCK (Corbató, "A Paging
// Experiment with the Multics System"): a hit sets a bit instead of moving a list node, and the
// hand evicts the first entry whose bit has been cleared since.
//
// An entry is one allocation of header and bytes. The cache hands it out as a reference-counted
// Handle, which keeps the bytes in place even when the cache drops the entry. A caller makes a
// buffer outside the cache (New), fills it as its only owner and shares it by Insert. An entry that
// a shard cannot take (it is too large, or everything else is in use) still works; the cache just
// does not keep it. A cache with a capacity of 0 keeps nothing.
//
// Thread-safety: all functions may be called by any thread. A hit takes the spin lock of one of up
// to 64 shards, allocates nothing and moves nothing: it touches one line of the shard's
// open-addressing table (linear probing, hashes beside the pointers, at most half full) and the
// entry's header. Prefetching takes no lock: it may look at a table that is being changed or has
// been replaced, and then asks memory for the wrong lines.
//
// Invariants:
// (1) usage() <= capacity(), with headers and tables.
// (2) An entry that somebody holds is never evicted.
// (3) ring[entry->ring_position] == entry for every entry of a shard.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "structure/spin_lock.h"
#include "util/os/aligned_bytes.h"

namespace varve {

class ClockCache {
 private:
  struct Entry {
    uint64_t first = 0;  // key
    uint64_t second = 0;
    uint64_t hash = 0;
    uint64_t base = 0;  // the caller's number, see Handle::base()
    size_t size = 0;    // number of bytes behind the entry
    std::atomic<uint32_t> references{1};
    uint32_t ring_position = 0;
    std::atomic<bool> recently_used{false};
    bool flagged = false;
    uint16_t notes_size = 0;  // number of bytes behind those

    char* bytes() { return reinterpret_cast<char*>(this + 1); }
  };

 public:
  // A Handle keeps an entry's bytes in place. It is movable, and empty by default and after a move.
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
    // A number and a bit that the caller sets before Insert; the cache does not interpret them.
    uint64_t base() const { return entry_->base; }
    bool flagged() const { return entry_->flagged; }
    std::string_view notes() const { return {entry_->bytes() + entry_->size, entry_->notes_size}; }

    // Requires: the call comes between New and Insert, while this handle is the only one.
    char* mutable_data() { return entry_->bytes(); }
    char* mutable_notes() { return entry_->bytes() + entry_->size; }
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

  // Returns an uninitialized buffer of `size` bytes outside the cache, with `notes_size` bytes
  // behind them in which the caller notes what helps to read the others. The buffer may outlive
  // the cache. Throws std::bad_alloc.
  Handle New(size_t size, uint16_t notes_size = 0) const;

  // Returns the entry of the key, or an empty handle. `position`, counted as the entry's base is,
  // and `size` say which of its bytes the caller will read: the cache prefetches their first lines
  // together with the header.
  Handle Lookup(uint64_t first, uint64_t second, uint64_t position, size_t size = 0);
  // Prefetch what a Lookup will touch; a caller that looks up several keys calls PrefetchSlot for
  // all of them, then PrefetchEntry for all of them. PrefetchEntry returns where the bytes seem to
  // be, or null. The caller may prefetch more of them from there, but must not read them: the entry
  // may be gone by then.
  void PrefetchSlot(uint64_t first, uint64_t second) const;
  const char* PrefetchEntry(uint64_t first, uint64_t second, uint64_t position) const;
  // Gives the buffer to the cache under the key. Returns the entry that now stands there, which is
  // another thread's if that thread was faster.
  // Requires: `buffer` is not empty and was not inserted before.
  Handle Insert(uint64_t first, uint64_t second, Handle buffer);

  size_t capacity() const { return capacity_; }
  // Returns the bytes that the entries in the cache take, with their headers and tables.
  size_t usage() const;

 private:
  // One slot of a table. It is changed under the shard's lock and prefetched without.
  struct Slot {
    std::atomic<uint32_t> hash{0};       // low half of the entry's hash
    std::atomic<uint32_t> base{0};       // low half of the entry's base
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
    // Returns the slot at which a search for `i` begins or goes on.
    Slot& operator[](size_t i) const { return slots_[i & mask_]; }
    // Gives the memory back once the table has been replaced; late prefetches may still look at it.
    void Empty() { DropMemory(memory_.data(), memory_.size()); }

   private:
    const AlignedBytes memory_;
    Slot* const slots_;
    const size_t mask_;
  };
  struct Shard {
    // The last of `tables`; null until the first insertion.
    alignas(64) std::atomic<const Table*> table{nullptr};
    alignas(64) mutable SpinLock lock;
    std::vector<std::unique_ptr<Table>> tables ABSL_GUARDED_BY(lock);  // all but the last are empty
    std::vector<Entry*> ring ABSL_GUARDED_BY(lock);
    size_t hand ABSL_GUARDED_BY(lock) = 0;
    std::atomic<size_t> usage{0};  // changed under the lock
  };

  static void Free(Entry* entry);
  // Returns the charge of an entry: its header, its bytes and its share of slots and ring.
  static size_t ChargeOf(const Entry& entry) {
    return sizeof(Entry) + entry.size + entry.notes_size + 4 * sizeof(Slot) + 2 * sizeof(Entry*);
  }
  static uint64_t Mix(uint64_t first, uint64_t second);
  Shard& ShardOf(uint64_t hash) const { return shards_[hash >> 58 & (shard_count_ - 1)]; }

  static const Table* TableOf(const Shard& shard) {
    return shard.table.load(std::memory_order_acquire);
  }
  // The content of one slot when a search looked at it.
  struct Match {
    Entry* entry = nullptr;
    uint32_t base = 0;
  };
  // Returns the next slot from `*i` on that has this hash and moves `*i` behind it; an empty match
  // if there is none.
  static Match NextMatch(const Table& table, uint64_t hash, size_t* i);
  static const char* PrefetchBytes(const Match& match, uint64_t position, size_t size);
  static Entry* Find(const Shard& shard, uint64_t hash, uint64_t first, uint64_t second,
                     uint64_t position, size_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  // Drops the entry unless somebody holds it.
  static void Evict(Shard& shard, Entry* entry, std::vector<Handle>* victims)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(shard.lock);
  // Evicts until `charge` more bytes fit, and returns whether they do. The caller frees the entries
  // in `*victims` after the lock.
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
