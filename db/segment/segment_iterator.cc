#include "db/segment/segment_iterator.h"

#include <algorithm>
#include <utility>

#include "db/segment/block_guide.h"
#include "db/segment/segment.h"
#include "db/segment/segment_blocks.h"
#include "util/base/prefetch.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kMaxReadAhead = uint64_t{256} << 10;
// What a scan looks at in its buffers is to stay in the processor's cache, for all runs together.
constexpr uint64_t kMaxReadAheadOfScan = uint64_t{128} << 10;
// So many blocks behind a seek are loaded one by one.
constexpr size_t kSingleBlocks = 2;
// Blocks lie scattered in memory: the processor's own prefetching has to start anew in each.
constexpr size_t kPrefetchAtBlock = 512;
constexpr size_t kPrefetchAtRecord = 512;

// Returns how many bytes the next buffer of a cursor holds.
uint64_t LongerReadAhead(uint64_t bytes, bool is_cached) {
  return std::min(bytes * 2, is_cached ? kMaxReadAheadOfScan : kMaxReadAhead);
}

}  // namespace

SegmentIterator::SegmentIterator(Segment* segment, CacheUse cache_use)
    : segment_(segment),
      cached_(cache_use.fills && segment->caches().blocks.capacity() > 0),
      cursor_(segment->number(), segment->info().ingested_at, &segment->decoder()),
      forecast_(&segment->scan_history()),
      values_ahead_(cached_ && cache_use.values ? &segment->caches().blocks : nullptr,
                    cache_use.reads_values ? &segment->value_files_by_number() : nullptr,
                    segment->number()) {}

bool SegmentIterator::Fail(absl::Status status) {
  // What the device fails to read counts as damaged.
  if (absl::IsDataLoss(status) || absl::IsInternal(status)) segment_->NoteDamage();
  return FailSeek(std::move(status));
}

bool SegmentIterator::FailSeek(absl::Status status) {
  status_ = segment_->Report(std::move(status));
  valid_ = false;
  return false;
}

bool SegmentIterator::Start() {
  LeavePlace();
  valid_ = false;
  status_ = absl::OkStatus();
  offsets_.clear();
  values_ahead_.Restart();
  if (!segment_->range_tombstone_status().ok())
    return Fail(UnsharedCopy(segment_->range_tombstone_status()));
  const absl::StatusOr<const SegmentFooter*> footer = segment_->Footer();
  if (!footer.ok()) return Fail(footer.status());
  data_size_ = (*footer)->data_size;
  block_size_ = (*footer)->block_size;
  cursor_.SetBase((*footer)->key_base);
  read_ahead_ = uint64_t{block_size_} * 2;
  moves_ = 0;
  forecast_.Restart();
  prepared_ = kNotPrepared;
  return data_size_ > 0;
}

void SegmentIterator::LeavePlace() {
  if (status_.ok()) forecast_.Leave(valid_ ? cursor_.next_offset() : data_size_);
}

bool SegmentIterator::NeedFences() {
  if (fences_ != nullptr) return true;
  absl::StatusOr<std::shared_ptr<const SegmentFences>> fences = segment_->Fences();
  if (!fences.ok()) return FailSeek(fences.status());
  fences_ = *std::move(fences);
  return true;
}

bool SegmentIterator::ReadWindow(uint64_t begin, uint64_t end) {
  if (cursor_.Contains(begin, end) && !handle_) return true;
  const size_t size = end - begin;
  cursor_.Close();
  handle_.Release();
  GrowBuffer(size);
  segment_->caches().statistics.scan_reads.Add(1);
  if (cached_) {
    segment_->scan_history().Note(size);
    forecast_.NoteRead();
  }
  if (absl::Status status = segment_->ReadExactly(begin, size, buffer_.get()); !status.ok()) {
    return Fail(std::move(status));
  }
  cursor_.Open({buffer_.get(), size}, begin, ChecksumMode::kVerify);
  return true;
}

void SegmentIterator::GrowBuffer(size_t size) {
  if (buffer_capacity_ >= size) return;
  buffer_.reset(new char[size]);
  buffer_capacity_ = size;
}

bool SegmentIterator::LoadBlock(BlockSpan span) {
  if (!cached_ || !fences_->IsCacheable(span)) return ReadWindow(span.begin, span.end);
  if (handle_ && span.begin == cursor_.begin()) return true;
  forecast_.NoteRead();
  absl::StatusOr<ClockCache::Handle> block =
      CachedBlock(*segment_, span, block_size_, &segment_->caches().statistics.scan_reads);
  if (!block.ok()) return Fail(block.status());
  UseBlock(*std::move(block), span.begin);
  return true;
}

void SegmentIterator::MakeForecast(size_t block) {
  if (forecast_.is_made()) return;
  const uint64_t begin = fences_->Span(block).begin;
  // The last block as a whole, unless little of it is expected.
  const size_t end = EndOfReadAhead(block, forecast_.BytesFrom(begin) + block_size_ / 4 * 3);
  forecast_.Make(begin, fences_->Span(end - 1).end, segment_->file());
}

bool SegmentIterator::LoadWithNext(size_t block, BlockSpan span) {
  if (forecast_.BytesFrom(span.begin) > block_size_) MakeForecast(block);
  if (!forecast_.is_on_disk() || span.end >= forecast_.end()) return LoadBlock(span);
  const uint64_t size = forecast_.end() - span.begin;
  const size_t end = EndOfReadAhead(block, size);
  const size_t near_end = std::min(block + kSingleBlocks + 1 - moves_, end);
  moves_ = kSingleBlocks;
  if (FillsCache()) {
    FillCache(block, end);
    return LoadBlock(span);
  }
  if (!ReadWindow(span.begin, forecast_.end())) return false;
  // A full cache gets the blocks that it would have got one by one.
  CacheBlocks(*segment_, *fences_, block, near_end, {buffer_.get(), size}, block_size_);
  return true;
}

size_t SegmentIterator::StartInBlock(std::string_view tree_key) const {
  return handle_ && cursor_.is_verified()
             ? StartByGuide(handle_.notes(), cursor_.window(), cursor_.base(), tree_key)
             : 0;
}

void SegmentIterator::PrefetchSlot(size_t block) const {
  if (!cached_ || block >= fences_->count()) return;
  segment_->caches().blocks.PrefetchSlot(segment_->number(),
                                         BlockKey(fences_->Span(block).begin, block_size_));
}

void SegmentIterator::PrefetchBlock(size_t block) const {
  if (!cached_ || block >= fences_->count()) return;
  const uint64_t begin = fences_->Span(block).begin;
  const char* const bytes = segment_->caches().blocks.PrefetchEntry(
      segment_->number(), BlockKey(begin, block_size_), begin);
  if (bytes != nullptr) PrefetchLines(bytes, 128, kPrefetchAtBlock);
}

void SegmentIterator::PrefetchGuide(size_t block) const {
  if (!cached_) return;
  const BlockSpan span = fences_->Span(block);
  const char* const bytes = segment_->caches().blocks.PrefetchEntry(
      segment_->number(), BlockKey(span.begin, block_size_), span.begin);
  if (bytes != nullptr)
    PrefetchLines(bytes + (span.end - span.begin), 0, BlockGuideSize(span.end - span.begin));
}

bool SegmentIterator::LoadFromCache(BlockSpan span) {
  SegmentCaches& caches = segment_->caches();
  ClockCache::Handle block =
      caches.blocks.Lookup(segment_->number(), BlockKey(span.begin, block_size_), span.begin);
  if (!block) return false;
  caches.statistics.block_cache_hits.Add(1);
  UseBlock(std::move(block), span.begin);
  return true;
}

void SegmentIterator::UseBlock(ClockCache::Handle block, uint64_t begin) {
  handle_ = std::move(block);
  cursor_.Open(handle_.data(), begin,
               handle_.flagged() ? ChecksumMode::kVerify : ChecksumMode::kTrusted);
}

bool SegmentIterator::FillsCache() const {
  if (!segment_->scan_history().MayFill(data_size_)) return false;
  const ClockCache& blocks = segment_->caches().blocks;
  // The shards of a cache don't fill up evenly.
  return blocks.usage() + blocks.capacity() / 32 + read_ahead_ <= blocks.capacity();
}

void SegmentIterator::FillCache(size_t first, size_t last) {
  if (last - first < 2) return;
  const uint64_t begin = fences_->Span(first).begin;
  const size_t size = fences_->Span(last - 1).end - begin;
  cursor_.Close();
  handle_.Release();
  GrowBuffer(size);
  segment_->caches().statistics.scan_reads.Add(1);
  if (!segment_->ReadExactly(begin, size, buffer_.get()).ok()) return;
  CacheBlocks(*segment_, *fences_, first, last, {buffer_.get(), size}, block_size_);
}

size_t SegmentIterator::EndOfReadAhead(size_t block, uint64_t bytes) const {
  const uint64_t begin = fences_->Span(block).begin;
  size_t end = block + 1;
  while (end < fences_->count() && fences_->IsCacheable(fences_->Span(end)) &&
         fences_->Span(end).end - begin <= bytes)
    ++end;
  return end;
}

size_t SegmentIterator::BeginOfReadAhead(size_t block) const {
  const uint64_t end = fences_->Span(block).end;
  size_t begin = block;
  while (begin > 0 && end - fences_->Span(begin - 1).begin <= read_ahead_) --begin;
  return begin;
}

bool SegmentIterator::LoadForward(uint64_t offset, uint64_t at_least) {
  if (cached_) {
    if (!NeedFences()) return false;
    const size_t block = fences_->BlockOf(offset);
    const BlockSpan span = fences_->Span(block);
    if (fences_->IsCacheable(span)) {
      const bool is_near = ++moves_ <= kSingleBlocks;
      if (LoadFromCache(span)) {
        PrefetchLines(cursor_.window().data(), 128, kPrefetchAtBlock);
        if (is_near) return true;
        PrefetchBlock(block + 1);
        PrefetchSlot(block + 2);
        return true;
      }
      if (is_near) return LoadWithNext(block, span);
      if (FillsCache()) {
        FillCache(block, EndOfReadAhead(block, forecast_.SizeFrom(span.begin, read_ahead_)));
        read_ahead_ = LongerReadAhead(read_ahead_, cached_);
        return LoadBlock(span);
      }
    }
  }
  const uint64_t size = std::max(forecast_.SizeFrom(offset, read_ahead_), at_least);
  read_ahead_ = LongerReadAhead(read_ahead_, cached_);
  return ReadWindow(offset, std::min(offset + size, data_size_));
}

bool SegmentIterator::DecodeInWindow(uint64_t offset) {
  if (!cursor_.MoveTo(offset)) [[unlikely]] {
    // The end of the window cuts the record short, or the record is damaged.
    const std::string_view rest = cursor_.Rest();
    const uint64_t available = data_size_ - offset;
    const uint64_t needed = std::max<uint64_t>(RecordSize(rest), kMaxRecordHeaderSize);
    if (needed <= rest.size() || rest.size() == available || RecordSize(rest) > available ||
        handle_) {
      return Fail(segment_->DamagedRecord(offset));
    }
    return LoadForward(offset, needed) && DecodeInWindow(offset);
  }
  valid_ = true;
  return true;
}

bool SegmentIterator::MoveTo(uint64_t offset) {
  valid_ = false;
  if (offset >= data_size_) return false;
  if (!cursor_.Contains(offset, offset + 1) && !LoadForward(offset, 0)) return false;
  return DecodeInWindow(offset);
}

void SegmentIterator::SeekToFirst() {
  if (Start()) MoveTo(0);
}

inline void SegmentIterator::AskForValues() {
  if (IsSeparated(cursor_.record())) [[unlikely]]
    values_ahead_.Advance(cursor_.window(), cursor_.begin(), cursor_.next_offset());
}

void SegmentIterator::Next() {
  if (cursor_.Next()) [[likely]] {
    AskForValues();
  } else {
    MoveTo(cursor_.offset());
  }
}

const RecordView* SegmentIterator::NextKey() {
  if (cursor_.NextKeyQuickly()) [[likely]]
    return &cursor_.record();
  return NextKeyAtEdge();
}

const RecordView* SegmentIterator::NextKeyAtEdge() {
  if (!cursor_.NextKey(kStepsBeforeSeek)) return InternalIterator::NextKey();
  AskForValues();
  return &cursor_.record();
}

void SegmentIterator::PrepareSeek(std::string_view tree_key, SeekStep step) {
  switch (step) {
    case SeekStep::kFindPlace:
      if (!Start() || !NeedFences()) return;
      prepared_ = fences_->Find(tree_key);
      PrefetchSlot(prepared_);
      PrefetchSlot(prepared_ + 1);
      return;
    case SeekStep::kFetchPlace:
      if (prepared_ != kNotPrepared) PrefetchGuide(prepared_);
      return;
    case SeekStep::kFetchRecord:
      if (prepared_ == kNotPrepared || !cached_) return;
      const BlockSpan span = fences_->Span(prepared_);
      if (!fences_->IsCacheable(span)) return;
      if (LoadFromCache(span)) {
        PrefetchLines(cursor_.window().data() + StartInBlock(tree_key), 0, kPrefetchAtRecord);
      } else {
        // The cursors of several segments then wait for the disk at the same time.
        forecast_.BeginAt(span.begin);
        MakeForecast(prepared_);
      }
      return;
  }
}

void SegmentIterator::Seek(std::string_view tree_key, SequenceNumber sequence) {
  const size_t prepared = std::exchange(prepared_, kNotPrepared);
  const bool alone = prepared == kNotPrepared;
  if (alone && (!Start() || !NeedFences())) return;
  const size_t block = alone ? fences_->Find(tree_key) : prepared;
  const BlockSpan span = fences_->Span(block);
  forecast_.BeginAt(span.begin);
  if (fences_->IsCacheable(span) && !LoadSought(block, span)) return;
  size_t start = 0;
  if (alone) {
    // Waiting for the guide costs as much as it saves: the records in front of the place come in
    // one stream, and those behind it follow in the same.
    if (handle_) PrefetchLines(cursor_.window().data(), 128, kPrefetchAtBlock);
    PrefetchBlock(block + 1);
  } else if (cursor_.begin() == span.begin) {
    start = StartInBlock(tree_key);
    // A short scan takes few records of each of several cursors.
    if (start > (span.end - span.begin) / 2) PrefetchBlock(block + 1);
  }
  MoveTo(span.begin + start);
  const auto is_before = [&] {
    return valid_ && CompareInternal(record().key, record().sequence, tree_key, sequence) < 0;
  };
  if (is_before()) {
    cursor_.PassBefore(tree_key, sequence);
    do {
      Next();
    } while (is_before());
  }
  forecast_.EndSeek();
}

bool SegmentIterator::LoadSought(size_t block, BlockSpan span) {
  if (!cached_) return LoadBlock(span);
  if (handle_ && span.begin == cursor_.begin()) return true;  // PrepareSeek() has found it
  return LoadFromCache(span) || LoadWithNext(block, span);
}

bool SegmentIterator::LoadBackward(size_t block, BlockSpan span) {
  const bool is_cached = cached_ && fences_->IsCacheable(span);
  if (is_cached && ++moves_ <= kSingleBlocks) return LoadBlock(span);
  if (cursor_.Contains(span.begin, span.end) || (is_cached && LoadFromCache(span))) return true;
  // The cursor is likely to move on to the blocks before this one, so it reads them too.
  const size_t first = BeginOfReadAhead(block);
  const bool fills = is_cached && FillsCache();
  read_ahead_ = LongerReadAhead(read_ahead_, cached_);
  if (!fills) return ReadWindow(fences_->Span(first).begin, span.end);
  FillCache(first, block + 1);
  return LoadBlock(span);
}

bool SegmentIterator::IndexBlock(size_t block) {
  const BlockSpan span = fences_->Span(block);
  valid_ = false;
  offsets_.clear();
  if (!LoadBackward(block, span)) return false;
  forecast_.ForgetRead();
  for (uint64_t offset = span.begin; offset < span.end; offset = cursor_.next_offset()) {
    if (!DecodeInWindow(offset)) {
      offsets_.clear();
      return false;
    }
    offsets_.push_back(offset);
  }
  return true;
}

void SegmentIterator::SeekToLast() {
  if (!Start() || !NeedFences() || !IndexBlock(fences_->count() - 1)) return;
  MoveTo(offsets_.back());
}

void SegmentIterator::Prev() {
  forecast_.ForgetRead();
  const uint64_t current = cursor_.offset();
  if (offsets_.empty() || current <= offsets_.front() || current > offsets_.back()) {
    if (!NeedFences()) return;
    size_t block = fences_->BlockOf(current);
    if (fences_->Span(block).begin == current) {
      if (block == 0) {
        valid_ = false;
        return;
      }
      --block;
    }
    if (!IndexBlock(block)) return;
  }
  MoveTo(*(std::lower_bound(offsets_.begin(), offsets_.end(), current) - 1));
}

}  // namespace varve
