#include "db/hbase/hbase_iterator.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

namespace varve {
namespace {

constexpr size_t kFirstEntries = 64;
constexpr size_t kMostEntries = 2'048;
constexpr size_t kSliceBytes = 1u << 20;

}  // namespace

HbaseIterator::HbaseIterator(const HbaseReader* reader, const ReadOptions& options,
                             std::string_view lower, std::string_view upper)
    : reader_(reader),
      options_(options),
      lower_(lower),
      upper_(upper),
      first_entries_(options.expected_entries == 0
                         ? kFirstEntries
                         : std::min<size_t>(options.expected_entries, kMostEntries)),
      slice_entries_(first_entries_) {
  options_.with_metadata = true;  // an iterator always tells it
  options_.max_bytes = kSliceBytes;
  // Each slice has a deadline of its own, however many the iterator reads.
  options_.deadline = std::chrono::steady_clock::time_point::max();
}

void HbaseIterator::Seek(std::string_view key) {
  Read(std::max<std::string>(std::string(key), lower_), upper_, Direction::kUp);
}

void HbaseIterator::SeekForPrev(std::string_view key) {
  std::string behind(key);
  behind.push_back('\0');
  if (!upper_.empty()) behind = std::min(behind, upper_);
  Read(lower_, behind, Direction::kDown);
}

void HbaseIterator::Next() {
  if (direction_ == Direction::kUp) {
    if (++at_ == slice_.entries.size()) GoOn();
    return;
  }
  if (at_ > 0) {
    --at_;
    return;
  }
  Read(entry().key + '\0', upper_, Direction::kUp);
}

void HbaseIterator::Prev() {
  if (direction_ == Direction::kDown) {
    if (++at_ == slice_.entries.size()) GoOn();
    return;
  }
  if (at_ > 0) {
    --at_;
    return;
  }
  const std::string behind = entry().key;
  // An empty upper bound would be none: nothing is before the empty key.
  if (behind.empty()) return Take(RangeSlice());
  Read(lower_, behind, Direction::kDown);
}

void HbaseIterator::Read(const std::string& lower, const std::string& upper, Direction direction) {
  ahead_.reset();
  direction_ = direction;
  slice_entries_ = first_entries_;
  Take(reader_->ReadRange(options_, {.lower = lower,
                                     .upper = upper,
                                     .descending = direction == Direction::kDown,
                                     .max_entries = slice_entries_}));
}

void HbaseIterator::GoOn() {
  if (!slice_.more) return;
  if (!ahead_.has_value()) ReadAhead();
  std::future<absl::StatusOr<RangeSlice>> next = std::move(*ahead_);
  ahead_.reset();
  Take(next.get());
  if (Valid() && slice_.more) ReadAhead();
}

StoreReads::RangeRequest HbaseIterator::RequestBehindSlice() const {
  const std::string& last = slice_.entries.back().key;
  const bool up = direction_ == Direction::kUp;
  return {.lower = up ? last + '\0' : lower_,
          .upper = up ? upper_ : last,
          .descending = !up,
          .max_entries = slice_entries_};
}

void HbaseIterator::ReadAhead() {
  slice_entries_ = std::min(std::max(slice_entries_, kFirstEntries) * 2, kMostEntries);
  const auto answer = std::make_shared<std::promise<absl::StatusOr<RangeSlice>>>();
  ahead_ = answer->get_future();
  reader_->ReadRangeAsync(
      options_, RequestBehindSlice(),
      [answer](absl::StatusOr<RangeSlice> slice) { answer->set_value(std::move(slice)); });
}

void HbaseIterator::Take(absl::StatusOr<RangeSlice> slice) {
  at_ = 0;
  status_ = AsStoreStatus(slice.status());
  slice_ = slice.ok() ? *std::move(slice) : RangeSlice();
}

}  // namespace varve
