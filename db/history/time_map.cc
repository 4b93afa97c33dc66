#include "db/history/time_map.h"

#include <algorithm>

#include "util/base/assert.h"

namespace varve {
namespace {

// Returns the first mark behind `version`.
std::vector<TimeMark>::const_iterator FirstBehind(const std::vector<TimeMark>& marks,
                                                  SequenceNumber version) {
  return std::upper_bound(
      marks.begin(), marks.end(), version,
      [](SequenceNumber sequence, const TimeMark& mark) { return sequence < mark.first; });
}

}  // namespace

void TimeMap::Start() {
  absl::MutexLock lock(&mutex_);
  next_mark_ms_.store(marks_.empty() ? 0 : marks_.back().instant_ms + kMarkEveryMillis,
                      std::memory_order_relaxed);
}

void TimeMap::Reserve() {
  absl::MutexLock lock(&mutex_);
  if (marks_.size() == marks_.capacity()) marks_.reserve(2 * marks_.size() + 16);
}

void TimeMap::Add(const TimeMark& mark) {
  VARVE_ASSERT(mark.first != kNoSequence);
  absl::MutexLock lock(&mutex_);
  if (!marks_.empty() &&
      (mark.first <= marks_.back().first || mark.instant_ms <= marks_.back().instant_ms)) {
    return;
  }
  marks_.push_back(mark);
  if (started()) next_mark_ms_.store(mark.instant_ms + kMarkEveryMillis, std::memory_order_relaxed);
}

std::optional<uint64_t> TimeMap::InstantOf(SequenceNumber version) const {
  absl::MutexLock lock(&mutex_);
  const auto behind = FirstBehind(marks_, version);
  if (behind == marks_.begin()) return std::nullopt;
  return std::prev(behind)->instant_ms;
}

std::optional<SequenceNumber> TimeMap::FirstVersion() const {
  absl::MutexLock lock(&mutex_);
  if (marks_.empty()) return std::nullopt;
  return marks_.front().first;
}

std::optional<SequenceNumber> TimeMap::VersionAt(uint64_t instant_ms, SequenceNumber newest) const {
  absl::MutexLock lock(&mutex_);
  const auto later = std::upper_bound(
      marks_.begin(), marks_.end(), instant_ms,
      [](uint64_t instant, const TimeMark& mark) { return instant < mark.instant_ms; });
  if (later == marks_.begin()) return std::nullopt;
  return later == marks_.end() ? newest : std::min(newest, later->first - 1);
}

std::vector<TimeMark> TimeMap::MarksBetween(SequenceNumber after, SequenceNumber last) const {
  absl::MutexLock lock(&mutex_);
  return {FirstBehind(marks_, after), FirstBehind(marks_, last)};
}

size_t TimeMap::ThinUpTo(SequenceNumber horizon) {
  absl::MutexLock lock(&mutex_);
  // The mark at or before the horizon tells its instant and stays, as do all behind it.
  const auto behind = FirstBehind(marks_, horizon);
  if (behind - marks_.begin() < 2) return 0;
  const auto end = marks_.begin() + (behind - marks_.begin()) - 1;
  uint64_t kept_ms = marks_.front().instant_ms;
  const auto goes = [&kept_ms](const TimeMark& mark) {
    if (mark.instant_ms < kept_ms + kThinnedMillis) return true;
    kept_ms = mark.instant_ms;
    return false;
  };
  const auto kept = std::remove_if(marks_.begin() + 1, end, goes);
  const auto gone = static_cast<size_t>(end - kept);
  marks_.erase(kept, end);
  return gone;
}

size_t TimeMap::size() const {
  absl::MutexLock lock(&mutex_);
  return marks_.size();
}

}  // namespace varve
