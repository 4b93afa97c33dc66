// The segment iterator is a cursor over one segment.
//
// It looks through a window (db/segment/window_cursor.h): either a block from the block cache or a
// buffer of its own. Buffers start with two blocks and double up to 256 KiB (128 KiB where it fills
// the cache) as long as the cursor moves on in one direction. Moving forward needs no fences, so a
// compaction that reads from the start loads no index.
//
// An iterator that fills the cache reads, together with the block that a seek finds, as much behind
// it as earlier scans have used (db/segment/read_forecast.h). Where those were short, or none is
// known, it takes the first blocks one by one. Where it moves on, it reads ahead what the cache
// lacks, and looks at it in its own buffer. Once a segment was scanned often enough, and while the
// cache has free room, the blocks that it read ahead go there; a full cache is left alone, so that
// a long scan drives out little.
//
// Thread-safety: an iterator belongs to one thread and must not outlive the segment.
// Invariants: while Valid(), the window cursor stands at a record.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "db/format/internal_iterator.h"
#include "db/segment/read_forecast.h"
#include "db/segment/segment_caches.h"
#include "db/segment/segment_fences.h"
#include "db/segment/segment_footer.h"
#include "db/segment/value_read_ahead.h"
#include "db/segment/window_cursor.h"
#include "structure/clock_cache.h"

namespace varve {

class Segment;

class SegmentIterator final : public InternalIterator {
 public:
  SegmentIterator(Segment* segment, CacheUse cache_use);
  ~SegmentIterator() override { LeavePlace(); }

  bool Valid() const override { return valid_; }
  void SeekToFirst() override;
  void SeekToLast() override;
  void Seek(std::string_view tree_key, SequenceNumber sequence) override;
  void PrepareSeek(std::string_view tree_key, SeekStep step) override;
  void Next() override;
  void Prev() override;
  void ExpectWayBack() override { forecast_.ExpectWayBack(); }
  const RecordView& record() const override { return cursor_.record(); }
  const RecordView* NextKey() override;
  absl::Status status() const override { return status_; }
  // Returns where the record lies in the file.
  // Requires: Valid().
  uint64_t offset() const { return cursor_.offset(); }

 private:
  // Does what NextKey() does, for unusual records and at the edge of the window, too.
  const RecordView* NextKeyAtEdge();
  // Asks for the values of the records ahead, if this one's lies elsewhere.
  void AskForValues();

  // Each returns false, with valid_ false, at the end of the data or on an error (then status_ says
  // which).
  bool Start();  // clears the state, loads the footer; false also for an empty segment
  bool NeedFences();
  bool MoveTo(uint64_t offset);  // to the record at `offset`
  // Does the same where the window has the record's first byte; may load another window.
  bool DecodeInWindow(uint64_t offset);
  bool LoadForward(uint64_t offset, uint64_t at_least);
  bool LoadBackward(size_t block, BlockSpan span);
  bool LoadBlock(BlockSpan span);
  bool LoadSought(size_t block, BlockSpan span);  // the block that a seek has found
  // Brings the block, which the cache lacks, into the window. Where scans mostly come to blocks
  // behind it, the disk reads these at the same time.
  bool LoadWithNext(size_t block, BlockSpan span);
  // Asks the disk for the block and for those behind it to which scans mostly come, once a seek.
  void MakeForecast(size_t block);
  // Notes how far the cursor came behind the last seek.
  void LeavePlace();
  bool LoadFromCache(BlockSpan span);  // false if the cache does not have it
  void UseBlock(ClockCache::Handle block, uint64_t begin);
  // Ask memory for what a look for the block in the cache touches first, and touches then.
  void PrefetchSlot(size_t block) const;
  void PrefetchBlock(size_t block) const;
  void PrefetchGuide(size_t block) const;
  // Returns where in the window, which is a block, a search for `tree_key` begins.
  size_t StartInBlock(std::string_view tree_key) const;
  // Returns whether the cache is to take what the cursor reads ahead.
  bool FillsCache() const;
  // Brings the blocks [first, last) into the cache with one read. A hint: LoadBlock reads what is
  // still missing, and reports what can't be read.
  void FillCache(size_t first, size_t last);
  // Returns the end of the blocks that lie within so many bytes from the begin of this one.
  size_t EndOfReadAhead(size_t block, uint64_t bytes) const;
  size_t BeginOfReadAhead(size_t block) const;  // the first of those to read before it, with it
  void GrowBuffer(size_t size);
  bool ReadWindow(uint64_t begin, uint64_t end);
  bool IndexBlock(size_t block);       // brings the block into the window and fills offsets_
  bool Fail(absl::Status status);      // what a merge needs can't be read
  bool FailSeek(absl::Status status);  // only the fences can't be read

  Segment* const segment_;
  const bool cached_;  // blocks go through the cache
  uint64_t data_size_ = 0;
  uint32_t block_size_ = 0;
  std::shared_ptr<const SegmentFences> fences_;

  bool valid_ = false;
  absl::Status status_;
  WindowCursor cursor_;
  ReadForecast forecast_;
  ValueReadAhead values_ahead_;

  ClockCache::Handle handle_;  // backs the window, or
  std::unique_ptr<char[]> buffer_;
  size_t buffer_capacity_ = 0;
  uint64_t read_ahead_ = 0;  // size of the next buffer, behind the forecast
  static constexpr size_t kNotPrepared = ~size_t{0};
  size_t prepared_ = kNotPrepared;  // the block of the Seek that is about to follow
  size_t moves_ = 0;                // how many blocks the cursor moved on to since the last seek

  std::vector<uint64_t> offsets_;  // records of one block, for moving back; empty if unknown
};

}  // namespace varve
