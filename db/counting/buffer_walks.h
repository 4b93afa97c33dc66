// The walks over the write buffers let a figure of what they hold be kept up to date in small
// steps: each round walks some of the records that arrived since the round before, so that no round
// takes long, and the reader of the sums takes the others to be like those that were walked.
//
// Thread-safety: the caller guards an object.
// Invariants: there is at most one sum for each buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "db/version/super_version.h"
#include "db/write_buffer/write_buffer.h"
#include "util/base/assert.h"

namespace varve {

// Records that one round walks at most.
inline constexpr uint64_t kMostWalkedRecords = 20'000;

// A round adds about kMostAdded of the records that it walks in a buffer, evenly chosen.
template <typename Sum, uint64_t kMostAdded = kMostWalkedRecords>
class BufferWalks {
 public:
  // Adds records of the buffers of `state` up to the sequence `visible` to their sums with
  // `add(record, previous, weight, sum)`; `previous` is the version before it in the same buffer,
  // or null, and the record stands for `weight` records. Then calls `deliver(sum, scale)` for each
  // buffer of which something was walked: the buffer holds about `scale` times as much as its sum.
  template <typename Add, typename Deliver>
  void Round(const SuperVersion& state, SequenceNumber visible, const Add& add,
             const Deliver& deliver) {
    std::erase_if(walks_, [](const Walk& walk) { return walk.buffer.expired(); });
    uint64_t left = kMostWalkedRecords;
    const auto one = [&](const std::shared_ptr<WriteBuffer>& buffer) {
      Walk& walk = WalkOf(buffer);
      const SequenceNumber last = std::min(visible, walk.at + left);
      if (last > walk.at) {
        const uint64_t weight = 1 + (last - walk.at - 1) / kMostAdded;
        left -= last - walk.at;
        buffer->Walk(&walk.position, last,
                     [&](const RecordView& record, const RecordView* previous) {
                       if (walk.records++ % weight == 0) add(record, previous, weight, &walk.sum);
                     });
        walk.at = last;
      }
      if (walk.records == 0) return;
      deliver(walk.sum, std::max(1.0, static_cast<double>(buffer->entries()) /
                                          static_cast<double>(walk.records)));
    };
    for (const std::shared_ptr<WriteBuffer>& buffer : state.full) one(buffer);
    one(state.active);
  }

 private:
  struct Walk {
    std::weak_ptr<const WriteBuffer> buffer;
    WriteBuffer::Position position;
    SequenceNumber at = kNoSequence;
    uint64_t records = 0;
    Sum sum;
  };

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
