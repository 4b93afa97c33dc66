#include "db/counting/layer_change.h"

#include <algorithm>
#include <utility>

#include "db/iterators/merging_iterator.h"
#include "db/iterators/run_iterator.h"
#include "db/iterators/super_version_iterator.h"
#include "db/version/lookup.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

// The cost of a lookup that reads a record, in units of one record that is walked.
constexpr uint64_t kRecordsPerLookup = 16;
constexpr uint64_t kKeysPerQuestion = 1024;

// The runs from `run` on as a super version of their own, but for the parents of clones.
std::shared_ptr<const SuperVersion> StateBelow(const SuperVersion& state, size_t run) {
  constexpr size_t kNoBuffer = 4096;  // bytes; nothing is written to it
  auto below = std::make_shared<SuperVersion>();
  below->active = std::make_shared<WriteBuffer>(kNoBuffer, kNoSequence + 1);
  Level level;
  for (; run < state.version->runs().size(); ++run)
    level.runs.push_back(*state.version->runs()[run]);
  below->version = std::make_shared<const Version>(std::vector<Level>{std::move(level)});
  below->namespaces = state.namespaces;
  below->whole = state.shared_from_this();
  return below;
}

uint64_t EntriesBelow(const Version& version, const SegmentKeyCounts::UncountedSegment& uncounted) {
  uint64_t entries = 0;
  for (size_t run = uncounted.run + 1; run < version.runs().size(); ++run) {
    const std::vector<std::shared_ptr<Segment>>& segments = version.runs()[run]->segments;
    for (size_t i = version.runs()[run]->IndexOf(uncounted.segment->info().smallest);
         i < segments.size(); ++i) {
      if (!Overlap(segments[i]->info(), uncounted.segment->info())) break;
      entries += segments[i]->info().entries;
    }
  }
  return entries;
}

bool BelongsTo(const RecordView& record, SequenceNumber after, SequenceNumber to) {
  return record.sequence > after && record.sequence <= to;
}

absl::StatusOr<KeyCounts> LiveAt(const SuperVersion& state, std::string_view tree_key,
                                 SequenceNumber at) {
  Lookup lookup(GenerationOf(tree_key), UserKeyOf(tree_key));
  VARVE_ASSIGN_OR_RETURN(const bool is_live, FindLive(state, at, &lookup));
  return is_live ? CountsOf(lookup.record) : KeyCounts{};
}

// Walks the layer and the keys below it side by side, in [lower, upper) of one generation.
absl::Status ChangeByMergeJoin(const Layer& layer, InternalIterator* records, std::string lower,
                               std::string upper, absl::FunctionRef<bool()> keep_on,
                               GenerationKeyCounts* change) {
  const NamespaceGeneration generation = GenerationOf(lower);
  records->Seek(lower, kMaxSequence);
  const bool has_records = records->Valid() && (upper.empty() || records->record().key < upper);
  // One of many namespaces, mostly.
  if (!has_records && layer.tombstones.empty()) return records->status();
  const std::unique_ptr<Iterator> below = NewSuperVersionIterator(
      layer.below, {.at = layer.below_at, .lower = lower, .upper = upper, .with_values = false});
  below->SeekToFirst();
  std::string key;
  KeyCounts sum;
  for (uint64_t keys = 1;; ++keys) {
    if (keys % kKeysPerQuestion == 0 && !keep_on())
      return absl::AbortedError("counting keys: interrupted");
    while (records->Valid() && !BelongsTo(records->record(), layer.after, layer.to))
      records->Next();
    const bool more = records->Valid() && (upper.empty() || records->record().key < upper);
    if (!more && !below->Valid()) break;
    const int order = !more             ? 1
                      : !below->Valid() ? -1
                                        : UserKeyOf(records->record().key).compare(below->key());
    if (order > 0) {
      if (!layer.tombstones.empty() &&
          layer.tombstones.Covering(TreeKey(generation, below->key()).view(), kMaxSequence) !=
              nullptr) {
        sum += -CountsOf(*below);
      }
      below->Next();
      continue;
    }
    const RecordView& record = records->record();
    if (record.kind == RecordKind::kValue &&
        layer.tombstones.CoveringSequence(record.key, kMaxSequence) < record.sequence) {
      sum += CountsOf(record);
    }
    if (order == 0) {
      sum += -CountsOf(*below);
      below->Next();
    }
    key.assign(record.key);
    do {
      records->Next();
    } while (records->Valid() && records->record().key == key);
  }
  VARVE_RETURN_IF_ERROR(records->status());
  VARVE_RETURN_IF_ERROR(below->status());
  change->Add(generation, sum);
  return absl::OkStatus();
}

// Walks the ranges that the range tombstones of the layer cover.
absl::Status ChangeUnderTombstones(const Layer& layer, InternalIterator* records,
                                   absl::FunctionRef<bool()> keep_on, GenerationKeyCounts* change) {
  for (const RangeTombstoneList::Fragment& fragment : layer.tombstones.fragments()) {
    if (!layer.below->namespaces.Holds(GenerationOf(fragment.begin))) continue;
    VARVE_RETURN_IF_ERROR(
        ChangeByMergeJoin(layer, records, fragment.begin, fragment.end, keep_on, change));
  }
  return absl::OkStatus();
}

// Looks up what each record replaced, but for those that range tombstones of the layer cover.
absl::Status ChangeByLookups(const Layer& layer, InternalIterator* records, std::string_view lower,
                             std::string_view upper, absl::FunctionRef<bool()> keep_on,
                             GenerationKeyCounts* change) {
  const NamespaceGeneration generation = GenerationOf(lower);
  std::string key;
  KeyCounts sum;
  uint64_t keys = 0;
  for (records->Seek(lower, kMaxSequence); records->Valid(); records->Next()) {
    const RecordView& record = records->record();
    if (record.key >= upper) break;
    if (record.key == key) continue;  // an older version
    if (++keys % kKeysPerQuestion == 0 && !keep_on())
      return absl::AbortedError("counting keys: interrupted");
    key.assign(record.key);
    if (layer.tombstones.Covering(record.key, kMaxSequence) != nullptr) continue;
    VARVE_ASSIGN_OR_RETURN(const KeyCounts before,
                           LiveAt(*layer.below, record.key, layer.below_at));
    sum += -before;
    if (record.kind == RecordKind::kValue) sum += CountsOf(record);
  }
  VARVE_RETURN_IF_ERROR(records->status());
  change->Add(generation, sum);
  return absl::OkStatus();
}

}  // namespace

uint64_t CostOfChange(const Version& version, const SegmentKeyCounts::UncountedSegment& uncounted) {
  const uint64_t entries = uncounted.segment->info().entries;
  // The parents of clones are not walked.
  if (uncounted.segment->info().of_clones) return entries * kRecordsPerLookup;
  return std::min(entries * kRecordsPerLookup, entries + EntriesBelow(version, uncounted));
}

absl::StatusOr<GenerationKeyCounts> ChangeOfSegment(
    const SuperVersion& state, const SegmentKeyCounts::UncountedSegment& uncounted,
    absl::FunctionRef<bool()> keep_on) {
  Segment& segment = *uncounted.segment;
  const SegmentInfo& info = segment.info();
  const Layer layer{.below = StateBelow(state, uncounted.run + 1),
                    .tombstones = *segment.range_tombstones()};
  const std::unique_ptr<InternalIterator> records = segment.NewIterator(/*fill_cache=*/false);
  const bool by_lookups =
      CostOfChange(*state.version, uncounted) == info.entries * kRecordsPerLookup;
  GenerationKeyCounts change;
  for (const ManifestNamespace& space : state.namespaces.entries()) {
    std::string lower = std::max(FirstTreeKey(space.generation), info.smallest);
    std::string upper = EndTreeKey(space.generation);
    const std::string behind = info.largest_is_exclusive ? info.largest : info.largest + '\0';
    if (upper.empty() || behind < upper) upper = behind;
    if (lower >= upper) continue;
    if (by_lookups) {
      VARVE_RETURN_IF_ERROR(ChangeByLookups(layer, records.get(), lower, upper, keep_on, &change));
    } else {
      VARVE_RETURN_IF_ERROR(ChangeByMergeJoin(layer, records.get(), std::move(lower),
                                              std::move(upper), keep_on, &change));
    }
  }
  if (by_lookups)
    VARVE_RETURN_IF_ERROR(ChangeUnderTombstones(layer, records.get(), keep_on, &change));
  return change;
}

absl::StatusOr<GenerationKeyCounts> ChangeOfNewestRuns(const SuperVersion& state, size_t runs,
                                                       absl::FunctionRef<bool()> keep_on) {
  std::vector<std::unique_ptr<InternalIterator>> children;
  std::vector<RangeTombstone> tombstones;
  for (size_t run = 0; run < runs; ++run) {
    const std::vector<std::shared_ptr<Segment>>& segments = state.version->runs()[run]->segments;
    children.push_back(NewRunIterator(segments, /*fill_cache=*/false));
    for (const std::shared_ptr<Segment>& segment : segments) {
      const std::vector<RangeTombstone>& more = segment->range_tombstones()->tombstones();
      tombstones.insert(tombstones.end(), more.begin(), more.end());
    }
  }
  const std::unique_ptr<InternalIterator> records = NewMergingIterator(std::move(children));
  const Layer layer{.below = StateBelow(state, runs),
                    .tombstones = RangeTombstoneList(std::move(tombstones))};
  GenerationKeyCounts change;
  for (const ManifestNamespace& space : state.namespaces.entries()) {
    VARVE_RETURN_IF_ERROR(ChangeByMergeJoin(layer, records.get(), FirstTreeKey(space.generation),
                                            EndTreeKey(space.generation), keep_on, &change));
  }
  return change;
}

absl::Status AddChangeOfBuffer(const Layer& layer, const WriteBuffer& buffer,
                               BufferProgress* progress) {
  VARVE_ASSERT(layer.after <= layer.to && progress->walked <= buffer.entries());
  const auto keep_on = [] { return true; };
  uint64_t entries = buffer.entries();
  const uint64_t pending = entries - progress->walked;
  for (const Run* run : layer.below->version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      entries += segment->info().entries;
  }
  const bool by_lookups =
      pending * kRecordsPerLookup < entries || !layer.below->namespaces.forks().empty();
  absl::Status status;
  buffer.Walk(
      &progress->position, layer.to, [&](const RecordView& record, const RecordView* previous) {
        ++progress->walked;
        if (!by_lookups || !status.ok() ||
            (previous != nullptr && previous->sequence > layer.after))
          return;
        const NamespaceGeneration generation = GenerationOf(record.key);
        if (!layer.below->namespaces.Holds(generation)) return;
        if (layer.tombstones.Covering(record.key, kMaxSequence) != nullptr) return;
        const absl::StatusOr<KeyCounts> before = LiveAt(*layer.below, record.key, layer.below_at);
        status = before.status();
        if (!status.ok()) return;
        WriteBuffer::Found newest;
        buffer.Get(record.key, HashKey(record.key), layer.to, &newest);
        progress->change.Add(generation, -*before);
        if (newest.record.kind == RecordKind::kValue)
          progress->change.Add(generation, CountsOf(newest.record));
      });
  VARVE_RETURN_IF_ERROR(status);
  if (by_lookups && layer.tombstones.empty()) return absl::OkStatus();
  const std::unique_ptr<InternalIterator> records = buffer.NewIterator();
  if (by_lookups) return ChangeUnderTombstones(layer, records.get(), keep_on, &progress->change);
  for (const ManifestNamespace& space : layer.below->namespaces.entries()) {
    VARVE_RETURN_IF_ERROR(ChangeByMergeJoin(layer, records.get(), FirstTreeKey(space.generation),
                                            EndTreeKey(space.generation), keep_on,
                                            &progress->change));
  }
  return absl::OkStatus();
}

}  // namespace varve
