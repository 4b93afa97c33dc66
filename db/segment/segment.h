// A segment being read (the field's SSTable reader): point lookups with at most one disk read, and
// iterators.
//
// Thread-safe: immutable after Open but for the caches, which are their own, and the mark of
// damage. An open segment holds a file descriptor; tables, fences and blocks come from
// SegmentCaches under byte budgets. Damage is reported with file and offset, and stays contained to
// the records it hit; each place is logged once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/internal_iterator.h"
#include "db/format/range_tombstone.h"
#include "db/segment/segment_builder.h"
#include "db/values/value_file.h"
#include "structure/clock_cache.h"
#include "structure/offset_table.h"
#include "util/base/prefetch.h"

namespace varve {

class FileRemover;
struct SegmentCaches;

// Where a table leads for a key: filled in and used by a segment.
struct PeekedRecord {
  OffsetTableEntry entry;    // length class 0: it isn't known
  bool is_only = false;      // the key is there or not in the segment at all
  uint64_t file_number = 0;  // with the key, what the block cache knows it by
  uint64_t cache_key = 0;
  const char* bytes = nullptr;  // where the cache seems to have it

  // Asks for what of a longer record was not yet: to be done shortly before it is read.
  void PrefetchRest() const {
    if (bytes == nullptr) return;
    constexpr uint64_t kMost = 1024;  // from there on the processor sees where this leads
    PrefetchLines(bytes, 128, std::min(LengthClassLimit(entry.length_class), kMost));
  }
};

// A record found by a point lookup. Its views point into `pin` or `storage`: they are good until
// the next lookup into the same object. Reusing one object spares allocations: `storage` only
// grows.
struct FoundRecord {
  RecordView record;
  ClockCache::Handle pin;  // keeps the cached bytes in place
  std::string storage;     // backs the views when nothing was cached
  // A record of more bytes is not read from disk: then `too_large` is set, and nothing is known of
  // the key.
  size_t most_bytes = SIZE_MAX;
  bool too_large = false;
  // A separated value is not read: the record found holds its place.
  bool without_value = false;
  // What the segment said to Peek() about the key that is looked up: spares asking its table again.
  const PeekedRecord* peeked = nullptr;
};

// Whether a segment opens whose range tombstones can't be read. What they hide is not known then,
// in it and in what is older: reads of all keys from `smallest` to `largest` fail there, and only
// newer versions of them are found.
enum class DamagePolicy : uint8_t { kRefuse, kContain };

class Segment {
 public:
  // Cheap: reads nothing from the file but, when there are range tombstones, those. The footer is
  // read at first use.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<Segment>> Open(
      FileSystem* file_system, const std::string& directory, const SegmentInfo& info,
      SegmentCaches* caches, DamagePolicy policy = DamagePolicy::kRefuse);
  virtual ~Segment() = default;

  const SegmentInfo& info() const { return info_; }
  // Those that it refers to, as info().value_files has them.
  const std::vector<std::shared_ptr<ValueFile>>& value_files() const { return value_files_; }
  const std::shared_ptr<const RangeTombstoneList>& range_tombstones() const {
    return range_tombstones_;
  }

  // What lookups of several keys do ahead for each of them (`hash`: HashKey of the tree key), in
  // this order, each step with all of the keys, so that what one step asks memory or disk for is
  // there in the next. All are hints but for what Peek denies; without a resident table they do
  // nothing.
  virtual void PrefetchLookup(uint64_t hash) const = 0;
  // False: no record of the key is here. Else where it seems to lie.
  virtual bool Peek(uint64_t hash, PeekedRecord* peeked) const = 0;
  // Asks for the record, in the block cache or else on disk (true).
  virtual bool PrefetchRecord(PeekedRecord* peeked, bool fill_cache) const = 0;
  // False only if no record of the key is here; touches memory alone (true when the table is not
  // resident).
  bool MayContain(uint64_t hash) const {
    PeekedRecord peeked;
    return Peek(hash, &peeked);
  }
  // The newest version of `tree_key` not newer than `at`, tombstones included. Returns whether
  // there is one. Costs no disk read when table and record are cached, one when only the table is,
  // two when neither is; older versions may take more. A separated value is read in the place of
  // its record, and `found` then holds the user's. DataLoss names file and offset of what is
  // damaged; other keys stay readable.
  [[nodiscard]] virtual absl::StatusOr<bool> Get(std::string_view tree_key, uint64_t hash,
                                                 SequenceNumber at, bool fill_cache,
                                                 FoundRecord* found) = 0;
  // Must not outlive the segment. `fill_cache` = false streams with its own read-ahead (compaction,
  // long scans).
  virtual std::unique_ptr<InternalIterator> NewIterator(bool fill_cache) = 0;

  // Whether some read has found that not all of its records and range tombstones can be read: a
  // merge of it would fail.
  bool is_damaged() const { return is_damaged_.load(std::memory_order_relaxed); }
  void NoteDamage() { is_damaged_.store(true, std::memory_order_relaxed); }

  // The file goes to `remover` when the last user lets the segment go (set once no Version holds
  // it any more).
  virtual void MarkObsolete(FileRemover* remover) = 0;

 protected:
  Segment() = default;
  SegmentInfo info_;
  std::vector<std::shared_ptr<ValueFile>> value_files_;
  std::shared_ptr<const RangeTombstoneList> range_tombstones_ =
      std::make_shared<RangeTombstoneList>();

 private:
  std::atomic<bool> is_damaged_{false};
};

}  // namespace varve
