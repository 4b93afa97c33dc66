#include "db/commit/range_check.h"

#include <algorithm>

#include "util/base/assert.h"

namespace varve {

RangeCheck::RangeCheck(const Commit& commit) : commit_(commit) {
  for (const Commit::RangeCondition& condition : commit.range_conditions()) {
    checked_ = std::min(checked_, condition.sequence);
  }
}

SequenceNumber RangeCheck::SetTarget(std::shared_ptr<const SuperVersion> state,
                                     SequenceNumber last) {
  state_ = std::move(state);
  target_ = std::max(last, checked_);
  VARVE_ASSERT(last + 1 >= state_->active->first_sequence());
  parts_.clear();
  known_ = true;
  if (checked_ == target_) return 0;
  parts_.push_back({state_->active.get(), state_->active->PositionNear(checked_)});
  SequenceNumber known_from = state_->active->first_sequence();
  for (const std::shared_ptr<WriteBuffer>& buffer : state_->full) {
    if (known_from <= checked_ + 1) break;
    parts_.push_back({buffer.get(), buffer->PositionNear(checked_)});
    known_from = buffer->first_sequence();
  }
  known_ = known_from <= checked_ + 1;
  return target_ - checked_;
}

bool RangeCheck::Scan() {
  if (!known_) return false;
  if (checked_ == target_) return true;
  VARVE_ASSERT(checked_ < target_ && !parts_.empty());
  SortRanges();
  bool unchanged = true;
  for (Part& part : parts_) {
    part.buffer->Walk(&part.position, target_, [&](const RecordView& record, const RecordView*) {
      if (unchanged && record.sequence > checked_ && Covers(record.key)) unchanged = false;
    });
    if (!unchanged) return false;
  }
  for (const RangeTombstone& tombstone : state_->buffered_tombstones->tombstones()) {
    if (tombstone.sequence > checked_ && tombstone.sequence <= target_ &&
        Overlaps(tombstone.begin, tombstone.end)) {
      return false;
    }
  }
  checked_ = target_;
  return true;
}

void RangeCheck::SortRanges() {
  ranges_.clear();
  for (const Commit::RangeCondition& condition : commit_.range_conditions()) {
    ranges_.push_back({condition.lower, condition.upper});
  }
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.lower < b.lower; });
  for (size_t i = 1; i < ranges_.size(); ++i)
    ranges_[i].reach = std::max(ranges_[i].reach, ranges_[i - 1].reach);
}

bool RangeCheck::Covers(std::string_view tree_key) const {
  const auto behind =
      std::upper_bound(ranges_.begin(), ranges_.end(), tree_key,
                       [](std::string_view key, const Range& range) { return key < range.lower; });
  return behind != ranges_.begin() && tree_key < std::prev(behind)->reach;
}

bool RangeCheck::Overlaps(std::string_view lower, std::string_view upper) const {
  const auto behind =
      std::lower_bound(ranges_.begin(), ranges_.end(), upper,
                       [](const Range& range, std::string_view key) { return range.lower < key; });
  return behind != ranges_.begin() && lower < std::prev(behind)->reach;
}

}  // namespace varve
