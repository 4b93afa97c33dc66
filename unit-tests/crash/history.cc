#include "unit-tests/crash/history.h"

#include <algorithm>
#include <utility>

namespace varve::testing {

void History::Sent(SequenceNumber last, Durability mode, Contents contents, uint64_t sent_at) {
  batches_[last] = {std::move(contents), mode, sent_at};
}

void History::Acknowledged(SequenceNumber last, Durability mode, uint64_t at) {
  const bool synced = mode == Durability::kAlways;
  Acknowledgement next{at, synced ? last : kNoSequence, last};
  if (!acknowledgements_.empty()) {
    next.on_disk = std::max(next.on_disk, acknowledgements_.back().on_disk);
    next.in_kernel = std::max(next.in_kernel, acknowledgements_.back().in_kernel);
  }
  acknowledgements_.push_back(next);
}

void History::Forget(SequenceNumber last) { batches_.erase(batches_.upper_bound(last), batches_.end()); }

SequenceNumber History::last_acknowledged() const {
  return acknowledgements_.empty() ? kNoSequence : acknowledgements_.back().in_kernel;
}

History::Bounds History::After(uint64_t at, bool power_was_cut) const {
  Bounds bounds;
  for (const auto& [last, batch] : batches_) {
    if (batch.sent_at <= at) bounds.most = std::max(bounds.most, last);
  }
  for (const Acknowledgement& each : acknowledgements_) {
    if (each.at <= at) bounds.least = power_was_cut ? each.on_disk : each.in_kernel;
  }
  return bounds;
}

const Contents* History::At(SequenceNumber last) const {
  if (last == kNoSequence) return &nothing_;
  const auto batch = batches_.find(last);
  if (batch != batches_.end()) return &batch->second.contents;
  return before_ == nullptr ? nullptr : before_->At(last);
}

}  // namespace varve::testing
