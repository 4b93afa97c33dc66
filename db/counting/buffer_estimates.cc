#include "db/counting/buffer_estimates.h"

namespace varve {

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

GenerationKeyCounts BufferEstimates::Estimate(const SuperVersion& state, SequenceNumber visible) {
  GenerationKeyCounts sum;
  absl::MutexLock lock(&mutex_);
  walks_.Round(
      state, visible,
      [](const RecordView& record, const RecordView* previous, uint64_t /*weight*/,
         GenerationKeyCounts* counts) {
        counts->Add(GenerationOf(record.key), ChangeOf(record, previous));
      },
      [&](const GenerationKeyCounts& counts, double scale) {
        for (const GenerationKeyCounts::Entry& entry : counts.entries())
          sum.Add(entry.generation, Scaled(entry.counts, scale));
      });
  return sum;
}

}  // namespace varve
