#include "structure/offset_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>

#include "util/base/assert.h"
#include "util/base/checksum.h"

namespace varve {
namespace {

constexpr int kFingerprintShift = 45;
constexpr int kOffsetShift = 8;
constexpr size_t kSlotsOfPage = kOffsetTableBuckets * kOffsetTableSlots;
constexpr double kLoad = 0.86;

OffsetTableEntry DecodeSlot(uint64_t slot) {
  return {(slot >> kOffsetShift) & kMaxTableOffset, static_cast<uint8_t>((slot >> 1) & 0x7f)};
}

// A bit for each slot of one bucket that carries the fingerprint, perhaps an empty one.
inline uint32_t MatchesIn(const char* bucket, uint32_t fingerprint) {
  // Only the upper halves are looked at.
  constexpr int kBitsBelow = kFingerprintShift - 32;
  const uint32_t tag = fingerprint << kBitsBelow;
  uint32_t matches = 0;
  for (size_t i = 0; i < kOffsetTableSlots; ++i) {
    const uint32_t upper = DecodeFixed32(bucket + i * 8 + 4);
    matches |= static_cast<uint32_t>((upper ^ tag) < (1u << kBitsBelow)) << i;
  }
  return matches;
}

// Appends the slots of one bucket that carry the fingerprint.
inline void ProbeBucket(const char* bucket, uint32_t fingerprint,
                        OffsetTableCandidates* candidates) {
  for (uint32_t matches = MatchesIn(bucket, fingerprint); matches != 0; matches &= matches - 1) {
    const OffsetTableEntry entry =
        DecodeSlot(DecodeFixed64(bucket + std::countr_zero(matches) * 8));
    if (entry.length_class != 0) candidates->push_back(entry);
  }
}

bool HasSpillMark(const char* bucket, uint8_t mark) { return (bucket[mark * 8] & 1) != 0; }

// Returns end() if there is none of the hash.
absl::Span<const OffsetTableOverflow>::iterator FirstOverflow(
    absl::Span<const OffsetTableOverflow> overflow, uint64_t hash) {
  const auto found =
      std::lower_bound(overflow.begin(), overflow.end(), hash,
                       [](const OffsetTableOverflow& a, uint64_t b) { return a.hash < b; });
  return found != overflow.end() && found->hash == hash ? found : overflow.end();
}

const char* BucketOf(const char* page, uint8_t bucket) {
  return page + kOffsetTableHeaderSize + bucket * size_t{64};
}

}  // namespace

uint8_t LengthClassFor(uint64_t size) {
  if (size <= LengthClassLimit(1)) return 1;
  if (size > LengthClassLimit(kUnboundedLengthClass - 1)) return kUnboundedLengthClass;
  // The largest exponent e with 8 << e < size; what is above it, in units of 1 << e, rounded up, is
  // 9..16.
  const int exponent = std::bit_width(size - 1) - 4;
  const uint64_t units = (size + (uint64_t{1} << exponent) - 1) >> exponent;
  return static_cast<uint8_t>(((exponent - 1) << 3) + static_cast<int>(units - 9) + 1);
}

bool OffsetTablePageIsIntact(std::string_view page, uint64_t file, uint32_t page_index) {
  return page.size() == kOffsetTablePageSize && DecodeFixed32(page.data() + 4) == page_index &&
         DecodeFixed32(page.data()) ==
             Checksum(page.substr(4), OffsetTablePageSeed(file, page_index));
}

void AppendOffsetsOfPage(const char* page, std::vector<uint64_t>* offsets) {
  for (size_t i = 0; i < kSlotsOfPage; ++i) {
    const OffsetTableEntry entry = DecodeSlot(DecodeFixed64(page + kOffsetTableHeaderSize + i * 8));
    if (entry.length_class != 0) offsets->push_back(entry.offset);
  }
}

void LookupInOffsetTablePage(const char* page, const OffsetTablePlace& place, uint64_t hash,
                             absl::Span<const OffsetTableOverflow> overflow,
                             OffsetTableCandidates* candidates) {
  VARVE_ASSERT(place.first_bucket < kOffsetTableBuckets);
  VARVE_ASSERT(place.second_bucket < kOffsetTableBuckets);
  VARVE_ASSERT(place.first_bucket != place.second_bucket);
  const char* const first = BucketOf(page, place.first_bucket);
  ProbeBucket(first, place.fingerprint, candidates);
  if (!HasSpillMark(first, place.mark)) [[likely]]
    return;
  ProbeBucket(BucketOf(page, place.second_bucket), place.fingerprint, candidates);
  if (overflow.empty()) [[likely]]
    return;
  auto found = FirstOverflow(overflow, hash);
  for (; found != overflow.end() && found->hash == hash; ++found)
    candidates->push_back(found->entry);
}

OffsetTableView::Only OffsetTableView::LookupOnly(uint64_t hash, OffsetTableEntry* entry) const {
  if (page_count_ == 0) return Only::kNone;
  const OffsetTablePlace place = OffsetTablePlace::Of(hash, page_count_);
  const char* const page = pages_ + size_t{place.page} * kOffsetTablePageSize;
  const char* bucket = BucketOf(page, place.first_bucket);
  uint32_t matches = MatchesIn(bucket, place.fingerprint);
  if (HasSpillMark(bucket, place.mark)) [[unlikely]] {
    if (FirstOverflow(overflow_, hash) != overflow_.end()) [[unlikely]]
      return Only::kSeveral;
    const char* const second = BucketOf(page, place.second_bucket);
    if (const uint32_t matches_there = MatchesIn(second, place.fingerprint); matches_there != 0) {
      if (matches != 0) return Only::kSeveral;
      matches = matches_there;
      bucket = second;
    }
  }
  if (matches == 0) return Only::kNone;
  if ((matches & (matches - 1)) != 0) return Only::kSeveral;
  *entry = DecodeSlot(DecodeFixed64(bucket + std::countr_zero(matches) * 8));
  return entry->length_class == 0 ? Only::kNone : Only::kOne;  // 0: an empty slot
}

// Places the keys of one page. A key without room in either of its buckets starts a breadth-first
// search over the 63 buckets for one with a free slot; keys along the way move to their other
// bucket. The search finds a way whenever one exists.
class OffsetTableBuilder::PageFiller {
 public:
  explicit PageFiller(uint32_t page_count) : page_count_(page_count) {}

  // Places `keys`, all of one page, and writes the slots; keys that found none are appended to
  // `*overflow`.
  void Fill(absl::Span<const Key> keys, uint64_t* slots,
            std::vector<OffsetTableOverflow>* overflow) {
    VARVE_ASSERT(std::all_of(keys.begin(), keys.end(), [&](const Key& key) {
      return OffsetTablePlace::Of(key.hash, page_count_).page ==
             OffsetTablePlace::Of(keys.front().hash, page_count_).page;
    }));
    keys_ = keys;
    fill_.fill(0);
    waiting_.clear();
    for (uint32_t id = 0; id < keys_.size(); ++id) {
      if (!Put(id, PlaceOf(id).first_bucket)) waiting_.push_back(id);
    }
    std::fill_n(slots, kSlotsOfPage, 0);
    for (const uint32_t id : waiting_) {
      const OffsetTablePlace place = PlaceOf(id);
      if (Put(id, place.second_bucket) || Relocate(id)) continue;
      Mark(place, slots);
      overflow->push_back({keys_[id].hash, DecodeSlot(keys_[id].payload)});
    }
    for (size_t bucket = 0; bucket < kOffsetTableBuckets; ++bucket) {
      for (size_t i = 0; i < fill_[bucket]; ++i) {
        const uint32_t id = buckets_[bucket][i];
        const OffsetTablePlace place = PlaceOf(id);
        slots[bucket * kOffsetTableSlots + i] |=
            uint64_t{place.fingerprint} << kFingerprintShift | keys_[id].payload;
        if (place.first_bucket != bucket) Mark(place, slots);
      }
    }
  }

 private:
  OffsetTablePlace PlaceOf(uint32_t id) const {
    return OffsetTablePlace::Of(keys_[id].hash, page_count_);
  }

  static void Mark(const OffsetTablePlace& place, uint64_t* slots) {
    slots[place.first_bucket * kOffsetTableSlots + place.mark] |= 1;
  }

  bool Put(uint32_t id, uint8_t bucket) {
    VARVE_ASSERT(bucket < kOffsetTableBuckets && fill_[bucket] <= kOffsetTableSlots);
    if (fill_[bucket] == kOffsetTableSlots) return false;
    buckets_[bucket][fill_[bucket]++] = id;
    return true;
  }

  bool Relocate(uint32_t id) {
    struct Step {
      uint8_t bucket;
      int8_t from;   // index of the step before; -1 at the start
      uint8_t slot;  // of the bucket before: its key moves here
    };
    std::array<Step, kOffsetTableBuckets> queue;
    int tail = 0;
    uint64_t seen = 0;
    const auto visit = [&](uint8_t bucket, int from, size_t slot) {
      if ((seen >> bucket & 1) != 0) return;
      seen |= uint64_t{1} << bucket;
      queue[tail++] = {bucket, static_cast<int8_t>(from), static_cast<uint8_t>(slot)};
    };
    const OffsetTablePlace start = PlaceOf(id);
    visit(start.first_bucket, -1, 0);
    visit(start.second_bucket, -1, 0);
    for (int head = 0; head < tail; ++head) {
      VARVE_ASSERT(queue[head].from < head);
      if (fill_[queue[head].bucket] < kOffsetTableSlots) {
        int at = head;
        ++fill_[queue[head].bucket];
        size_t free_slot = fill_[queue[head].bucket] - 1;
        while (queue[at].from >= 0) {
          const Step& before = queue[queue[at].from];
          buckets_[queue[at].bucket][free_slot] = buckets_[before.bucket][queue[at].slot];
          free_slot = queue[at].slot;
          at = queue[at].from;
        }
        buckets_[queue[at].bucket][free_slot] = id;
        return true;
      }
      for (size_t slot = 0; slot < kOffsetTableSlots; ++slot) {
        const OffsetTablePlace place = PlaceOf(buckets_[queue[head].bucket][slot]);
        visit(place.first_bucket == queue[head].bucket ? place.second_bucket : place.first_bucket,
              head, slot);
      }
    }
    return false;
  }

  const uint32_t page_count_;
  absl::Span<const Key> keys_;  // of the page
  std::array<uint8_t, kOffsetTableBuckets> fill_;
  std::array<std::array<uint32_t, kOffsetTableSlots>, kOffsetTableBuckets> buckets_;
  std::vector<uint32_t> waiting_;
};

void OffsetTableBuilder::Add(uint64_t hash, uint64_t offset, uint64_t record_size) {
  VARVE_ASSERT(offset <= kMaxTableOffset && record_size > 0);
  keys_.push_back({hash, offset << kOffsetShift | uint64_t{LengthClassFor(record_size)} << 1});
}

void OffsetTableBuilder::PlaceIn(uint32_t page_count) {
  VARVE_ASSERT(page_count > 0 || keys_.empty());
  page_count_ = page_count;
  pages_.resize(page_count);
  overflow_.clear();
  // A counting sort by page, so that the keys of a page lie together when it is placed.
  std::vector<uint32_t> begins(size_t{page_count} + 1, 0);
  for (const Key& key : keys_) ++begins[OffsetTablePlace::Of(key.hash, page_count).page + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  const auto sorted = std::make_unique_for_overwrite<Key[]>(keys_.size());
  std::vector<uint32_t> next(begins.begin(), begins.end() - 1);
  for (const Key& key : keys_)
    sorted[next[OffsetTablePlace::Of(key.hash, page_count).page]++] = key;
  PageFiller filler(page_count);
  for (uint32_t page = 0; page < page_count; ++page) {
    filler.Fill({sorted.get() + begins[page], begins[page + 1] - begins[page]}, pages_[page].data(),
                &overflow_);
  }
  std::sort(overflow_.begin(), overflow_.end(),
            [](const OffsetTableOverflow& a, const OffsetTableOverflow& b) {
              return a.hash != b.hash ? a.hash < b.hash : a.entry.offset < b.entry.offset;
            });
}

void OffsetTableBuilder::Place() {
  auto pages =
      static_cast<uint32_t>(static_cast<double>(keys_.size()) / (kLoad * kSlotsOfPage)) + 1;
  if (keys_.empty()) pages = 0;
  const size_t tolerated = 16 + keys_.size() / 4096;
  PlaceIn(pages);
  // More room helps against an unlucky spread; against many keys of one hash nothing does, so two
  // tries are enough.
  for (int attempt = 0; attempt < 2 && overflow_.size() > tolerated; ++attempt) {
    pages += pages / 16 + 1;
    PlaceIn(pages);
  }
}

void OffsetTableBuilder::WritePages(uint64_t file, char* destination) const {
  for (uint32_t index = 0; index < page_count_; ++index) {
    char* page = destination + size_t{index} * kOffsetTablePageSize;
    std::memset(page, 0, kOffsetTableHeaderSize);
    EncodeFixed32(page + 4, index);
    for (size_t i = 0; i < kSlotsOfPage; ++i)
      EncodeFixed64(page + kOffsetTableHeaderSize + i * 8, pages_[index][i]);
    EncodeFixed32(page,
                  Checksum({page + 4, kOffsetTablePageSize - 4}, OffsetTablePageSeed(file, index)));
  }
}

}  // namespace varve
