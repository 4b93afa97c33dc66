#include "db/write_buffer/write_buffer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>

#include "db/format/key_base.h"
#include "structure/radix_sort.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/memory_guard.h"
#include "util/base/prefetch.h"
#include "util/base/spin.h"

namespace varve {
namespace {

constexpr size_t kBytesPerBucket = 128;  // of capacity: about one bucket a record of 100 bytes
constexpr size_t kManyToSort = 4096;     // from here on they are sorted by their words' bytes first

// So many steps ahead of one that touches an entry, its first bytes are prefetched: entries lie in
// the order of their arrival, and all over the memory for a walk in the order of keys.
constexpr size_t kPrefetchAhead = 8;
constexpr size_t kPrefetchedBytes = 256;

// Returns what mostly decides about the order of a key among others that begin with `base`: the
// seven bytes behind that, below a byte that tells keys before and behind all of those from them.
uint64_t WordBehind(std::string_view base, std::string_view tree_key) {
  constexpr uint64_t kBefore = 0, kShares = uint64_t{1} << 56, kBehind = uint64_t{2} << 56;
  if (!tree_key.starts_with(base)) return tree_key < base ? kBefore : kBehind;
  return kShares | LeadingWord(tree_key.substr(base.size())) >> 8;
}

}  // namespace

// One version of one key: this header, then optionally expiry and metadata, then key and value.
struct WriteBuffer::Entry {
  std::atomic<Entry*> next_key;      // next distinct key of the bucket
  std::atomic<Entry*> next_arrival;  // what was added after this
  std::atomic<const Entry*> older;   // previous version of the same key
  SequenceNumber sequence;
  uint32_t hash_tag;
  uint32_t key_size;
  uint32_t value_size;
  uint32_t metadata_size;
  RecordKind kind;
  uint8_t flags;
  WriteCause cause : 7;
  bool readers_wait : 1;
  // Says that there is a newer version. Guarded by the bucket's lock until the buffer is sealed;
  // then readers may read it.
  bool overwritten;
  uint32_t log_offset;

  static constexpr size_t kHeaderSize = 56;

  char* bytes() { return reinterpret_cast<char*>(this) + kHeaderSize; }
  const char* bytes() const { return reinterpret_cast<const char*>(this) + kHeaderSize; }
  size_t extra_size() const { return (flags & kHasExpiry ? 8 : 0) + metadata_size; }
  std::string_view key() const { return {bytes(), key_size}; }

  RecordView View() const {
    RecordView view{.key = key(),
                    .value = {bytes() + key_size, value_size},
                    .sequence = sequence,
                    .kind = kind,
                    .flags = flags,
                    .cause = cause,
                    .log_offset = log_offset};
    if (extra_size() != 0) {
      const char* extra = bytes() + key_size + value_size;
      if (flags & kHasExpiry) view.expiry_ms = DecodeFixed64(extra);
      view.metadata = {extra + extra_size() - metadata_size, metadata_size};
    }
    return view;
  }
};

// An item of the skip list.
struct WriteBuffer::Ordered {
  uint64_t word;  // WordBehind() the list's base
  const Entry* entry;
};

struct WriteBuffer::Order {
  // Most comparisons do not touch the entries.
  struct Compare {
    int operator()(const Ordered& a, const Ordered& b) const {
      if (a.word != b.word) return a.word < b.word ? -1 : 1;
      if (a.entry == b.entry) return 0;
      return CompareInternal(a.entry->key(), a.entry->sequence, b.entry->key(), b.entry->sequence);
    }
  };

  explicit Order(size_t chunk_size) : arena(chunk_size), list(&arena, Compare{}) {}

  void InsertPending() {
    if (base.load(std::memory_order_relaxed) == nullptr && !pending.empty()) SetBase();
    for (; inserted < pending.size(); ++inserted) {
      if (inserted + kPrefetchAhead < pending.size()) {
        const Entry* const ahead = pending[inserted + kPrefetchAhead].entry;
        PrefetchLines(reinterpret_cast<const char*>(ahead), 0, 128);
      }
      const Entry* const entry = pending[inserted].entry;
      list.Insert({WordBehind(*base_owner, entry->key()), entry});
    }
    pending = {};
    inserted = 0;
  }

  // Takes for the base what all pending keys begin with; of few of them not the last bytes of that,
  // in which later keys may well differ.
  void SetBase() {
    constexpr size_t kMany = 1024;
    const size_t slack = pending.size() < kMany ? 2 : 0;
    const std::string_view first = pending.front().entry->key();
    const size_t shared = CommonPrefix(first, pending.back().entry->key());
    base_owner =
        std::make_unique<const std::string>(first.substr(0, shared - std::min(shared, slack)));
    base.store(base_owner.get(), std::memory_order_release);
  }

  Arena arena;
  SkipList<Ordered, Compare> list;
  // The skip list holds everything that arrived up to here, but for pending[inserted..].
  const Entry* last_ordered = nullptr;
  std::vector<Sortable> pending;  // sorted
  size_t inserted = 0;
  // What the first keys of the list begin with, and most others, too; null: the list is empty.
  std::atomic<const std::string*> base{nullptr};
  std::unique_ptr<const std::string> base_owner;
};

WriteBuffer::WriteBuffer(size_t capacity, SequenceNumber first_sequence, size_t expected_entries,
                         std::shared_ptr<ChunkPool> pool)
    : capacity_(capacity),
      first_sequence_(first_sequence),
      arena_(std::clamp<size_t>(capacity / 16, 4096, 2 << 20), std::move(pool)),
      order_(std::make_unique<Order>(std::clamp<size_t>(capacity / 64, 4096, 256 << 10))) {
  static_assert(sizeof(Entry) <= Entry::kHeaderSize);
  const size_t buckets =
      std::bit_ceil(std::max<size_t>({capacity / kBytesPerBucket, expected_entries, 64}));
  bucket_mask_ = buckets - 1;
  bucket_bytes_ = buckets * sizeof(Bucket);
  buckets_ = static_cast<Bucket*>(std::calloc(buckets, sizeof(Bucket)));
  if (buckets_ == nullptr) throw std::bad_alloc();
}

WriteBuffer::~WriteBuffer() { std::free(buckets_); }

void WriteBuffer::Reserve(size_t bytes, size_t range_tombstones) {
  arena_.Reserve(bytes);
  if (range_tombstones > 0) ReserveMore(&range_tombstones_, range_tombstones);
}

WriteBuffer::Entry* WriteBuffer::Lock(Bucket* bucket) {
  uintptr_t head = bucket->load(std::memory_order_relaxed);
  for (SpinWait wait;;) {
    if ((head & kLocked) == 0) {
      if (bucket->compare_exchange_weak(head, head | kLocked, std::memory_order_acquire,
                                        std::memory_order_relaxed))
        return reinterpret_cast<Entry*>(head);
    } else {
      wait.Pause();
      head = bucket->load(std::memory_order_relaxed);
    }
  }
}

// A reader on the old links sees a chain that was whole before the record was visible.
WriteBuffer::Entry* WriteBuffer::Link(Entry* entry, Entry* head) {
  Entry* same = head;
  std::atomic<Entry*>* same_link = nullptr;  // null: the bucket
  while (same != nullptr && !(same->hash_tag == entry->hash_tag && same->key() == entry->key())) {
    same_link = &same->next_key;
    same = same_link->load(std::memory_order_relaxed);
  }
  if (same == nullptr) {  // in front
    entry->next_key.store(head, std::memory_order_relaxed);
    return entry;
  }
  if (same->sequence < entry->sequence) {  // in the place of the version before
    VARVE_ASSERT(!same->overwritten);
    entry->older.store(same, std::memory_order_relaxed);
    same->overwritten = true;
    entry->next_key.store(same->next_key.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
    if (same_link == nullptr) return entry;
    same_link->store(entry, std::memory_order_release);
    return head;
  }
  // A thread with a later batch was faster. Nobody reads at this sequence yet.
  std::atomic<const Entry*>* link = &same->older;
  const Entry* older = link->load(std::memory_order_relaxed);
  while (older != nullptr && older->sequence > entry->sequence) {
    link = &const_cast<Entry*>(older)->older;
    older = link->load(std::memory_order_relaxed);
  }
  VARVE_ASSERT(older == nullptr || (older->sequence < entry->sequence && older->overwritten));
  entry->overwritten = true;
  entry->older.store(older, std::memory_order_relaxed);
  link->store(entry, std::memory_order_release);
  return head;
}

void WriteBuffer::Insert(const RecordView& record, uint64_t hash, bool readers_wait, char** memory,
                         Batch* batch) {
  VARVE_ASSERT(record.kind == RecordKind::kValue || record.kind == RecordKind::kTombstone);
  VARVE_ASSERT(record.sequence >= first_sequence_ && last_sequence() == kNoSequence);
  const size_t expiry_size = record.flags & kHasExpiry ? 8 : 0;
  Entry* entry = new (*memory) Entry{.sequence = record.sequence,
                                     .hash_tag = static_cast<uint32_t>(hash >> 32),
                                     .key_size = static_cast<uint32_t>(record.key.size()),
                                     .value_size = static_cast<uint32_t>(record.value.size()),
                                     .metadata_size = static_cast<uint32_t>(record.metadata.size()),
                                     .kind = record.kind,
                                     .flags = record.flags,
                                     .cause = record.cause,
                                     .readers_wait = readers_wait,
                                     .overwritten = false,
                                     .log_offset = record.log_offset};
  *memory += SizeOf(record);
  char* bytes = entry->bytes();
  std::memcpy(bytes, record.key.data(), record.key.size());
  bytes += record.key.size();
  if (!record.value.empty()) std::memcpy(bytes, record.value.data(), record.value.size());
  bytes += record.value.size();
  if (expiry_size != 0) EncodeFixed64(bytes, record.expiry_ms);
  if (!record.metadata.empty())
    std::memcpy(bytes + expiry_size, record.metadata.data(), record.metadata.size());

  Bucket* const bucket = &buckets_[hash & bucket_mask_];
  Unlock(bucket, Link(entry, Lock(bucket)));

  if (batch->last != nullptr) {
    VARVE_ASSERT(batch->last->sequence <= entry->sequence);
    batch->last->next_arrival.store(entry, std::memory_order_relaxed);
  } else {
    batch->first = entry;
  }
  batch->last = entry;
  ++batch->count;
  if (record.log_offset != 0) batch->logged_large_bytes += record.key.size() + record.value.size();
}

void WriteBuffer::Append(const Batch& batch) {
  if (batch.count == 0) return;
  if (newest_ == nullptr) {
    oldest_.store(batch.first, std::memory_order_release);
  } else {
    newest_->next_arrival.store(batch.first, std::memory_order_release);
  }
  newest_ = batch.last;
  const uint64_t before = entries();
  entries_.store(before + batch.count, std::memory_order_relaxed);
  // The first of the batch that is a mark, and each kEntriesPerMark-th behind it.
  uint64_t skipped = (kEntriesPerMark - before % kEntriesPerMark) % kEntriesPerMark;
  for (const Entry* entry = batch.first; skipped < batch.count; skipped += kEntriesPerMark) {
    const uint64_t steps = entry == batch.first ? skipped : kEntriesPerMark;
    for (uint64_t i = 0; i < steps; ++i)
      entry = entry->next_arrival.load(std::memory_order_relaxed);
    Mark(entry);
  }
  if (batch.logged_large_bytes != 0) {
    logged_large_bytes_.store(logged_large_bytes() + batch.logged_large_bytes,
                              std::memory_order_relaxed);
  }
}

void WriteBuffer::Add(const RecordView& record, uint64_t hash, bool readers_wait) {
  Batch batch;
  char* memory = Take(SizeOf(record));
  Insert(record, hash, readers_wait, &memory, &batch);
  Append(batch);
}

size_t WriteBuffer::SizeOf(const RecordView& record) {
  return Arena::SizeOf(Entry::kHeaderSize + record.key.size() + record.value.size() +
                       (record.flags & kHasExpiry ? 8 : 0) + record.metadata.size());
}

void WriteBuffer::AddRangeTombstone(RangeTombstone tombstone) {
  VARVE_ASSERT(last_sequence() == kNoSequence);
  VARVE_ASSERT(tombstone.sequence >= first_sequence_);
  tombstone_bytes_.fetch_add(sizeof(RangeTombstone) + tombstone.begin.size() + tombstone.end.size(),
                             std::memory_order_relaxed);
  range_tombstones_.push_back(std::move(tombstone));
}

const WriteBuffer::Entry* WriteBuffer::FindKey(std::string_view tree_key, uint64_t hash) const {
  if (oldest_.load(std::memory_order_acquire) == nullptr) return nullptr;
  const uint32_t tag = static_cast<uint32_t>(hash >> 32);
  const Entry* entry = Head(hash, std::memory_order_acquire);
  while (entry != nullptr && !(entry->hash_tag == tag && entry->key() == tree_key)) {
    entry = entry->next_key.load(std::memory_order_acquire);
  }
  return entry;
}

bool WriteBuffer::Get(std::string_view tree_key, uint64_t hash, SequenceNumber at,
                      Found* found) const {
  const Entry* entry = FindKey(tree_key, hash);
  while (entry != nullptr && entry->sequence > at)
    entry = entry->older.load(std::memory_order_acquire);
  if (entry == nullptr) return false;
  *found = {entry->View(), entry->readers_wait};
  return true;
}

SequenceNumber WriteBuffer::NewestSequence(std::string_view tree_key, uint64_t hash) const {
  const Entry* entry = FindKey(tree_key, hash);
  return entry == nullptr ? kNoSequence : entry->sequence;
}

SequenceNumber WriteBuffer::NewestValueSequence(std::string_view tree_key, uint64_t hash) const {
  const Entry* entry = FindKey(tree_key, hash);
  while (entry != nullptr && entry->kind != RecordKind::kValue)
    entry = entry->older.load(std::memory_order_acquire);
  return entry == nullptr ? kNoSequence : entry->sequence;
}

void WriteBuffer::Walk(
    Position* position, SequenceNumber last,
    absl::FunctionRef<void(const RecordView&, const RecordView*)> deliver) const {
  const Entry* entry = position->last == nullptr
                           ? oldest_.load(std::memory_order_acquire)
                           : position->last->next_arrival.load(std::memory_order_acquire);
  for (; entry != nullptr && entry->sequence <= last;
       entry = entry->next_arrival.load(std::memory_order_acquire)) {
    RecordView previous;
    const Entry* const older = entry->older.load(std::memory_order_acquire);
    if (older != nullptr) previous = older->View();
    deliver(entry->View(), older != nullptr ? &previous : nullptr);
    position->last = entry;
  }
}

WriteBuffer::Position WriteBuffer::PositionNear(SequenceNumber sequence) const {
  const auto behind = std::upper_bound(
      marks_.begin(), marks_.end(), sequence,
      [](SequenceNumber wanted, const Entry* mark) { return wanted < mark->sequence; });
  Position position;
  if (behind != marks_.begin()) position.last = *std::prev(behind);
  return position;
}

SequenceNumber WriteBuffer::Position::sequence() const {
  return last == nullptr ? kNoSequence : last->sequence;
}

void WriteBuffer::Mark(const Entry* entry) {
  const size_t number = marks_.size();
  if (number > 0) recent_mark_.store(marks_.back(), std::memory_order_release);
  // Without memory for it the walks that begin near a mark are longer.
  if (!TryWithMemory([&] { marks_.push_back(entry); })) return;
  if (number % spread_distance_ != 0) return;
  if (number / spread_distance_ == kSpreadMarks) {
    // Each second one stays. A reader in between sees some of both distances, all of them entries.
    spread_distance_ *= 2;
    for (size_t i = 0; i < kSpreadMarks; ++i) {
      const bool stays = 2 * i < kSpreadMarks;
      spread_[i].store(stays ? marks_[i * spread_distance_] : nullptr, std::memory_order_release);
    }
  }
  VARVE_ASSERT(number % spread_distance_ == 0 && number / spread_distance_ < kSpreadMarks);
  spread_[number / spread_distance_].store(entry, std::memory_order_release);
}

std::vector<WriteBuffer::Position> WriteBuffer::SpreadPositions(SequenceNumber begin,
                                                                SequenceNumber end) const {
  std::vector<Position> positions;
  positions.reserve(kSpreadMarks + 1);
  const Entry* const recent = recent_mark_.load(std::memory_order_acquire);
  const auto note = [&](const Entry* mark) {
    if (mark == nullptr || mark->sequence < begin || mark->sequence >= end) return;
    Position position;
    position.last = mark;
    positions.push_back(position);
  };
  for (const std::atomic<const Entry*>& mark : spread_) {
    const Entry* const entry = mark.load(std::memory_order_acquire);
    if (recent == nullptr || entry == nullptr || entry->sequence < recent->sequence) note(entry);
  }
  note(recent);
  std::sort(positions.begin(), positions.end(),
            [](const Position& a, const Position& b) { return a.sequence() < b.sequence(); });
  positions.erase(
      std::unique(positions.begin(), positions.end(),
                  [](const Position& a, const Position& b) { return a.last == b.last; }),
      positions.end());
  return positions;
}

std::vector<WriteBuffer::Sortable> WriteBuffer::SortArrivals(const Entry** last,
                                                             bool newest_only) const {
  std::vector<Sortable> sorted;
  const Entry* entry = *last == nullptr ? oldest_.load(std::memory_order_acquire)
                                        : (*last)->next_arrival.load(std::memory_order_acquire);
  const Entry* end = *last;
  std::string_view first;
  size_t shared = 0;
  size_t stale = 0;  // so many items have words from when the keys seemed to share more bytes
  for (; entry != nullptr; entry = entry->next_arrival.load(std::memory_order_acquire)) {
    end = entry;
    if (newest_only && entry->overwritten) continue;
    const std::string_view key = entry->key();
    if (sorted.empty()) {
      first = key;
      shared = key.size();
    } else if (key.size() < shared || std::memcmp(key.data(), first.data(), shared) != 0) {
      const size_t limit = std::min(shared, key.size());
      shared = std::mismatch(key.begin(), key.begin() + limit, first.begin()).first - key.begin();
      stale = sorted.size();
    }
    sorted.push_back({LeadingWord(key.substr(shared)), entry});
  }
  for (size_t i = 0; i < stale; ++i)
    sorted[i].word = LeadingWord(sorted[i].entry->key().substr(shared));
  SortByKey(&sorted);
  VARVE_ASSERT(
      std::is_sorted(sorted.begin(), sorted.end(), [](const Sortable& a, const Sortable& b) {
        return CompareInternal(a.entry->key(), a.entry->sequence, b.entry->key(),
                               b.entry->sequence) < 0;
      }));
  *last = end;
  return sorted;
}

void WriteBuffer::SortByKey(std::vector<Sortable>* items) {
  const auto before = [](const Sortable& a, const Sortable& b) {
    if (a.word != b.word) return a.word < b.word;
    return CompareInternal(a.entry->key(), a.entry->sequence, b.entry->key(), b.entry->sequence) <
           0;
  };
  const auto end = items->end();
  if (std::is_sorted(items->begin(), end, before)) return;
  if (items->size() < kManyToSort || !TryWithMemory([&] { RadixSort(items); })) {
    return std::sort(items->begin(), end, before);
  }
  for (auto same = items->begin(); same != end;) {
    const auto next =
        std::find_if(same, end, [&](const Sortable& item) { return item.word != same->word; });
    if (next - same > 1) std::sort(same, next, before);
    same = next;
  }
}

void WriteBuffer::BringOrderUpToDate() const {
  absl::MutexLock lock(&order_mutex_);
  order_->InsertPending();  // a call before may have run out of memory
  order_->pending = SortArrivals(&order_->last_ordered, /*newest_only=*/false);
  order_->InsertPending();
  VARVE_ASSERT(order_->pending.empty() && order_->inserted == 0);
}

// An ordered iterator walks the skip list, and prefetches the entries that it comes to next. It may
// show records that the writer has added after the iterator was made; readers skip them by their
// sequence.
class WriteBuffer::OrderedIterator final : public InternalIterator {
 public:
  explicit OrderedIterator(const WriteBuffer* buffer)
      : order_(*buffer->order_), cursor_(&order_.list), ahead_(cursor_) {}

  bool Valid() const override { return cursor_.Valid(); }
  void SeekToFirst() override {
    cursor_.SeekToFirst();
    Begin();
  }
  void SeekToLast() override {
    cursor_.SeekToLast();
    Begin();
  }
  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    // The list compares whole entries, so the target has to look like one.
    target_.resize(Entry::kHeaderSize + tree_key.size());
    Entry* target = new (target_.data())
        Entry{.sequence = sequence, .key_size = static_cast<uint32_t>(tree_key.size())};
    std::memcpy(target->bytes(), tree_key.data(), tree_key.size());
    const std::string* const base = order_.base.load(std::memory_order_acquire);
    if (base == nullptr) {
      cursor_ = List::Cursor(&order_.list);  // at the end
    } else {
      cursor_.Seek({WordBehind(*base, tree_key), target});
    }
    Begin();
  }
  void Next() override {
    VARVE_ASSERT(Valid());
    cursor_.Next();
    PrefetchNext();
    Load();
  }
  // Keys stay where they are as long as the buffer lives.
  const RecordView* NextKey() override {
    const std::string_view key = record_.key;
    for (int steps = 1; steps < kStepsBeforeSeek; ++steps) {
      Next();
      if (!Valid()) return nullptr;
      if (record_.key.size() != key.size() ||
          !SameBytes(record_.key.data(), key.data(), key.size()))
        return &record_;
    }
    Seek(key, kNoSequence);
    VARVE_ASSERT(!Valid() || record_.key != key);
    return Valid() ? &record_ : nullptr;
  }
  void Prev() override {
    VARVE_ASSERT(Valid());
    cursor_.Prev();
    Begin();
  }
  const RecordView& record() const override { return record_; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  using List = SkipList<Ordered, Order::Compare>;

  void Begin() {
    distance_ = 0;
    Load();
  }
  void Load() {
    if (cursor_.Valid()) record_ = cursor_.item().entry->View();
  }

  // Moves the second cursor on, by two steps until it is far enough ahead, so that a short walk
  // does not pay for a long one.
  void PrefetchNext() {
    constexpr size_t kFar = 4;
    if (distance_ == 0) {
      ahead_ = cursor_;
    } else {
      --distance_;
    }
    for (int steps = 0; steps < 2 && distance_ < kFar && ahead_.Valid(); ++steps) {
      ahead_.Next();
      if (!ahead_.Valid()) return;
      ++distance_;
      PrefetchLines(reinterpret_cast<const char*>(ahead_.item().entry), 0, kPrefetchedBytes);
    }
  }

  const Order& order_;
  List::Cursor cursor_;
  List::Cursor ahead_;  // so many steps ahead of it, if that is not 0
  size_t distance_ = 0;
  RecordView record_;
  std::vector<char> target_;
};

std::unique_ptr<InternalIterator> WriteBuffer::NewIterator() const {
  BringOrderUpToDate();
  return std::make_unique<OrderedIterator>(this);
}

// A sorted iterator walks a sorted list of the entries and prefetches the next ones.
class WriteBuffer::SortedIterator final : public InternalIterator {
 public:
  explicit SortedIterator(std::vector<Sortable> sorted) : sorted_(std::move(sorted)) {}

  bool Valid() const override { return at_ < sorted_.size(); }
  void SeekToFirst() override { MoveTo(0); }
  void SeekToLast() override { MoveTo(sorted_.size() - 1); }
  void Seek(std::string_view tree_key, SequenceNumber sequence) override {
    const auto found =
        std::partition_point(sorted_.begin(), sorted_.end(), [&](const Sortable& item) {
          return CompareInternal(item.entry->key(), item.entry->sequence, tree_key, sequence) < 0;
        });
    MoveTo(static_cast<size_t>(found - sorted_.begin()));
  }
  void Next() override {
    VARVE_ASSERT(Valid());
    if (at_ + kPrefetchAhead < sorted_.size()) {
      const char* const ahead = reinterpret_cast<const char*>(sorted_[at_ + kPrefetchAhead].entry);
      PrefetchLines(ahead, 0, kPrefetchedBytes);
    }
    MoveTo(at_ + 1);
  }
  void Prev() override {
    VARVE_ASSERT(Valid());
    MoveTo(at_ - 1);  // before the first: wraps to behind the last
  }
  const RecordView& record() const override { return record_; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  void MoveTo(size_t index) {
    at_ = index;
    if (Valid()) record_ = sorted_[at_].entry->View();
  }

  const std::vector<Sortable> sorted_;
  size_t at_ = 0;
  RecordView record_;
};

std::unique_ptr<InternalIterator> WriteBuffer::NewSortedIterator(bool newest_only) const {
  const Entry* last = nullptr;
  return std::make_unique<SortedIterator>(SortArrivals(&last, newest_only));
}

}  // namespace varve
