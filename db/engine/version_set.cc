#include "db/engine/version_set.h"

#include <algorithm>
#include <exception>
#include <unordered_set>
#include <utility>

#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/history/time_file.h"
#include "db/version/version_edit.h"
#include "spdlog/spdlog.h"
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

// Raises `number` to `least`.
template <typename Number>
void RaiseTo(std::atomic<Number>* number, Number least) {
  for (Number now = number->load(); now < least && !number->compare_exchange_weak(now, least);) {
  }
}

}  // namespace

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
  const SnapshotList::Held held = parts_.versions->HeldSnapshots();
  NamespaceForks forks;
  std::function<bool(NamespaceGeneration)> is_live =
      parts_.versions->LiveGenerations(held, (*parts_.log)->durable_sequence(), &forks);
  return {.file_system = parts_.file_system,
          .directory = parts_.directory,
          .options = parts_.options,
          .caches = parts_.caches,
          .next_file_number = [this] { return NewFileNumber(); },
          .snapshots = held.sequences,
          .is_live = std::move(is_live),
          .forks = std::move(forks),
          .cancel = cancel,
          .is_urgent = std::move(is_urgent)};
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
  if (!installed.ok()) DropUninstalled(change.segments);
  return installed;
}

Manifest VersionSet::NextManifest(const TreeChange& change, const Version& version,
                                  KeyCounter::Follower follow) const {
  Manifest next = manifest_;
  next.levels = ManifestLevels(version.levels());
  next.clean_end = false;
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
  CopyNumbersTo(&next);
  VARVE_ASSERT(next.clock_mark <= parts_.clock->mark());
  next.clock_mark = parts_.clock->mark();
  return next;
}

absl::Status VersionSet::Install(const TreeChange& change, std::vector<Level> levels,
                                 KeyCounter::Follower follow) {
  const std::shared_ptr<const Version> before = parts_.versions->PresentVersion();
  const auto version = std::make_shared<const Version>(std::move(levels), before.get());
  Manifest next = NextManifest(change, *version, follow);
  if (change.flushed != nullptr && next.has_history)
    VARVE_RETURN_IF_ERROR(KeepTimes(next.flushed_sequence, &next));
  const std::unordered_set<uint64_t> live = SegmentNumbers(next);
  VARVE_ASSERT(change.segments.empty() || live.contains(change.segments.front()->info().number));
  VARVE_RETURN_IF_ERROR(WriteManifest(parts_.file_system, parts_.directory, next));
  // Should this fail, the manifest on disk is as good as the one before it, with which the next try
  // begins: what it retired is still there.
  Publish(version, next, change, follow);
  const uint64_t old_times = manifest_.times.number;
  manifest_ = std::move(next);
  if (old_times != 0 && old_times != manifest_.times.number)
    RemoveFile(parts_.file_system, TimeFilePath(parts_.directory, old_times));
  RemoveUnused(*before, *version, live, change.flushed != nullptr);
  return absl::OkStatus();
}

absl::Status VersionSet::KeepTimes(SequenceNumber flushed, Manifest* next) {
  const std::vector<TimeMark> marks = times_.MarksBetween(manifest_.flushed_sequence, flushed);
  const uint64_t now = parts_.clock->NowMillis();
  if (const auto old = times_.VersionAt(now - std::min(now, kExactMillis), flushed))
    times_.ThinUpTo(*old);
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

void VersionSet::Publish(const std::shared_ptr<const Version>& version, const Manifest& manifest,
                         const TreeChange& change, KeyCounter::Follower follow) {
  SuperVersions& versions = *parts_.versions;
  const FullBuffer* const flushed = change.flushed;
  const SnapshotList::Held held = versions.HeldSnapshots();
  const SequenceNumber oldest_reader =
      held.sequences.empty() ? held.visible : held.sequences.front();
  const SequenceNumber forgotten = std::min(manifest.flushed_sequence, oldest_reader);
  absl::MutexLock lock(&versions.mutex());
  const std::shared_ptr<SuperVersion> next = versions.CopyLocked();
  next->version = version;
  VARVE_ASSERT(manifest.flushed_sequence >= manifest_.flushed_sequence);
  std::vector<RangeTombstone> tombstones;  // still in buffers
  if (flushed != nullptr) {
    if (!next->namespaces.forks().empty())
      next->namespaces.ForgetForks(versions.GenerationsRetiredAfterLocked(forgotten));
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

  // From here on nothing may fail.
  parts_.counter->ApplyLocked(std::move(counts), change.sees_less,
                              flushed != nullptr ? &manifest.flushed_sequence : nullptr);
  if (flushed != nullptr)
    versions.PopFlushedLocked(manifest.flushed_sequence, std::move(tombstones), forgotten);
  versions.PublishLocked(next);
  if (installed_ != nullptr) installed_(flushed != nullptr);
}

void VersionSet::RemoveUnused(const Version& before, const Version& version,
                              const std::unordered_set<uint64_t>& live, bool flushed) {
  for (const Version::ValueFileUse& use : before.value_files()) {
    if (version.FindValueFile(use.file->number()) == nullptr)
      use.file->MarkObsolete(parts_.remover);
  }
  for (const Version::ValueFileUse& use : version.value_files()) use.file->MarkObsolete(nullptr);
  if (flushed) {
    RetireLog(manifest_.flushed_sequence);
    log_bytes_at_flush_.store((*parts_.log)->live_bytes());
  }
  for (const Run* run : before.runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments) {
      if (!live.contains(segment->info().number)) segment->MarkObsolete(parts_.remover);
    }
  }
}

void VersionSet::RetireLog(SequenceNumber flushed) {
  Log& log = *parts_.log->get();
  std::vector<std::pair<std::shared_ptr<ValueFile>, LogEnd>> kept;
  // Without memory the files are left to the next time.
  TryWithMemory([&] {
    kept.reserve(log.Files().size());
    log.Retire(flushed, [&](const LogEnd& end) {
      std::shared_ptr<ValueFile> file = parts_.caches->values.Find(end.file_number);
      if (file == nullptr) return false;
      kept.emplace_back(std::move(file), end);
      return true;
    });
  });
  for (const auto& each : kept) {
    const std::shared_ptr<ValueFile>& file = each.first;
    const LogEnd& end = each.second;
    // What fails here is done by the next open; until then the file stays as it is.
    const absl::Status named = GuardMemory("keeping a log file for its values", [&] {
      return file->LeaveLog(LogPageAlign(end.offset));
    });
    if (!named.ok()) TryWithMemory([&] { spdlog::warn("{}", named.ToString()); });
  }
}

void VersionSet::DropUninstalled(
    const std::vector<std::shared_ptr<Segment>>& segments) const noexcept {
  try {
    const absl::StatusOr<Manifest> on_disk = ReadManifest(parts_.file_system, parts_.directory);
    // Orphans, if that is what they are, go at the next open.
    if (on_disk.ok()) DropUnnamed(segments, *on_disk);
  } catch (const std::exception&) {
    // Without memory they go at the next open, too.
  }
}

void VersionSet::DropUnnamed(const std::vector<std::shared_ptr<Segment>>& segments,
                             const Manifest& on_disk) const {
  const std::unordered_set<uint64_t> before = SegmentNumbers(manifest_),
                                     after = SegmentNumbers(on_disk);
  const std::unordered_set<uint64_t> values_before = ValueFileNumbers(manifest_),
                                     values_after = ValueFileNumbers(on_disk);
  for (const std::shared_ptr<Segment>& segment : segments) {
    const uint64_t number = segment->info().number;
    if (before.contains(number) || after.contains(number)) continue;
    segment->MarkObsolete(parts_.remover);
    for (const std::shared_ptr<ValueFile>& file : segment->value_files()) {
      if (!values_before.contains(file->number()) && !values_after.contains(file->number()))
        file->MarkObsolete(parts_.remover);
    }
  }
}

}  // namespace varve
