#include "db/commit/commit_pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "type/tree_key.h"
#include "unit-tests/db/commit/pipeline_parts.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::PipelineParts;

TEST(CommitPipelineTest, BatchesAreNumberedWithoutGapsAndSeenAtOnce) {
  PipelineParts parts;
  const absl::StatusOr<CommitResult> first = parts.Put("a", "1");
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->sequence, 1u);
  WriteBatch batch;
  batch.Put("b", "2");
  batch.Put("c", "3");
  const absl::StatusOr<CommitResult> second = parts.Submit(&batch);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->sequence, 3u);
  EXPECT_EQ(second->durable_after, 3u);
  EXPECT_EQ(parts.versions().visible(), 3u);
  EXPECT_EQ(parts.Get("a"), "1");
  EXPECT_EQ(parts.Get("c"), "3");
  EXPECT_EQ(parts.pipeline().writes(), 3u);
}

TEST(CommitPipelineTest, NothingIsWrittenWhereAConditionIsNotMet) {
  PipelineParts parts;
  ASSERT_TRUE(parts.Put("key", "old").ok());
  ASSERT_TRUE(parts.Put("key", "new").ok());
  WriteBatch batch;
  batch.Put("key", "mine");
  batch.RequireUnchanged("key", 1);
  EXPECT_TRUE(absl::IsAborted(parts.Submit(&batch).status()));
  EXPECT_EQ(parts.Get("key"), "new");
  EXPECT_EQ(parts.versions().visible(), 2u);
  EXPECT_EQ(parts.pipeline().conflicts(), 1u);
  batch.Clear();
  batch.Put("key", "mine");
  batch.RequireUnchanged("key", 2);
  EXPECT_TRUE(parts.Submit(&batch).ok());
  EXPECT_EQ(parts.Get("key"), "mine");
}

TEST(CommitPipelineTest, AModeWithoutSyncLeavesNothingToWaitFor) {
  PipelineParts parts;
  parts.pipeline().SetSync(Durability::kEverySecond);
  const absl::StatusOr<CommitResult> result = parts.Put("a", "1");
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->durable_after, kNoSequence);
}

TEST(CommitPipelineTest, OthersWaitForAnExclusiveWriteOrAreRefused) {
  PipelineParts parts;
  std::unique_ptr<ExclusiveWrite> exclusive = parts.pipeline().exclusive_writes().Begin();
  WriteBatch batch;
  batch.Put("mine", "1");
  EXPECT_TRUE(parts.Submit(&batch, {.exclusive_write = exclusive.get()}).ok());
  batch.Put("theirs", "1");
  EXPECT_TRUE(
      absl::IsCancelled(parts.Submit(&batch, {.waits_for_exclusive_write = false}).status()));
  std::thread other([&] { EXPECT_TRUE(parts.Put("theirs", "2").ok()); });
  EXPECT_EQ(parts.Get("theirs"), "-");
  exclusive.reset();
  other.join();
  EXPECT_EQ(parts.Get("theirs"), "2");
}

TEST(CommitPipelineTest, MarksWaitForAnExclusiveWriteOnlyIfItHoldsThem) {
  PipelineParts parts;
  const auto mark = [&](uint64_t instant_ms, const WriteOptions& options) {
    WriteBatch batch;
    batch.MarkClock(instant_ms);
    return parts.Submit(&batch, options).status();
  };
  const WriteOptions at_once{.waits_for_exclusive_write = false};
  std::unique_ptr<ExclusiveWrite> exclusive = parts.pipeline().exclusive_writes().Begin();
  EXPECT_TRUE(mark(1000, at_once).ok());
  parts.pipeline().exclusive_writes().HoldMarks();
  EXPECT_TRUE(absl::IsCancelled(mark(2000, at_once)));
  EXPECT_TRUE(mark(3000, {.exclusive_write = exclusive.get()}).ok());
  std::thread other([&] { EXPECT_TRUE(mark(4000, {}).ok()); });
  exclusive.reset();
  other.join();
  // The next exclusive write does not hold them.
  exclusive = parts.pipeline().exclusive_writes().Begin();
  EXPECT_TRUE(mark(5000, at_once).ok());
}

TEST(CommitPipelineTest, AFullBufferIsRotatedAndWritersWaitUntilFlushesMakeRoom) {
  PipelineParts parts(/*most_full_buffers=*/1);
  const std::string value(8u << 10, 'v');
  while (parts.versions().full_buffers() == 0) ASSERT_TRUE(parts.Put("key", value).ok());
  EXPECT_TRUE(parts.pipeline().IsFlushing());
  EXPECT_GE(parts.pipeline().pressure(), 1);
  std::atomic<bool> written{false};
  std::thread writer([&] {
    EXPECT_FALSE(parts.Put("late", "1").ok());
    written = true;
  });
  EXPECT_FALSE(written);
  parts.pipeline().NoteFlush(absl::InternalError("no disk"));  // the reason to wait is gone
  writer.join();
  EXPECT_FALSE(parts.pipeline().IsFlushing());
  // A delete may be what makes room.
  WriteBatch batch;
  batch.Delete("key");
  EXPECT_TRUE(parts.Submit(&batch).ok());
}

TEST(CommitPipelineTest, PressureIsTheDebtOfMerges) {
  PipelineParts parts;
  parts.set_merge_debt(0.25);
  parts.pipeline().UpdatePressure();
  EXPECT_EQ(parts.pipeline().pressure(), 0.25);
}

TEST(CommitPipelineTest, AClosedPipelineRefusesBatches) {
  PipelineParts parts;
  EXPECT_TRUE(parts.pipeline().Close());
  EXPECT_FALSE(parts.pipeline().Close());
  EXPECT_TRUE(absl::IsUnavailable(parts.Put("a", "1").status()));
}

TEST(CommitPipelineTest, ARefusedBatchCanBeSubmittedAgain) {
  PipelineParts parts;
  WriteBatch batch;
  batch.Put("key", "1", /*space=*/7);
  EXPECT_FALSE(parts.Submit(&batch).ok());
  EXPECT_EQ(batch.size(), 1u);
  EXPECT_FALSE(parts.Submit(&batch).ok());
}

TEST(CommitPipelineTest, WritersAtTheSameTimeEachGetTheirOwnNumbers) {
  constexpr int kThreads = 4, kWrites = 200;
  PipelineParts parts(/*most_full_buffers=*/1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&parts, t] {
      SequenceNumber last = kNoSequence;
      for (int i = 0; i < kWrites; ++i) {
        const auto result = parts.Put("k" + std::to_string(t), std::to_string(i));
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_GT(result->sequence, last);
        last = result->sequence;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(parts.versions().visible(), SequenceNumber{kThreads * kWrites});
}

// Each thread finds what it has written as soon as its call returns, also where others rotate the
// buffer, check conditions or delete ranges meanwhile, which wait for all before them.
TEST(CommitPipelineTest, AWriterFindsItsOwnWritesBesideOthersOfAllKinds) {
  constexpr int kThreads = 4, kWrites = 400;
  PipelineParts parts(/*most_full_buffers=*/1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&parts, t] {
      const std::string own = "own" + std::to_string(t);
      const std::string filler(200, 'f');
      for (int i = 0; i < kWrites; ++i) {
        WriteBatch batch;
        batch.Put(own, std::to_string(i));
        if (i % 5 == 1) batch.Put(own + "filler" + std::to_string(i), filler);
        if (i % 5 == 2) batch.DeleteRange(own + "filler", own + "fillers");
        if (i % 5 == 3) batch.RequireUnchanged(own, parts.versions().visible());
        const auto result = parts.Submit(&batch);
        ASSERT_TRUE(result.ok()) << result.status();
        ASSERT_GE(parts.versions().visible(), result->sequence);
        ASSERT_EQ(parts.Get(own), std::to_string(i));
        if (i % 5 == 1) ASSERT_EQ(parts.Get(own + "filler" + std::to_string(i)), filler);
        if (i % 5 == 2) {
          const TreeKey deleted(1, own + "filler" + std::to_string(i - 1));
          ASSERT_GE(parts.versions().Acquire()->CoveringSequence(deleted.view(), kMaxSequence),
                    result->sequence);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(parts.pipeline().groups().timed_batches(), 0u);
}

// Counters that several threads raise, each by a condition on what it read: none is lost, though a
// batch that the condition has to see may not be applied yet when the next one is checked.
TEST(CommitPipelineTest, ConditionsSeeBatchesThatAreStillBeingApplied) {
  constexpr int kThreads = 4, kRaises = 150;
  PipelineParts parts(/*most_full_buffers=*/1000);
  ASSERT_TRUE(parts.Put("counter", "0").ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&parts, t] {
      for (int i = 0; i < kRaises;) {
        const SequenceNumber read_at = parts.versions().visible();
        const std::string value = parts.Get("counter");
        WriteBatch batch;
        batch.RequireUnchanged("counter", read_at);
        batch.Put("counter", std::to_string(std::stoi(value) + 1));
        i += parts.Submit(&batch).ok() ? 1 : 0;
        ASSERT_TRUE(parts.Put("other" + std::to_string(t), value).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(parts.Get("counter"), std::to_string(kThreads * kRaises));
}

}  // namespace
}  // namespace varve
