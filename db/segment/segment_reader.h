// What stands behind Segment: the open file, its footer, and the paths of a point lookup.
//
// A lookup asks the offset table for candidates: in memory where the index is resident, else from
// one page read from disk. It then reads each candidate's record: from the block cache (small
// records with their block, larger ones as an entry of their own) or with one read of the size that
// the slot's length class gives. Keys are compared, so a fingerprint that fits by chance costs a
// read and never an answer. Slots of separated values lead to the values themselves
// (db/segment/segment_values.h). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "db/format/record_format.h"
#include "db/segment/segment.h"
#include "db/segment/segment_caches.h"
#include "db/segment/segment_footer.h"
#include "db/segment/segment_index.h"

namespace varve {

class SegmentReader final : public Segment {
 public:
  SegmentReader(std::unique_ptr<File> file, const SegmentInfo& info, SegmentCaches* caches);
  // Before it is read: holds the files that it refers to.
  void HoldValueFiles(FileSystem* file_system, const std::string& directory);
  ~SegmentReader() override;

  // What Segment::Open has left to do.
  absl::Status Initialize(DamagePolicy policy);

  void PrefetchLookup(uint64_t hash) const override { resident_.Prefetch(hash); }
  bool Peek(uint64_t hash, PeekedRecord* peeked) const override;
  bool PrefetchRecord(PeekedRecord* peeked, bool fill_cache) const override;
  absl::StatusOr<bool> Get(std::string_view tree_key, uint64_t hash, SequenceNumber at,
                           bool fill_cache, FoundRecord* found) override;
  std::unique_ptr<InternalIterator> NewIterator(bool fill_cache) override;
  void MarkObsolete(FileRemover* remover) override {
    remover_.store(remover, std::memory_order_relaxed);
  }

  // --- For iterators -----------------------------------------------------------------------------
  const File& file() const { return *file_; }
  uint64_t number() const { return info_.number; }
  SegmentCaches& caches() const { return *caches_; }
  // The footer, read at first use. The pointer lives as long as the segment.
  absl::StatusOr<const SegmentFooter*> Footer();
  // The fences, loading the whole index where it fits its cache.
  absl::StatusOr<std::shared_ptr<const SegmentFences>> Fences();
  // A block from the cache, or read into it, verified: a flagged handle has a damaged record in it,
  // so each is to be checked on use. Each disk read is counted in `*reads`.
  absl::StatusOr<ClockCache::Handle> Block(BlockSpan span, uint32_t block_size,
                                           ShardedCounter* reads);
  // Reads exactly `size` bytes at `offset`; fewer are DataLoss.
  absl::Status ReadExactly(uint64_t offset, size_t size, char* buffer) const;
  absl::Status DamagedRecord(uint64_t offset);
  // Not OK: what they hide is not known (DamagePolicy::kContain).
  const absl::Status& range_tombstone_status() const { return range_tombstone_status_; }
  // Logs an error that a reader is about to be given, unless it has been logged; returns it.
  absl::Status Report(absl::Status error);

 private:
  enum class Outcome : uint8_t { kOtherKey, kFound, kNoOlderVersion };
  // A key's versions, read on from a record that is too new.
  struct Target {
    std::string_view key;
    SequenceNumber at;
  };

  // In the resident table; kSeveral where there is none.
  OffsetTableView::Only LookupOnly(uint64_t hash, OffsetTableEntry* entry) const;
  // The usual case: table and record are in memory, the key's newest version is what is wanted, and
  // there is no error to tell of. nullopt: it is another case.
  std::optional<bool> FindInMemory(std::string_view tree_key, uint64_t hash, SequenceNumber at,
                                   FoundRecord* found);
  absl::StatusOr<bool> Find(std::string_view tree_key, uint64_t hash, SequenceNumber at,
                            bool fill_cache, FoundRecord* found);
  absl::Status FindCandidates(uint64_t hash, OffsetTableCandidates* candidates);
  bool ProbeResident(uint64_t hash, OffsetTableCandidates* candidates) const;
  absl::Status ProbePage(const SegmentFooter& footer, uint64_t hash,
                         OffsetTableCandidates* candidates);
  bool IndexIsLoadable(const SegmentFooter& footer) const;
  // Loads the index if page reads have come to cost as much, it fits, and no other thread is at it.
  void MaybeLoadIndex(const SegmentFooter& footer, uint64_t touches);
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> LoadIndex(const SegmentFooter& footer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(load_mutex_);

  // Through the fences, for what the table doesn't lead to: the record of a separated value, an
  // older version.
  absl::StatusOr<Outcome> FindBySeek(const Target& target, bool fill_cache, FoundRecord* found);
  // Of a slot that leads to a value.
  absl::StatusOr<Outcome> ReadValue(const OffsetTableEntry& entry, const Target& target,
                                    bool fill_cache, FoundRecord* found);
  // Reads the value to which the record found points.
  absl::StatusOr<bool> FollowPlace(std::string_view tree_key, FoundRecord* found);

  // In a block from the cache, or one to be put there; through the other two where neither is to be
  // had.
  absl::StatusOr<Outcome> Read(const OffsetTableEntry& entry, const Target& target, bool fill_cache,
                               FoundRecord* found);
  BlockSpan CacheableBlockOf(uint64_t offset) const;  // end 0: none, or not known
  absl::StatusOr<Outcome> ReadOwnEntry(const OffsetTableEntry& entry, const Target& target,
                                       bool fill_cache, FoundRecord* found);
  absl::StatusOr<Outcome> ReadFromDisk(const OffsetTableEntry& entry, const Target& target,
                                       FoundRecord* found);
  // The record is longer than what `found` may be.
  static Outcome TooLarge(FoundRecord* found);
  // Bytes to read for a record so that it is whole.
  absl::StatusOr<uint64_t> ExtentOf(const OffsetTableEntry& entry);
  // Decodes the record at the start of `window` (which lies at `offset`), the first version of
  // whatever key, and walks on to the wanted version. Beyond the window it reads from disk.
  absl::StatusOr<Outcome> Match(std::string_view window, uint64_t offset, ChecksumMode mode,
                                const Target& target, FoundRecord* found);
  absl::StatusOr<Outcome> ReadOlder(uint64_t offset, const Target& target, FoundRecord* found);

  const std::unique_ptr<File> file_;
  SegmentCaches* const caches_;
  ResidentIndex resident_;
  absl::Status range_tombstone_status_;
  std::atomic<FileRemover*> remover_{nullptr};  // set: obsolete

  absl::Mutex report_mutex_;
  std::vector<std::string> reported_ ABSL_GUARDED_BY(report_mutex_);  // messages

  // One thread at a time reads footer or index; lookups wait for it only without a footer.
  absl::Mutex load_mutex_;
  std::atomic<const SegmentFooter*> footer_{nullptr};
  std::unique_ptr<const SegmentFooter> footer_owner_ ABSL_GUARDED_BY(load_mutex_);
  std::atomic<bool> index_is_damaged_{false};
  std::atomic<uint64_t> touches_{0};  // page reads since the index was last resident
};

}  // namespace varve
