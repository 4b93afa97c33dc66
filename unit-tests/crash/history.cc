#include "unit-tests/crash/history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve::testing {

void History::Sent(SequenceNumber first, SequenceNumber last, Durability mode, Contents contents,
                   uint64_t sent_at) {
  batches_[last] = {first, std::move(contents), mode, sent_at};
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

void History::SeenGone(const std::vector<Value>& values, uint64_t at) {
  if (!values.empty()) sights_.push_back({at, values});
}

void History::ClockIs(uint64_t instant_ms, uint64_t at) {
  clocks_.push_back({at, {++moment_, instant_ms}});
}

void History::Inherit(const Known& known) {
  for (const Known::Clock& clock : known.clocks) clocks_.push_back({0, clock});
  SeenGone({known.gone.begin(), known.gone.end()}, 0);
}

void History::Forget(SequenceNumber last) {
  batches_.erase(batches_.upper_bound(last), batches_.end());
}

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
  bounds.known = KnownAt(at);
  return bounds;
}

Known History::KnownAt(uint64_t at) const {
  Known known;
  for (const ClockChange& change : clocks_) {
    if (change.at <= at) known.clocks.push_back(change.clock);
  }
  for (const Sight& sight : sights_) {
    if (sight.at <= at) known.gone.insert(sight.gone.begin(), sight.gone.end());
  }
  return known;
}

SequenceNumber History::BatchAt(SequenceNumber sequence) const {
  const auto behind = batches_.upper_bound(sequence);
  if (behind != batches_.begin()) return std::prev(behind)->first;
  return before_ == nullptr ? kNoSequence : before_->BatchAt(sequence);
}

const Contents* History::At(SequenceNumber sequence) const {
  const auto behind = batches_.upper_bound(sequence);
  if (behind != batches_.end() && behind->second.first <= sequence) return nullptr;
  if (behind != batches_.begin()) return &std::prev(behind)->second.contents;
  return before_ == nullptr ? &nothing_ : before_->At(sequence);
}

}  // namespace varve::testing
