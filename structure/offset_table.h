// The offset table is a static hash table from keys to the places of their records, about 9.4 bytes
// a key (the field's fingerprint or "cuckoo" index; placement after Pagh and Rodler, "Cuckoo
// Hashing", and Dietzfelbinger and Weidling on buckets of several slots).
//
//   table  = pages of 4096 bytes, the same bytes on disk and in memory
//   page   = [ header: 64 bytes ][ 63 buckets of 64 bytes ]
//   header = [ checksum: 4, of the rest of the page, seeded with file and page index ]
//            [ page index: 4 ][ zeros: 56 ]
//   bucket = one cache line, 8 slots of 8 bytes
//   slot   = bits 45-63 fingerprint | bits 8-44 byte offset of the record
//            | bits 1-7 length class (0: the slot is empty) | bit 0 spill mark
//
// A hash names one page, and in it two buckets. A key lies in its first bucket if there is room,
// else in its second, else in a short list of overflow entries that the table's owner keeps beside
// it. Eight spill marks a bucket form a small filter: the mark that a key's hash picks is set when
// some key with this first bucket lies elsewhere. So a miss touches one line in about 8 of 9 cases,
// and always one page: a lookup in a table that is not in memory reads one page.
//
// Arithmetic. Pages are filled to 86 %: 8 / 0.86 * 64 / 63 = 9.45 bytes a key. A lookup compares at
// most 7 slots a line on average, so a key that is absent is taken for another one with probability
// 7 * 1.12 / 2^19 = 1.5e-5 a table: 0.0003 over 20 tables. Of a page's 504 slots 433 are used on
// average; that more than 504 keys meet in one page happens to one page in 3000 (binomial, 3.4
// standard deviations): its surplus goes to the overflow entries. So do keys whose whole hash is
// the same, from the 17th on.
//
// Thread-safety: the builder belongs to one thread; a table is immutable and may be shared.
// Invariants: the second bucket of a hash is never its first one; overflow entries are sorted by
// hash.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "util/base/coding.h"
#include "util/base/prefetch.h"

namespace varve {

inline constexpr size_t kOffsetTablePageSize = 4096;
inline constexpr size_t kOffsetTableHeaderSize = 64;
inline constexpr size_t kOffsetTableBuckets = 63;  // a page
inline constexpr size_t kOffsetTableSlots = 8;     // a bucket
inline constexpr uint64_t kMaxTableOffset = (uint64_t{1} << 37) - 1;

// Length classes are sizes in steps of an eighth, so that one number of 7 bits says how much to
// read: classes 1..126 stand for up to 18 bytes .. 896 KiB; the last class means "larger: read the
// record's header first". 0 is no class.
inline constexpr uint8_t kUnboundedLengthClass = 127;
uint8_t LengthClassFor(uint64_t size);
// The largest size of a class other than 0 and kUnboundedLengthClass.
constexpr uint64_t LengthClassLimit(uint8_t length_class) {
  return uint64_t{9u + ((length_class - 1u) & 7)} << (((length_class - 1u) >> 3) + 1);
}

// The place of a hash in a table.
struct OffsetTablePlace {
  uint32_t page;
  uint8_t first_bucket;
  uint8_t second_bucket;  // never the first one
  uint8_t mark;           // slot of the first bucket whose spill mark is this hash's
  uint32_t fingerprint;

  static OffsetTablePlace Of(uint64_t hash, uint32_t page_count) {
    const uint64_t mixed = hash * 0x9e3779b97f4a7c15u;
    OffsetTablePlace place;
    place.fingerprint = static_cast<uint32_t>(hash) & 0x7ffff;
    place.page = static_cast<uint32_t>(((hash >> 32) * page_count) >> 32);
    place.first_bucket =
        static_cast<uint8_t>((((hash >> 19) & 0x1fff) * kOffsetTableBuckets) >> 13);
    const auto step = static_cast<uint32_t>(((mixed >> 48) * (kOffsetTableBuckets - 1)) >> 16) + 1;
    const uint32_t second = place.first_bucket + step;
    place.second_bucket =
        static_cast<uint8_t>(second >= kOffsetTableBuckets ? second - kOffsetTableBuckets : second);
    place.mark = static_cast<uint8_t>(mixed >> 45) & 7;
    return place;
  }
};

// A slot's contents, decoded.
struct OffsetTableEntry {
  uint64_t offset = 0;
  uint8_t length_class = 0;
};

// A key that found no slot.
struct OffsetTableOverflow {
  uint64_t hash = 0;
  OffsetTableEntry entry;
};

// The entries that a lookup found: nearly always none or one.
using OffsetTableCandidates = absl::InlinedVector<OffsetTableEntry, 4>;

// Checksum seed of a page; `file` tells the table's file from others.
inline uint64_t OffsetTablePageSeed(uint64_t file, uint32_t page) {
  return (file + 1) * 0xff51afd7ed558ccdu ^ (uint64_t{page} << 1 | 1);
}
bool OffsetTablePageIsIntact(std::string_view page, uint64_t file, uint32_t page_index);

// Appends the offsets of all keys in an intact page.
void AppendOffsetsOfPage(const char* page, std::vector<uint64_t>* offsets);

// Probes `hash` in the page that its place names (4096 bytes, verified) and in `overflow` (sorted
// by hash), appending to `*candidates`.
void LookupInOffsetTablePage(const char* page, const OffsetTablePlace& place, uint64_t hash,
                             absl::Span<const OffsetTableOverflow> overflow,
                             OffsetTableCandidates* candidates);

// A whole table in memory. Views bytes that outlive it; 64-byte aligned bytes make a bucket one
// cache line.
class OffsetTableView {
 public:
  OffsetTableView() = default;
  OffsetTableView(const char* pages, uint32_t page_count,
                  absl::Span<const OffsetTableOverflow> overflow)
      : pages_(pages), page_count_(page_count), overflow_(overflow) {}

  uint32_t page_count() const { return page_count_; }

  static void Prefetch(const char* pages, uint32_t page_count, uint64_t hash) {
    const OffsetTablePlace place = OffsetTablePlace::Of(hash, page_count);
    PrefetchLine(pages + size_t{place.page} * kOffsetTablePageSize + kOffsetTableHeaderSize +
                 place.first_bucket * size_t{64});
  }

  void Lookup(uint64_t hash, OffsetTableCandidates* candidates) const {
    if (page_count_ == 0) return;
    const OffsetTablePlace place = OffsetTablePlace::Of(hash, page_count_);
    LookupInOffsetTablePage(pages_ + size_t{place.page} * kOffsetTablePageSize, place, hash,
                            overflow_, candidates);
  }

  // Looks up the usual case, in which there is no entry or exactly one. kSeveral: there may be
  // several, or some among the overflow entries, so the caller has to ask Lookup.
  enum class Only : uint8_t { kNone, kOne, kSeveral };
  Only LookupOnly(uint64_t hash, OffsetTableEntry* entry) const;

 private:
  const char* pages_ = nullptr;
  uint32_t page_count_ = 0;
  absl::Span<const OffsetTableOverflow> overflow_;
};

class OffsetTableBuilder {
 public:
  void Reserve(size_t keys) { keys_.reserve(keys); }
  // Adds the entry of a distinct key; different keys may have equal hashes.
  // Requires: `offset` <= kMaxTableOffset, `record_size` > 0.
  void Add(uint64_t hash, uint64_t offset, uint64_t record_size);
  size_t size() const { return keys_.size(); }

  // Places all keys. Afterwards page_count() pages can be written by WritePages and overflow()
  // holds what found no slot.
  void Place();
  uint32_t page_count() const { return page_count_; }
  const std::vector<OffsetTableOverflow>& overflow() const { return overflow_; }  // sorted by hash

  // Writes page_count() * 4096 bytes at `destination`; `file` seeds the checksums.
  void WritePages(uint64_t file, char* destination) const;

 private:
  struct Key {
    uint64_t hash;
    uint64_t payload;  // a slot without fingerprint and mark
  };
  class PageFiller;

  void PlaceIn(uint32_t page_count);

  std::vector<Key> keys_;
  uint32_t page_count_ = 0;
  std::vector<std::array<uint64_t, kOffsetTableBuckets * kOffsetTableSlots>> pages_;
  std::vector<OffsetTableOverflow> overflow_;
};

}  // namespace varve
