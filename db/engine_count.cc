// Engine: the exact number of keys, kept without a cost to writers.
//
// A write buffer knows of each record whether it is the key's first in the buffer; what was there before stands in older buffers
// and segments, where mostly a fingerprint says "absent" without a disk read. So the count is brought forward from one
// sequence to a later one by looking at what was written between them: when somebody asks, and before a buffer is flushed.
// Deleted ranges and cleared namespaces split the way into windows and are settled in their turn, a range by counting what it hides.
#include <algorithm>
#include <tuple>
#include <utility>

#include "db/engine.h"
#include "db/lookup.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/hash.h"
#include "util/status.h"

namespace varve {

absl::StatusOr<CountResult> Engine::Count(const ReadOptions& options, std::string_view lower, std::string_view upper) {
  const bool everything =
      lower.empty() && upper.empty() && options.snapshot == nullptr && options.space == kDefaultNamespace;
  const bool log_had_failed = log_failed_.load(std::memory_order_acquire);
  std::shared_ptr<const ReadState> state;
  SequenceNumber at;
  NamespaceGeneration generation;
  {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(options));
    state = point.state->shared_from_this();
    at = point.sequence;
    generation = point.generation;
  }
  CountResult result;
  // The kept count may be ahead of what a failed log got to disk.
  if (everything && options_.count_keys && !log_had_failed) {
    absl::MutexLock lock(&count_mutex_);
    VARVE_ASSIGN_OR_RETURN(const Counted counted, SettleCount(state, at));
    result.keys = counted.keys;
    at = counted.at;
  } else {
    const std::string end = upper.empty() ? EndTreeKey(generation) : std::string(TreeKey(generation, upper).view());
    VARVE_ASSIGN_OR_RETURN(result.keys, CountByScan(state, at, std::string(TreeKey(generation, lower).view()), end));
  }
  result.gate = GateOf(at);
  if (absl::Status waited = AwaitGate(options, result.gate); !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed)) return Count(options, lower, upper);
    return waited;
  }
  return result;
}

absl::StatusOr<uint64_t> Engine::CountByScan(const std::shared_ptr<const ReadState>& state, SequenceNumber at,
                                             std::string lower, std::string upper) const {
  const std::unique_ptr<Iterator> iterator =
      MakeIterator(state, at, /*fill_cache=*/false, std::move(lower), std::move(upper));
  uint64_t count = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++count;
  VARVE_RETURN_IF_ERROR(iterator->status());
  return count;
}

absl::StatusOr<Engine::Counted> Engine::SettleCount(const std::shared_ptr<const ReadState>& state,
                                                    SequenceNumber target) {
  if (count_.known && count_.at >= target) {
    // Counted further already, by somebody who came later but was faster; or asked for the end of a buffer on its way out.
    return Counted{count_.keys, count_.at};
  }
  if (!count_.known) {
    const NamespaceGeneration generation = *state->namespaces.Generation(kDefaultNamespace);
    VARVE_ASSIGN_OR_RETURN(const uint64_t keys,
                           CountByScan(state, target, FirstTreeKey(generation), EndTreeKey(generation)));
    if (target < uncounted_end_) return Counted{keys, target};
    count_ = {.known = true, .keys = keys, .at = target};
    absl::MutexLock commit_lock(&commit_mutex_);
    while (!count_events_.empty() && count_events_.front().sequence <= target) count_events_.pop_front();
  }
  absl::Status status;
  for (auto full = state->full.rbegin(); status.ok() && full != state->full.rend(); ++full) {
    const SequenceNumber end = (*full)->last_sequence();
    if (end > target) break;
    if (end > count_.at) status = SettleBuffer(state, *full, end);
    if (count_.at == end) count_.at_buffer_ends[end] = count_.keys;
  }
  if (status.ok() && count_.at < target) {
    const auto holder = std::find_if(state->full.begin(), state->full.end(), [&](const auto& full) {
      return full->first_sequence() <= target && target <= full->last_sequence();
    });
    status = SettleBuffer(state, holder != state->full.end() ? *holder : state->active, target);
  }
  if (!status.ok()) {
    count_ = {};  // a scan makes up for it
    return status;
  }
  return Counted{count_.keys, count_.at};
}

void Engine::SettleCountBeforeFlush(const WriteBuffer& buffer) {
  const std::shared_ptr<const ReadState> state = state_.share();
  const SequenceNumber end = buffer.last_sequence();
  absl::MutexLock lock(&count_mutex_);
  if (count_.known) {
    if (const auto counted = SettleCount(state, end); !counted.ok()) {
      spdlog::error("counting keys: {}", counted.status().ToString());
    }
  }
  if (count_.known) return;
  uncounted_end_ = end;
  absl::MutexLock commit_lock(&commit_mutex_);
  while (!count_events_.empty() && count_events_.front().sequence <= end) count_events_.pop_front();
}

// From count_.at, which the buffer holds or begins behind, to `end`: records and events in their order.
absl::Status Engine::SettleBuffer(const std::shared_ptr<const ReadState>& state,
                                  const std::shared_ptr<WriteBuffer>& buffer, SequenceNumber end) {
  if (count_.buffer != buffer) {
    count_.buffer = buffer;
    count_.position = {};
  }
  while (count_.at < end) {
    std::optional<CountEvent> event;
    {
      absl::MutexLock lock(&commit_mutex_);
      if (!count_events_.empty() && count_events_.front().sequence <= end) {
        event = std::move(count_events_.front());
        count_events_.pop_front();
      }
    }
    VARVE_RETURN_IF_ERROR(SettleRecords(*state, *buffer, event ? event->sequence - 1 : end));
    if (event) VARVE_RETURN_IF_ERROR(SettleEvent(state, *event));
  }
  return absl::OkStatus();
}

// Of each key written in (count_.at, end]: is it there at the end, and was it before?
absl::Status Engine::SettleRecords(const ReadState& state, const WriteBuffer& buffer, SequenceNumber end) {
  const SequenceNumber begin = count_.at;
  uint64_t keys = count_.keys;
  absl::Status status;
  buffer.Walk(&count_.position, end, [&](const RecordView& record, const RecordView* previous) {
    if (record.sequence <= begin || !status.ok()) return;
    if (previous != nullptr && previous->sequence > begin) return;  // the key was dealt with in this window
    const absl::StatusOr<bool> before = ExistedAt(state, record.key, begin);
    const absl::StatusOr<bool> after = ExistedAt(state, record.key, end);
    if (before.ok() && after.ok()) {
      keys += static_cast<uint64_t>(*after) - static_cast<uint64_t>(*before);
    } else {
      status = before.ok() ? after.status() : before.status();
    }
  });
  count_.keys = keys;
  count_.at = end;
  return status;
}

absl::Status Engine::SettleEvent(const std::shared_ptr<const ReadState>& state, const CountEvent& event) {
  if (event.clears) {
    count_.keys = 0;
  } else {
    VARVE_ASSIGN_OR_RETURN(const uint64_t hidden,
                           CountByScan(state, event.sequence - 1, event.range.begin, event.range.end));
    count_.keys -= hidden;
  }
  count_.at = event.sequence;
  return absl::OkStatus();
}

absl::StatusOr<bool> Engine::ExistedAt(const ReadState& state, std::string_view tree_key, SequenceNumber at) const {
  Lookup lookup(GenerationOf(tree_key), UserKeyOf(tree_key));
  if (!LookUpBuffers(state, at, &lookup))
    VARVE_RETURN_IF_ERROR(LookUpSegments(state, at, /*fill_cache=*/false, &lookup));
  if (!lookup.found || lookup.record.kind != RecordKind::kValue) return false;
  return state.CoveringSequence(tree_key, at) < lookup.record.sequence;
}

void Engine::DescribeCount(SequenceNumber buffer_end, std::vector<ManifestNamespace>* namespaces) {
  absl::MutexLock lock(&count_mutex_);
  const auto keys = count_.at_buffer_ends.find(buffer_end);
  for (ManifestNamespace& space : *namespaces) {
    space.counted = space.id == kDefaultNamespace && keys != count_.at_buffer_ends.end();
    space.keys = space.counted ? keys->second : 0;
  }
  count_.at_buffer_ends.erase(count_.at_buffer_ends.begin(), count_.at_buffer_ends.upper_bound(buffer_end));
  if (count_.buffer != nullptr && count_.buffer->last_sequence() == buffer_end) count_.buffer.reset();
}

}  // namespace varve
