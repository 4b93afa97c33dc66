// The parts of an engine that its background threads and its reader stand on, on real files whose
// calls fail on command. The flusher and the compactor are a test's own to start. For one test.
//
// Thread-safety: as the parts have it.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "db/commit/batch_applier.h"
#include "db/commit/commit_pipeline.h"
#include "db/counting/key_counter.h"
#include "db/engine/reader.h"
#include "db/engine/version_set.h"
#include "db/expiry/clock_watermark.h"
#include "db/expiry/expiry_sweeper.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve::testing {

class EngineParts {
 public:
  explicit EngineParts(EngineOptions options = {}) : options_(std::move(options)) {
    EXPECT_TRUE(version_set_.LoadOrCreate().ok());
    EXPECT_TRUE(version_set_.OpenSegments().ok());
    auto log = Log::Open(&files_,
                         {.directory = directory_.path(),
                          .store_id = version_set_.CurrentManifest().store_id,
                          .file_size = 1u << 20,
                          .next_file_number = [this] { return version_set_.NewFileNumber(); },
                          .file_thread = &file_thread_},
                         version_set_.NewFileNumber(), kNoSequence);
    EXPECT_TRUE(log.ok()) << log.status();
    log_.Start(*std::move(log));
    watermark_.Start([this](uint64_t instant_ms) {
      WriteBatch batch;
      batch.MarkClock(instant_ms);
      return Submit(&batch).status();
    });
    version_set_.OnInstalled([this](bool flushed) {
      pipeline_.NoteInstalledLocked(flushed);
      if (installed_) installed_(flushed);
    });
  }
  ~EngineParts() {
    pipeline_.Close();
    sweeper_.Stop();
    log_->Close().IgnoreError();  // the log of some tests has failed
  }

  // The batch is in the log's buffer and visible; it is not durable yet.
  absl::StatusOr<CommitResult> Submit(WriteBatch* batch) {
    bool must_check = false;
    return pipeline_.TrySubmit({}, batch, /*checked=*/nullptr, &must_check);
  }
  absl::StatusOr<CommitResult> Put(std::string_view key, std::string_view value) {
    WriteBatch batch;
    batch.Put(key, value);
    return Submit(&batch);
  }
  absl::StatusOr<CommitResult> Delete(std::string_view key) {
    WriteBatch batch;
    batch.Delete(key);
    return Submit(&batch);
  }
  // The value that a reader finds now without waiting, "-", or the error.
  std::string Get(std::string_view key) {
    std::string value;
    const absl::StatusOr<ReadResult> read = reader_.Get({.wait_until_durable = false}, key, &value);
    if (!read.ok()) return read.status().ToString();
    return read->found ? value : "-";
  }
  // Puts the active buffer into the flush queue.
  void Rotate() {
    absl::MutexLock lock(&versions_.mutex());
    versions_.RotateLocked(log_->statistics().bytes_taken);
  }
  // All calls of the log's files that write fail from now on.
  void FailLog() {
    const absl::Status error = absl::InternalError("the disk is gone");
    for (const FileOperation operation : {FileOperation::kWrite, FileOperation::kSync})
      files_.Fail(operation, 1, error, FailingFileSystem::kUnlimited, ".log");
  }
  // The names of the store's files with this extension.
  std::set<std::string> Files(std::string_view extension) const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      if (entry.path().extension() == extension) files.insert(entry.path().filename());
    }
    return files;
  }
  // `installed` is called as VersionSet::OnInstalled() has it.
  void OnInstalled(std::function<void(bool flushed)> installed) {
    absl::MutexLock lock(&versions_.mutex());
    installed_ = std::move(installed);
  }

  VersionSetParts Parts() {
    return {.file_system = &files_,
            .directory = directory_.path(),
            .options = &options_,
            .versions = &versions_,
            .log = &log_,
            .counter = &counter_,
            .clock = &clock_,
            .caches = &caches_,
            .remover = &remover_};
  }
  FaultFileSystem& files() { return files_; }
  LogView& log() { return log_; }
  SuperVersions& versions() { return versions_; }
  VersionSet& version_set() { return version_set_; }
  CommitPipeline& pipeline() { return pipeline_; }
  ExpirySweeper& sweeper() { return sweeper_; }
  Reader& reader() { return reader_; }
  int log_failures_noted() const { return log_failures_noted_; }

 private:
  const TempDir directory_;
  const EngineOptions options_;
  FaultFileSystem files_;
  ManualClock time_;
  StoreClock clock_{time_};
  SegmentCaches caches_{1u << 20, 1u << 20};
  FileThread file_thread_;
  FileRemover remover_{&files_, &file_thread_};
  LogView log_;
  SuperVersions versions_{64u << 10};
  KeyCounter counter_{&versions_, [this] { return log_->durable_sequence(); },
                      /*most_full_buffers=*/2};
  ClockWatermark watermark_{&versions_, &log_, &clock_};
  ExpirySweeper sweeper_{&versions_, &log_, &clock_};
  VersionSet version_set_{Parts()};
  BatchApplier applier_{&versions_,
                        &sweeper_,
                        &watermark_,
                        &counter_,
                        &version_set_.horizons(),
                        &version_set_.changes().feeds()};
  CommitPipeline pipeline_{{.versions = &versions_,
                            .log = &log_,
                            .applier = &applier_,
                            .new_generation = [this] { return version_set_.NewGeneration(); },
                            .merge_debt = [](const Version&) { return 0.0; },
                            .most_full_buffers = 4}};
  int log_failures_noted_ = 0;
  Reader reader_{{.versions = &versions_,
                  .log = &log_,
                  .clock = &clock_,
                  .watermark = &watermark_,
                  .sweeper = &sweeper_,
                  .counter = &counter_,
                  .caches = &caches_,
                  .note_log_failure = [this] {
                    ++log_failures_noted_;
                    pipeline_.NoteLogFailure();
                  }}};
  std::function<void(bool flushed)> installed_;  // called with the commit lock held
};

}  // namespace varve::testing
