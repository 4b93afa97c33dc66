#include "db/engine/flusher.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "db/version/manifest.h"
#include "structure/job_threads.h"
#include "unit-tests/db/engine/engine_parts.h"
#include "unit-tests/testing/eventually.h"
#include "varve/compaction_filter.h"

namespace varve {
namespace {

using testing::EngineParts;
using testing::Eventually;
using testing::FileOperation;

class FlusherTest : public ::testing::Test {
 protected:
  ~FlusherTest() override { flusher_.Stop(); }
  uint64_t Segments() { return parts_.versions().PresentVersion()->segment_count(); }

  EngineParts parts_;
  Flusher flusher_{parts_.Parts(), &parts_.version_set(), &parts_.pipeline(), &parts_.sweeper()};
};

TEST_F(FlusherTest, AFullBufferBecomesASegmentThatTheManifestNames) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(parts_.Put("k" + std::to_string(i), "value").ok());
  flusher_.Start();
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  EXPECT_EQ(Segments(), 1u);
  EXPECT_EQ(parts_.version_set().CurrentManifest().flushed_sequence, 100u);
  EXPECT_EQ(parts_.versions().full_buffers(), 0);
  EXPECT_EQ(parts_.Files(".seg").size(), 1u);
  EXPECT_EQ(parts_.Get("k99"), "value");
  EXPECT_TRUE(Eventually([&] { return flusher_.flushes() == 1; }));
  EXPECT_GE(flusher_.flushed_bytes(), 100 * std::string("value").size());
}

TEST_F(FlusherTest, SegmentsHoldNothingThatTheLogCouldStillLose) {
  const absl::StatusOr<CommitResult> put = parts_.Put("key", "value");
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_LT(parts_.log()->durable_sequence(), put->sequence);
  flusher_.Start();
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  EXPECT_GE(parts_.log()->durable_sequence(), put->sequence);
}

TEST_F(FlusherTest, BuffersAreFlushedOldestFirst) {
  ASSERT_TRUE(parts_.Put("key", "old").ok());
  ASSERT_TRUE(parts_.Put("gone", "old").ok());
  parts_.Rotate();
  ASSERT_TRUE(parts_.Put("key", "new").ok());
  ASSERT_TRUE(parts_.Delete("gone").ok());
  parts_.Rotate();
  EXPECT_EQ(parts_.versions().full_buffers(), 2);
  flusher_.Start();
  EXPECT_TRUE(Eventually([&] { return flusher_.flushes() == 2; }));
  EXPECT_EQ(parts_.versions().full_buffers(), 0);
  EXPECT_EQ(parts_.versions().PresentVersion()->runs().size(), 2u);
  EXPECT_EQ(parts_.Get("key"), "new");
  EXPECT_EQ(parts_.Get("gone"), "-");
}

TEST_F(FlusherTest, WritesAreRefusedWhileFlushesFailAndGoOnBehindThem) {
  ASSERT_TRUE(parts_.Put("key", "value").ok());
  parts_.files().Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("no disk"),
                      testing::FailingFileSystem::kUnlimited, ".seg");
  flusher_.Start();
  EXPECT_FALSE(parts_.pipeline().FlushAll().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(parts_.Put("more", "value").status()));
  EXPECT_TRUE(parts_.Delete("more").ok()) << "what makes room is taken";
  EXPECT_EQ(flusher_.flushes(), 0u);
  EXPECT_EQ(Segments(), 0u);
  EXPECT_EQ(parts_.Get("key"), "value");
  parts_.files().ClearFaults();
  EXPECT_TRUE(Eventually([&] { return flusher_.flushes() == 1; }));
  // The flusher lets writers in a little after it has counted the flush.
  EXPECT_TRUE(Eventually([&] { return parts_.Put("more", "value").ok(); }));
  EXPECT_EQ(parts_.Get("key"), "value");
}

TEST_F(FlusherTest, NothingIsFlushedThatAFailedLogLost) {
  ASSERT_TRUE(parts_.Put("key", "value").ok());
  parts_.FailLog();
  flusher_.Start();
  EXPECT_FALSE(parts_.pipeline().FlushAll().ok());
  flusher_.Stop();
  EXPECT_EQ(flusher_.flushes(), 0u);
  EXPECT_TRUE(parts_.Files(".seg").empty());
}

TEST_F(FlusherTest, AStopEndsTheThreadAndMayComeTwice) {
  flusher_.Start();
  flusher_.Stop();
  flusher_.Stop();
  EXPECT_TRUE(parts_.versions().stopped());
}

// Keeps each thread that flushes at its first record until as many others have come there.
class Gate final : public CompactionFilter {
 public:
  explicit Gate(int threads) : not_come_(threads) {}
  bool Drop(const FilteredRecord&) const override {
    {
      absl::MutexLock lock(&mutex_);
      if (!come_.insert(std::this_thread::get_id()).second) return false;
    }
    not_come_.DecrementCount();
    open_.WaitForNotification();
    return false;
  }
  // Opens once all threads have come.
  void Open() {
    not_come_.Wait();
    open_.Notify();
  }

 private:
  mutable absl::BlockingCounter not_come_;
  absl::Notification open_;
  mutable absl::Mutex mutex_;
  mutable std::set<std::thread::id> come_ ABSL_GUARDED_BY(mutex_);
};

class FlushesOfSeveralBuffersTest : public ::testing::Test {
 protected:
  ~FlushesOfSeveralBuffersTest() override { flusher_->Stop(); }
  void Begin(EngineOptions options, size_t helpers) {
    parts_ = std::make_unique<EngineParts>(std::move(options));
    jobs_ = std::make_unique<JobThreads>(helpers);
    VersionSetParts parts = parts_->Parts();
    parts.jobs = jobs_.get();
    flusher_ = std::make_unique<Flusher>(parts, &parts_->version_set(), &parts_->pipeline(),
                                         &parts_->sweeper());
  }
  // Fills buffers that overwrite, delete and clear what the one before holds.
  void FillThreeBuffers() {
    for (const char* key : {"key", "gone", "cleared"}) Put(key, std::string(2000, '1'));
    parts_->Rotate();
    Put("key", std::string(2000, '2'));
    ASSERT_TRUE(parts_->Delete("gone").ok());
    parts_->Rotate();
    Put("key", "3");
    WriteBatch clear;
    clear.DeleteRange("c", "d");
    ASSERT_TRUE(parts_->Submit(&clear).ok());
    parts_->Rotate();
    ASSERT_EQ(parts_->versions().full_buffers(), 3);
  }
  void Put(std::string_view key, std::string_view value) {
    ASSERT_TRUE(parts_->Put(key, value).ok());
  }
  void ExpectAllFlushed() {
    EXPECT_TRUE(Eventually([&] { return parts_->versions().full_buffers() == 0; }));
    EXPECT_TRUE(Eventually([&] { return flusher_->flushes() == 3; }));
    const std::vector<Level>& levels = parts_->versions().PresentVersion()->levels();
    ASSERT_EQ(levels.size(), 1u);
    ASSERT_EQ(levels[0].runs.size(), 3u);
    for (size_t i = 1; i < 3; ++i) {
      EXPECT_GT(levels[0].runs[i - 1].segments[0]->info().smallest_sequence,
                levels[0].runs[i].segments[0]->info().largest_sequence)
          << "newest first";
    }
    EXPECT_EQ(parts_->Get("key"), "3");
    EXPECT_EQ(parts_->Get("gone"), "-");
    EXPECT_EQ(parts_->Get("cleared"), "-");
    EXPECT_EQ(parts_->version_set().CurrentManifest().flushed_sequence, 7u);
  }

  std::unique_ptr<EngineParts> parts_;
  std::unique_ptr<JobThreads> jobs_;
  std::unique_ptr<Flusher> flusher_;
};

TEST_F(FlushesOfSeveralBuffersTest, AreUnderWayAtOnceAndAreInstalledOldestFirst) {
  const auto gate = std::make_shared<Gate>(3);
  Begin({.compaction_filter = gate}, /*helpers=*/2);
  FillThreeBuffers();
  flusher_->Start();
  gate->Open();
  ExpectAllFlushed();
}

TEST_F(FlushesOfSeveralBuffersTest, AreNoMoreThanThereAreThreads) {
  const auto gate = std::make_shared<Gate>(2);
  Begin({.compaction_filter = gate}, /*helpers=*/1);
  FillThreeBuffers();
  flusher_->Start();
  gate->Open();
  ExpectAllFlushed();
}

TEST_F(FlushesOfSeveralBuffersTest, LeaveNothingBehindOneThatFails) {
  Begin({}, /*helpers=*/2);
  FillThreeBuffers();
  // Whichever buffers it hits, no newer one is installed before an older one.
  for (const uint64_t nth : {1, 2, 3}) {
    parts_->files().Fail(FileOperation::kCreate, nth, absl::ResourceExhaustedError("no disk"), 1,
                         ".seg");
  }
  flusher_->Start();
  ExpectAllFlushed();
  EXPECT_TRUE(Eventually([&] { return parts_->Files(".seg").size() == 3; }));
  EXPECT_EQ(parts_->Files(".val").size(), 0u) << "large values stay in the log";
}

}  // namespace
}  // namespace varve
