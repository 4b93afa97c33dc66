// The walks over the write buffers let a figure of what they hold be kept up to date in small
// steps: each round walks some of the records that arrived since the round before, oldest first, so
// that no round takes long. Of the records that are left it samples some that are spread over them,
// anew in each round, and the reader of the sums takes the others to be like those.
//
// Thread-safety: the caller guards an object.
// Invariants: there is at most one sum for each buffer.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/version/super_version.h"
#include "db/write_buffer/write_buffer.h"
#include "util/base/assert.h"

namespace varve {

// Records that one round walks in any case, and that one more step of it walks, for which it takes
// no more than kMostWalkTime in all, as far as the step before tells.
inline constexpr uint64_t kMostWalkedRecords = 20'000;
inline constexpr uint64_t kStepRecords = 4'000;
inline constexpr std::chrono::microseconds kMostWalkTime{1000};
// Records that a round samples behind each of the spread positions of a buffer.
inline constexpr uint64_t kSampledRecords = 32;

// How many records all buffers hold, and how many of them were walked.
struct WalkedRecords {
  uint64_t all = 0;
  uint64_t walked = 0;
};

// A step adds about kMostAdded of the records that it walks in a buffer, evenly chosen, and all of
// the newest ones: a few may be unlike all that came before them.
template <typename Sum, uint64_t kMostAdded = kMostWalkedRecords>
class BufferWalks {
 public:
  // Adds records of the buffers of `state` up to the sequence `visible` to their sums with
  // `add(record, previous, weight, sum)`; `previous` is the version before it in the same buffer,
  // or null, and the record stands for `weight` records. Then calls `deliver(sum, scale)` for parts
  // of each buffer: the part holds about `scale` times as much as the sum.
  template <typename Add, typename Deliver>
  WalkedRecords Round(const SuperVersion& state, SequenceNumber visible, const Add& add,
                      const Deliver& deliver) {
    std::erase_if(walks_, [](const Walk& walk) { return walk.buffer.expired(); });
    std::vector<std::shared_ptr<WriteBuffer>> buffers(state.full.begin(), state.full.end());
    buffers.push_back(state.active);
    const auto begin = std::chrono::steady_clock::now();
    uint64_t left = kMostWalkedRecords;
    for (const std::shared_ptr<WriteBuffer>& buffer : buffers)
      left -= Step(*buffer, &WalkOf(buffer), visible, left, add);
    if (left == 0) StepOn(buffers, visible, begin, add);
    WalkedRecords records;
    for (const std::shared_ptr<WriteBuffer>& buffer : buffers) {
      const Walk& walk = WalkOf(buffer);
      records.all += buffer->entries();
      records.walked += std::min(walk.records, buffer->entries());
      if (walk.records > 0) deliver(walk.sum, 1.0);
      if (walk.records < buffer->entries()) Sample(*buffer, walk, visible, add, deliver);
    }
    return records;
  }

 private:
  struct Walk {
    std::weak_ptr<const WriteBuffer> buffer;
    WriteBuffer::Position position;
    SequenceNumber at = kNoSequence;
    uint64_t records = 0;
    Sum sum;
  };

  // Walks on in the buffer, over at most `most` sequences; returns over how many.
  template <typename Add>
  static uint64_t Step(const WriteBuffer& buffer, Walk* walk, SequenceNumber visible, uint64_t most,
                       const Add& add) {
    const SequenceNumber sealed = buffer.last_sequence();
    const SequenceNumber end = sealed == kNoSequence ? visible : std::min(visible, sealed);
    const SequenceNumber last = std::min(end, walk->at + most);
    if (last <= walk->at) return 0;
    const uint64_t steps = last - walk->at;
    const uint64_t weight = 1 + (steps - 1) / kMostAdded;
    buffer.Walk(&walk->position, last, [&](const RecordView& record, const RecordView* previous) {
      const bool is_newest = record.sequence + WriteBuffer::kEntriesPerMark > end;
      const uint64_t stands_for = is_newest ? 1 : weight;
      if (walk->records++ % stands_for == 0) add(record, previous, stands_for, &walk->sum);
    });
    walk->at = last;
    return steps;
  }

  // Walks on while a further step is likely to end within kMostWalkTime from `begin`.
  template <typename Add>
  void StepOn(const std::vector<std::shared_ptr<WriteBuffer>>& buffers, SequenceNumber visible,
              std::chrono::steady_clock::time_point begin, const Add& add) {
    auto now = std::chrono::steady_clock::now();
    std::chrono::nanoseconds last_step =
        (now - begin) / static_cast<int>(kMostWalkedRecords / kStepRecords);
    for (const std::shared_ptr<WriteBuffer>& buffer : buffers) {
      while (now - begin + last_step <= kMostWalkTime) {
        if (Step(*buffer, &WalkOf(buffer), visible, kStepRecords, add) == 0) break;
        last_step = std::chrono::steady_clock::now() - now;
        now += last_step;
      }
    }
  }

  // Delivers about what the buffer holds behind the walk.
  template <typename Add, typename Deliver>
  static void Sample(const WriteBuffer& buffer, const Walk& walk, SequenceNumber visible,
                     const Add& add, const Deliver& deliver) {
    uint64_t left = buffer.entries() - walk.records;
    // The newest records count as they are.
    Sum newest, spread;
    uint64_t newest_records = 0, spread_records = 0;
    for (WriteBuffer::Position position : buffer.SpreadPositions(walk.at, visible)) {
      const bool is_newest = visible - position.sequence() <= 2 * WriteBuffer::kEntriesPerMark;
      Sum* const sum = is_newest ? &newest : &spread;
      uint64_t* const records = is_newest ? &newest_records : &spread_records;
      const SequenceNumber last =
          is_newest ? visible : std::min(visible, position.sequence() + kSampledRecords);
      buffer.Walk(&position, last, [&](const RecordView& record, const RecordView* previous) {
        add(record, previous, 1, sum);
        ++*records;
      });
      if (is_newest) break;  // a further position lies within what was walked
    }
    if (newest_records > 0) deliver(newest, 1.0);
    left -= std::min(left, newest_records);
    if (left == 0) return;
    if (spread_records > 0) {
      deliver(spread, static_cast<double>(left) / static_cast<double>(spread_records));
    } else if (walk.records > 0) {
      deliver(walk.sum, static_cast<double>(left) / static_cast<double>(walk.records));
    }
  }

  Walk& WalkOf(const std::shared_ptr<WriteBuffer>& buffer) {
    for (Walk& walk : walks_) {
      if (walk.buffer.lock() == buffer) return walk;
    }
    VARVE_ASSERT(buffer->first_sequence() > 0);
    walks_.push_back({.buffer = buffer, .at = buffer->first_sequence() - 1});
    return walks_.back();
  }

  std::vector<Walk> walks_;
};

}  // namespace varve
