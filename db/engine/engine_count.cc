// Engine: the exact number of keys, kept without a cost to writers, flushes and merges.
//
// It is the sum of what each layer changes: the segments (db/counting/key_ledger.h) and the write
// buffers. What a layer changes stays true while the layers below it are merged, so it is found out
// once: by whoever asks, for what was written since somebody asked last, or by the background when
// the store is at rest. Merges settle what they bring to the bottom without anybody's doing.
#include <algorithm>
#include <utility>

#include "db/engine/engine.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

// Records, which who clones a namespace has looked at for its count.
constexpr uint64_t kCheapCount = 1u << 14;

}  // namespace

absl::StatusOr<CountResult> Engine::CountInside(const ReadOptions& options, std::string_view lower,
                                                std::string_view upper) {
  const bool log_had_failed = log_failed_.load(std::memory_order_acquire);
  KeyTally tally;
  SequenceNumber at, durable_after = kNoSequence;
  // What a failed log did not get to disk is in the layers, but must not be counted.
  if (lower.empty() && upper.empty() && options.snapshot == nullptr && !log_had_failed &&
      SweepAll().ok()) {
    absl::MutexLock lock(&count_mutex_);
    const CountPoint point = NewCountPoint();
    const std::optional<NamespaceGeneration> generation =
        point.state->namespaces.Generation(options.space);
    if (!generation) return NoSuchNamespace(options.space);
    at = point.at;
    VARVE_ASSIGN_OR_RETURN(tally, CountAll(point, *generation));
  } else {
    std::shared_ptr<const SuperVersion> state;
    NamespaceGeneration generation;
    IteratorClock clock{
        options.snapshot != nullptr ? options.snapshot->instant_ms() : clock_.NowMillis(),
        kNoSequence, WitnessFor(options)};
    {
      VARVE_ASSIGN_OR_RETURN(const ReadPoint point, BeginRead(options));
      state = point.state->shared_from_this();
      at = point.sequence;
      generation = point.generation;
    }
    const std::string end =
        upper.empty() ? EndTreeKey(generation) : std::string(TreeKey(generation, upper).view());
    VARVE_ASSIGN_OR_RETURN(
        tally, CountByScan(state, at, std::string(TreeKey(generation, lower).view()), end,
                           std::move(clock), &durable_after));
  }
  CountResult result{static_cast<uint64_t>(tally.keys), static_cast<uint64_t>(tally.bytes),
                     std::max(durable_after, GateOf(at))};
  if (absl::Status waited = AwaitGate(options, result.durable_after, at > log_->written_sequence());
      !waited.ok()) {
    if (WorthReadingAgain(options, log_had_failed)) return Count(options, lower, upper);
    return waited;
  }
  return result;
}

absl::StatusOr<KeyTally> Engine::CountByScan(const std::shared_ptr<const SuperVersion>& state,
                                             SequenceNumber at, std::string lower,
                                             std::string upper, IteratorClock clock,
                                             SequenceNumber* durable_after) const {
  const std::unique_ptr<Iterator> iterator =
      MakeIterator(state, at, /*fill_cache=*/false, std::move(lower), std::move(upper),
                   /*with_values=*/false, std::move(clock));
  KeyTally tally;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    tally += TallyOf(iterator->key().size(), iterator->value_size());
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  *durable_after = iterator->durable_after();
  return tally;
}

Engine::CountPoint Engine::NewCountPoint() const {
  absl::MutexLock lock(&commit_mutex_);
  return NewCountPointLocked();
}

Engine::CountPoint Engine::NewCountPointLocked() const {
  return {present_, last_sequence_, ledger_, settled_buffers_, ledger_epoch_, base_tallies_};
}

absl::StatusOr<KeyTally> Engine::CountAll(CountPoint point, NamespaceGeneration generation) {
  const SuperVersion& state = *point.state;
  if (state.full.size() > static_cast<size_t>(options_.max_full_write_buffers)) {
    // Only a recovery leaves so many, dozens of them: settled one by one, each would be walked
    // beside all that lies below it.
    SequenceNumber durable_after = kNoSequence;
    return CountByScan(point.state, point.at, FirstTreeKey(generation), EndTreeKey(generation),
                       IteratorClock(), &durable_after);
  }
  VARVE_RETURN_IF_ERROR(SettleSegments(&point));
  KeyTally tally = point.ledger.Add(*state.version).settled.Of(generation);
  for (auto full = state.full.rbegin(); full != state.full.rend(); ++full) {
    const SequenceNumber end = (*full)->last_sequence();
    const auto settled = point.buffers.find(end);
    if (settled != point.buffers.end()) {
      tally += settled->second.Of(generation);
    } else {
      VARVE_ASSIGN_OR_RETURN(const KeyTallies change, SettleBuffer(point, *full, end));
      tally += change.Of(generation);
    }
  }
  VARVE_ASSIGN_OR_RETURN(const KeyTallies change, SettleBuffer(point, state.active, point.at));
  tally += change.Of(generation);
  if (const NamespaceBase* const base = state.namespaces.bases().Of(generation)) {
    VARVE_ASSIGN_OR_RETURN(const KeyTally held, TallyOfBase(point, *base));
    tally += held;
  }
  return tally;
}

absl::StatusOr<KeyTally> Engine::TallyOfBase(const CountPoint& point, const NamespaceBase& base) {
  if (point.bases.Knows(base.generation)) return point.bases.Of(base.generation);
  SequenceNumber durable_after = kNoSequence;
  VARVE_ASSIGN_OR_RETURN(const KeyTally tally,
                         CountByScan(point.state, base.cut, FirstTreeKey(base.base),
                                     EndTreeKey(base.base), IteratorClock(), &durable_after));
  NoteTallyOfBase(base.generation, tally);
  return tally;
}

void Engine::NoteTallyOfBase(NamespaceGeneration generation, const KeyTally& tally) {
  absl::MutexLock lock(&commit_mutex_);
  if (!base_tallies_.Knows(generation)) base_tallies_.Add(generation, tally);
}

void Engine::CountAtCut() {
  std::unique_ptr<Cut> cut;
  {
    absl::MutexLock lock(&commit_mutex_);
    cut = std::move(last_cut_);
  }
  if (cut == nullptr || !count_mutex_.TryLock()) return;
  TryWithMemory([&]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    const CountPoint& before = cut->before;
    const SuperVersion& state = *before.state;
    uint64_t cost = state.active->entries();
    if (counted_.buffer == state.active && counted_.epoch == before.epoch &&
        counted_.at <= before.at)
      cost -= counted_.walked;
    for (const std::shared_ptr<WriteBuffer>& full : state.full) {
      if (!before.buffers.contains(full->last_sequence())) cost += full->entries();
    }
    // What range tombstones cover, however much that is.
    bool walks = !state.buffered_tombstones->empty();
    for (const KeyLedger::UnsettledSegment& segment : before.Unsettled()) {
      cost += CostOf(*state.version, segment);
      walks |= segment.segment->info().range_tombstones != 0;
    }
    const NamespaceBase* const below = state.namespaces.bases().Of(cut->base.base);
    const bool is_cheap =
        cost <= kCheapCount && (below == nullptr || before.bases.Knows(below->generation));
    const absl::StatusOr<KeyTally> held = is_cheap && !walks
                                              ? CountAll(before, cut->base.base)
                                              : absl::StatusOr<KeyTally>(absl::CancelledError());
    if (held.ok()) NoteTallyOfBase(cut->base.generation, *held);
  });
  count_mutex_.Unlock();
}

absl::Status Engine::SettleSegments(CountPoint* point) {
  const SuperVersion& state = *point->state;
  const Version& version = *state.version;
  const std::vector<KeyLedger::UnsettledSegment> unsettled = point->Unsettled();
  if (unsettled.empty()) return absl::OkStatus();
  const auto keep_on = [] { return true; };
  uint64_t one_by_one = 0;
  bool of_clones = false;  // walking all would walk what each clone stands on
  for (const KeyLedger::UnsettledSegment& segment : unsettled) {
    one_by_one += CostOf(version, segment);
    of_clones |= segment.segment->info().of_clones;
  }
  uint64_t all_at_once = 0;
  for (const Run* run : version.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      all_at_once += segment->info().entries;
  }
  if (of_clones || one_by_one <= all_at_once) {
    for (const KeyLedger::UnsettledSegment& segment : unsettled) {
      VARVE_ASSIGN_OR_RETURN(KeyTallies change, ChangeOf(state, segment, keep_on));
      NoteSettled(point, {{segment.segment->info().number}, std::move(change)});
    }
    return absl::OkStatus();
  }
  // Down to the last run that is not counted by itself, so that no group is cut.
  const size_t runs = point->ledger.UncountedRuns(version);
  SettledGroup group;
  for (size_t run = 0; run < runs; ++run) {
    for (const std::shared_ptr<Segment>& segment : version.runs()[run]->segments) {
      group.segments.push_back(segment->info().number);
    }
  }
  std::sort(group.segments.begin(), group.segments.end());
  VARVE_ASSIGN_OR_RETURN(group.change, ChangeOfNewest(state, runs, keep_on));
  NoteSettled(point, std::move(group));
  return absl::OkStatus();
}

std::vector<KeyLedger::UnsettledSegment> EngineParts::CountPoint::Unsettled() const {
  std::vector<KeyLedger::UnsettledSegment> unsettled = ledger.Add(*state->version).unsettled;
  std::erase_if(unsettled, [&](const KeyLedger::UnsettledSegment& segment) {
    const SegmentInfo& info = segment.segment->info();
    for (const ManifestNamespace& space : state->namespaces.entries()) {
      const std::string end = EndTreeKey(space.generation);
      if (ReachesTo(info, FirstTreeKey(space.generation)) && (end.empty() || info.smallest < end))
        return false;
    }
    return true;
  });
  return unsettled;
}

absl::StatusOr<KeyTallies> Engine::SettleBuffer(const CountPoint& point,
                                                const std::shared_ptr<WriteBuffer>& buffer,
                                                SequenceNumber end) {
  // CountAtCut's point may be older than what others have counted meanwhile.
  if (counted_.buffer != buffer || counted_.epoch != point.epoch || counted_.at > end) {
    counted_ = {.buffer = buffer, .at = buffer->first_sequence() - 1, .epoch = point.epoch};
  }
  if (counted_.at >= end) return counted_.change;
  std::vector<RangeTombstone> tombstones;
  for (const RangeTombstone& tombstone : point.state->buffered_tombstones->tombstones()) {
    if (tombstone.sequence > counted_.at && tombstone.sequence <= end)
      tombstones.push_back(tombstone);
  }
  const Layer layer{point.state, counted_.at, counted_.at, end,
                    RangeTombstoneList(std::move(tombstones))};
  BufferProgress progress = counted_;
  VARVE_RETURN_IF_ERROR(ChangeOf(layer, *buffer, &progress));
  progress.at = end;
  counted_ = std::move(progress);
  NoteSettled(point, *buffer, end, counted_.change);
  return counted_.change;
}

// A crash could take back that a namespace was emptied, and its keys then count again.
bool Engine::MayNote(const CountPoint& point) const {
  return point.state->namespaces_changed <= log_->durable_sequence();
}

void Engine::NoteSettled(CountPoint* point, SettledGroup group) {
  point->ledger.Settle(*point->state->version, group);
  if (!MayNote(*point)) return;
  absl::MutexLock lock(&commit_mutex_);
  if (ledger_epoch_ == point->epoch) ledger_.Settle(*present_->version, std::move(group));
}

void Engine::NoteSettled(const CountPoint& point, const WriteBuffer& buffer, SequenceNumber end,
                         const KeyTallies& change) {
  if (!MayNote(point)) return;
  absl::MutexLock lock(&commit_mutex_);
  if (ledger_epoch_ != point.epoch || end <= flushed_) return;
  settled_buffers_.erase(settled_buffers_.lower_bound(buffer.first_sequence()),
                         settled_buffers_.upper_bound(end));
  settled_buffers_.emplace(end, change);
}

std::optional<KeyTallies> Engine::SettledChangeOf(const WriteBuffer& full) const {
  absl::MutexLock lock(&commit_mutex_);
  const auto settled = settled_buffers_.find(full.last_sequence());
  if (settled == settled_buffers_.end()) return std::nullopt;
  return settled->second;
}

void Engine::SettleAtRest() {
  absl::Status status;
  bool at_rest = true;
  while (at_rest && status.ok()) {
    CountPoint point = NewCountPoint();
    if (!MayNote(point)) return;  // after the next rest
    const std::vector<KeyLedger::UnsettledSegment> unsettled = point.Unsettled();
    if (unsettled.empty()) break;
    SteadyTime since = SteadyNow();
    absl::StatusOr<KeyTallies> change =
        ChangeOf(*point.state, unsettled.back(), [&] { return at_rest = StaysAtRest(&since); });
    status = change.status();
    if (change.ok())
      NoteSettled(&point, {{unsettled.back().segment->info().number}, *std::move(change)});
  }
  if (!at_rest) return;
  if (!status.ok()) spdlog::error("counting keys: {}", status.ToString());
  absl::MutexLock lock(&commit_mutex_);
  if (!compaction_due_) settling_due_ = false;  // else the tree has changed
}

bool Engine::StaysAtRest(SteadyTime* since) {
  const absl::Duration worked = absl::FromChrono(SteadyNow() - *since);
  absl::MutexLock lock(&commit_mutex_);
  if (!HasBackgroundWorkLocked()) compaction_work_.WaitWithTimeout(&commit_mutex_, worked);
  *since = SteadyNow();
  return !HasBackgroundWorkLocked();
}

}  // namespace varve
