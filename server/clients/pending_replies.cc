#include "server/clients/pending_replies.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"
#include "util/resp/resp_writer.h"

namespace varve {

void PendingReplies::Mark(SequenceNumber durable_after, uint32_t replies) {
  VARVE_ASSERT(marked_ <= bytes_.size());
  VARVE_ASSERT(head_ <= marks_.size());
  const size_t bytes = bytes_.size() - marked_;
  if (bytes == 0 && replies == 0) return;
  marked_ = bytes_.size();
  const bool continues = std::exchange(inside_reply_, replies == 0);
  const bool whole =
      replies > 0 && marks_.size() > std::max(head_, batch_begin_) && marks_.back().replies > 0;
  if (whole && marks_.back().durable_after == durable_after) {
    marks_.back().bytes += bytes;
    marks_.back().replies += replies;
    return;
  }
  marks_.push_back({bytes, durable_after, replies, continues});
}

void PendingReplies::Take(PendingReplies* other) {
  VARVE_ASSERT(other != this);
  VARVE_ASSERT(marked_ <= bytes_.size() && other->marked_ <= other->bytes_.size());
  if (empty()) {
    Clear();
    bytes_.Swap(other->bytes_);
    marks_.swap(other->marks_);
    std::swap(head_, other->head_);
    std::swap(batch_begin_, other->batch_begin_);
    std::swap(marked_, other->marked_);
  } else {
    bytes_.Append(other->bytes_.view());
    marked_ += other->marked_;
    batch_begin_ = marks_.size();
    marks_.insert(marks_.end(), other->marks_.begin() + static_cast<ptrdiff_t>(other->head_),
                  other->marks_.end());
  }
  inside_reply_ = other->inside_reply_;
  other->Clear();
}

size_t PendingReplies::Releasable(SequenceNumber durable) const {
  size_t bytes = 0;
  for (size_t i = head_; i < marks_.size() && marks_[i].durable_after <= durable; ++i)
    bytes += marks_[i].bytes;
  return bytes;
}

SequenceNumber PendingReplies::NextDurableAfter(SequenceNumber durable) const {
  for (size_t i = head_; i < marks_.size(); ++i) {
    if (marks_[i].durable_after > durable) return marks_[i].durable_after;
  }
  return kNoSequence;
}

void PendingReplies::Consume(size_t bytes) {
  VARVE_ASSERT(bytes <= marked_ && marked_ <= bytes_.size());
  bytes_.Consume(bytes);
  marked_ -= bytes;
  while (bytes > 0) {
    VARVE_ASSERT(head_ < marks_.size());
    MarkedReplies& front = marks_[head_];
    const size_t part = std::min(bytes, front.bytes);
    front.bytes -= part;
    bytes -= part;
    if (front.bytes > 0) break;
    ++head_;
  }
  if (head_ == marks_.size()) {
    marks_.clear();
    head_ = batch_begin_ = 0;
  } else if (head_ > 64 && head_ > marks_.size() / 2) {
    marks_.erase(marks_.begin(), marks_.begin() + static_cast<ptrdiff_t>(head_));
    batch_begin_ = batch_begin_ > head_ ? batch_begin_ - head_ : 0;
    head_ = 0;
  }
}

bool PendingReplies::Fail(size_t first, SequenceNumber durable, std::string_view error) {
  VARVE_ASSERT(first >= head_);
  VARVE_ASSERT(marked_ <= bytes_.size());
  ByteBuffer kept;
  RespWriter writer(&kept);
  size_t offset = 0;
  for (size_t i = head_; i < marks_.size(); ++i) {
    MarkedReplies& mark = marks_[i];
    const std::string_view old(bytes_.data() + offset, mark.bytes);
    offset += mark.bytes;
    if (i < first || (durable != kMaxSequence && mark.durable_after <= durable)) {
      kept.Append(old);
      continue;
    }
    if (mark.replies == 0 || mark.continues) return false;
    const size_t before = kept.size();
    for (uint32_t reply = 0; reply < mark.replies; ++reply) writer.Error(error);
    mark.bytes = kept.size() - before;
    mark.durable_after = kNoSequence;
  }
  bytes_.Swap(kept);
  marked_ = bytes_.size();
  return true;
}

bool PendingReplies::FailAbove(SequenceNumber durable, std::string_view error) {
  return Fail(head_, durable, error);
}

bool PendingReplies::FailBatch(std::string_view error) {
  return Fail(std::max(head_, batch_begin_), kMaxSequence, error);
}

void PendingReplies::Clear() {
  bytes_.Clear();
  marks_.clear();
  head_ = batch_begin_ = marked_ = 0;
  inside_reply_ = false;
}

}  // namespace varve
