#include "db/counting/buffer_estimates.h"

#include <algorithm>

#include "util/base/assert.h"

namespace varve {
namespace {

// Returns what a record changes, given the version before it in the same buffer.
KeyCounts ChangeOf(const RecordView& record, const RecordView* previous) {
  KeyCounts change;
  const bool is_value = record.kind == RecordKind::kValue;
  if (is_value) change += CountsOf(record);
  if (previous != nullptr) {
    if (previous->kind == RecordKind::kValue) change += -CountsOf(*previous);
  } else if (!is_value) {
    change.keys -= 1;  // of a record below
  }
  return change;
}

}  // namespace

BufferEstimates::Walked& BufferEstimates::WalkedOf(const std::shared_ptr<WriteBuffer>& buffer) {
  for (Walked& walked : walked_) {
    if (walked.buffer.lock() == buffer) return walked;
  }
  VARVE_ASSERT(buffer->first_sequence() > 0);
  walked_.push_back({.buffer = buffer, .at = buffer->first_sequence() - 1});
  return walked_.back();
}

void BufferEstimates::Walk(const WriteBuffer& buffer, SequenceNumber last, Walked* walked) {
  VARVE_ASSERT(last >= walked->at);
  buffer.Walk(&walked->position, last, [&](const RecordView& record, const RecordView* previous) {
    ++walked->records;
    walked->counts.Add(GenerationOf(record.key), ChangeOf(record, previous));
  });
  walked->at = last;
}

GenerationKeyCounts BufferEstimates::Estimate(const SuperVersion& state, SequenceNumber visible) {
  GenerationKeyCounts sum;
  absl::MutexLock lock(&mutex_);
  std::erase_if(walked_, [](const Walked& walked) { return walked.buffer.expired(); });
  std::vector<std::shared_ptr<WriteBuffer>> buffers = state.full;
  buffers.push_back(state.active);
  uint64_t left = kMostWalked;
  for (const std::shared_ptr<WriteBuffer>& buffer : buffers) {
    Walked& walked = WalkedOf(buffer);
    const SequenceNumber last = std::min(visible, walked.at + left);
    if (last > walked.at) {
      left -= last - walked.at;
      Walk(*buffer, last, &walked);
    }
    if (walked.records == 0) continue;
    const double scale =
        std::max(1.0, static_cast<double>(buffer->entries()) / static_cast<double>(walked.records));
    for (const GenerationKeyCounts::Entry& entry : walked.counts.entries()) {
      sum.Add(entry.generation,
              {static_cast<int64_t>(static_cast<double>(entry.counts.keys) * scale),
               static_cast<int64_t>(static_cast<double>(entry.counts.bytes) * scale)});
    }
  }
  return sum;
}

}  // namespace varve
