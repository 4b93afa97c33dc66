// A segment probe looks one key up in one segment, in steps that the caller may spread out:
//
//   Begin           asks the offset table, if it is in memory, where the record lies
//   PrefetchSlot    asks memory for the slot of the block cache that would hold it
//   PrefetchRecord  asks the block cache's memory, or else the disk, for the record
//   PrefetchRest    asks memory for what of a longer record was not asked for yet
//   Finish          finds the record in memory or reads it
//
// A lookup of one key calls Begin and Finish. A lookup of several keys runs each step with all of
// the keys before the next one, so that what one step asks memory or disk for is there in the next.
// The three prefetches are hints. Begin decides once whether the offset table leads to a record of
// the segment or to a separated value in another file (db/segment/segment_values.h); all later
// steps go by that.
//
// Finish looks for the record in the block cache (small records with their block, larger ones and
// values as entries of their own) and else reads it from disk with one read of the size that the
// slot's length class gives. It compares keys, so a fingerprint that fits by chance costs a read
// and never gives a wrong answer.
//
// Thread-safety: a probe belongs to one thread.
// Invariants: while is_only_ is set, the key's record lies at entry_ or not in the segment at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "db/format/record_format.h"
#include "structure/clock_cache.h"
#include "structure/offset_table.h"
#include "type/record.h"
#include "util/base/prefetch.h"

namespace varve {

class Segment;

// A record found by a point lookup. Its views point into `pin`, `storage` or `plain`, and that of
// its key may be the caller's; they are good until the next lookup into the same object. Using one
// object again spares allocations: `storage` and `plain` only grow.
struct FoundRecord {
  RecordView record;
  ClockCache::Handle pin;  // keeps the cached bytes in place
  std::string storage;     // backs the views when nothing was cached
  std::string plain;       // a value that was compressed
  // The probe does not read a longer record from disk: it sets `too_large` instead, and the caller
  // then knows nothing about the key.
  size_t most_bytes = SIZE_MAX;
  bool too_large = false;
  // With this, the probe neither reads separated values nor decompresses any: the record found
  // holds what its flags say.
  bool without_value = false;
};

class SegmentProbe {
 public:
  // Returns false if the segment holds no record of the key whose HashKey is `hash`; then the probe
  // has not begun. Reads memory alone.
  bool Begin(Segment* segment, uint64_t hash);
  bool has_begun() const { return segment_ != nullptr; }

  // The functions below require has_begun(), but for PrefetchRest.
  void PrefetchSlot() const;
  // Returns whether it asked the disk.
  // Requires: `fill_cache` is that of Finish.
  bool PrefetchRecord(bool fill_cache);
  void PrefetchRest() const {
    if (bytes_ == nullptr) return;
    constexpr uint64_t kMost = 1024;  // the processor's own prefetcher goes on from there
    PrefetchLines(bytes_, 128, std::min(LengthClassLimit(entry_.length_class), kMost));
  }
  // Does what Segment::Get does for the key, and ends the probe.
  [[nodiscard]] absl::StatusOr<bool> Finish(std::string_view tree_key, SequenceNumber at,
                                            bool fill_cache, FoundRecord* found);

 private:
  enum class Outcome : uint8_t { kOtherKey, kFound, kNoOlderVersion };
  struct Target {
    std::string_view key;
    SequenceNumber at;
    bool fill_cache;
  };

  // Returns whether what entry_ leads to is a value that is left to the kernel's cache.
  bool IsInKernel() const;
  // Returns whether a get of the record reads its whole block, and leaves it in the cache.
  bool IsWorthABlock(bool fill_cache) const;
  // Decides where the entry leads to.
  void Locate(const OffsetTableEntry& entry);
  // Puts the cached bytes at entry_ into found->pin; leaves it empty if there are none.
  void LookInCache(FoundRecord* found) const;
  // Finds the record in the usual case: it is cached, the caller wants the key's newest version,
  // and nothing is wrong with the record. Returns false in any other case; then found->pin is what
  // LookInCache made it.
  bool FindInMemory(const Target& target, FoundRecord* found) const;
  // Finds the record in all other cases.
  absl::StatusOr<bool> Find(const Target& target, FoundRecord* found);
  // Reads the record at entry_, from found->pin if LookInCache found it.
  absl::StatusOr<Outcome> ReadRecord(const Target& target, FoundRecord* found) const;
  absl::StatusOr<Outcome> ReadOwnEntry(const Target& target, FoundRecord* found) const;
  absl::StatusOr<Outcome> ReadFromDisk(const Target& target, FoundRecord* found) const;
  absl::StatusOr<Outcome> ReadValue(const Target& target, FoundRecord* found) const;
  // Fills found->pin with the value's operation at entry_ from its file, unless it is too large.
  absl::Status LoadValue(const Target& target, RecordView* operation, FoundRecord* found) const;
  // Finds through the fences what the table does not lead to: the record of a separated value, or
  // an older version.
  absl::StatusOr<Outcome> FindBySeek(const Target& target, FoundRecord* found) const;
  // Puts the plain value into the record found, unless it is too large or not wanted.
  // Requires: the value is not kept apart any more.
  absl::Status Decompress(FoundRecord* found) const;
  // Reads the value to which the record found points.
  absl::StatusOr<bool> FollowHandle(std::string_view tree_key, FoundRecord* found) const;
  // Returns how many bytes have to be read for the whole record.
  absl::StatusOr<uint64_t> ExtentOfRecord() const;
  // Decodes the record at the start of `window` (which lies at `offset`), the newest version of
  // some key. If that is the target's key, walks on to the wanted version, and reads from disk what
  // lies beyond the window.
  absl::StatusOr<Outcome> Match(std::string_view window, uint64_t offset, ChecksumMode mode,
                                const Target& target, FoundRecord* found) const;
  // Returns whether a record with these bytes of the key base and these of its own is the target's.
  // Makes its key whole then.
  bool IsOf(const Target& target, uint32_t shared, RecordView* record) const;
  absl::StatusOr<Outcome> ReadOlder(uint64_t offset, const Target& target,
                                    FoundRecord* found) const;

  Segment* segment_ = nullptr;
  uint64_t hash_ = 0;
  OffsetTableEntry entry_;
  bool is_only_ = false;
  bool is_value_ = false;     // entry_ leads to a value in another file
  uint64_t file_number_ = 0;  // with cache_key_, the block cache's key of what entry_ leads to
  uint64_t cache_key_ = 0;
  const char* bytes_ = nullptr;  // where the block cache seems to have the record
};

}  // namespace varve
