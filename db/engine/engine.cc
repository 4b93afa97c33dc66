#include "db/engine/engine.h"

#include <algorithm>
#include <optional>

#include "db/engine/checkpointer.h"
#include "db/engine/purger.h"
#include "db/format/batch_codec.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/mapped_reads.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

constexpr int kOwnThreads = 2;  // the flusher's and the compactor's
// So many write buffers the files may take that are out of use and wait to be written over: a merge
// of a burst frees eight runs at once, of the next level eight times as many.
constexpr uint64_t kSpareBuffers = 32;

// Fills in what the options leave to the engine.
EngineOptions WithDefaults(EngineOptions options) {
  if (options.file_system == nullptr) {
    options.file_system = options.mapped_read_budget > 0
                              ? MappedFileSystem(options.mapped_read_budget)
                              : PosixFileSystem();
  }
  if (options.compaction_picker == nullptr) options.compaction_picker = LazyLevelingPicker();
  if (options.max_background_jobs == 0) options.max_background_jobs = DefaultBackgroundJobs();
  options.max_background_jobs = std::max(options.max_background_jobs, kOwnThreads);
  return options;
}

// Returns the change of a batch that clones a namespace as of an older version, and does nothing
// else.
std::optional<NamespaceChange> CloneOfPastIn(WriteBatch* batch) {
  BatchReader reader(std::string_view(batch->encoding().record).substr(kBatchHeaderSize));
  RecordView operation;
  if (batch->size() != 1 || !reader.Next(&operation)) return std::nullopt;
  std::optional<NamespaceChange> change = DecodeNamespaceChange(operation);
  return change && change->past ? std::move(change) : std::nullopt;
}

}  // namespace

Engine::Engine(std::string directory, const EngineOptions& options)
    : directory_(std::move(directory)),
      options_(WithDefaults(options)),
      file_system_(options_.file_system),
      clock_(options.clock != nullptr ? *options.clock : RealClock()),
      caches_(options.offset_table_cache_size, options.block_cache_size,
              /*has_mapped_reads=*/options_.mapped_read_budget > 0),
      threads_{{}, JobThreads(static_cast<size_t>(options_.max_background_jobs) - kOwnThreads)},
      remover_(file_system_, &threads_.files, kSpareBuffers * options_.write_buffer_size),
      versions_(options_.write_buffer_size, &threads_.files),
      counter_(
          &versions_, [this] { return log_.durable_sequence(); }, options_.max_full_write_buffers),
      watermark_(&versions_, &log_, &clock_),
      sweeper_(&versions_, &log_, &clock_),
      version_set_(Parts()),
      applier_(&versions_, &sweeper_, &watermark_, &counter_, &version_set_.horizons(),
               &version_set_.changes().feeds()),
      pipeline_({.versions = &versions_,
                 .log = &log_,
                 .applier = &applier_,
                 .new_generation = [this] { return version_set_.NewGeneration(); },
                 .merge_debt =
                     [this](const Version& version) {
                       return options_.compaction_picker->Debt(version.shape(), options_);
                     },
                 .sync = options_.sync,
                 .most_full_buffers = options_.max_full_write_buffers,
                 .data_bound = &data_bound_,
                 .times = &version_set_.times(),
                 .clock = &clock_,
                 .changes = &version_set_.changes(),
                 .most_log_growth = MostLogGrowth(options_)}),
      quotas_({.versions = &versions_,
               .log = &log_,
               .clock = &clock_,
               .counter = &counter_,
               .sweeper = &sweeper_,
               .pipeline = &pipeline_,
               .data_bound = &data_bound_,
               .new_generation = [this] { return version_set_.NewGeneration(); }}),
      data_bound_(&versions_, &log_, &counter_, &sweeper_),
      reader_({.versions = &versions_,
               .log = &log_,
               .clock = &clock_,
               .watermark = &watermark_,
               .sweeper = &sweeper_,
               .counter = &counter_,
               .caches = &caches_,
               .note_log_failure = [this] { pipeline_.NoteLogFailure(); }}),
      flusher_(Parts(), &version_set_, &pipeline_, &sweeper_),
      compactor_(Parts(), options_.compaction_picker, &version_set_, &pipeline_),
      async_writes_(&log_) {
  sweeper_.KeepEntriesFor(&version_set_.horizons());
}

VersionSetParts Engine::Parts() {
  return {.file_system = file_system_,
          .directory = directory_,
          .options = &options_,
          .versions = &versions_,
          .log = &log_,
          .counter = &counter_,
          .clock = &clock_,
          .caches = &caches_,
          .remover = &remover_,
          .jobs = &threads_.jobs};
}

Engine::~Engine() {
  try {
    if (const absl::Status status = Close(); !status.ok() && log_.started())
      spdlog::error("close: {}", status.ToString());
  } catch (const std::exception&) {
    // Without memory the next open finds an end that is not clean, and replays the log.
  }
}

// --- Writes --------------------------------------------------------------------------------------

absl::StatusOr<CommitResult> Engine::Submit(const WriteOptions& options,
                                            WriteBatch* batch) noexcept {
  return GuardMemory("committing a batch", [&] { return SubmitUnguarded(options, batch); });
}

absl::StatusOr<CommitResult> Engine::SubmitUnguarded(const WriteOptions& options,
                                                     WriteBatch* batch) {
  VARVE_RETURN_IF_ERROR(batch->status());
  if (batch->clones_namespace()) [[unlikely]]
    return SubmitClone(options, batch);
  bool must_check = false;
  absl::StatusOr<CommitResult> result =
      pipeline_.TrySubmit(options, batch, /*checked=*/nullptr, &must_check);
  if (must_check) [[unlikely]]
    return quotas_.Submit(options, batch);
  return result;
}

// Not while what has expired is removed: an entry of the index must not go for the source's key
// alone. The writer with the exclusive write may be waiting for that, so it is not waited for
// meanwhile.
absl::StatusOr<CommitResult> Engine::SubmitClone(const WriteOptions& options, WriteBatch* batch) {
  WriteOptions at_once = options;
  at_once.waits_for_exclusive_write = false;
  for (;;) {
    {
      absl::MutexLock lock(&sweeper_.sweeping());
      std::shared_ptr<const Snapshot> held;
      WriteBatch completed;
      WriteBatch* submitted = batch;
      if (std::optional<NamespaceChange> change = CloneOfPastIn(batch)) {
        VARVE_ASSIGN_OR_RETURN(held, history().CompleteClone(&*change));
        completed.encoding().conditions = batch->encoding().conditions;
        completed.encoding().condition_keys = batch->encoding().condition_keys;
        completed.encoding().range_conditions = batch->encoding().range_conditions;
        completed.ChangeNamespace(*change);
        submitted = &completed;
      }
      bool must_check = false;
      absl::StatusOr<CommitResult> result =
          pipeline_.TrySubmit(at_once, submitted, /*checked=*/nullptr, &must_check);
      VARVE_ASSERT(!must_check);  // a clone adds no data of its own
      if (result.ok()) batch->Clear();
      if (result.ok()) {
        data_bound_.Forget();
        counter_.CountLastClone();
      }
      if (!options.waits_for_exclusive_write || !absl::IsCancelled(result.status())) return result;
    }
    pipeline_.exclusive_writes().AwaitOthers(options.exclusive_write);
  }
}

absl::StatusOr<CommitResult> Engine::Write(const WriteOptions& options, WriteBatch* batch) {
  // A batch of conditions alone gets no sequence of its own. The commit clears the others.
  const bool is_empty = batch->empty();
  VARVE_ASSIGN_OR_RETURN(const CommitResult result, SubmitUnguarded(options, batch));
  if (result.durable_after != kNoSequence) {
    // A writer that waits syncs for all when no other thread is at it, which saves the hop to the
    // log's thread.
    VARVE_RETURN_IF_ERROR(log_->WaitUntilDurable(result.durable_after));
  } else {
    VARVE_RETURN_IF_ERROR(is_empty ? log_->Push() : log_->PushUpTo(result.sequence));
  }
  NoteDeliverable();
  return result;
}

void Engine::WriteAsync(const WriteOptions& options, WriteBatch* batch, AsyncWrites::Done done) {
  async_writes_.Write([&] { return Submit(options, batch); }, std::move(done));
}

absl::StatusOr<CommitResult> Engine::Update(const WriteOptions& options,
                                            absl::Span<const std::string_view> keys,
                                            absl::FunctionRef<absl::Status(WriteBatch*)> decide) {
  return updates_.Run(keys, decide, [&](WriteBatch* batch) { return Submit(options, batch); });
}

ChangeFeed Engine::changes() {
  return {&versions_, &version_set_, &log_, &clock_, [this](WriteBatch* batch) -> absl::Status {
            VARVE_ASSIGN_OR_RETURN(
                const CommitResult committed,
                SubmitUnguarded({.sync = Durability::kAlways, .override_sync = true}, batch));
            return log_->WaitUntilDurable(committed.durable_after);
          }};
}

void Engine::OnLogProgress() {
  if (!log_->status().ok()) pipeline_.NoteLogFailure();
  if (applier_.TakeCleared(log_.durable_sequence())) compactor_.Wake();
  // Without memory it is done at the next progress.
  TryWithMemory([this] { pipeline_.BoundLog(version_set_.log_bytes_at_flush()); });
  async_writes_.Complete();
  NoteDeliverable();
}

// --- Upkeep --------------------------------------------------------------------------------------

absl::Status Engine::Compact(std::string_view lower, std::string_view upper, NamespaceId space) {
  VARVE_RETURN_IF_ERROR(pipeline_.FlushAll());
  if (pipeline_.IsClosed()) return absl::UnavailableError("the store is closed");
  const std::optional<NamespaceGeneration> generation =
      versions_.Acquire()->namespaces.Generation(space);
  if (!generation) return NoSuchNamespace(space);
  const absl::Status status = compactor_.CompactRange(
      std::string(TreeKey(*generation, lower).view()),
      upper.empty() ? EndTreeKey(*generation) : std::string(TreeKey(*generation, upper).view()));
  // Nothing but closing cancels a merge.
  return absl::IsAborted(status) ? absl::UnavailableError("the store is closed") : status;
}

absl::StatusOr<PurgeResult> Engine::Purge(NamespaceId space, std::string_view key,
                                          const std::function<void()>& deleted) {
  if (pipeline_.IsClosed()) return absl::UnavailableError("the store is closed");
  Purger purger(
      Parts(), &version_set_, &pipeline_, &compactor_,
      [this](const WriteOptions& options, WriteBatch* batch) { return Write(options, batch); });
  absl::StatusOr<PurgeResult> result = purger.Purge(space, key, deleted);
  // Nothing but closing cancels a merge.
  if (absl::IsAborted(result.status())) return absl::UnavailableError("the store is closed");
  return result;
}

Checkpointer Engine::checkpointer() {
  return {Parts(), &version_set_, &pipeline_,
          [this](const WriteOptions& options, WriteBatch* batch) { return Write(options, batch); }};
}

Replicator Engine::replicator() {
  return Replicator(
      {.versions = &versions_,
       .version_set = &version_set_,
       .log = &log_,
       .pipeline = &pipeline_,
       .sweeper = &sweeper_,
       .commit_clone = [this](NamespaceId source, SequenceNumber past,
                              const std::function<absl::Status()>& commit) -> absl::Status {
         absl::MutexLock lock(&sweeper_.sweeping());
         std::shared_ptr<const Snapshot> held;
         if (past != kNoSequence) {
           absl::StatusOr<std::shared_ptr<const Snapshot>> taken =
               history().SnapshotAt(source, past, std::nullopt);
           if (!taken.ok()) return absl::FailedPreconditionError(taken.status().message());
           held = *std::move(taken);
         }
         VARVE_RETURN_IF_ERROR(commit());
         data_bound_.Forget();
         counter_.CountLastClone();
         return absl::OkStatus();
       }});
}

absl::Status Engine::Close() {
  if (!pipeline_.Close()) return absl::OkStatus();
  compactor_.Stop();
  flusher_.Stop();
  sweeper_.Stop();
  version_set_.changes().thread().Stop();
  if (!log_.started()) return absl::OkStatus();  // Open failed
  const absl::StatusOr<LogEnd> end = log_->Close();
  async_writes_.Complete();
  VARVE_RETURN_IF_ERROR(end.status());
  return version_set_.WriteCleanEnd();
}

}  // namespace varve
