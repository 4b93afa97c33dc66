// The parts of an engine that a commit pipeline depends on, without an engine: a log in memory, an
// empty tree, and no thread of their own. For one test.
//
// Thread-safety: as the parts have it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "db/commit/batch_applier.h"
#include "db/commit/commit_pipeline.h"
#include "db/commit/quotas.h"
#include "db/counting/key_counter.h"
#include "db/expiry/clock_watermark.h"
#include "db/expiry/expiry_sweeper.h"
#include "db/history/horizons.h"
#include "db/version/lookup.h"
#include "db/version/read_point.h"
#include "db/version/super_versions.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/memory_file_system.h"

namespace varve::testing {

class PipelineParts {
 public:
  static constexpr size_t kWriteBuffer = 64u << 10;

  explicit PipelineParts(int most_full_buffers = 2) {
    {
      const Manifest manifest{.namespaces = {{kDefaultNamespace, 1}}};
      absl::MutexLock lock(&versions_.mutex());
      const auto version = std::make_shared<const Version>();
      versions_.StartLocked(version, NamespaceTable(manifest), kNoSequence, {});
      counter_.StartLocked(*version, manifest);
    }
    auto log = Log::Open(&files_, {.directory = "store", .store_id = 1, .file_size = 1u << 20},
                         /*file_number=*/1, kNoSequence);
    EXPECT_TRUE(log.ok()) << log.status();
    log_.Start(*std::move(log));
    pipeline_ = std::make_unique<CommitPipeline>(
        CommitEnvironment{.versions = &versions_,
                          .log = &log_,
                          .applier = &applier_,
                          .new_generation = [this] { return next_generation_++; },
                          .merge_debt = [this](const Version&) { return merge_debt_; },
                          .most_full_buffers = most_full_buffers});
    watermark_.Start([this](uint64_t instant_ms) {
      WriteBatch batch;
      batch.MarkClock(instant_ms);
      return Submit(&batch).status();
    });
  }
  ~PipelineParts() {
    pipeline_->Close();
    sweeper_.Stop();
    EXPECT_TRUE(log_->Close().ok());
  }

  absl::StatusOr<CommitResult> Submit(WriteBatch* batch, const WriteOptions& options = {}) {
    bool must_check = false;
    absl::StatusOr<CommitResult> result =
        pipeline_->TrySubmit(options, batch, /*checked=*/nullptr, &must_check);
    EXPECT_FALSE(must_check);
    return result;
  }
  absl::StatusOr<CommitResult> Put(std::string_view key, std::string_view value) {
    WriteBatch batch;
    batch.Put(key, value);
    return Submit(&batch);
  }
  // Returns the value that a reader finds now, or "-".
  std::string Get(std::string_view key) {
    const absl::StatusOr<ReadPoint> point = BeginRead(versions_, log_, {});
    EXPECT_TRUE(point.ok()) << point.status();
    Lookup lookup(point->generation, key);
    const bool found = LookUpBuffers(*point->state, point->sequence, &lookup);
    if (!found || lookup.record.kind != RecordKind::kValue) return "-";
    return std::string(lookup.record.value);
  }

  QuotaParts ForQuotas() {
    return {.versions = &versions_,
            .log = &log_,
            .clock = &clock_,
            .counter = &counter_,
            .sweeper = &sweeper_,
            .pipeline = pipeline_.get(),
            .new_generation = [this] { return next_generation_++; }};
  }

  SuperVersions& versions() { return versions_; }
  LogView& log() { return log_; }
  KeyCounter& counter() { return counter_; }
  ClockWatermark& watermark() { return watermark_; }
  ExpirySweeper& sweeper() { return sweeper_; }
  CommitPipeline& pipeline() { return *pipeline_; }
  ManualClock& time() { return time_; }
  void set_merge_debt(double debt) { merge_debt_ = debt; }

 private:
  MemoryFileSystem files_;
  ManualClock time_;
  StoreClock clock_{time_};
  LogView log_;
  SuperVersions versions_{kWriteBuffer};
  KeyCounter counter_{&versions_, [this] { return log_->durable_sequence(); },
                      /*most_full_buffers=*/2};
  ClockWatermark watermark_{&versions_, &log_, &clock_};
  ExpirySweeper sweeper_{&versions_, &log_, &clock_};
  Horizons horizons_;
  FeedTable feeds_;
  BatchApplier applier_{&versions_, &sweeper_, &watermark_, &counter_, &horizons_, &feeds_};
  NamespaceGeneration next_generation_ = 2;
  double merge_debt_ = 0;
  std::unique_ptr<CommitPipeline> pipeline_;
};

}  // namespace varve::testing
