// VersionSet: from a manifest to the first super version, and the manifest of a clean end.
#include <algorithm>
#include <random>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "db/engine/version_set.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/history/time_file.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kManifestRepair =
    "take its copy or rebuild it from the segments and logs";

uint64_t RandomStoreId() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// Returns `ends`, and those `before` of files that are kept for their values: until they are
// renamed they are found under the log's name, and what a recovery cut from them must not come
// back.
std::vector<LogEnd> WithKeptFiles(const std::vector<LogEnd>& before, std::vector<LogEnd> ends,
                                  const ValueFiles& values) {
  for (const LogEnd& end : before) {
    if (!values.HoldsOfLog(end.file_number)) continue;
    const auto place = std::lower_bound(
        ends.begin(), ends.end(), end,
        [](const LogEnd& a, const LogEnd& b) { return a.file_number < b.file_number; });
    if (place == ends.end() || place->file_number != end.file_number) ends.insert(place, end);
  }
  return ends;
}

}  // namespace

absl::Status VersionSet::CreateManifest() {
  const std::string& directory = parts_.directory;
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, parts_.file_system->List(directory));
  for (const std::string& name : names) {
    if (name.ends_with(".seg") || name.ends_with(".val") || ParseLogFileName(name)) {
      return absl::DataLossError(
          fmt::format("{0}/MANIFEST is missing, but {1} is there: put it back, or let "
                      "`client_main repair {0}` {2}",
                      directory, name, kManifestRepair));
    }
  }
  if (!parts_.options->create_if_missing)
    return absl::NotFoundError(fmt::format("{}: no store here", directory));
  // Syncs the directory's name, so that a power cut does not take the store with it, even if
  // another process made the directory. If this process may not sync the parent, the other one has
  // to.
  if (absl::Status synced = parts_.file_system->SyncDirectory(ParentDirectory(directory));
      !synced.ok() && !absl::IsPermissionDenied(synced)) {
    return synced;
  }
  manifest_ = Manifest{.store_id = RandomStoreId(),
                       .next_generation = 2,
                       .namespaces = {{kDefaultNamespace, 1}},
                       .has_history = true,
                       .shares_keys = true,
                       .history_id = NewHistoryId()};
  return WriteManifest(parts_.file_system, directory, manifest_);
}

absl::Status VersionSet::LoadOrCreate() {
  absl::MutexLock lock(&install_mutex_);
  const std::string& directory = parts_.directory;
  if (parts_.file_system->OpenForRead(RepairPlanPath(directory)).ok()) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: a repair of this store was interrupted; `client_main repair {}` goes on with it",
        RepairPlanPath(directory), directory));
  }
  absl::StatusOr<Manifest> manifest = ReadManifest(parts_.file_system, directory);
  if (absl::IsDataLoss(manifest.status())) {
    return absl::DataLossError(fmt::format("{}; `client_main repair {}` would {}",
                                           std::string(manifest.status().message()), directory,
                                           kManifestRepair));
  }
  if (absl::IsNotFound(manifest.status())) {
    VARVE_RETURN_IF_ERROR(CreateManifest());
  } else {
    VARVE_RETURN_IF_ERROR(manifest.status());
    manifest_ = *std::move(manifest);
    ForgetCountsWithoutExpiry(&manifest_);
    VARVE_RETURN_IF_ERROR(LoadTimes());
  }
  next_file_number_ = manifest_.next_file_number;
  next_generation_ = manifest_.next_generation;
  parts_.clock->Mark(manifest_.clock_mark);
  return absl::OkStatus();
}

absl::Status VersionSet::LoadTimes() {
  // Recovery writes the manifest before the log takes anything of the new format.
  if (!manifest_.has_history && parts_.options->finalize_upgrade) {
    manifest_.has_history = true;
    manifest_.history_id = NewHistoryId();
  }
  manifest_.shares_keys |= parts_.options->finalize_upgrade;
  if (manifest_.times.number == 0) return absl::OkStatus();
  absl::StatusOr<std::vector<TimeMark>> marks =
      ReadTimeFile(parts_.file_system, parts_.directory, manifest_.times);
  if (absl::IsDataLoss(marks.status()) || absl::IsNotFound(marks.status())) {
    // Only the times of old versions are lost; the next flush begins a new file.
    spdlog::error("{}; the times of the versions before {} are lost",
                  std::string(marks.status().message()), manifest_.flushed_sequence + 1);
    manifest_.times = {};
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(marks.status());
  marks_in_time_file_ = marks->size();
  for (const TimeMark& mark : *marks) times_.Add(mark);
  return absl::OkStatus();
}

absl::Status VersionSet::RemoveOrphans() {
  std::unordered_set<std::string> live;
  {
    absl::MutexLock lock(&install_mutex_);
    live.insert(TimeFilePath(parts_.directory, manifest_.times.number));
    for (const ChangeFilePlace& file : manifest_.changes.files)
      live.insert(ChangeFilePath(parts_.directory, file.number));
    for (const auto& level : manifest_.levels) {
      for (const auto& run : level) {
        for (const SegmentInfo& segment : run) {
          live.insert(SegmentPath(parts_.directory, segment.number));
          for (const ValueReference& file : segment.value_files)
            live.insert(ValueFilePath(parts_.directory, file.file_number));
        }
      }
    }
  }
  VARVE_ASSIGN_OR_RETURN(std::vector<std::string> names,
                         parts_.file_system->List(parts_.directory));
  // Replaying the log may make files of changes.
  for (const std::string& name : names) {
    if (const std::optional<uint64_t> number = ParseLogFileName(name)) SkipFileNumbers(*number);
  }
  std::erase_if(names, [&](const std::string& name) {
    const bool is_orphan = (name.ends_with(".seg") || name.ends_with(".val") ||
                            ParseTimeFileName(name) || ParseChangeFileName(name)) &&
                           !live.contains(parts_.directory + "/" + name);
    return name != "MANIFEST.tmp" && name != "REPAIR.begun" && !ParseLogTemporaryName(name) &&
           !IsSpareName(name) && !is_orphan;
  });
  if (names.empty()) return absl::OkStatus();
  // The manifest that was read may be there in the kernel's memory alone. The one on disk still
  // needs what this one doesn't.
  VARVE_RETURN_IF_ERROR(parts_.file_system->SyncDirectory(parts_.directory));
  for (const std::string& name : names) {
    spdlog::info("removing {}/{}, left by a crash", parts_.directory, name);
    VARVE_RETURN_IF_ERROR(parts_.file_system->Remove(parts_.directory + "/" + name));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Level>> VersionSet::OpenLevels() {
  std::vector<Level> levels;
  for (const auto& manifest_level : manifest_.levels) {
    Level& level = levels.emplace_back();
    for (const auto& manifest_run : manifest_level) {
      Run& run = level.runs.emplace_back();
      for (const SegmentInfo& info : manifest_run) {
        absl::StatusOr<std::shared_ptr<Segment>> segment = Segment::Open(
            parts_.file_system, parts_.directory, info, parts_.caches, DamagePolicy::kContain);
        if (absl::IsNotFound(segment.status())) {
          return absl::DataLossError(
              fmt::format("{0} is missing, but {1}/MANIFEST names it: put the file back, or "
                          "restore a copy of the store; "
                          "`client_main repair {1}` would do without it",
                          SegmentPath(parts_.directory, info.number), parts_.directory));
        }
        VARVE_RETURN_IF_ERROR(segment.status());
        run.segments.push_back(*std::move(segment));
      }
    }
  }
  return levels;
}

absl::Status VersionSet::OpenSegments() {
  absl::MutexLock install_lock(&install_mutex_);
  VARVE_ASSIGN_OR_RETURN(std::vector<Level> levels, OpenLevels());
  const auto version = std::make_shared<const Version>(std::move(levels));
  const NamespaceTable namespaces(manifest_);
  store_id_ = manifest_.store_id;
  history_id_.store(manifest_.history_id);
  shares_keys_ = manifest_.shares_keys;
  changes_.feeds().Load(manifest_.feeds);
  const bool is_wanted =
      parts_.options->changes.on() || manifest_.changes.on || !manifest_.feeds.empty();
  if (manifest_.has_history && is_wanted)
    changes_.Start(manifest_.changes, namespaces, manifest_.flushed_sequence);
  absl::MutexLock lock(&parts_.versions->mutex());
  parts_.versions->StartLocked(version, namespaces, manifest_.flushed_sequence, manifest_.retired);
  if (manifest_.has_history)
    horizons_.Start(manifest_.horizons, parts_.options->history, namespaces,
                    manifest_.flushed_sequence);
  parts_.counter->StartLocked(*version, manifest_);
  return absl::OkStatus();
}

void VersionSet::NoteReplayed(SequenceNumber last) {
  horizons_.NoteReplayed(last);
  changes_.CatchUp();
  if (changes_.on() && !parts_.options->changes.on() && changes_.feeds().All()->empty())
    changes_.Stop();
}

absl::Status VersionSet::NoteRecovery(const LogRecovery& recovery) {
  absl::MutexLock lock(&install_mutex_);
  manifest_.log_ends = WithKeptFiles(manifest_.log_ends, recovery.files, parts_.caches->values);
  manifest_.clean_end = false;
  manifest_.horizons = horizons_.All();
  const bool keeps_changes = KeepChanges({}, /*is_recovery=*/true, &manifest_);
  manifest_.next_file_number = next_file_number_.load();
  VARVE_RETURN_IF_ERROR(WriteManifest(parts_.file_system, parts_.directory, manifest_));
  if (keeps_changes) changes_.NoteInstalled();
  return absl::OkStatus();
}

absl::Status VersionSet::WriteCleanEnd() {
  absl::MutexLock lock(&install_mutex_);
  manifest_.log_ends =
      WithKeptFiles(manifest_.log_ends, (*parts_.log)->Files(), parts_.caches->values);
  manifest_.clean_end = true;
  manifest_.horizons = horizons_.All();
  // All that the log has is on disk, so files may hold it, too.
  if (manifest_.has_history) {
    manifest_.feeds = *changes_.feeds().All();
    changes_.Persist(kMaxSequence, /*ahead=*/nullptr, &manifest_.changes);
  }
  CopyNumbersTo(&manifest_);
  manifest_.clock_mark = parts_.clock->mark();
  {
    absl::MutexLock commit_lock(&parts_.versions->mutex());
    parts_.counter->WriteToLocked(&manifest_);
  }
  VARVE_RETURN_IF_ERROR(WriteManifest(parts_.file_system, parts_.directory, manifest_));
  changes_.NoteInstalled();
  return absl::OkStatus();
}

}  // namespace varve
