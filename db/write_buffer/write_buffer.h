// The write buffer holds records in memory that are not in a segment yet (the field's memtable). It
// has two indexes over the same records:
//   - a hash index, which every write updates, so that a point lookup is one probe. A bucket chains
//     distinct keys; the versions of a key hang behind its newest one, so that a key written a
//     million times doesn't slow down its neighbours;
//   - a skip list, which only iterators need. A new iterator sorts what writers have added since
//     the last time and inserts it in one go. Writers do nothing for the order, and the flush sorts
//     the records by itself, once.
//
// Range tombstones are in neither index: the engine publishes a list of them beside the buffer, and
// the buffer keeps them as they came for the flush.
//
// A batch comes in three steps. One thread at a time takes its memory (Reserve and Take). Then any
// number of threads insert records of their batches into the hash index at the same time; a bucket
// is locked by a bit of its own. Last, one thread at a time, in the order of the sequences, appends
// each batch to the chain of arrival, which iterators, walks and the flush follow.
//
// Thread-safety: as above; any number of readers look up and iterate without a lock.
// Invariants: a record with sequence s is inserted and appended before s becomes visible, so a
// reader at sequence r finds every record up to r. Sequences ascend from version to version of a
// key, in whatever order they were inserted. Nothing is added after Seal().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "db/format/internal_iterator.h"
#include "db/format/range_tombstone.h"
#include "structure/arena.h"
#include "structure/skip_list.h"
#include "type/record.h"
#include "util/base/prefetch.h"

namespace varve {

class WriteBuffer {
  struct Entry;

 public:
  static constexpr uint64_t kEntriesPerMark = 64;
  static constexpr size_t kSpreadMarks = 32;

  // `capacity` is in bytes of memory; `first_sequence` is the lowest that the writer can add. The
  // buffer makes buckets for `expected_entries` records, even if the capacity says fewer (a batch
  // always goes into one buffer). It takes its memory from `pool`, if there is one.
  WriteBuffer(size_t capacity, SequenceNumber first_sequence, size_t expected_entries = 0,
              std::shared_ptr<ChunkPool> pool = nullptr);
  ~WriteBuffer();
  WriteBuffer(const WriteBuffer&) = delete;
  WriteBuffer& operator=(const WriteBuffer&) = delete;

  // --- Writers -----------------------------------------------------------------------------------
  // Records that were inserted and not appended yet, in the order of their sequences.
  class Batch {
   private:
    friend class WriteBuffer;
    Entry* first = nullptr;
    Entry* last = nullptr;
    uint64_t count = 0;
    uint64_t logged_large_bytes = 0;
  };

  // Makes sure that the next records, which need `bytes` (the sum of SizeOf), and range tombstones
  // can be added without failing. One thread at a time. Throws std::bad_alloc.
  void Reserve(size_t bytes, size_t range_tombstones);
  static size_t SizeOf(const RecordView& record);
  // Returns the memory that Reserve(bytes) has made sure of. One thread at a time.
  char* Take(size_t bytes) { return arena_.Allocate(bytes); }
  // Copies the record to `*memory`, moves that behind it, and inserts it into the hash index. With
  // `readers_wait`, readers of the record wait until it is durable. Any number of threads at once.
  // Requires: the record is a value or a tombstone; `hash` is HashKey(record.key); Take() returned
  // the memory; no other record of the key has its sequence.
  void Insert(const RecordView& record, uint64_t hash, bool readers_wait, char** memory,
              Batch* batch);
  // Appends the batch to the chain of arrival. One thread at a time, in the order of sequences.
  void Append(const Batch& batch);
  // Inserts and appends one record, for a thread that writes alone.
  void Add(const RecordView& record, uint64_t hash, bool readers_wait);
  // Requires: no other thread writes.
  void AddRangeTombstone(RangeTombstone tombstone);
  // Prefetches the bucket of `hash`.
  void Prefetch(uint64_t hash) const {
    if (oldest_.load(std::memory_order_relaxed) != nullptr)
      PrefetchLine(&buckets_[hash & bucket_mask_]);
  }
  // Prefetches the record in front of that bucket's chain, once the bucket is there.
  void PrefetchEntry(uint64_t hash) const {
    if (oldest_.load(std::memory_order_relaxed) == nullptr) return;
    const Entry* const entry = Head(hash, std::memory_order_relaxed);
    if (entry == nullptr) return;
    PrefetchLine(entry);
    PrefetchLine(reinterpret_cast<const char*>(entry) + 64);
  }
  bool full() const { return bytes_used() >= capacity_; }

  // --- Readers -----------------------------------------------------------------------------------
  struct Found {
    RecordView record;
    bool readers_wait;
  };
  // Finds the newest version of `tree_key` not newer than `at`; returns whether there is one. Views
  // live as long as the buffer.
  bool Get(std::string_view tree_key, uint64_t hash, SequenceNumber at, Found* found) const;
  // Returns the sequence of the newest version of the key; kNoSequence if there is none.
  SequenceNumber NewestSequence(std::string_view tree_key, uint64_t hash) const;
  // Returns the sequence of the newest version that is a value; kNoSequence if there is none.
  SequenceNumber NewestValueSequence(std::string_view tree_key, uint64_t hash) const;
  // The position of a walk over the records in the order of their arrival. It is valid as long as
  // the buffer lives.
  class Position {
   public:
    // Returns the sequence of the record before those that Walk delivers next; kNoSequence: it
    // delivers from the first one on.
    SequenceNumber sequence() const;

   private:
    friend class WriteBuffer;
    const Entry* last = nullptr;  // the record delivered last
  };
  // Delivers what was added behind `*position`, up to sequence `last`, each with the key's previous
  // version in this buffer (null: none).
  void Walk(
      Position* position, SequenceNumber last,
      absl::FunctionRef<void(const RecordView& record, const RecordView* previous)> deliver) const;
  // Returns a position from which Walk delivers all records that are newer than `sequence`, and few
  // older ones before them.
  // Requires: no batch is inserted and not appended, and the caller keeps others from coming; or
  // the buffer is sealed.
  Position PositionNear(SequenceNumber sequence) const;
  // Returns positions spread evenly over the records that are newer than `begin` and not newer than
  // `end`, in the order of arrival, kSpreadMarks + 1 at most; between kEntriesPerMark and
  // twice as many of what was added follow the last of them.
  std::vector<Position> SpreadPositions(SequenceNumber begin, SequenceNumber end) const;
  // Returns a cursor over everything added so far. It must not outlive the buffer.
  std::unique_ptr<InternalIterator> NewIterator() const;
  // Returns a cursor for one walk, which sorts the records for itself; that costs less than the
  // skip list. With `newest_only` it delivers only the newest version of each key.
  // Requires: the buffer is sealed.
  std::unique_ptr<InternalIterator> NewSortedIterator(bool newest_only) const;

  size_t bytes_used() const {
    return arena_.bytes_used() + bucket_bytes_ + tombstone_bytes_.load(std::memory_order_relaxed);
  }
  SequenceNumber first_sequence() const { return first_sequence_; }
  uint64_t entries() const { return entries_.load(std::memory_order_relaxed); }
  // Returns the bytes of large operations whose place in the log is known.
  uint64_t logged_large_bytes() const {
    return logged_large_bytes_.load(std::memory_order_relaxed);
  }

  // Notes that nothing is added any more, and which sequence was the last. Before that
  // last_sequence() is kNoSequence, and only the thread that may add them calls range_tombstones().
  void Seal(SequenceNumber last_sequence) {
    last_sequence_.store(last_sequence, std::memory_order_relaxed);
  }
  SequenceNumber last_sequence() const { return last_sequence_.load(std::memory_order_relaxed); }
  const std::vector<RangeTombstone>& range_tombstones() const { return range_tombstones_; }

 private:
  struct Ordered;
  struct Order;
  class OrderedIterator;
  class SortedIterator;
  struct Sortable {
    uint64_t word;  // the eight bytes behind what all keys of the list share, which mostly decide
    const Entry* entry;
  };

  // A bucket holds the newest record of its first key; the lowest bit says that a thread inserts.
  using Bucket = std::atomic<uintptr_t>;
  static constexpr uintptr_t kLocked = 1;
  Entry* Head(uint64_t hash, std::memory_order order) const {
    return reinterpret_cast<Entry*>(buckets_[hash & bucket_mask_].load(order) & ~kLocked);
  }
  // Returns the head of the bucket.
  static Entry* Lock(Bucket* bucket);
  static void Unlock(Bucket* bucket, Entry* head) {
    bucket->store(reinterpret_cast<uintptr_t>(head), std::memory_order_release);
  }
  // Puts `entry` among the versions of its key. Returns the new head of the bucket, whose head was
  // `head`. Requires: the caller has locked the bucket.
  static Entry* Link(Entry* entry, Entry* head);
  // Notes an arrival in marks_, and for readers.
  void Mark(const Entry* entry);
  const Entry* FindKey(std::string_view tree_key, uint64_t hash) const;
  // Returns what arrived behind `*last` (null: everything), sorted; `*last` is then the last of
  // them. `newest_only`: see NewSortedIterator.
  std::vector<Sortable> SortArrivals(const Entry** last, bool newest_only) const;
  // Sorts by key, the newest version of each key first.
  // Requires: the items' words are set.
  static void SortByKey(std::vector<Sortable>* items);
  // Sorts what the writer has added since the last call into the skip list. Where memory runs out
  // in the middle, the next call goes on there.
  void BringOrderUpToDate() const;

  // The members up to arena_ are read by every lookup and written rarely; they lie apart from what
  // each write changes.
  const size_t capacity_;
  const SequenceNumber first_sequence_;
  std::atomic<SequenceNumber> last_sequence_{kNoSequence};
  size_t bucket_mask_;
  size_t bucket_bytes_;
  Bucket* buckets_;  // calloc: pages of buckets never touched cost nothing
  // null: the buffer is empty, and no bucket need be looked at.
  std::atomic<Entry*> oldest_{nullptr};

  alignas(64) Arena arena_;
  std::vector<RangeTombstone> range_tombstones_;
  std::atomic<size_t> tombstone_bytes_{0};

  // Appending a batch changes these.
  alignas(64) Entry* newest_ = nullptr;  // the end of the chain of arrival
  // Each kEntriesPerMark-th arrival; without memory for more, those up to the last one.
  std::vector<const Entry*> marks_;
  std::atomic<uint64_t> entries_{0};
  std::atomic<uint64_t> logged_large_bytes_{0};

  // Held by the thread that brings the order up to date; readers of the skip list need no lock.
  mutable absl::Mutex order_mutex_;
  std::unique_ptr<Order> order_;

  // The marks that readers see: the newest but one, and each spread_distance_-th from the first on.
  std::atomic<const Entry*> recent_mark_{nullptr};
  std::atomic<const Entry*> spread_[kSpreadMarks] = {};
  size_t spread_distance_ = 1;
};

}  // namespace varve
