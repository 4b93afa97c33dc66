#include "server/scans/range_cursor.h"

#include <algorithm>

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
  if (snapshot_ == nullptr) snapshot_ = context.store.GetSnapshot();
  ReadOptions options = NoWaitReadOptions(context.space());
  options.snapshot = snapshot_.get();
  options.fill_cache = false;
  options.without_value = options_.keys_only;
  iterator_ = context.store.NewIterator(options, range_.lower, range_.upper, &durable_after_);
  opened_ = std::chrono::steady_clock::now();
  if (resume_.has_value()) {
    iterator_->Seek(*resume_);  // a key of the range, so both directions find it
  } else if (options_.reverse) {
    iterator_->SeekToLast();
  } else {
    iterator_->SeekToFirst();
  }
  resume_.reset();
}

void RangeCursor::Rest() {
  if (iterator_ == nullptr || !iterator_->Valid()) return;
  resume_.emplace(iterator_->key());
  iterator_.reset();
}

}  // namespace varve
