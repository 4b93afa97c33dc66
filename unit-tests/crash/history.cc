#include "unit-tests/crash/history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace varve::testing {

void History::Sent(SequenceNumber first, SequenceNumber last, Durability mode, Contents contents,
                   uint64_t sent_at, std::vector<Contents> steps) {
  batches_[last] = {first, std::move(contents), mode, sent_at, std::move(steps)};
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

void History::FeedSent(SequenceNumber position, uint64_t at) {
  feed_moves_.push_back({at, position, /*is_acknowledged=*/false});
}

void History::FeedAcknowledged(SequenceNumber position, uint64_t at) {
  feed_moves_.push_back({at, position, /*is_acknowledged=*/true});
}

void History::Inherit(const Bounds& bounds) {
  for (const Known::Clock& clock : bounds.known.clocks) clocks_.push_back({0, clock});
  SeenGone({bounds.known.gone.begin(), bounds.known.gone.end()}, 0);
  if (bounds.feed.may_exist) FeedSent(bounds.feed.most, 0);
  if (bounds.feed.must_exist) FeedAcknowledged(bounds.feed.least, 0);
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
  for (const FeedMove& move : feed_moves_) {
    if (move.at > at) continue;
    bounds.feed.may_exist = true;
    bounds.feed.most = std::max(bounds.feed.most, move.position);
    if (!move.is_acknowledged) continue;
    bounds.feed.must_exist = true;
    bounds.feed.least = move.position;
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

void History::ShowBack(SequenceNumber version, absl::FunctionRef<bool(const State&)> show) const {
  // What came before this history is its first batch, and known better there.
  const bool is_later = before_ != nullptr && !batches_.empty();
  const SequenceNumber inherited = is_later ? batches_.begin()->first : kNoSequence;
  for (auto batch = batches_.rbegin(); batch != batches_.rend(); ++batch) {
    const auto& [last, written] = *batch;
    if (is_later && last == inherited) continue;
    if (written.steps.empty()) {
      if (last <= version && !show({last, &written.contents, /*is_opaque=*/true})) return;
      continue;
    }
    for (SequenceNumber at = last; at >= written.first; --at) {
      if (at <= version && !show({at, &written.steps[at - written.first]})) return;
    }
  }
  if (before_ == nullptr) {
    show({kNoSequence, &nothing_});
    return;
  }
  before_->ShowBack(is_later ? std::min(version, inherited) : version, show);
}

const Contents* History::Exactly(SequenceNumber version) const {
  if (before_ != nullptr && (batches_.empty() || version <= batches_.begin()->first))
    return before_->Exactly(version);
  const auto behind = batches_.upper_bound(version);
  const bool is_end = behind != batches_.begin() && std::prev(behind)->first == version;
  if (!is_end && behind != batches_.end() && behind->second.steps.empty()) return nullptr;
  const Contents* contents = nullptr;
  ShowBack(version, [&](const State& state) {
    contents = state.contents;
    return false;
  });
  return contents;
}

}  // namespace varve::testing
