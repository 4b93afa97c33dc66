// Engine: from a directory to a running store, and back.
//
// Opening reads the manifest and replays the log; it reads no segment, so its time doesn't depend
// on the number of keys.
#include <algorithm>
#include <random>
#include <unordered_set>
#include <utility>

#include "db/compaction/value_collection.h"
#include "db/engine/engine.h"
#include "db/format/batch_codec.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/hash.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kSmallestLogFile = 1u << 20;
constexpr size_t kLargestLogFile = 64u << 20;
constexpr std::string_view kManifestRepair =
    "take its copy or rebuild it from the segments and logs";

size_t LogFileSize(const EngineOptions& options) {
  if (options.log_file_size != 0) return options.log_file_size;
  return std::clamp(options.write_buffer_size, kSmallestLogFile, kLargestLogFile);
}

uint64_t RandomStoreId() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

absl::Status CheckOptions(const EngineOptions& options) {
  if (options.write_buffer_size < (4u << 10))
    return absl::InvalidArgumentError("write_buffer_size: at least 4 KiB");
  if (options.segment_size < (4u << 10))
    return absl::InvalidArgumentError("segment_size: at least 4 KiB");
  if (options.max_full_write_buffers < 1)
    return absl::InvalidArgumentError("max_full_write_buffers: at least 1");
  if (options.runs_per_level < 2) return absl::InvalidArgumentError("runs_per_level: at least 2");
  return absl::OkStatus();
}

// `ends`, and those `before` of files that are kept for their values: until they are renamed they
// are found under the log's name, and what a recovery cut from them must not come back.
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

absl::StatusOr<std::unique_ptr<StorageEngine>> StorageEngine::Open(const std::string& directory,
                                                                   const EngineOptions& options) {
#ifdef NDEBUG
  // Debian builds abseil with deadlock detection on, which costs each lock more than the rest of
  // its work (docs/decisions/0001).
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
#endif
  return GuardMemory("opening the store", [&] { return Engine::Open(directory, options); });
}

absl::StatusOr<std::unique_ptr<StorageEngine>> Engine::Open(const std::string& directory,
                                                            const EngineOptions& options) {
  VARVE_RETURN_IF_ERROR(CheckOptions(options));
  std::unique_ptr<Engine> engine(new Engine(directory, options));
  VARVE_RETURN_IF_ERROR(engine->Recover());
  return engine;
}

Engine::Engine(std::string directory, const EngineOptions& options)
    : directory_(std::move(directory)),
      options_(options),
      clock_(options.clock != nullptr ? *options.clock : RealClock()),
      file_system_(options.file_system != nullptr ? options.file_system : PosixFileSystem()),
      picker_(options.compaction_picker != nullptr ? options.compaction_picker
                                                   : LazyLevelingPicker()),
      caches_(options.offset_table_cache_size, options.block_cache_size),
      remover_(file_system_, &file_thread_),
      state_(nullptr) {}

Engine::~Engine() {
  if (const absl::Status status = Close(); !status.ok() && log_ != nullptr)
    TryWithMemory([&] { spdlog::error("close: {}", status.ToString()); });
}

// --- Open ----------------------------------------------------------------------------------------

absl::Status Engine::Recover() {
  VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(directory_));
  VARVE_ASSIGN_OR_RETURN(directory_lock_, file_system_->Lock(directory_ + "/LOCK"));
  VARVE_RETURN_IF_ERROR(LoadOrCreateManifest());
  VARVE_RETURN_IF_ERROR(RemoveOrphans());
  VARVE_RETURN_IF_ERROR(OpenSegments());
  VARVE_RETURN_IF_ERROR(FindValueFiles(file_system_, directory_, *PresentVersion()));
  LogRecovery recovery;
  VARVE_RETURN_IF_ERROR(ReplayLog(&recovery));
  VARVE_RETURN_IF_ERROR(StartLog(recovery));
  flush_thread_ = std::thread([this] { FlushLoop(); });
  compaction_thread_ = std::thread([this] { CompactionLoop(); });
  expiry_thread_ = std::thread([this] { ExpiryLoop(); });
  return absl::OkStatus();
}

absl::Status Engine::LoadOrCreateManifest() {
  absl::MutexLock lock(&install_mutex_);
  if (file_system_->OpenForRead(RepairPlanPath(directory_)).ok()) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: a repair of this store was interrupted; `client_main repair {}` goes on with it",
        RepairPlanPath(directory_), directory_));
  }
  absl::StatusOr<Manifest> manifest = ReadManifest(file_system_, directory_);
  if (absl::IsNotFound(manifest.status())) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
    for (const std::string& name : names) {
      if (name.ends_with(".seg") || name.ends_with(".val") || ParseLogFileName(name)) {
        return absl::DataLossError(
            fmt::format("{0}/MANIFEST is missing, but {1} is there: put it back, or let "
                        "`client_main repair {0}` {2}",
                        directory_, name, kManifestRepair));
      }
    }
    if (!options_.create_if_missing)
      return absl::NotFoundError(fmt::format("{}: no store here", directory_));
    // Whoever made the directory, a power cut must not take it, and all that will be in it. Where
    // we may not, its maker has to.
    if (absl::Status synced = file_system_->SyncDirectory(ParentDirectory(directory_));
        !synced.ok() && !absl::IsPermissionDenied(synced)) {
      return synced;
    }
    manifest_ = Manifest{
        .store_id = RandomStoreId(), .next_generation = 2, .namespaces = {{kDefaultNamespace, 1}}};
    VARVE_RETURN_IF_ERROR(WriteManifest(file_system_, directory_, manifest_));
  } else if (absl::IsDataLoss(manifest.status())) {
    return absl::DataLossError(fmt::format("{}; `client_main repair {}` would {}",
                                           std::string(manifest.status().message()), directory_,
                                           kManifestRepair));
  } else {
    VARVE_RETURN_IF_ERROR(manifest.status());
    manifest_ = *std::move(manifest);
  }
  store_id_ = manifest_.store_id;
  next_file_number_ = manifest_.next_file_number;
  next_generation_ = manifest_.next_generation;
  clock_.Mark(manifest_.clock_mark);
  return absl::OkStatus();
}

// Segments and value files that no manifest names come from a flush or merge that a crash cut
// short; spares were kept for reuse by earlier versions.
absl::Status Engine::RemoveOrphans() {
  std::unordered_set<std::string> live;
  {
    absl::MutexLock lock(&install_mutex_);
    for (const auto& level : manifest_.levels) {
      for (const auto& run : level) {
        for (const SegmentInfo& segment : run) {
          live.insert(SegmentPath(directory_, segment.number));
          for (const ValueReference& file : segment.value_files)
            live.insert(ValueFilePath(directory_, file.file_number));
        }
      }
    }
  }
  VARVE_ASSIGN_OR_RETURN(std::vector<std::string> names, file_system_->List(directory_));
  std::erase_if(names, [&](const std::string& name) {
    const bool is_orphan = (name.ends_with(".seg") || name.ends_with(".val")) &&
                           !live.contains(directory_ + "/" + name);
    return name != "MANIFEST.tmp" && name != "REPAIR.begun" && !ParseLogTemporaryName(name) &&
           !IsSpareName(name) && !is_orphan;
  });
  if (names.empty()) return absl::OkStatus();
  // The manifest that was read may be there in the kernel's memory alone. The one on disk still
  // needs what this one doesn't.
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(directory_));
  for (const std::string& name : names) {
    spdlog::info("removing {}/{}, left by a crash", directory_, name);
    VARVE_RETURN_IF_ERROR(file_system_->Remove(directory_ + "/" + name));
  }
  return absl::OkStatus();
}

absl::Status Engine::OpenSegments() {
  absl::MutexLock install_lock(&install_mutex_);
  std::vector<Level> levels;
  for (const auto& manifest_level : manifest_.levels) {
    Level& level = levels.emplace_back();
    for (const auto& manifest_run : manifest_level) {
      Run& run = level.runs.emplace_back();
      for (const SegmentInfo& info : manifest_run) {
        absl::StatusOr<std::shared_ptr<Segment>> segment =
            Segment::Open(file_system_, directory_, info, &caches_, DamagePolicy::kContain);
        if (absl::IsNotFound(segment.status())) {
          return absl::DataLossError(
              fmt::format("{0} is missing, but {1}/MANIFEST names it: put the file back, or "
                          "restore a copy of the store; "
                          "`client_main repair {1}` would do without it",
                          SegmentPath(directory_, info.number), directory_));
        }
        VARVE_RETURN_IF_ERROR(segment.status());
        run.segments.push_back(*std::move(segment));
      }
    }
  }
  absl::MutexLock lock(&commit_mutex_);
  last_sequence_ = flushed_ = manifest_.flushed_sequence;
  auto state = std::make_shared<SuperVersion>();
  state->active = std::make_shared<WriteBuffer>(options_.write_buffer_size, last_sequence_ + 1, 0,
                                                buffer_memory_);
  state->version = std::make_shared<const Version>(std::move(levels));
  state->namespaces = NamespaceTable(manifest_);
  ledger_ = KeyLedger(manifest_.settled);
  base_tallies_ = manifest_.base_tallies;
  ledger_.Tidy(*state->version);
  const bool indexed =
      std::any_of(state->version->runs().begin(), state->version->runs().end(), [](const Run* run) {
        return !run->segments.empty() &&
               ReachesTo(run->segments.back()->info(), FirstTreeKey(kExpiryGeneration));
      });
  due_from_.fill(indexed ? 0 : kNeverDue);
  present_ = state;
  expires_by_default_.store(present_->namespaces.expires_by_default());
  state_.Replace(std::move(state));
  return absl::OkStatus();
}

absl::Status Engine::ReplayLog(LogRecovery* recovery) {
  absl::MutexLock install_lock(&install_mutex_);
  absl::StatusOr<LogRecovery> recovered = RecoverLog(
      file_system_, directory_, store_id_, manifest_.flushed_sequence, manifest_.log_ends,
      [this](std::string_view operations, SequenceNumber first, uint32_t count) {
        return ApplyRecovered(operations, first, count);
      });
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
  next_file_number_ = std::max(next_file_number_.load(), recovery->last_file_number + 1);
  absl::MutexLock lock(&commit_mutex_);
  visible_ = recovered_sequence_ = last_sequence_;
  return absl::OkStatus();
}

absl::Status Engine::ApplyRecovered(std::string_view operations, SequenceNumber first,
                                    uint32_t count) {
  absl::MutexLock lock(&commit_mutex_);
  std::vector<Commit::Operation> recovered;
  std::optional<NamespaceTable> namespaces;  // a copy, only once the batch changes them
  bool makes_sense = true;
  BatchReader reader(operations);
  Commit::Operation operation;
  while (reader.Next(&operation.record)) {
    operation.record.sequence = first + recovered.size();
    operation.hash = HashKey(operation.record.key);
    if (NamespaceTable::IsChangedBy(operation.record)) {
      if (!namespaces) namespaces = present_->namespaces;
      makes_sense = makes_sense && namespaces->Replay(operation.record).ok();
    }
    recovered.push_back(operation);
  }
  if (!reader.ok() || !makes_sense || recovered.size() != count) {
    return absl::DataLossError(
        fmt::format("log in {}: the batch at sequence {} has a good checksum but makes no sense",
                    directory_, first));
  }
  if (namespaces)
    next_generation_ = std::max(next_generation_.load(), namespaces->HighestGeneration() + 1);
  FitActiveBufferLocked(recovered.size());
  std::unique_ptr<StateChange> change = PrepareLocked(recovered);
  last_sequence_ = first + count - 1;
  ApplyLocked(recovered, /*gated=*/false, std::move(change));
  if (present_->active->full()) RotateBufferLocked();
  return absl::OkStatus();
}

// The manifest learns where the recovered files end before a new file is begun, so that this cut is
// not taken for damage later.
absl::Status Engine::StartLog(const LogRecovery& recovery) {
  const uint64_t file_number = NewFileNumber();
  {
    absl::MutexLock lock(&install_mutex_);
    manifest_.log_ends = WithKeptFiles(manifest_.log_ends, recovery.files, caches_.values);
    manifest_.clean_end = false;
    manifest_.next_file_number = next_file_number_.load();
    VARVE_RETURN_IF_ERROR(WriteManifest(file_system_, directory_, manifest_));
  }
  for (const std::string& path : recovery.obsolete_paths) {
    // The log may have given it up without having come to name it so.
    const std::optional<uint64_t> number = ParseLogFileName(path.substr(directory_.size() + 1));
    const std::shared_ptr<ValueFile> file = number ? caches_.values.Find(*number) : nullptr;
    VARVE_RETURN_IF_ERROR(file != nullptr ? file->LeaveLog(0) : file_system_->Remove(path));
  }
  const LogOptions log_options{.directory = directory_,
                               .store_id = store_id_,
                               .file_size = LogFileSize(options_),
                               .group_max_bytes = options_.group_max_bytes,
                               .group_max_delay = options_.group_max_delay,
                               .sync_backend = Resolve(options_.sync_backend),
                               .next_file_number = [this] { return NewFileNumber(); },
                               .file_thread = &file_thread_};
  VARVE_ASSIGN_OR_RETURN(log_,
                         Log::Open(file_system_, log_options, file_number, recovery.last_sequence));
  log_->Adopt(recovery.files);
  durability_listener_ = log_->AddListener([this] { OnLogProgress(); });
  return absl::OkStatus();
}

// --- Close ---------------------------------------------------------------------------------------

void Engine::StopThreads() {
  cancel_compaction_ = true;
  {
    absl::MutexLock lock(&commit_mutex_);
    stopping_ = true;
    flush_work_.SignalAll();
    compaction_work_.SignalAll();
    expiry_work_.SignalAll();
    room_.SignalAll();
  }
  if (flush_thread_.joinable()) flush_thread_.join();
  if (compaction_thread_.joinable()) compaction_thread_.join();
  if (expiry_thread_.joinable()) expiry_thread_.join();
}

absl::Status Engine::CloseInside() {
  {
    absl::MutexLock lock(&commit_mutex_);
    if (std::exchange(closed_, true)) return absl::OkStatus();
  }
  StopThreads();
  if (log_ == nullptr) return absl::OkStatus();  // Open failed
  absl::StatusOr<LogEnd> end = log_->Close();
  CompleteAsyncWrites();
  VARVE_RETURN_IF_ERROR(end.status());
  absl::MutexLock lock(&install_mutex_);
  manifest_.log_ends = WithKeptFiles(manifest_.log_ends, log_->Files(), caches_.values);
  manifest_.clean_end = true;
  manifest_.next_file_number = next_file_number_.load();
  manifest_.next_generation = next_generation_.load();
  manifest_.clock_mark = clock_.mark();
  {
    absl::MutexLock commit_lock(&commit_mutex_);
    manifest_.settled = ledger_.groups();
    manifest_.base_tallies = base_tallies_;
  }
  return WriteManifest(file_system_, directory_, manifest_);
}

// --- Statistics ----------------------------------------------------------------------------------

std::vector<std::pair<std::string, uint64_t>> Engine::StatisticsInside() const {
  const Published<SuperVersion>::Pin state = state_.Acquire();
  const LogStatistics log = log_->statistics();
  const SegmentStatistics& segments = caches_.statistics;
  uint64_t buffered = buffer_memory_->kept() + state->active->bytes_used();
  for (const std::shared_ptr<WriteBuffer>& buffer : state->full) buffered += buffer->bytes_used();
  const ValueSpace values = ValueSpaceOf(*state->version);
  uint64_t entries = 0;
  for (const Run* run : state->version->runs()) {
    for (const std::shared_ptr<Segment>& segment : run->segments)
      entries += segment->info().entries;
  }
  uint64_t left_generations, namespaces;
  {
    absl::MutexLock lock(&commit_mutex_);
    left_generations = left_generations_.size();
    namespaces = present_->namespaces.entries().size();
  }
  return {{"sequence", visible_.load()},
          {"durable_sequence", log_->durable_sequence()},
          {"recovered_sequence", recovered_sequence_},
          {"gets", counters_.gets.Sum()},
          {"writes", counters_.writes.Sum()},
          {"write_conflicts", counters_.conflicts.Sum()},
          {"expired_keys", counters_.expired},
          {"clock_marks", counters_.clock_marks},
          {"write_buffer_bytes", buffered},
          {"full_write_buffers", state->full.size()},
          {"levels", state->version->levels().size()},
          {"runs", state->version->runs().size()},
          {"segments", state->version->segment_count()},
          {"segment_bytes", state->version->bytes()},
          {"segment_entries", entries},
          {"value_files", values.files},
          {"value_bytes", values.bytes},
          {"value_garbage_bytes", values.garbage},
          {"unsettled_segments", NewCountPoint().Unsettled().size()},
          {"range_tombstone_fragments",
           state->version->range_tombstones().size() + state->buffered_tombstones->size()},
          {"namespaces", namespaces},
          {"left_generations", left_generations},
          {"log_groups", log.groups},
          {"log_syncs", log.syncs},
          {"log_bytes_appended", log.bytes_appended},
          {"log_bytes_written", log.bytes_written},
          {"log_files_recycled", log.files_recycled},
          {"log_live_bytes", log_->live_bytes()},
          {"flushes", counters_.flushes},
          {"flushed_bytes", counters_.flushed_bytes},
          {"compactions", counters_.compactions},
          {"failed_compactions", counters_.failed_compactions},
          {"compaction_input_bytes", counters_.compaction_input_bytes},
          {"compacted_bytes", counters_.compacted_bytes},
          {"segment_lookups", segments.lookups.Sum()},
          {"record_reads", segments.record_reads.Sum()},
          {"table_page_reads", segments.table_page_reads.Sum()},
          {"scan_reads", segments.scan_reads.Sum()},
          {"fingerprint_false_positives", segments.false_positives.Sum()},
          {"block_cache_hits", segments.block_cache_hits.Sum()},
          {"block_cache_misses", segments.block_cache_misses.Sum()},
          {"block_cache_bytes", caches_.blocks.usage()},
          {"offset_table_loads", segments.table_loads.Sum()},
          {"offset_table_cache_bytes", caches_.tables.usage()},
          {"pressure_percent", static_cast<uint64_t>(pressure() * 100)}};
}

}  // namespace varve
