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

// Returns the counts of generations that were forked from another one.
GenerationKeyCounts CountsInUse(const GenerationKeyCounts& counts, const NamespaceForks& forks) {
  GenerationKeyCounts of_use;
  for (const GenerationKeyCounts::Entry& entry : counts.entries()) {
    if (forks.Of(entry.generation) != nullptr) of_use.Add(entry.generation, entry.counts);
  }
  return of_use;
}

KeyCounter::Follow FollowTo(SegmentKeyCounts segment_counts, const GenerationKeyCounts& parents,
                            const Version& next, const NamespaceForks& forks,
                            KeyCounter::Follower follow) {
  follow(next, &segment_counts);
  segment_counts.Tidy(next);
  return {std::move(segment_counts), CountsInUse(parents, forks)};
}

}  // namespace

std::vector<SegmentKeyCounts::UncountedSegment> KeyCounter::Point::Uncounted() const {
  std::vector<SegmentKeyCounts::UncountedSegment> uncounted =
      segment_counts.Add(*state->version).uncounted;
  std::erase_if(uncounted, [&](const SegmentKeyCounts::UncountedSegment& segment) {
    const SegmentInfo& info = segment.segment->info();
    for (const ManifestNamespace& space : state->namespaces.entries()) {
      const std::string end = EndTreeKey(space.generation);
      if (ReachesTo(info, FirstTreeKey(space.generation)) && (end.empty() || info.smallest < end))
        return false;
    }
    return true;
  });
  return uncounted;
}

KeyCounter::KeyCounter(SuperVersions* versions, std::function<SequenceNumber()> durable_sequence,
                       int most_full_buffers)
    : versions_(versions),
      durable_sequence_(std::move(durable_sequence)),
      most_full_buffers_(static_cast<size_t>(most_full_buffers)) {}

void KeyCounter::StartLocked(const Version& version, const Manifest& manifest) {
  versions_->mutex().AssertHeld();
  VARVE_ASSERT(buffers_.empty() && epoch_ == 0);
  segment_counts_ = SegmentKeyCounts(manifest.counted_groups);
  segment_counts_.Tidy(version);
  parents_ = manifest.parent_counts;
}

// --- Counting ------------------------------------------------------------------------------------

absl::StatusOr<KeyCounter::Counted> KeyCounter::CountNamespace(NamespaceId space) {
  absl::MutexLock lock(&count_mutex_);
  Point point = NewPoint();
  const std::optional<NamespaceGeneration> generation = point.state->namespaces.Generation(space);
  if (!generation) return NoSuchNamespace(space);
  const SequenceNumber at = point.at;
  VARVE_ASSIGN_OR_RETURN(const KeyCounts counts, CountAll(&point, *generation));
  return Counted{counts, at};
}

absl::StatusOr<KeyCounts> KeyCounter::CountGeneration(NamespaceGeneration generation) {
  absl::MutexLock lock(&count_mutex_);
  Point point = NewPoint();
  return CountAll(&point, generation);
}

absl::StatusOr<KeyCounter::Counted> KeyCounter::CountAllNamespaces() {
  absl::MutexLock lock(&count_mutex_);
  Point point = NewPoint();
  Counted all{{}, point.at};
  const std::shared_ptr<const SuperVersion> state = point.state;
  for (const ManifestNamespace& space : state->namespaces.entries()) {
    VARVE_ASSIGN_OR_RETURN(const KeyCounts counts, CountAll(&point, space.generation));
    all.counts += counts;
  }
  return all;
}

absl::StatusOr<KeyCounts> KeyCounter::CountByScan(const std::shared_ptr<const SuperVersion>& state,
                                                  SequenceNumber at, std::string lower,
                                                  std::string upper, IteratorClock clock,
                                                  SequenceNumber* required) {
  const std::unique_ptr<Iterator> iterator = NewSuperVersionIterator(
      state, {.at = at, .lower = std::move(lower), .upper = std::move(upper), .with_values = false},
      std::move(clock));
  KeyCounts counts;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    counts += CountsOf(*iterator);
  }
  VARVE_RETURN_IF_ERROR(iterator->status());
  *required = iterator->durable_after();
  return counts;
}

absl::StatusOr<KeyCounts> KeyCounter::CountAll(Point* point, NamespaceGeneration generation) {
  const SuperVersion& state = *point->state;
  if (state.full.size() > most_full_buffers_) {
    // Only a recovery leaves so many, dozens of them: counted one by one, each would be walked
    // beside all that lies below it.
    SequenceNumber required = kNoSequence;
    return CountByScan(point->state, point->at, FirstTreeKey(generation), EndTreeKey(generation),
                       IteratorClock(), &required);
  }
  VARVE_RETURN_IF_ERROR(CountSegments(point));
  KeyCounts counts = point->segment_counts.Add(*state.version).counted.Of(generation);
  for (auto full = state.full.rbegin(); full != state.full.rend(); ++full) {
    const SequenceNumber end = (*full)->last_sequence();
    VARVE_ASSERT(end <= point->at);
    const auto known = point->buffers.find(end);
    if (known != point->buffers.end()) {
      counts += known->second.Of(generation);
    } else {
      VARVE_ASSIGN_OR_RETURN(const GenerationKeyCounts change, CountBuffer(*point, *full, end));
      counts += change.Of(generation);
      point->buffers.emplace(end, change);
    }
  }
  VARVE_ASSIGN_OR_RETURN(const GenerationKeyCounts change,
                         CountBuffer(*point, state.active, point->at));
  counts += change.Of(generation);
  if (const NamespaceFork* const fork = state.namespaces.forks().Of(generation)) {
    VARVE_ASSIGN_OR_RETURN(const KeyCounts held, CountsOfParent(*point, *fork));
    counts += held;
  }
  return counts;
}

absl::StatusOr<KeyCounts> KeyCounter::CountsOfParent(const Point& point,
                                                     const NamespaceFork& fork) {
  if (point.parents.Knows(fork.generation)) return point.parents.Of(fork.generation);
  SequenceNumber required = kNoSequence;
  IteratorClock clock;
  clock.instant_ms = fork.expired_by_ms;
  // The fork is in the log, so nobody has to be told of the instant.
  clock.record_expiry = [](uint64_t) { return absl::StatusOr<SequenceNumber>(kNoSequence); };
  VARVE_ASSIGN_OR_RETURN(const KeyCounts counts,
                         CountByScan(point.state, fork.fork_point, FirstTreeKey(fork.parent),
                                     EndTreeKey(fork.parent), std::move(clock), &required));
  NoteParent(fork.generation, counts);
  return counts;
}

void KeyCounter::NoteParent(NamespaceGeneration generation, const KeyCounts& counts) {
  VARVE_ASSERT(counts.keys >= 0 && counts.bytes >= 0);
  absl::MutexLock lock(&versions_->mutex());
  if (!parents_.Knows(generation)) parents_.Add(generation, counts);
}

absl::Status KeyCounter::CountSegments(Point* point) {
  const SuperVersion& state = *point->state;
  const Version& version = *state.version;
  const std::vector<SegmentKeyCounts::UncountedSegment> uncounted = point->Uncounted();
  if (uncounted.empty()) return absl::OkStatus();
  const auto keep_on = [] { return true; };
  uint64_t one_by_one = 0;
  bool of_clones = false;  // walking all would walk the parent of each clone
  for (const SegmentKeyCounts::UncountedSegment& segment : uncounted) {
    one_by_one += CostOfChange(version, segment);
    of_clones |= segment.segment->info().of_clones;
  }
  uint64_t all_at_once = 0;
  for (const Run* run : version.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      all_at_once += segment->info().entries;
  }
  if (of_clones || one_by_one <= all_at_once) {
    for (const SegmentKeyCounts::UncountedSegment& segment : uncounted) {
      VARVE_ASSIGN_OR_RETURN(GenerationKeyCounts change, ChangeOfSegment(state, segment, keep_on));
      NoteSegments(point, {{segment.segment->info().number}, std::move(change)});
    }
    return absl::OkStatus();
  }
  // Down to the last run that is not counted by itself, so that no group is cut.
  const size_t runs = point->segment_counts.UncountedRuns(version);
  CountedGroup group;
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

absl::StatusOr<GenerationKeyCounts> KeyCounter::CountBuffer(
    const Point& point, const std::shared_ptr<WriteBuffer>& buffer, SequenceNumber end) {
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

void KeyCounter::NoteSegments(Point* point, CountedGroup group) {
  VARVE_ASSERT(std::is_sorted(group.segments.begin(), group.segments.end()));
  point->segment_counts.Record(*point->state->version, group);
  if (!MayNote(*point)) return;
  absl::MutexLock lock(&versions_->mutex());
  VARVE_ASSERT(point->epoch <= epoch_);
  if (epoch_ == point->epoch)
    segment_counts_.Record(*versions_->PresentLocked()->version, std::move(group));
}

void KeyCounter::NoteBuffer(const Point& point, const WriteBuffer& buffer, SequenceNumber end,
                            const GenerationKeyCounts& change) {
  if (!MayNote(point)) return;
  absl::MutexLock lock(&versions_->mutex());
  if (epoch_ != point.epoch || end <= versions_->FlushedLocked()) return;
  buffers_.erase(buffers_.lower_bound(buffer.first_sequence()), buffers_.upper_bound(end));
  buffers_.emplace(end, change);
}

bool KeyCounter::CountAtRest(absl::FunctionRef<bool()> stays_at_rest) {
  for (bool at_rest = true;;) {
    Point point = NewPoint();
    if (!MayNote(point)) return false;  // after the next rest
    const std::vector<SegmentKeyCounts::UncountedSegment> uncounted = point.Uncounted();
    if (uncounted.empty()) return true;
    absl::StatusOr<GenerationKeyCounts> change =
        ChangeOfSegment(*point.state, uncounted.back(), [&] { return at_rest = stays_at_rest(); });
    if (!at_rest) return false;
    if (!change.ok()) {
      spdlog::error("counting keys: {}", change.status().ToString());
      return true;  // trying again would fail again
    }
    NoteSegments(&point, {{uncounted.back().segment->info().number}, *std::move(change)});
  }
}

// --- Clones --------------------------------------------------------------------------------------

KeyCounter::Point KeyCounter::NewPoint() const {
  absl::MutexLock lock(&versions_->mutex());
  versions_->show_queue().DrainLocked();
  return NewPointLocked();
}

KeyCounter::Point KeyCounter::NewPointLocked() const {
  versions_->mutex().AssertHeld();
  return {versions_->PresentLocked(),
          versions_->LastSequenceLocked(),
          segment_counts_,
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
  for (const SegmentKeyCounts::UncountedSegment& segment : before.Uncounted()) {
    cost += CostOfChange(*state.version, segment);
    if (segment.segment->info().range_tombstones != 0) return;
  }
  const NamespaceFork* const below = state.namespaces.forks().Of(clone.fork.parent);
  if (cost > kCheapCount || (below != nullptr && !before.parents.Knows(below->generation))) return;
  Point point = before;
  const absl::StatusOr<KeyCounts> held = CountAll(&point, clone.fork.parent);
  if (held.ok()) NoteParent(clone.fork.generation, *held);
}

// --- Installing ----------------------------------------------------------------------------------

std::optional<GenerationKeyCounts> KeyCounter::ChangeOfBuffer(const WriteBuffer& full) const {
  absl::MutexLock lock(&versions_->mutex());
  const auto known = buffers_.find(full.last_sequence());
  if (known == buffers_.end()) return std::nullopt;
  return known->second;
}

KeyCounter::Follow KeyCounter::FollowFrom(const Point& point, const Version& next,
                                          const NamespaceForks& forks, Follower follow) {
  return FollowTo(point.segment_counts, point.parents, next, forks, follow);
}

KeyCounter::Follow KeyCounter::FollowLocked(const Version& next, const NamespaceForks& forks,
                                            Follower follow) const {
  versions_->mutex().AssertHeld();
  return FollowTo(segment_counts_, parents_, next, forks, follow);
}

void KeyCounter::ApplyLocked(Follow next, bool sees_less, const SequenceNumber* flushed) noexcept {
  versions_->mutex().AssertHeld();
  segment_counts_ = std::move(next.segment_counts);
  if (sees_less) {
    ++epoch_;
    buffers_.clear();
  }
  if (flushed == nullptr) return;
  VARVE_ASSERT(*flushed <= versions_->LastSequenceLocked());
  parents_ = std::move(next.parents);
  buffers_.erase(buffers_.begin(), buffers_.upper_bound(*flushed));
  VARVE_ASSERT(buffers_.empty() || buffers_.begin()->first > *flushed);
}

void KeyCounter::WriteToLocked(Manifest* manifest) const {
  versions_->mutex().AssertHeld();
  manifest->counted_groups = segment_counts_.groups();
  manifest->parent_counts = parents_;
}

}  // namespace varve
