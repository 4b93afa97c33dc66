// A segment is one sorted file of records being read (the field's SSTable reader): point lookups
// with at most one disk read, and iterators.
//
// An open segment holds a file descriptor; tables, fences and blocks come from SegmentCaches under
// byte budgets. A reader that meets damage gets an error with file and offset, and the segment logs
// each place once; all records that the damage has not hit stay readable.
// db/segment/segment_probe.h has the steps of a point lookup.
//
// Thread-safety: all functions may be called by any thread. A segment is immutable after Open but
// for the caches, which have their own locks, and the mark of damage.
// Invariants: loaded_footer() never becomes null again; value_files() has one file for each of
// info().value_files, in the same order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "db/format/internal_iterator.h"
#include "db/format/range_tombstone.h"
#include "db/format/segment_info.h"
#include "db/segment/scan_history.h"
#include "db/segment/segment_caches.h"
#include "db/segment/segment_decoder.h"
#include "db/segment/segment_footer.h"
#include "db/segment/segment_index.h"
#include "db/segment/segment_probe.h"
#include "db/values/value_file.h"
#include "structure/clock_cache.h"
#include "structure/offset_table.h"

namespace varve {

class FileRemover;

// Says what Open does with a segment whose range tombstones cannot be read. What they hide is
// unknown then, in this segment and in older ones. kRefuse: Open fails. kContain: Open succeeds,
// reads of all keys from `smallest` to `largest` fail in the segment, and only newer versions of
// them are found.
enum class DamagePolicy : uint8_t { kRefuse, kContain };

class Segment {
 public:
  // Opens the segment. Reads nothing from the file but the range tombstones, if there are some; the
  // first use of the footer reads it.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<Segment>> Open(
      FileSystem* file_system, const std::string& directory, const SegmentInfo& info,
      SegmentCaches* caches, DamagePolicy policy = DamagePolicy::kRefuse);
  // Open() makes segments with a file. A test's stand-in without file and caches overrides
  // NewIterator, and nothing else of it may be read.
  Segment(std::unique_ptr<File> file, SegmentInfo info, SegmentCaches* caches);
  virtual ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  const SegmentInfo& info() const { return info_; }
  // Returns the files of info().value_files, which the segment holds.
  const std::vector<std::shared_ptr<ValueFile>>& value_files() const { return value_files_; }
  // Returns the same files in the order of their numbers.
  const std::vector<const ValueFile*>& value_files_by_number() const {
    return value_files_by_number_;
  }
  const std::shared_ptr<const RangeTombstoneList>& range_tombstones() const {
    return range_tombstones_;
  }

  // Prefetches the bucket of the offset table in which a lookup of `hash` (HashKey of the tree key)
  // begins. Does nothing if the table is not in memory.
  void PrefetchTable(uint64_t hash) const { resident_.Prefetch(hash); }
  // Returns false only if no record of the key is in the segment. Reads memory alone, and returns
  // true if the table is not there.
  bool MayContain(uint64_t hash) const {
    OffsetTableEntry entry;
    return LookInTable(hash, &entry) != OffsetTableView::Only::kNone;
  }
  // Returns about which part of the segment, from 0 to 1, lies before the key: by the fences if
  // they are in memory, else by the key's distance to the smallest and the largest key. Reads
  // nothing.
  double ShareBefore(std::string_view tree_key) const;
  // Returns whether offset table and fences are in memory.
  bool has_index() const { return bool(ResidentIndex::Pin(resident_)); }
  // Returns how many fences lie within [lower, upper) (an empty `upper`: no end); 0 if they are not
  // in memory. Reads nothing.
  size_t FencesBetween(std::string_view lower, std::string_view upper) const;
  // Calls `visit` with the key of each `stride`-th of them. The view is valid during the call.
  // Requires: stride > 0.
  void VisitFences(std::string_view lower, std::string_view upper, size_t stride,
                   absl::FunctionRef<void(std::string_view tree_key)> visit) const;
  // Finds the newest version of `tree_key` that is not newer than `at`, tombstones included.
  // Returns whether there is one. The call takes no disk read when table and record are cached, one
  // when only the table is, and two when neither is; an older version may take more. For a
  // separated value the call reads the value instead of the record, and `found` then holds the
  // user's value. Returns DataLoss, with file and offset, for what is damaged; other keys stay
  // readable.
  [[nodiscard]] absl::StatusOr<bool> Get(std::string_view tree_key, uint64_t hash,
                                         SequenceNumber at, bool fill_cache, FoundRecord* found) {
    SegmentProbe probe;
    if (!probe.Begin(this, hash)) return false;
    return probe.Finish(tree_key, at, fill_cache, found);
  }
  // Returns an iterator, which must not outlive the segment. An iterator that does not use the
  // cache reads ahead into a buffer of its own, as merges and long scans want it.
  virtual std::unique_ptr<InternalIterator> NewIterator(CacheUse cache_use);

  // Returns the reader of the segment's compressed values.
  SegmentDecoder& decoder() { return decoder_; }

  // Returns whether some read has found that not all of its records and range tombstones can be
  // read: a merge of the segment would fail.
  bool is_damaged() const { return is_damaged_.load(std::memory_order_relaxed); }
  void NoteDamage() { is_damaged_.store(true, std::memory_order_relaxed); }

  // Marks that no version holds the segment any more. When the last user releases the segment, its
  // destructor hands the file to `remover`.
  void MarkObsolete(FileRemover* remover) { remover_.store(remover, std::memory_order_relaxed); }

  // --- For probes and iterators ------------------------------------------------------------------
  const File& file() const { return *file_; }
  uint64_t number() const { return info_.number; }
  SegmentCaches& caches() const { return *caches_; }
  ScanHistory& scan_history() { return scan_history_; }
  // Returns the footer, reading it at first use. The pointer lives as long as the segment.
  absl::StatusOr<const SegmentFooter*> Footer();
  // Returns the footer if it has been read, else null. FindCandidates and LookInTable have read it
  // whenever they found something.
  const SegmentFooter* loaded_footer() const { return footer_.load(std::memory_order_acquire); }
  // Looks `hash` up in the resident table. Returns kSeveral also if that cannot tell: there is no
  // resident table, or reads of the segment fail anyway.
  OffsetTableView::Only LookInTable(uint64_t hash, OffsetTableEntry* entry) const;
  // Appends all entries of the table for `hash`, reading a page of it or all of it if it is not
  // resident.
  absl::Status FindCandidates(uint64_t hash, OffsetTableCandidates* candidates);
  // Returns the fences, loading the whole index if it fits its cache.
  absl::StatusOr<std::shared_ptr<const SegmentFences>> Fences();
  // Returns the block of the record at `offset`; its end is 0 if blocks of that size are not
  // cached, or the fences are not in memory.
  BlockSpan CacheableBlockOf(uint64_t offset) const;
  // Reads exactly `size` bytes at `offset`; fewer are DataLoss.
  absl::Status ReadExactly(uint64_t offset, size_t size, char* buffer) const;
  // Notes that the record at `offset` is damaged. Returns the DataLoss status for it.
  absl::Status DamagedRecord(uint64_t offset);
  // Returns an error if it is not known what the range tombstones hide (DamagePolicy::kContain).
  const absl::Status& range_tombstone_status() const { return range_tombstone_status_; }
  // Logs damage that a reader is about to hear of, unless the segment has logged it before. Returns
  // the error.
  absl::Status Report(absl::Status error);

 protected:
  std::shared_ptr<const RangeTombstoneList> range_tombstones_ =
      std::make_shared<RangeTombstoneList>();

 private:
  // Open calls these two, in this order, before anything is read.
  void HoldValueFiles(FileSystem* file_system, const std::string& directory);
  absl::Status Initialize(DamagePolicy policy);

  absl::Status ProbePage(const SegmentFooter& footer, uint64_t hash,
                         OffsetTableCandidates* candidates);
  bool IndexIsLoadable(const SegmentFooter& footer) const;
  // Loads the index if the page reads so far have cost about as much, the index fits its cache, and
  // no other thread is loading it.
  void MaybeLoadIndex(const SegmentFooter& footer, uint64_t touches);
  absl::StatusOr<std::shared_ptr<const SegmentIndex>> LoadIndex(const SegmentFooter& footer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(load_mutex_);

  const std::unique_ptr<File> file_;
  const SegmentInfo info_;
  SegmentCaches* const caches_;
  std::vector<std::shared_ptr<ValueFile>> value_files_;
  std::vector<const ValueFile*> value_files_by_number_;
  ResidentIndex resident_;
  SegmentDecoder decoder_;
  absl::Status range_tombstone_status_;
  std::atomic<bool> is_damaged_{false};
  std::atomic<FileRemover*> remover_{nullptr};  // set once the segment is obsolete

  absl::Mutex report_mutex_;
  std::vector<std::string> reported_ ABSL_GUARDED_BY(report_mutex_);  // messages

  // One thread at a time reads footer or index; lookups wait for it only without a footer.
  absl::Mutex load_mutex_;
  std::atomic<const SegmentFooter*> footer_{nullptr};
  std::unique_ptr<const SegmentFooter> footer_owner_ ABSL_GUARDED_BY(load_mutex_);
  std::atomic<bool> index_is_damaged_{false};
  std::atomic<uint64_t> touches_{0};  // page reads since the index was last resident
  ScanHistory scan_history_{caches_ == nullptr ? nullptr : &caches_->scan_reach};
};

}  // namespace varve
