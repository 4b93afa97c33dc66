#include "server/scans/range_cursor.h"

#include <algorithm>
#include <iterator>

#include "util/base/assert.h"

namespace varve {
namespace {

// An iterator keeps files and write buffers of its time; reopening one costs some disk reads.
constexpr std::chrono::seconds kIteratorAge{1};

}  // namespace

RangeCursor::Slice::~Slice() {
  context_.DependOn(std::max(cursor_->durable_after_, cursor_->iterator_->durable_after()));
  if (std::chrono::steady_clock::now() - cursor_->opened_ > kIteratorAge) cursor_->Rest();
}

void RangeCursor::Resume(CommandContext& context) {
  if (iterator_ != nullptr) return;
  if (snapshot_ == nullptr && !context.is_prepared()) snapshot_ = SnapshotOfReply(context.store);
  ReadOptions options = NoWaitReadOptions(context.space());
  options.snapshot = snapshot_.get();
  options.fill_cache = false;
  options.without_value = options_.keys_only;
  options.newer_than = options_.newer_than;
  options.expected_entries = options_.expected_entries;
  iterator_ = context.NewIterator(options, keys_.ranges.front().lower, keys_.ranges.back().upper,
                                  &durable_after_);
  opened_ = std::chrono::steady_clock::now();
  if (resume_.has_value()) {
    // A key of the range, which may be gone where there is no snapshot.
    options_.reverse ? iterator_->SeekForPrev(*resume_) : iterator_->Seek(*resume_);
  } else if (options_.reverse) {
    iterator_->SeekToLast();
  } else {
    iterator_->SeekToFirst();
  }
  resume_.reset();
  if (keys_.ranges.size() > 1) SkipGap();
}

void RangeCursor::SkipTo(std::string_view target) {
  if (options_.reverse) {
    iterator_->SeekForPrev(target);
    if (iterator_->Valid() && iterator_->key() == target) iterator_->Prev();
  } else {
    iterator_->Seek(target);
  }
  if (keys_.ranges.size() > 1) SkipGap();
}

void RangeCursor::SkipGap() {
  VARVE_ASSERT(iterator_ != nullptr && !keys_.ranges.empty());
  const auto& ranges = keys_.ranges;
  while (iterator_->Valid()) {
    const std::string_view key = iterator_->key();
    // The first range that begins behind the key; the one before it is the only one to hold it.
    const auto behind =
        std::upper_bound(ranges.begin(), ranges.end(), key,
                         [](std::string_view k, const KeyRange& range) { return k < range.lower; });
    if (behind != ranges.begin()) {
      const KeyRange& before = *std::prev(behind);
      if (before.upper.empty() || key < before.upper) return;
      if (options_.reverse) {
        iterator_->SeekForPrev(before.upper);
        if (iterator_->Valid() && iterator_->key() == before.upper) iterator_->Prev();
        continue;
      }
    }
    VARVE_ASSERT(!options_.reverse && behind != ranges.end());
    iterator_->Seek(behind->lower);
  }
}

void RangeCursor::Rest() {
  if (iterator_ == nullptr || !iterator_->Valid()) return;
  resume_.emplace(iterator_->key());
  iterator_.reset();
}

}  // namespace varve
