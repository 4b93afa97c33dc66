// Engine: point reads, iterators, snapshots. Readers take no lock; they pin the SuperVersion and
// read at one sequence.
#include <algorithm>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "db/engine/engine.h"
#include "db/engine/lookup.h"
#include "db/iterators/base_iterator.h"
#include "db/iterators/merging_iterator.h"
#include "db/iterators/run_iterator.h"
#include "db/iterators/tombstone_filter.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {

// The state first, then the sequence, then a look whether the state still was the newest: then
// every write up to the sequence is in it, and nothing that the sequence needs has been merged
// away.
absl::StatusOr<Engine::ReadPoint> Engine::BeginRead(const ReadOptions& options) const {
  for (;;) {
    Published<SuperVersion>::Pin state = state_.Acquire();
    SequenceNumber sequence;
    std::optional<NamespaceGeneration> generation;
    if (options.snapshot != nullptr) {
      sequence = options.snapshot->sequence();
      generation = TreeSnapshot::Of(*options.snapshot).Generation(options.space);
    } else {
      if (log_failed_.load(std::memory_order_acquire)) [[unlikely]] {
        // What a failed log did not get to disk is never shown.
        absl::MutexLock lock(&commit_mutex_);
        sequence = log_->durable_sequence();
        generation = NamespacesAtLocked(sequence).Generation(options.space);
      } else {
        sequence = visible_.load();
        generation = state->namespaces.Generation(options.space);
      }
      if (!state_.IsCurrent(state)) continue;
    }
    if (!generation && options.snapshot == SnapshotList::NotTaken().get())
      return OutOfMemory("taking the snapshot");
    if (!generation) return NoSuchNamespace(options.space);
    return ReadPoint{std::move(state), sequence, *generation};
  }
}

NamespaceTable Engine::NamespacesAtLocked(SequenceNumber at) const {
  NamespaceTable namespaces = present_->namespaces;
  for (auto left = left_generations_.rbegin();
       left != left_generations_.rend() && left->left_at > at; ++left) {
    left->generation == kNoGeneration ? namespaces.Remove(left->space)
                                      : namespaces.Set(left->space, left->generation);
  }
  return namespaces;
}

// For results that depend on everything up to `sequence`: the last write among it, or after it,
// that readers wait for.
SequenceNumber Engine::GateOf(SequenceNumber sequence) const {
  const SequenceNumber durable_after = std::min(sequence, log_->last_always_sequence());
  return durable_after > log_->durable_sequence() ? durable_after : kNoSequence;
}

absl::Status Engine::AwaitGate(const ReadOptions& options, SequenceNumber durable_after,
                               bool unwritten) {
  if (!options.wait_until_durable) return absl::OkStatus();
  if (unwritten) VARVE_RETURN_IF_ERROR(log_->PushUnsynced());
  if (durable_after == kNoSequence) return absl::OkStatus();
  absl::Status waited = WaitUntilDurable(durable_after);
  if (!waited.ok()) NoteLogFailure();
  return waited;
}

bool Engine::WorthReadingAgain(const ReadOptions& options, bool log_had_failed) const {
  return options.snapshot == nullptr && !log_had_failed && log_failed_.load();
}

bool Engine::LookUpBuffers(const SuperVersion& state, SequenceNumber at, Lookup* lookup) const {
  WriteBuffer::Found found;
  const auto look_in = [&](const WriteBuffer& buffer) {
    if (!buffer.Get(lookup->key.view(), lookup->hash, at, &found)) return false;
    lookup->found = true;
    lookup->record = found.record;
    lookup->gated = found.gated;
    return true;
  };
  if (look_in(*state.active)) return true;
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full) {
    if (look_in(*buffer)) return true;
  }
  return false;
}

void Engine::AskForTables(const SuperVersion& state, Lookup* lookup) const {
  const std::vector<const Run*>& runs = state.version->runs();
  const size_t asked_most = std::min(runs.size(), Lookup::kMostAsked);
  for (; lookup->asked < asked_most; ++lookup->asked) {
    Segment* const segment = runs[lookup->asked]->Find(lookup->key.view());
    lookup->segments[lookup->asked] = segment;
    if (segment != nullptr) segment->PrefetchTable(lookup->hash);
  }
}

absl::Status Engine::LookUpSegments(const SuperVersion& state, SequenceNumber at, bool fill_cache,
                                    Lookup* lookup) const {
  const std::vector<const Run*>& runs = state.version->runs();
  for (size_t i = lookup->first_run; i < runs.size() && !lookup->found; ++i) {
    if (!lookup->probe.has_begun()) {
      Segment* const segment = lookup->SegmentOf(i, runs);
      if (segment == nullptr || !lookup->probe.Begin(segment, lookup->hash)) continue;
    }
    VARVE_ASSIGN_OR_RETURN(lookup->found, lookup->probe.Finish(lookup->key.view(), at, fill_cache,
                                                               &lookup->from_segment));
    if (lookup->found) lookup->record = lookup->from_segment.record;
  }
  return absl::OkStatus();
}

absl::Status Engine::LookUpBases(const SuperVersion& state, SequenceNumber at, bool fill_cache,
                                 Lookup* lookup) const {
  const NamespaceBase* base = state.namespaces.bases().Of(GenerationOf(lookup->key.view()));
  if (base == nullptr) return absl::OkStatus();
  const SuperVersion* of_level = &state;
  lookup->cut = base->cut;
  at = std::max(at, base->cut);  // who sees a clone sees all that it stands on
  for (; base != nullptr && !lookup->found; base = state.namespaces.bases().Of(base->base)) {
    if (of_level->CoveringSequence(lookup->key.view(), std::min(at, lookup->up_to)) != kNoSequence)
      break;
    lookup->key = TreeKey(base->base, UserKeyOf(lookup->key.view()));
    lookup->hash = HashKey(lookup->key.view());
    lookup->up_to = base->cut;
    lookup->first_run = lookup->asked = 0;
    of_level = &state.of_bases();
    if (!LookUpBuffers(*of_level, base->cut, lookup)) {
      VARVE_RETURN_IF_ERROR(LookUpSegments(*of_level, base->cut, fill_cache, lookup));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Engine::FindLive(const SuperVersion& state, SequenceNumber at,
                                      Lookup* lookup) const {
  lookup->from_segment.without_value = true;
  if (!LookUpBuffers(state, at, lookup)) {
    VARVE_RETURN_IF_ERROR(LookUpSegments(state, at, /*fill_cache=*/false, lookup));
  }
  if (!lookup->found) VARVE_RETURN_IF_ERROR(LookUpBases(state, at, /*fill_cache=*/false, lookup));
  if (!lookup->found || lookup->record.kind != RecordKind::kValue) return false;
  const bool is_own = lookup->up_to == kMaxSequence;
  const SuperVersion& found_in = is_own ? state : state.of_bases();
  return found_in.CoveringSequence(lookup->key.view(), is_own ? at : lookup->up_to) <
         lookup->record.sequence;
}

void Engine::Conclude(const SuperVersion& state, SequenceNumber at, uint64_t instant_ms,
                      const Lookup& lookup, ReadResult* result, std::string* value,
                      bool* unwritten) const {
  *result = ReadResult{.read_sequence = at};
  const FoundRecord& from_segment = lookup.from_segment;
  if (from_segment.too_large ||
      (value != nullptr && lookup.found && lookup.record.value.size() > from_segment.most_bytes)) {
    result->too_large = true;
    return;
  }
  const SequenceNumber covering =
      state.CoveringSequence(lookup.key.view(), std::min(at, lookup.up_to));
  const SequenceNumber newest =
      std::max({covering, lookup.found ? lookup.record.sequence : kNoSequence,
                state.namespaces_changed <= at ? state.namespaces_changed : kNoSequence});
  if (newest > log_->written_sequence()) *unwritten = true;
  if (covering != kNoSequence) result->durable_after = GateOf(covering);
  if (lookup.cut != kNoSequence) [[unlikely]] {  // that there is this clone
    result->durable_after = std::max(result->durable_after, GateOf(lookup.cut));
    if (lookup.cut > log_->written_sequence()) *unwritten = true;
  }
  // That nothing older is found depends on the emptying of the namespace.
  if (state.namespaces_changed != kNoSequence && state.namespaces_changed <= at) {
    result->durable_after = std::max(result->durable_after, GateOf(state.namespaces_changed));
  }
  if (!lookup.found) return;
  if (lookup.gated && lookup.record.sequence > log_->durable_sequence()) {
    result->durable_after = std::max(result->durable_after, lookup.record.sequence);
  }
  if (lookup.record.kind != RecordKind::kValue || covering > lookup.record.sequence) return;
  if (result->expiry_ms = lookup.record.expiry_ms;
      result->expiry_ms != 0 && result->expiry_ms <= instant_ms) {
    result->expired = true;
    return;
  }
  result->found = true;
  result->version = lookup.record.sequence;
  result->value_size = ValueSizeOf(lookup.record);
  if (value != nullptr) value->assign(lookup.record.value);
}

absl::StatusOr<ReadResult> Engine::GetInside(const ReadOptions& options, std::string_view key,
                                             std::string* value) {
  counters_.gets.Add(1);
  const bool log_had_failed = log_failed_.load(std::memory_order_relaxed);
  ReadResult result;
  bool unwritten = false;
  uint64_t instant_ms = options.snapshot != nullptr ? options.snapshot->instant_ms() : 0;
  for (bool done = false; !done;) {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(options));
    Lookup lookup(point.generation, key);
    lookup.from_segment.most_bytes = options.max_value_bytes;
    lookup.from_segment.without_value = options.without_value || value == nullptr;
    point.state->active->Prefetch(lookup.hash);
    AskForTables(*point.state, &lookup);
    if (!LookUpBuffers(*point.state, point.sequence, &lookup)) {
      VARVE_RETURN_IF_ERROR(
          LookUpSegments(*point.state, point.sequence, options.fill_cache, &lookup));
    }
    if (!lookup.found && !point.state->namespaces.bases().empty()) [[unlikely]] {
      VARVE_RETURN_IF_ERROR(LookUpBases(*point.state, point.sequence, options.fill_cache, &lookup));
    }
    done = lookup.record.expiry_ms == 0 || !NeedsInstant(lookup, &instant_ms);
    if (done) {
      Conclude(*point.state, point.sequence, instant_ms, lookup, &result,
               options.without_value ? nullptr : value, &unwritten);
    }
  }
  if (result.expired)
    result.durable_after = std::max(result.durable_after, WitnessExpiry(result.expiry_ms));
  if (absl::Status waited = AwaitGate(options, result.durable_after, unwritten); !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed)) return Get(options, key, value);
    return waited;
  }
  return result;
}

std::shared_ptr<const Snapshot> Engine::GetSnapshotInside() {
  const uint64_t instant_ms = clock_.NowMillis();
  for (;;) {
    Published<SuperVersion>::Pin state = state_.Acquire();
    if (log_failed_.load(std::memory_order_acquire)) [[unlikely]] {
      const std::atomic<SequenceNumber> durable = log_->durable_sequence();
      NamespaceTable namespaces;
      {
        absl::MutexLock lock(&commit_mutex_);
        namespaces = NamespacesAtLocked(durable);
      }
      return snapshots_.Take(durable, std::move(namespaces), instant_ms);
    }
    std::shared_ptr<const Snapshot> snapshot =
        snapshots_.Take(visible_, state->namespaces, instant_ms);
    if (state_.IsCurrent(state)) return snapshot;
  }
}

namespace {

// The segments of `run` that may hold keys of [lower, upper); an empty `upper` means no end.
absl::Span<const std::shared_ptr<Segment>> Overlapping(const Run& run, std::string_view lower,
                                                       std::string_view upper) {
  const size_t begin = run.IndexOf(lower);
  size_t end = upper.empty() ? run.segments.size() : run.IndexOf(upper);
  if (!upper.empty() && end < run.segments.size() && run.segments[end]->info().smallest < upper)
    ++end;
  return absl::MakeSpan(run.segments).subspan(begin, end - begin);
}

}  // namespace

std::unique_ptr<InternalIterator> Engine::RecordsOf(const SuperVersion& state, SequenceNumber at,
                                                    bool fill_cache, std::string_view lower,
                                                    std::string_view upper) const {
  const bool covered =
      !state.buffered_tombstones->empty() || !state.version->range_tombstones().empty();
  std::vector<std::unique_ptr<InternalIterator>> children;
  const auto add = [&](std::unique_ptr<InternalIterator> child, SequenceNumber newest) {
    children.push_back(covered ? NewTombstoneFilter(std::move(child), &state, at, newest)
                               : std::move(child));
  };
  if (state.active->entries() != 0) add(state.active->NewIterator(), kMaxSequence);
  for (const std::shared_ptr<WriteBuffer>& buffer : state.full)
    add(buffer->NewIterator(), buffer->last_sequence());
  for (const Run* run : state.version->runs()) {
    const absl::Span<const std::shared_ptr<Segment>> overlapping = Overlapping(*run, lower, upper);
    if (overlapping.empty()) continue;
    SequenceNumber newest = kNoSequence;
    for (const std::shared_ptr<Segment>& segment : overlapping)
      newest = std::max(newest, segment->info().largest_sequence);
    add(NewRunIterator(overlapping, fill_cache), newest);
  }
  if (const NamespaceBase* const base = state.namespaces.bases().Of(GenerationOf(lower)))
      [[unlikely]] {
    const std::string base_lower = FirstTreeKey(base->base).append(UserKeyOf(lower));
    const bool to_the_end = upper.empty() || GenerationOf(upper) != base->generation;
    const std::string base_upper =
        to_the_end ? EndTreeKey(base->base) : FirstTreeKey(base->base).append(UserKeyOf(upper));
    add(NewBaseIterator(RecordsOf(state.of_bases(), base->cut, fill_cache, base_lower, base_upper),
                        *base),
        base->cut);
  }
  return NewMergingIterator(std::move(children));
}

std::unique_ptr<Iterator> Engine::MakeIterator(std::shared_ptr<const SuperVersion> state,
                                               SequenceNumber at, bool fill_cache,
                                               std::string lower, std::string upper,
                                               bool with_values, IteratorClock clock) const {
  // Who sees a clone sees all that it stands on.
  if (const NamespaceBase* const base = state->namespaces.bases().Of(GenerationOf(lower)))
    at = std::max(at, base->cut);
  std::unique_ptr<InternalIterator> records = RecordsOf(*state, at, fill_cache, lower, upper);
  return NewStoreIterator(
      std::move(state), std::move(records), at, std::move(lower), std::move(upper),
      {with_values, fill_cache && caches_.blocks.capacity() > 0 ? &caches_.blocks : nullptr},
      std::move(clock));
}

std::unique_ptr<Iterator> Engine::NewIteratorInside(const ReadOptions& options,
                                                    std::string_view lower, std::string_view upper,
                                                    SequenceNumber* durable_after) {
  const bool log_had_failed = log_failed_.load(std::memory_order_relaxed);
  // The clock first: what has expired by then was still there at the sequence that is read.
  const uint64_t instant_ms =
      options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis();
  absl::StatusOr<ReadPoint> point = BeginRead(options);
  if (!point.ok()) return NewErrorIterator(point.status());
  const SequenceNumber own_durable_after = GateOf(point->sequence);
  if (durable_after != nullptr) *durable_after = own_durable_after;
  const bool unwritten = point->sequence > log_->written_sequence();
  if (absl::Status waited = AwaitGate(options, own_durable_after, unwritten); !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed))
      return NewIterator(options, lower, upper, durable_after);
    return NewErrorIterator(std::move(waited));
  }
  return MakeIterator(point->state->shared_from_this(), point->sequence, options.fill_cache,
                      std::string(TreeKey(point->generation, lower).view()),
                      upper.empty() ? EndTreeKey(point->generation)
                                    : std::string(TreeKey(point->generation, upper).view()),
                      /*with_values=*/!options.without_value,
                      {instant_ms, own_durable_after, WitnessFor(options)});
}

}  // namespace varve
