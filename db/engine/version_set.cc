#include "db/engine/version_set.h"

#include <algorithm>
#include <exception>
#include <unordered_set>
#include <utility>

#include "db/engine/log_tidier.h"
#include "db/format/file_names.h"
#include "db/history/time_file.h"
#include "db/version/range_estimate.h"
#include "db/version/version_edit.h"
#include "util/base/assert.h"
#include "util/base/exception_status.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

std::unordered_set<uint64_t> SegmentNumbers(const Manifest& manifest) {
  std::unordered_set<uint64_t> numbers;
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) numbers.insert(segment.number);
    }
  }
  return numbers;
}

// Marks of the time map stay whole for so long where no history is kept.
constexpr uint64_t kExactMillis = 3'600'000;
constexpr size_t kFewestMarksThinned = 1024;

// Returns the horizons with the limits that dropped namespaces had in the end. `present` are the
// namespaces once everything up to `flushed` is in segments.
std::vector<Horizon> WithLastLimits(std::vector<Horizon> horizons,
                                    const std::vector<RetiredGeneration>& retired,
                                    const NamespaceTable& present, SequenceNumber flushed,
                                    const HistoryLimits& usual) {
  for (Horizon& horizon : horizons) {
    if (present.Generation(horizon.space).has_value()) continue;
    for (const RetiredGeneration& each : retired) {  // the newest one counts
      if (each.space == horizon.space && each.dropped != nullptr && each.retired_at <= flushed)
        horizon.limits = each.dropped->options.history.value_or(usual);
    }
  }
  return horizons;
}

// Raises `number` to `least`.
template <typename Number>
void RaiseTo(std::atomic<Number>* number, Number least) {
  for (Number now = number->load(); now < least && !number->compare_exchange_weak(now, least);) {
  }
}

}  // namespace

VersionSet::VersionSet(VersionSetParts parts)
    : parts_(std::move(parts)),
      changes_({.file_system = parts_.file_system,
                .directory = parts_.directory,
                .remover = parts_.remover,
                .times = &times_,
                .limits = parts_.options->changes,
                .new_file_number = [this] { return NewFileNumber(); },
                .now_ms = [this] { return parts_.clock->NowMillis(); }}) {}

absl::Status VersionSet::Visit(
    absl::FunctionRef<absl::Status(const Manifest& manifest, const Version& version)> visit) const {
  absl::MutexLock lock(&install_mutex_);
  return visit(manifest_, *parts_.versions->PresentVersion());
}

Manifest VersionSet::CurrentManifest() const {
  absl::MutexLock lock(&install_mutex_);
  return manifest_;
}

// --- Numbers -------------------------------------------------------------------------------------

void VersionSet::SkipFileNumbers(uint64_t used) {
  RaiseTo<uint64_t>(&next_file_number_, used + 1);
  VARVE_ASSERT(next_file_number_.load() > used);
}

void VersionSet::SkipGenerations(NamespaceGeneration used) {
  RaiseTo<NamespaceGeneration>(&next_generation_, used + 1);
  VARVE_ASSERT(next_generation_.load() > used);
}

NamespaceGeneration VersionSet::NewGeneration() {
  NamespaceGeneration next = next_generation_.load();
  while (next < kExpiryGeneration && !next_generation_.compare_exchange_weak(next, next + 1)) {
  }
  return next < kExpiryGeneration ? next : kNoGeneration;
}

void VersionSet::CopyNumbersTo(Manifest* manifest) const {
  VARVE_ASSERT(manifest->next_file_number <= next_file_number_.load());
  VARVE_ASSERT(manifest->next_generation <= next_generation_.load());
  manifest->next_file_number = next_file_number_.load();
  manifest->next_generation = next_generation_.load();
}

// --- Installing ----------------------------------------------------------------------------------

CompactionContext VersionSet::NewJob(const std::atomic<bool>* cancel,
                                     std::function<bool()> is_urgent) {
  // Before the snapshots: a reader of an old version looks at the horizon last.
  const std::vector<Horizon> horizons = horizons_.All();
  const SnapshotList::Held held = parts_.versions->HeldSnapshots();
  NamespaceForks forks;
  KeptVersions kept;
  std::function<bool(NamespaceGeneration)> is_live = parts_.versions->LiveGenerations(
      held, (*parts_.log)->durable_sequence(), horizons, &forks, &kept);
  return {.file_system = parts_.file_system,
          .directory = parts_.directory,
          .options = parts_.options,
          .shares_keys = shares_keys_,
          .caches = parts_.caches,
          .spares = parts_.remover->spares(),
          .next_file_number = [this] { return NewFileNumber(); },
          .snapshots = held.sequences,
          .is_live = std::move(is_live),
          .forks = std::move(forks),
          .kept = std::move(kept),
          .compression = CompressionPolicy(parts_.versions->Acquire()->namespaces,
                                           parts_.options->compression),
          .cancel = cancel,
          .is_urgent = std::move(is_urgent),
          .jobs = parts_.jobs};
}

absl::Status VersionSet::LogAndApply(
    const TreeChange& change, absl::FunctionRef<std::vector<Level>(const Version& present)> apply,
    KeyCounter::Follower follow) {
  absl::MutexLock lock(&install_mutex_);
  absl::Status installed;
  try {
    installed = Install(change, apply(*parts_.versions->PresentVersion()), follow);
  } catch (...) {
    installed = StatusOfException("installing segments");
  }
  // An ingest takes care of its own files.
  if (!installed.ok() && change.ingested == nullptr) DropUninstalled(change.segments);
  return installed;
}

absl::Status VersionSet::TrimHistory() {
  {
    absl::MutexLock lock(&install_mutex_);
    Manifest next = manifest_;
    const std::vector<Horizon> before = horizons_.All();
    RaiseHorizonsOf(before, {}, *parts_.versions->PresentVersion(), &next);
    if (next.horizons == before && !changes_.HasToTrim()) return absl::OkStatus();
  }
  return InstallAgain();
}

absl::Status VersionSet::InstallAgain(std::optional<uint64_t> history_id) {
  const uint64_t before = history_id_.load();
  if (history_id) history_id_.store(*history_id);
  const absl::Status installed = LogAndApply(
      {}, [](const Version& present) { return present.levels(); },
      [](const Version&, SegmentKeyCounts*) {});
  if (history_id && !installed.ok()) history_id_.store(before);
  return installed;
}

absl::Status VersionSet::SetRetaining(bool retains) {
  {
    absl::MutexLock work(&changes_.work_mutex());
    absl::MutexLock lock(&parts_.versions->mutex());
    parts_.versions->show_queue().DrainLocked();  // readers see what the changes begin behind
    if (retains) {
      changes_.StartHeld({}, parts_.versions->PresentLocked()->namespaces,
                         parts_.versions->LastSequenceLocked());
    } else {
      changes_.StopHeld();
    }
  }
  if (retains) changes_.StartThread();
  return InstallAgain();
}

bool VersionSet::KeepChanges(const TreeChange& change, bool is_recovery, Manifest* next) {
  if (!next->has_history) return false;
  const IngestedRun* const ingested = change.ingested;
  next->feeds = *changes_.feeds().All();
  const SequenceNumber kept =
      next->changes.files.empty() ? next->changes.first : next->changes.files.back().last;
  const bool is_behind = is_recovery || change.flushed != nullptr || kept < next->flushed_sequence;
  const bool is_due =
      (is_behind && changes_.on()) || changes_.on() != next->changes.on || changes_.HasToTrim();
  if (!is_due) return false;
  if (ingested != nullptr) {
    const ChangeQueue::Batch ahead{
        .first = ingested->first,
        .count = static_cast<uint32_t>(ingested->last + 1 - ingested->first),
        .operations = ingested->operations};
    changes_.Persist(ingested->first - 1, &ahead, &next->changes);
  } else {
    changes_.Persist(next->flushed_sequence, /*ahead=*/nullptr, &next->changes);
  }
  next->feeds = *changes_.feeds().All();
  CopyNumbersTo(next);
  return true;
}

Manifest VersionSet::NextManifest(const TreeChange& change, const Version& version,
                                  KeyCounter::Follower follow) const {
  Manifest next = manifest_;
  next.levels = ManifestLevels(version.levels());
  next.clean_end = false;
  if (next.has_history) next.history_id = history_id_.load();
  const KeyCounter::Point point = parts_.counter->NewPoint();
  KeyCounter::Follow counts =
      KeyCounter::FollowFrom(point, version, point.state->namespaces.forks(), follow);
  next.counted_groups = counts.segment_counts.groups();
  next.parent_counts = std::move(counts.parents);
  if (change.flushed != nullptr) {
    const SequenceNumber flushed = change.flushed->buffer->last_sequence();
    VARVE_ASSERT(flushed > next.flushed_sequence);
    next.flushed_sequence = flushed;
    change.flushed->namespaces.WriteTo(&next);
    std::erase_if(next.log_ends, [&](const LogEnd& end) {
      // One that is kept for its values is found under the log's name for a while: what a recovery
      // cut from it must not come back.
      return end.last_sequence <= flushed && !parts_.caches->values.HoldsOfLog(end.file_number);
    });
  }
  if (change.ingested != nullptr) next.flushed_sequence = change.ingested->last;
  CopyNumbersTo(&next);
  VARVE_ASSERT(next.clock_mark <= parts_.clock->mark());
  next.clock_mark = parts_.clock->mark();
  return next;
}

void VersionSet::RaiseHorizonsOf(const std::vector<Horizon>& before, const TreeChange& change,
                                 const Version& version, Manifest* next) const {
  if (!next->has_history || (before.empty() && next->retired.empty())) return;
  std::vector<RetiredGeneration> retired;
  NamespaceTable namespaces;
  {
    absl::MutexLock lock(&parts_.versions->mutex());
    retired = parts_.versions->RetiredGenerationsLocked();
    namespaces = parts_.versions->PresentLocked()->namespaces;
  }
  const NamespaceTable flushed(*next);
  HorizonRise rise;
  rise.flushed = next->flushed_sequence;
  // That a history ends counts once it is in segments: a crash could take it back until then.
  rise.limits = [&](NamespaceId space) {
    const std::optional<HistoryLimits> now = horizons_.LimitsOf(namespaces, space);
    const std::optional<HistoryLimits> then = horizons_.LimitsOf(flushed, space);
    return (now && now->on()) || !then ? now : then;
  };
  const uint64_t now_ms = parts_.clock->NowMillis();
  rise.version_before = [&](uint64_t ago_ms) {
    return times_.VersionAt(now_ms - std::min(now_ms, ago_ms), next->flushed_sequence);
  };
  for (const auto& [generation, bytes] : change.written) {
    for (const ManifestNamespace& entry : flushed.entries()) {
      if (entry.generation == generation) rise.written.emplace_back(entry.id, bytes);
    }
  }
  // What a namespace left behind counts like what was written to it; its bytes in buffers have been
  // flushed by now.
  for (const RetiredGeneration& each : retired) {
    const bool is_news =
        each.retired_at > manifest_.flushed_sequence && each.retired_at <= rise.flushed;
    if (is_news && each.generation != kNoGeneration && !flushed.Holds(each.generation)) {
      const RangeEstimate left =
          EstimateRange(version, TreeKey(each.generation, "").view(), EndTreeKey(each.generation));
      rise.written.emplace_back(each.space, static_cast<uint64_t>(left.bytes));
    }
  }
  next->horizons =
      RaiseHorizons(WithLastLimits(before, retired, flushed, rise.flushed, parts_.options->history),
                    retired, rise);
  std::erase_if(retired, [&](const RetiredGeneration& each) {
    return each.retired_at > next->flushed_sequence || !IsKept(each, next->horizons);
  });
  std::vector<NamespaceGeneration> generations;
  for (const RetiredGeneration& each : retired) generations.push_back(each.generation);
  if (change.flushed != nullptr)
    next->forks = change.flushed->namespaces.ForksOf(std::move(generations)).all();
  next->retired = std::move(retired);
}

absl::Status VersionSet::Install(const TreeChange& change, std::vector<Level> levels,
                                 KeyCounter::Follower follow) {
  VARVE_ASSERT(change.ingested == nullptr ||
               manifest_.flushed_sequence + 1 == change.ingested->first);
  const std::shared_ptr<const Version> before = parts_.versions->PresentVersion();
  const auto version = std::make_shared<const Version>(std::move(levels), before.get());
  Manifest next = NextManifest(change, *version, follow);
  if (change.flushed != nullptr && next.has_history)
    VARVE_RETURN_IF_ERROR(KeepTimes(next.flushed_sequence, &next));
  const std::vector<Horizon> horizons = horizons_.All();
  RaiseHorizonsOf(horizons, change, *version, &next);
  const bool keeps_changes = KeepChanges(change, /*is_recovery=*/false, &next);
  const std::unordered_set<uint64_t> live = SegmentNumbers(next);
  VARVE_ASSERT(change.segments.empty() || live.contains(change.segments.front()->info().number));
  VARVE_RETURN_IF_ERROR(WriteManifest(parts_.file_system, parts_.directory, next));
  horizons_.Install(horizons, next.horizons);
  if (keeps_changes) changes_.NoteInstalled();
  // Should this fail, the manifest on disk is as good as the one before it, with which the next try
  // begins: what it retired is still there.
  VARVE_RETURN_IF_ERROR(Publish(version, next, change, follow));
  const uint64_t old_times = manifest_.times.number;
  manifest_ = std::move(next);
  if (old_times != 0 && old_times != manifest_.times.number)
    RemoveFile(parts_.file_system, TimeFilePath(parts_.directory, old_times));
  RemoveUnused(*before, *version, live, change.flushed != nullptr);
  if (!in_doubt_.empty()) {
    TryWithMemory([this] {
      install_mutex_.AssertHeld();
      DropUnnamed(manifest_);
    });
  }
  return absl::OkStatus();
}

absl::Status VersionSet::KeepTimes(SequenceNumber flushed, Manifest* next) {
  const std::vector<TimeMark> marks = times_.MarksBetween(manifest_.flushed_sequence, flushed);
  const uint64_t now = parts_.clock->NowMillis();
  if (const auto old = times_.VersionAt(now - std::min(now, kExactMillis), flushed)) {
    SequenceNumber kept = kMaxSequence;  // from here on versions can be read at their times
    for (const Horizon& horizon : horizons_.All()) kept = std::min(kept, horizon.first);
    times_.ThinUpTo(std::min(*old, kept));
  }
  const bool is_new = next->times.number == 0 || time_file_failed_ ||
                      marks_in_time_file_ > 2 * times_.size() + kFewestMarksThinned;
  const std::vector<TimeMark> written = is_new ? times_.MarksBetween(kNoSequence, flushed) : marks;
  if (written.empty()) return absl::OkStatus();
  absl::StatusOr<TimeFilePlace> place =
      is_new ? CreateTimeFile(parts_.file_system, parts_.directory, NewFileNumber(), written)
             : AppendToTimeFile(parts_.file_system, parts_.directory, next->times, written);
  // After a failed sync the kernel may call the next one good: the next try begins a new file.
  time_file_failed_ = !place.ok();
  VARVE_RETURN_IF_ERROR(place.status());
  next->times = *place;
  CopyNumbersTo(next);
  marks_in_time_file_ = is_new ? written.size() : marks_in_time_file_ + written.size();
  return absl::OkStatus();
}

absl::Status VersionSet::Publish(const std::shared_ptr<const Version>& version,
                                 const Manifest& manifest, const TreeChange& change,
                                 KeyCounter::Follower follow) {
  SuperVersions& versions = *parts_.versions;
  const FullBuffer* const flushed = change.flushed;
  const SnapshotList::Held held = versions.HeldSnapshots();
  const SequenceNumber oldest_reader =
      held.sequences.empty() ? held.visible : held.sequences.front();
  const SequenceNumber forgotten = std::min(manifest.flushed_sequence, oldest_reader);
  absl::MutexLock lock(&versions.mutex());
  const std::shared_ptr<SuperVersion> next = versions.CopyLocked();
  next->version = version;
  if (change.ingested != nullptr) {
    VARVE_ASSERT(IngestStep::MayTake(versions, change.ingested->first));
    IngestStep::Prepare(versions, change.ingested->last, next.get());
    next->namespaces_changed = change.ingested->last;  // quotas count anew
  }
  VARVE_ASSERT(manifest.flushed_sequence >= manifest_.flushed_sequence);
  std::vector<RangeTombstone> tombstones;  // still in buffers
  if (flushed != nullptr) {
    if (!next->namespaces.forks().empty())
      next->namespaces.ForgetForks(
          versions.GenerationsRetiredAfterLocked(forgotten, manifest.horizons));
    const size_t taken = std::erase(next->full, flushed->buffer);
    VARVE_ASSERT(taken == 1);
    if (!flushed->buffer->range_tombstones().empty()) {
      for (const RangeTombstone& tombstone : versions.BufferedTombstonesLocked()) {
        if (tombstone.sequence > manifest.flushed_sequence) tombstones.push_back(tombstone);
      }
      next->buffered_tombstones = std::make_shared<const RangeTombstoneList>(tombstones);
    }
  }
  // More segments may have been counted since the manifest was made.
  KeyCounter::Follow counts =
      parts_.counter->FollowLocked(*version, next->namespaces.forks(), follow);

  // A namespace may have asked for a history while the manifest was written that ends its last one.
  horizons_.NoteNamespaces(next->namespaces, versions.LastSequenceLocked());
  if (change.ingested != nullptr) VARVE_RETURN_IF_ERROR(change.ingested->append());

  // From here on nothing may fail.
  parts_.counter->ApplyLocked(std::move(counts), change.sees_less,
                              flushed != nullptr ? &manifest.flushed_sequence : nullptr);
  if (flushed != nullptr)
    versions.PopFlushedLocked(manifest.flushed_sequence, std::move(tombstones), forgotten,
                              manifest.horizons);
  if (change.ingested != nullptr) {
    IngestStep::Publish(&versions, change.ingested->last, next);
  } else {
    versions.PublishLocked(next);
  }
  if (installed_ != nullptr) installed_(flushed != nullptr);
  return absl::OkStatus();
}

void VersionSet::RemoveUnused(const Version& before, const Version& version,
                              const std::unordered_set<uint64_t>& live, bool flushed) {
  for (const Version::ValueFileUse& use : before.value_files()) {
    if (version.FindValueFile(use.file->number()) == nullptr)
      use.file->MarkObsolete(parts_.remover);
  }
  for (const Version::ValueFileUse& use : version.value_files()) use.file->MarkObsolete(nullptr);
  if (flushed) {
    RetireLog(parts_.log->get(), parts_.caches->values, manifest_.flushed_sequence);
    log_bytes_at_flush_.store((*parts_.log)->live_bytes());
  }
  for (const Run* run : before.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      if (!live.contains(segment->info().number)) segment->MarkObsolete(parts_.remover);
    }
  }
}

void VersionSet::DropUninstalled(const std::vector<std::shared_ptr<Segment>>& segments) noexcept {
  try {
    // Before anything else that takes memory.
    in_doubt_.insert(in_doubt_.end(), segments.begin(), segments.end());
    const absl::StatusOr<Manifest> on_disk = ReadManifest(parts_.file_system, parts_.directory);
    if (on_disk.ok()) DropUnnamed(*on_disk);
  } catch (const std::exception&) {
    // Without memory they go with the next manifest, or at the next open.
  }
}

void VersionSet::DropUnnamed(const Manifest& on_disk) {
  const std::unordered_set<uint64_t> before = SegmentNumbers(manifest_),
                                     after = SegmentNumbers(on_disk);
  const std::unordered_set<uint64_t> values_before = ValueFileNumbers(manifest_),
                                     values_after = ValueFileNumbers(on_disk);
  std::erase_if(in_doubt_, [&](const std::shared_ptr<Segment>& segment) {
    const uint64_t number = segment->info().number;
    if (before.contains(number)) return true;
    if (after.contains(number)) return false;
    segment->MarkObsolete(parts_.remover);
    for (const std::shared_ptr<ValueFile>& file : segment->value_files()) {
      if (!values_before.contains(file->number()) && !values_after.contains(file->number()))
        file->MarkObsolete(parts_.remover);
    }
    return true;
  });
}

}  // namespace varve
