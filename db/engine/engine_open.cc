// Engine: from a directory to a running store.
#include <algorithm>
#include <optional>

#include "db/compaction/value_collection.h"
#include "db/engine/engine.h"
#include "db/format/batch_codec.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/history_status.h"

namespace varve {
namespace {

constexpr size_t kSmallestLogFile = 1u << 20;
constexpr size_t kLargestLogFile = 64u << 20;

size_t LogFileSize(const EngineOptions& options) {
  if (options.log_file_size != 0) return options.log_file_size;
  return std::clamp(options.write_buffer_size, kSmallestLogFile, kLargestLogFile);
}

absl::Status CheckOptions(const EngineOptions& options) {
  if (options.write_buffer_size < (4u << 10))
    return absl::InvalidArgumentError("write_buffer_size: at least 4 KiB");
  if (options.segment_size < (4u << 10))
    return absl::InvalidArgumentError("segment_size: at least 4 KiB");
  if (options.max_full_write_buffers < 1)
    return absl::InvalidArgumentError("max_full_write_buffers: at least 1");
  if (options.max_background_jobs < 0 || options.max_background_jobs > kMostBackgroundJobs) {
    return absl::InvalidArgumentError(
        fmt::format("max_background_jobs: 0 to {}", kMostBackgroundJobs));
  }
  if (options.runs_per_level < 2) return absl::InvalidArgumentError("runs_per_level: at least 2");
  return absl::OkStatus();
}

// Returns whether segments hold a part of the expiry index.
bool HoldsExpiryIndex(const Version& version) {
  return std::any_of(version.runs().begin(), version.runs().end(), [](const Run* run) {
    return !run->segments.empty() &&
           ReachesTo(run->segments.back()->info(), FirstTreeKey(kExpiryGeneration));
  });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Open(const std::string& directory,
                                                     const EngineOptions& options,
                                                     const ReplayListener& on_replay) {
  VARVE_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Engine> engine(new Engine(directory, options));
  VARVE_RETURN_IF_ERROR(engine->Recover(on_replay));
  return engine;
}

absl::Status Engine::Recover(const ReplayListener& on_replay) {
  VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(directory_));
  VARVE_ASSIGN_OR_RETURN(directory_lock_, file_system_->Lock(directory_ + "/LOCK"));
  VARVE_RETURN_IF_ERROR(version_set_.LoadOrCreate());
  if ((options_.history.on() || options_.changes.on()) &&
      !version_set_.CurrentManifest().has_history)
    return NoPlaceForHistory();
  VARVE_RETURN_IF_ERROR(version_set_.RemoveOrphans());
  VARVE_RETURN_IF_ERROR(version_set_.OpenSegments());
  const std::shared_ptr<const Version> version = versions_.PresentVersion();
  {
    absl::MutexLock lock(&versions_.mutex());
    sweeper_.StartLocked(HoldsExpiryIndex(*version));
  }
  VARVE_RETURN_IF_ERROR(FindValueFiles(file_system_, directory_, *version));
  LogRecovery recovery;
  VARVE_RETURN_IF_ERROR(ReplayLog(on_replay, &recovery));
  VARVE_RETURN_IF_ERROR(StartLog(recovery));
  StartThreads();
  return absl::OkStatus();
}

absl::Status Engine::ReplayLog(const ReplayListener& on_replay, LogRecovery* recovery) {
  const Manifest manifest = version_set_.CurrentManifest();
  absl::StatusOr<LogRecovery> recovered = RecoverLog(
      file_system_, directory_, manifest.store_id, manifest.flushed_sequence, manifest.log_ends,
      [this](std::string_view operations, SequenceNumber first, uint32_t count) {
        return ApplyRecovered(operations, first, count);
      },
      on_replay, [this](const TimeMark& mark) { version_set_.times().Add(mark); });
  if (absl::IsDataLoss(recovered.status())) {
    return absl::DataLossError(
        fmt::format("{}; restore a copy of the store, or let `client_main repair {}` keep the "
                    "operations before and "
                    "behind the damage and list those that are lost",
                    std::string(recovered.status().message()), directory_));
  }
  VARVE_RETURN_IF_ERROR(recovered.status());
  *recovery = *std::move(recovered);
  if (recovery->torn_bytes != 0) {
    spdlog::warn("log: {} bytes behind sequence {} were never acknowledged and are cut away",
                 recovery->torn_bytes, recovery->last_sequence);
  }
  version_set_.SkipFileNumbers(recovery->last_file_number);
  version_set_.NoteReplayed(recovery->last_sequence);
  absl::MutexLock lock(&versions_.mutex());
  versions_.show_queue().ShowLocked(versions_.LastSequenceLocked());
  recovered_.sequence = versions_.LastSequenceLocked();
  return absl::OkStatus();
}

absl::Status Engine::ApplyRecovered(std::string_view operations, SequenceNumber first,
                                    uint32_t count) {
  ChangeRecorder& changes = version_set_.changes();
  changes.WaitForRoom();
  absl::MutexLock lock(&versions_.mutex());
  std::vector<Commit::Operation> recovered;
  std::optional<NamespaceTable> namespaces;  // a copy, only once the batch changes them
  bool makes_sense = count != 0 && first > versions_.LastSequenceLocked();
  BatchReader reader(operations);
  Commit::Operation operation;
  while (reader.Next(&operation.record)) {
    operation.record.sequence = first + recovered.size();
    operation.hash = HashKey(operation.record.key);
    if (NamespaceTable::IsChangedBy(operation.record)) {
      if (!namespaces) namespaces = versions_.PresentLocked()->namespaces;
      makes_sense = makes_sense && namespaces->Replay(operation.record).ok();
    }
    recovered.push_back(operation);
  }
  if (!reader.ok() || !makes_sense || recovered.size() != count) {
    return absl::DataLossError(
        fmt::format("log in {}: the batch at sequence {} has a good checksum but makes no sense",
                    directory_, first));
  }
  if (namespaces) version_set_.SkipGenerations(namespaces->HighestGeneration());
  recovered_.log_bytes += operations.size();
  if (versions_.NeedsOwnBuffer(recovered.size())) {
    if (!versions_.ActiveBufferIsEmptyLocked()) versions_.RotateLocked(/*log_bytes=*/0);
    versions_.MakeActiveBufferLocked(recovered.size());
  }
  size_t bytes = 0;
  std::unique_ptr<BatchApplier::Change> change =
      applier_.PrepareLocked(recovered, /*counts_clones=*/false, &bytes);
  if (changes.on()) {
    changes.Reserve(operations.size());
    changes.Add({first, count, versions_.ActiveBufferIsEmptyLocked(), operations});
  }
  versions_.AdvanceLocked(first + count - 1);
  applier_.ApplyLocked(recovered, bytes, /*readers_wait=*/false, std::move(change));
  if (versions_.PresentLocked()->active->full()) versions_.RotateLocked(/*log_bytes=*/0);
  return absl::OkStatus();
}

// The manifest learns where the recovered files end before a new file is begun, so that this end is
// not taken for damage later.
absl::Status Engine::StartLog(const LogRecovery& recovery) {
  const uint64_t file_number = version_set_.NewFileNumber();
  VARVE_RETURN_IF_ERROR(version_set_.NoteRecovery(recovery));
  for (const std::string& path : recovery.obsolete_paths) {
    // The log may have given it up without having come to name it so.
    const std::optional<uint64_t> number = ParseLogFileName(path.substr(directory_.size() + 1));
    const std::shared_ptr<ValueFile> file = number ? caches_.values.Find(*number) : nullptr;
    VARVE_RETURN_IF_ERROR(file != nullptr ? file->LeaveLog(0) : file_system_->Remove(path));
  }
  const Manifest manifest = version_set_.CurrentManifest();
  if (manifest.has_history) version_set_.times().Start();
  const LogOptions log_options{
      .directory = directory_,
      .store_id = manifest.store_id,
      .format_version = manifest.has_history ? kLogFormatVersion : kLogFormatWithoutTime,
      .file_size = LogFileSize(options_),
      .group_max_bytes = options_.group_max_bytes,
      .group_max_delay = options_.group_max_delay,
      .sync_backend = Resolve(options_.sync_backend),
      .next_file_number = [this] { return version_set_.NewFileNumber(); },
      .file_thread = &threads_.files};
  VARVE_ASSIGN_OR_RETURN(std::unique_ptr<Log> log,
                         Log::Open(file_system_, log_options, file_number, recovery.last_sequence));
  log->Adopt(recovery.files);
  log_.Start(std::move(log));
  log_->AddListener([this] { OnLogProgress(); });
  return absl::OkStatus();
}

void Engine::StartThreads() {
  VARVE_ASSERT(log_.started());
  if (options_.follows) replicator().SetFollowing(true);
  watermark_.Start([this](uint64_t instant_ms) {
    return GuardMemory("marking the clock", [&] {
      WriteBatch batch;
      batch.MarkClock(instant_ms);
      return Submit({}, &batch).status();
    });
  });
  version_set_.OnInstalled([this](bool flushed) {
    pipeline_.NoteInstalledLocked(flushed);
    compactor_.NoteInstalled(flushed);
  });
  if (versions_.full_buffers() != 0) pipeline_.UpdatePressure();
  flusher_.Start();
  compactor_.Start();
  if (version_set_.changes().on()) version_set_.changes().StartThread();
  sweeper_.Start([this](WriteBatch* batch) -> absl::StatusOr<CommitResult> {
    // The primary removes what has expired.
    if (log_.follows()) return absl::CancelledError("the store follows a primary");
    return Submit({.waits_for_exclusive_write = false, .independent_keys = true}, batch);
  });
}

}  // namespace varve
