#include "db/engine/engine.h"

#include <optional>

#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

// Fills in what the options leave to the engine.
EngineOptions WithDefaults(EngineOptions options) {
  if (options.file_system == nullptr) options.file_system = PosixFileSystem();
  if (options.compaction_picker == nullptr) options.compaction_picker = LazyLevelingPicker();
  return options;
}

}  // namespace

Engine::Engine(std::string directory, const EngineOptions& options)
    : directory_(std::move(directory)),
      options_(WithDefaults(options)),
      file_system_(options_.file_system),
      clock_(options.clock != nullptr ? *options.clock : RealClock()),
      caches_(options.offset_table_cache_size, options.block_cache_size),
      remover_(file_system_, &file_thread_),
      versions_(options_.write_buffer_size, &file_thread_),
      counter_(
          &versions_, [this] { return log_->durable_sequence(); }, options_.max_full_write_buffers),
      watermark_(&versions_, &log_, &clock_),
      sweeper_(&versions_, &log_, &clock_),
      applier_(&versions_, &sweeper_, &watermark_, &counter_),
      version_set_(Parts()),
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
      flusher_(Parts(), &version_set_, &pipeline_),
      compactor_(Parts(), options_.compaction_picker, &version_set_, &pipeline_),
      async_writes_(&log_) {}

VersionSetParts Engine::Parts() {
  return {.file_system = file_system_,
          .directory = directory_,
          .options = &options_,
          .versions = &versions_,
          .log = &log_,
          .counter = &counter_,
          .clock = &clock_,
          .caches = &caches_,
          .remover = &remover_};
}

Engine::~Engine() {
  try {
    if (const absl::Status status = Close(); !status.ok() && log_.started())
      spdlog::error("close: {}", status.ToString());
  } catch (const std::exception&) {
    // Without memory the next open finds an end that is not clean, and replays the log.
  }
}

// --- History -------------------------------------------------------------------------------------

absl::Status Engine::CheckTimes() const {
  if (version_set_.times().started()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this store has the format of an earlier version, which has no place for times: finalize its "
      "upgrade (server_main --finalize-upgrade)");
}

absl::StatusOr<SequenceNumber> Engine::VersionAt(uint64_t instant_ms) const {
  VARVE_RETURN_IF_ERROR(CheckTimes());
  const std::optional<SequenceNumber> version =
      version_set_.times().VersionAt(instant_ms, versions_.visible());
  if (version) return *version;
  return absl::NotFoundError("the store does not know which version was the newest one then");
}

absl::StatusOr<uint64_t> Engine::InstantOf(SequenceNumber version) const {
  VARVE_RETURN_IF_ERROR(CheckTimes());
  if (version > versions_.visible()) {
    return absl::OutOfRangeError(fmt::format("version {} was not written yet, the newest one is {}",
                                             version, versions_.visible()));
  }
  if (const std::optional<uint64_t> instant = version_set_.times().InstantOf(version))
    return *instant;
  return absl::NotFoundError("the store does not know when that version was written");
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
      bool must_check = false;
      absl::StatusOr<CommitResult> result =
          pipeline_.TrySubmit(at_once, batch, /*checked=*/nullptr, &must_check);
      VARVE_ASSERT(!must_check);  // a clone adds no data of its own
      if (result.ok()) {
        data_bound_.Forget();
        counter_.CountLastClone();
      }
      if (!options.waits_for_exclusive_write || !absl::IsCancelled(result.status())) return result;
    }
    pipeline_.WaitForExclusiveWrite(options.exclusive_write);
  }
}

absl::StatusOr<CommitResult> Engine::Write(const WriteOptions& options, WriteBatch* batch) {
  VARVE_ASSIGN_OR_RETURN(const CommitResult result, SubmitUnguarded(options, batch));
  // A writer that waits syncs for all when no other thread is at it, which saves the hop to the
  // log's thread.
  VARVE_RETURN_IF_ERROR(result.durable_after == kNoSequence
                            ? log_->Push()
                            : log_->WaitUntilDurable(result.durable_after));
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

void Engine::OnLogProgress() {
  if (!log_->status().ok()) pipeline_.NoteLogFailure();
  if (applier_.TakeCleared(log_->durable_sequence())) compactor_.Wake();
  // Without memory it is done at the next progress.
  TryWithMemory([this] { pipeline_.BoundLog(version_set_.log_bytes_at_flush()); });
  async_writes_.Complete();
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

absl::Status Engine::Close() {
  if (!pipeline_.Close()) return absl::OkStatus();
  compactor_.Stop();
  flusher_.Stop();
  sweeper_.Stop();
  if (!log_.started()) return absl::OkStatus();  // Open failed
  const absl::StatusOr<LogEnd> end = log_->Close();
  async_writes_.Complete();
  VARVE_RETURN_IF_ERROR(end.status());
  return version_set_.WriteCleanEnd();
}

}  // namespace varve
