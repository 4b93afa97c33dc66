// A segment in memory, for tests of what is done with segments: the shape of the tree, plans and
// versions.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/segment/segment.h"
#include "db/version/version.h"
#include "unit-tests/testing/vector_iterator.h"

namespace varve::testing {

class MemorySegment final : public Segment {
 public:
  explicit MemorySegment(SegmentInfo info, std::vector<RangeTombstone> tombstones = {})
      : Segment(nullptr, std::move(info), nullptr) {
    range_tombstones_ = std::make_shared<RangeTombstoneList>(std::move(tombstones));
  }

  // Returns what a builder would make of these records.
  static std::shared_ptr<Segment> Of(uint64_t number, std::vector<TestRecord> records,
                                     std::vector<RangeTombstone> tombstones = {}) {
    std::sort(records.begin(), records.end(), TreeOrder);
    SegmentInfo info;
    info.number = number;
    info.entries = records.size();
    info.range_tombstones = tombstones.size();
    if (!records.empty()) {
      info.smallest = records.front().key;
      info.largest = records.back().key;
    }
    for (const TestRecord& record : records) {
      info.tombstones += record.kind == RecordKind::kTombstone ? 1 : 0;
      info.smallest_sequence = std::min(info.smallest_sequence, record.sequence);
      info.largest_sequence = std::max(info.largest_sequence, record.sequence);
    }
    for (const RangeTombstone& tombstone : tombstones) {
      if (info.smallest.empty() || tombstone.begin < info.smallest) info.smallest = tombstone.begin;
      if (tombstone.end > info.largest) {
        info.largest = tombstone.end;
        info.largest_is_exclusive = true;
      }
      info.smallest_sequence = std::min(info.smallest_sequence, tombstone.sequence);
      info.largest_sequence = std::max(info.largest_sequence, tombstone.sequence);
    }
    auto segment = std::make_shared<MemorySegment>(std::move(info), std::move(tombstones));
    segment->records_ = std::move(records);
    return segment;
  }

  // A segment of `bytes` bytes with keys of [smallest, largest], of which nothing is ever read.
  static std::shared_ptr<Segment> Sized(uint64_t number, const std::string& smallest,
                                        const std::string& largest, uint64_t bytes) {
    SegmentInfo info;
    info.number = number;
    info.file_size = bytes;
    info.entries = 2;
    info.smallest = smallest;
    info.largest = largest;
    info.smallest_sequence = info.largest_sequence = number;
    return std::make_shared<MemorySegment>(std::move(info));
  }

  int iterators() const { return iterators_; }

  std::unique_ptr<InternalIterator> NewIterator(CacheUse) override {
    ++iterators_;
    return std::make_unique<VectorIterator>(records_);
  }

 private:
  std::vector<TestRecord> records_;
  int iterators_ = 0;
};

}  // namespace varve::testing
