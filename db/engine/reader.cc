#include "db/engine/reader.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "db/iterators/super_version_iterator.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {

absl::Status Reader::Await(const ReadOptions& options, SequenceNumber durable_after,
                           bool unwritten) {
  if (!options.wait_until_durable) return absl::OkStatus();
  if (unwritten) VARVE_RETURN_IF_ERROR(log_->PushUnsynced());
  if (durable_after == kNoSequence) return absl::OkStatus();
  absl::Status waited = log_->WaitUntilDurable(durable_after);
  if (!waited.ok()) parts_.note_log_failure();
  return waited;
}

bool Reader::WorthReadingAgain(const ReadOptions& options, bool log_had_failed) const {
  return options.snapshot == nullptr && !log_had_failed && log_.failed();
}

bool Reader::NeedsInstant(const Lookup& lookup, uint64_t* instant_ms) const {
  if (!lookup.found || lookup.record.expiry_ms == 0 || *instant_ms != 0) [[likely]]
    return false;
  const uint64_t now_ms = clock_.NowMillis();
  if (lookup.record.expiry_ms > now_ms) return false;
  *instant_ms = now_ms;
  return true;
}

void Reader::BuildResult(const SuperVersion& state, SequenceNumber at, uint64_t instant_ms,
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
  if (covering != kNoSequence) result->durable_after = log_.RequiredDurable(covering);
  if (lookup.fork_point != kNoSequence) [[unlikely]] {  // that there is this clone
    result->durable_after =
        std::max(result->durable_after, log_.RequiredDurable(lookup.fork_point));
    if (lookup.fork_point > log_->written_sequence()) *unwritten = true;
  }
  // That nothing older is found depends on the emptying of the namespace.
  if (state.namespaces_changed != kNoSequence && state.namespaces_changed <= at) {
    result->durable_after =
        std::max(result->durable_after, log_.RequiredDurable(state.namespaces_changed));
  }
  if (!lookup.found) return;
  const bool may_wait = lookup.readers_wait || lookup.record.sequence > log_.bound();
  if (may_wait && lookup.record.sequence > log_.durable_sequence()) {
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

void Reader::AddMetadata(const Lookup& lookup, ReadResult* result) {
  if (result->found && !lookup.record.metadata.empty())
    result->metadata = std::make_shared<const std::string>(lookup.record.metadata);
}

absl::StatusOr<ReadResult> Reader::Get(const ReadOptions& options, std::string_view key,
                                       std::string* value) {
  gets_.Add(1);
  const bool log_had_failed = log_.failed();
  ReadResult result;
  bool unwritten = false;
  uint64_t instant_ms = options.snapshot != nullptr ? options.snapshot->instant_ms() : 0;
  for (bool done = false; !done;) {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(versions_, log_, options));
    Lookup lookup(point.generation, key);
    lookup.from_segment.most_bytes = options.max_value_bytes;
    lookup.from_segment.without_value = options.without_value || value == nullptr;
    point.state->active->Prefetch(lookup.hash);
    PrefetchTables(*point.state, &lookup);
    if (!LookUpBuffers(*point.state, point.sequence, &lookup)) {
      VARVE_RETURN_IF_ERROR(
          LookUpSegments(*point.state, point.sequence, options.fill_cache, &lookup));
    }
    if (!lookup.found && !point.state->namespaces.forks().empty()) [[unlikely]] {
      VARVE_RETURN_IF_ERROR(
          LookUpParents(*point.state, point.sequence, options.fill_cache, &lookup));
    }
    done =
        lookup.record.expiry_ms == 0 || options.expired_too || !NeedsInstant(lookup, &instant_ms);
    if (done) {
      BuildResult(*point.state, point.sequence, options.expired_too ? 0 : instant_ms, lookup,
                  &result, options.without_value ? nullptr : value, &unwritten);
      if (options.with_metadata) [[unlikely]]
        AddMetadata(lookup, &result);
    }
  }
  if (result.expired)
    result.durable_after =
        std::max(result.durable_after, parts_.watermark->RecordExpirySeen(result.expiry_ms));
  if (absl::Status waited = Await(options, result.durable_after, unwritten); !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed)) return Get(options, key, value);
    return waited;
  }
  return result;
}

std::shared_ptr<const Snapshot> Reader::GetSnapshot() {
  const uint64_t instant_ms = clock_.NowMillis();
  for (;;) {
    SuperVersions::Pin state = versions_.Acquire();
    if (log_.failed()) [[unlikely]] {
      const SequenceNumber durable = log_->durable_sequence();
      NamespaceTable namespaces;
      {
        absl::MutexLock lock(&versions_.mutex());
        versions_.show_queue().DrainLocked();
        namespaces = versions_.NamespacesAtLocked(durable);
      }
      return versions_.TakeSnapshotAt(durable, std::move(namespaces), instant_ms);
    }
    std::shared_ptr<const Snapshot> snapshot =
        versions_.TakeSnapshot(state->namespaces, instant_ms);
    if (versions_.IsCurrent(state)) return snapshot;
  }
}

ClockCache* Reader::CacheOfValues(const SuperVersion& state) const {
  const uint64_t data = state.version->bytes() + state.version->referenced_bytes();
  ClockCache& blocks = parts_.caches->blocks;
  // The cache and the kernel's pages share the memory. Where the cache is as large as the data, it
  // leaves the pages no room, and a scan gets its values from the disk.
  const bool has_room = data + data / 2 <= blocks.capacity();
  return parts_.caches->kernel_caches_gets && !has_room ? nullptr : &blocks;
}

std::unique_ptr<Iterator> Reader::NewIterator(const ReadOptions& options, std::string_view lower,
                                              std::string_view upper,
                                              SequenceNumber* durable_after) {
  const bool log_had_failed = log_.failed();
  // The clock first: what has expired by then was still there at the sequence that is read.
  const uint64_t instant_ms =
      options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis();
  absl::StatusOr<ReadPoint> point = BeginRead(versions_, log_, options);
  if (!point.ok()) return NewErrorIterator(point.status());
  const SequenceNumber own_durable_after = log_.RequiredDurable(point->sequence);
  if (durable_after != nullptr) *durable_after = own_durable_after;
  const bool unwritten = point->sequence > log_->written_sequence();
  if (absl::Status waited = Await(options, own_durable_after, unwritten); !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed))
      return NewIterator(options, lower, upper, durable_after);
    return NewErrorIterator(std::move(waited));
  }
  return NewSuperVersionIterator(
      point->state->shared_from_this(),
      {.at = point->sequence,
       .newer_than = options.newer_than,
       .lower = std::string(TreeKey(point->generation, lower).view()),
       .upper = upper.empty() ? EndTreeKey(point->generation)
                              : std::string(TreeKey(point->generation, upper).view()),
       .fill_cache = options.fill_cache,
       .with_values = !options.without_value,
       .cache = CacheOfValues(*point->state)},
      {instant_ms, own_durable_after,
       parts_.watermark->Recorder(options, parts_.note_log_failure)});
}

// --- Counting ------------------------------------------------------------------------------------

absl::StatusOr<KeyCounts> Reader::CountRange(const ReadOptions& options, std::string_view lower,
                                             std::string_view upper, SequenceNumber* at,
                                             SequenceNumber* durable_after) {
  // The clock first, as in NewIterator().
  IteratorClock clock{
      options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis(),
      kNoSequence, parts_.watermark->Recorder(options, parts_.note_log_failure)};
  std::shared_ptr<const SuperVersion> state;
  NamespaceGeneration generation;
  {
    VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(versions_, log_, options));
    state = point.state->shared_from_this();
    *at = point.sequence;
    generation = point.generation;
  }
  std::string end =
      upper.empty() ? EndTreeKey(generation) : std::string(TreeKey(generation, upper).view());
  return KeyCounter::CountByScan(state, *at, std::string(TreeKey(generation, lower).view()),
                                 std::move(end), std::move(clock), durable_after);
}

absl::StatusOr<CountResult> Reader::Count(const ReadOptions& options, std::string_view lower,
                                          std::string_view upper) {
  const bool log_had_failed = log_.failed();
  KeyCounts counts;
  SequenceNumber at, durable_after = kNoSequence;
  // What a failed log did not get to disk is in the layers, but must not be counted.
  if (lower.empty() && upper.empty() && options.snapshot == nullptr && !log_had_failed &&
      parts_.sweeper->SweepAll().ok()) {
    VARVE_ASSIGN_OR_RETURN(const KeyCounter::Counted counted,
                           parts_.counter->CountNamespace(options.space));
    counts = counted.counts;
    at = counted.at;
  } else {
    VARVE_ASSIGN_OR_RETURN(counts, CountRange(options, lower, upper, &at, &durable_after));
  }
  VARVE_ASSERT(counts.keys >= 0 && counts.bytes >= 0);
  CountResult result = ResultOf(counts, std::max(durable_after, log_.RequiredDurable(at)));
  if (absl::Status waited = Await(options, result.durable_after, at > log_->written_sequence());
      !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed)) return Count(options, lower, upper);
    return waited;
  }
  return result;
}

// --- Namespaces ----------------------------------------------------------------------------------

NamespaceList Reader::Namespaces() const {
  NamespaceList list;
  SequenceNumber changed;
  {
    const SuperVersions::Pin state = versions_.Acquire();
    for (const ManifestNamespace& entry : state->namespaces.entries()) {
      const NamespaceDescription* const described = state->namespaces.Description(entry.id);
      list.namespaces.push_back(described != nullptr ? *described
                                                     : NamespaceDescription{.id = entry.id});
    }
    list.next_id = state->namespaces.next_named();
    changed = state->namespaces_changed;
  }
  list.durable_after = log_.RequiredDurable(changed);
  return list;
}

bool Reader::HasNamespace(NamespaceId space) const {
  return versions_.Acquire()->namespaces.Generation(space).has_value();
}

uint64_t Reader::UsualExpiry(NamespaceId space) const {
  if (!versions_.expires_by_default()) return kNoExpiry;
  const SuperVersions::Pin state = versions_.Acquire();
  const NamespaceDescription* const description = state->namespaces.Description(space);
  if (description == nullptr || description->options.default_expiry_ms == 0) return kNoExpiry;
  constexpr uint64_t kLatest = std::numeric_limits<int64_t>::max();  // as replies tell it
  const uint64_t now_ms = std::min(clock_.NowMillis(), kLatest);
  return now_ms + std::min(description->options.default_expiry_ms, kLatest - now_ms);
}

std::optional<KeyGrouping> Reader::GroupsOf(NamespaceId space) const {
  const KeyGrouping grouping = versions_.Acquire()->namespaces.GroupingOf(space);
  if (!grouping.declared()) return std::nullopt;
  return grouping;
}

}  // namespace varve
