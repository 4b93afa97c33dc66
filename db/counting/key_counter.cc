#include "db/counting/key_counter.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "db/iterators/super_version_iterator.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

// The most records that cloning a namespace looks at for its count.
constexpr uint64_t kCheapCount = 1u << 14;

// Returns the tallies of generations that were forked from another one.
KeyTallies TalliesOfUse(const KeyTallies& tallies, const NamespaceBases& bases) {
  KeyTallies of_use;
  for (const KeyTallies::Entry& entry : tallies.entries()) {
    if (bases.Of(entry.generation) != nullptr) of_use.Add(entry.generation, entry.tally);
  }
  return of_use;
}

KeyCounter::Follow FollowTo(KeyLedger ledger, const KeyTallies& parents, const Version& next,
                            const NamespaceBases& bases, KeyCounter::Follower follow) {
  follow(next, &ledger);
  ledger.Tidy(next);
  return {std::move(ledger), TalliesOfUse(parents, bases)};
}

}  // namespace

std::vector<KeyLedger::UnsettledSegment> KeyCounter::Point::Unsettled() const {
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

KeyCounter::KeyCounter(SuperVersions* versions, std::function<SequenceNumber()> durable_sequence,
                       int most_full_buffers)
    : versions_(versions),
      durable_sequence_(std::move(durable_sequence)),
      most_full_buffers_(static_cast<size_t>(most_full_buffers)) {}

void KeyCounter::StartLocked(const Version& version, const Manifest& manifest) {
  versions_->mutex().AssertHeld();
  ledger_ = KeyLedger(manifest.settled);
  ledger_.Tidy(version);
  parents_ = manifest.base_tallies;
}

// --- Counting ------------------------------------------------------------------------------------

absl::StatusOr<KeyCounter::Counted> KeyCounter::CountNamespace(NamespaceId space) {
  absl::MutexLock lock(&count_mutex_);
  Point point = NewPoint();
  const std::optional<NamespaceGeneration> generation = point.state->namespaces.Generation(space);
  if (!generation) return NoSuchNamespace(space);
  const SequenceNumber at = point.at;
  VARVE_ASSIGN_OR_RETURN(const KeyTally tally, CountAll(std::move(point), *generation));
  return Counted{tally, at};
}

absl::StatusOr<KeyTally> KeyCounter::CountGeneration(NamespaceGeneration generation) {
  absl::MutexLock lock(&count_mutex_);
  return CountAll(NewPoint(), generation);
}

absl::StatusOr<KeyTally> KeyCounter::CountByScan(const std::shared_ptr<const SuperVersion>& state,
                                                 SequenceNumber at, std::string lower,
                                                 std::string upper, IteratorClock clock,
                                                 SequenceNumber* required) {
  const std::unique_ptr<Iterator> iterator = NewSuperVersionIterator(
      state, {.at = at, .lower = std::move(lower), .upper = std::move(upper), .with_values = false},
      std::move(clock));
  KeyTally tally;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    tally += TallyOf(iterator->key().size(), iterator->value_size());
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  *required = iterator->durable_after();
  return tally;
}

absl::StatusOr<KeyTally> KeyCounter::CountAll(Point point, NamespaceGeneration generation) {
  const SuperVersion& state = *point.state;
  if (state.full.size() > most_full_buffers_) {
    // Only a recovery leaves so many, dozens of them: reconciled one by one, each would be walked
    // beside all that lies below it.
    SequenceNumber required = kNoSequence;
    return CountByScan(point.state, point.at, FirstTreeKey(generation), EndTreeKey(generation),
                       IteratorClock(), &required);
  }
  VARVE_RETURN_IF_ERROR(ReconcileSegments(&point));
  KeyTally tally = point.ledger.Add(*state.version).settled.Of(generation);
  for (auto full = state.full.rbegin(); full != state.full.rend(); ++full) {
    const SequenceNumber end = (*full)->last_sequence();
    VARVE_ASSERT(end <= point.at);
    const auto known = point.buffers.find(end);
    if (known != point.buffers.end()) {
      tally += known->second.Of(generation);
    } else {
      VARVE_ASSIGN_OR_RETURN(const KeyTallies change, ReconcileBuffer(point, *full, end));
      tally += change.Of(generation);
    }
  }
  VARVE_ASSIGN_OR_RETURN(const KeyTallies change, ReconcileBuffer(point, state.active, point.at));
  tally += change.Of(generation);
  if (const NamespaceBase* const base = state.namespaces.bases().Of(generation)) {
    VARVE_ASSIGN_OR_RETURN(const KeyTally held, TallyOfParent(point, *base));
    tally += held;
  }
  return tally;
}

absl::StatusOr<KeyTally> KeyCounter::TallyOfParent(const Point& point, const NamespaceBase& base) {
  if (point.parents.Knows(base.generation)) return point.parents.Of(base.generation);
  SequenceNumber required = kNoSequence;
  VARVE_ASSIGN_OR_RETURN(const KeyTally tally,
                         CountByScan(point.state, base.cut, FirstTreeKey(base.base),
                                     EndTreeKey(base.base), IteratorClock(), &required));
  NoteParent(base.generation, tally);
  return tally;
}

void KeyCounter::NoteParent(NamespaceGeneration generation, const KeyTally& tally) {
  VARVE_ASSERT(tally.keys >= 0 && tally.bytes >= 0);
  absl::MutexLock lock(&versions_->mutex());
  if (!parents_.Knows(generation)) parents_.Add(generation, tally);
}

absl::Status KeyCounter::ReconcileSegments(Point* point) {
  const SuperVersion& state = *point->state;
  const Version& version = *state.version;
  const std::vector<KeyLedger::UnsettledSegment> unsettled = point->Unsettled();
  if (unsettled.empty()) return absl::OkStatus();
  const auto keep_on = [] { return true; };
  uint64_t one_by_one = 0;
  bool of_clones = false;  // walking all would walk the parent of each clone
  for (const KeyLedger::UnsettledSegment& segment : unsettled) {
    one_by_one += CostOfChange(version, segment);
    of_clones |= segment.segment->info().of_clones;
  }
  uint64_t all_at_once = 0;
  for (const Run* run : version.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      all_at_once += segment->info().entries;
  }
  if (of_clones || one_by_one <= all_at_once) {
    for (const KeyLedger::UnsettledSegment& segment : unsettled) {
      VARVE_ASSIGN_OR_RETURN(KeyTallies change, ChangeOfSegment(state, segment, keep_on));
      NoteSegments(point, {{segment.segment->info().number}, std::move(change)});
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
  VARVE_ASSIGN_OR_RETURN(group.change, ChangeOfNewestRuns(state, runs, keep_on));
  NoteSegments(point, std::move(group));
  return absl::OkStatus();
}

absl::StatusOr<KeyTallies> KeyCounter::ReconcileBuffer(const Point& point,
                                                       const std::shared_ptr<WriteBuffer>& buffer,
                                                       SequenceNumber end) {
  VARVE_ASSERT(end + 1 >= buffer->first_sequence());
  // The point of CountLastClone() may be older than what others have counted meanwhile.
  if (walk_.buffer != buffer || walk_.epoch != point.epoch || walk_.at > end) {
    walk_ = {.buffer = buffer, .at = buffer->first_sequence() - 1, .epoch = point.epoch};
  }
  if (walk_.at >= end) return walk_.change;
  std::vector<RangeTombstone> tombstones;
  for (const RangeTombstone& tombstone : point.state->buffered_tombstones->tombstones()) {
    if (tombstone.sequence > walk_.at && tombstone.sequence <= end) tombstones.push_back(tombstone);
  }
  const Layer layer{point.state, walk_.at, walk_.at, end,
                    RangeTombstoneList(std::move(tombstones))};
  BufferProgress progress = walk_;
  VARVE_RETURN_IF_ERROR(AddChangeOfBuffer(layer, *buffer, &progress));
  progress.at = end;
  walk_ = std::move(progress);
  NoteBuffer(point, *buffer, end, walk_.change);
  return walk_.change;
}

bool KeyCounter::MayNote(const Point& point) const {
  return point.state->namespaces_changed <= durable_sequence_();
}

void KeyCounter::NoteSegments(Point* point, SettledGroup group) {
  VARVE_ASSERT(std::is_sorted(group.segments.begin(), group.segments.end()));
  point->ledger.Settle(*point->state->version, group);
  if (!MayNote(*point)) return;
  absl::MutexLock lock(&versions_->mutex());
  VARVE_ASSERT(point->epoch <= epoch_);
  if (epoch_ == point->epoch)
    ledger_.Settle(*versions_->PresentLocked()->version, std::move(group));
}

void KeyCounter::NoteBuffer(const Point& point, const WriteBuffer& buffer, SequenceNumber end,
                            const KeyTallies& change) {
  if (!MayNote(point)) return;
  absl::MutexLock lock(&versions_->mutex());
  if (epoch_ != point.epoch || end <= versions_->FlushedLocked()) return;
  buffers_.erase(buffers_.lower_bound(buffer.first_sequence()), buffers_.upper_bound(end));
  buffers_.emplace(end, change);
}

bool KeyCounter::ReconcileAtRest(absl::FunctionRef<bool()> stays_at_rest) {
  for (bool at_rest = true;;) {
    Point point = NewPoint();
    if (!MayNote(point)) return false;  // after the next rest
    const std::vector<KeyLedger::UnsettledSegment> unsettled = point.Unsettled();
    if (unsettled.empty()) return true;
    absl::StatusOr<KeyTallies> change =
        ChangeOfSegment(*point.state, unsettled.back(), [&] { return at_rest = stays_at_rest(); });
    if (!at_rest) return false;
    if (!change.ok()) {
      spdlog::error("counting keys: {}", change.status().ToString());
      return true;  // trying again would fail again
    }
    NoteSegments(&point, {{unsettled.back().segment->info().number}, *std::move(change)});
  }
}

// --- Clones --------------------------------------------------------------------------------------

KeyCounter::Point KeyCounter::NewPoint() const {
  absl::MutexLock lock(&versions_->mutex());
  return NewPointLocked();
}

KeyCounter::Point KeyCounter::NewPointLocked() const {
  versions_->mutex().AssertHeld();
  return {versions_->PresentLocked(),
          versions_->LastSequenceLocked(),
          ledger_,
          buffers_,
          epoch_,
          parents_};
}

void KeyCounter::NoteCloneLocked(std::unique_ptr<Clone> clone) noexcept {
  versions_->mutex().AssertHeld();
  VARVE_ASSERT(clone->before.at <= versions_->LastSequenceLocked());
  last_clone_ = std::move(clone);
}

void KeyCounter::CountLastClone() {
  std::unique_ptr<Clone> clone;
  {
    absl::MutexLock lock(&versions_->mutex());
    clone = std::move(last_clone_);
  }
  if (clone == nullptr || !count_mutex_.TryLock()) return;
  try {
    CountParent(*clone);
  } catch (const std::exception&) {
    // Without memory the parent is counted when somebody asks.
  }
  count_mutex_.Unlock();
}

void KeyCounter::CountParent(const Clone& clone) {
  const Point& before = clone.before;
  const SuperVersion& state = *before.state;
  uint64_t cost = state.active->entries();
  if (walk_.buffer == state.active && walk_.epoch == before.epoch && walk_.at <= before.at)
    cost -= walk_.walked;
  for (const std::shared_ptr<WriteBuffer>& full : state.full) {
    if (!before.buffers.contains(full->last_sequence())) cost += full->entries();
  }
  // What range tombstones cover is walked, however much that is.
  if (!state.buffered_tombstones->empty()) return;
  for (const KeyLedger::UnsettledSegment& segment : before.Unsettled()) {
    cost += CostOfChange(*state.version, segment);
    if (segment.segment->info().range_tombstones != 0) return;
  }
  const NamespaceBase* const below = state.namespaces.bases().Of(clone.base.base);
  if (cost > kCheapCount || (below != nullptr && !before.parents.Knows(below->generation))) return;
  const absl::StatusOr<KeyTally> held = CountAll(before, clone.base.base);
  if (held.ok()) NoteParent(clone.base.generation, *held);
}

// --- Installing ----------------------------------------------------------------------------------

std::optional<KeyTallies> KeyCounter::ChangeOfBuffer(const WriteBuffer& full) const {
  absl::MutexLock lock(&versions_->mutex());
  const auto known = buffers_.find(full.last_sequence());
  if (known == buffers_.end()) return std::nullopt;
  return known->second;
}

KeyCounter::Follow KeyCounter::FollowFrom(const Point& point, const Version& next,
                                          const NamespaceBases& bases, Follower follow) {
  return FollowTo(point.ledger, point.parents, next, bases, follow);
}

KeyCounter::Follow KeyCounter::FollowLocked(const Version& next, const NamespaceBases& bases,
                                            Follower follow) const {
  versions_->mutex().AssertHeld();
  return FollowTo(ledger_, parents_, next, bases, follow);
}

void KeyCounter::ApplyLocked(Follow next, bool sees_less, const SequenceNumber* flushed) noexcept {
  versions_->mutex().AssertHeld();
  ledger_ = std::move(next.ledger);
  if (sees_less) {
    ++epoch_;
    buffers_.clear();
  }
  if (flushed == nullptr) return;
  parents_ = std::move(next.parents);
  buffers_.erase(buffers_.begin(), buffers_.upper_bound(*flushed));
  VARVE_ASSERT(buffers_.empty() || buffers_.begin()->first > *flushed);
}

void KeyCounter::WriteToLocked(Manifest* manifest) const {
  versions_->mutex().AssertHeld();
  manifest->settled = ledger_.groups();
  manifest->base_tallies = parents_;
}

}  // namespace varve
