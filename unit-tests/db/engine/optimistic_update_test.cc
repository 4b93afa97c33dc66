#include "db/engine/optimistic_update.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/db/commit/pipeline_parts.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::PipelineParts;

constexpr std::string_view kUpdatedKeys[] = {"key"};
constexpr int kTriesWithOthers = 8;  // before an update takes its stripes

class OptimisticUpdateTest : public ::testing::Test {
 protected:
  absl::StatusOr<CommitResult> Submit(WriteBatch* batch) { return parts_.Submit(batch); }

  PipelineParts parts_{/*most_full_buffers=*/1000};
  OptimisticUpdate updates_;
};

TEST_F(OptimisticUpdateTest, ALostRaceIsRunAgainWithAnEmptyBatch) {
  ASSERT_TRUE(parts_.Put("key", "old").ok());
  int tries = 0;
  const auto decide = [&](WriteBatch* batch) {
    EXPECT_TRUE(batch->empty());
    const SequenceNumber read_at = parts_.versions().visible();
    if (++tries == 1) EXPECT_TRUE(parts_.Put("key", "from another").ok());
    batch->RequireUnchanged("key", read_at);
    batch->Put("key", parts_.Get("key") + " and mine");
    return absl::OkStatus();
  };
  const auto result =
      updates_.Run(kUpdatedKeys, decide, [&](WriteBatch* batch) { return Submit(batch); });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->sequence, parts_.versions().visible());
  EXPECT_EQ(tries, 2);
  EXPECT_EQ(parts_.Get("key"), "from another and mine");
}

TEST_F(OptimisticUpdateTest, WhoDecidesAgainstItWritesNothing) {
  const auto result = updates_.Run(
      kUpdatedKeys, [](WriteBatch*) { return absl::FailedPreconditionError("not now"); },
      [](WriteBatch*) -> absl::StatusOr<CommitResult> {
        ADD_FAILURE() << "nothing was to be submitted";
        return CommitResult{};
      });
  EXPECT_EQ(result.status(), absl::FailedPreconditionError("not now"));
}

TEST_F(OptimisticUpdateTest, OnlyALostRaceIsRunAgain) {
  int tries = 0;
  const auto result = updates_.Run(
      kUpdatedKeys, [](WriteBatch*) { return absl::OkStatus(); },
      [&](WriteBatch*) -> absl::StatusOr<CommitResult> {
        ++tries;
        return absl::ResourceExhaustedError("no disk");
      });
  EXPECT_TRUE(absl::IsResourceExhausted(result.status()));
  EXPECT_EQ(tries, 1);
}

TEST_F(OptimisticUpdateTest, AnUpdateThatNeverWinsEnds) {
  int tries = 0;
  const auto result = updates_.Run(
      kUpdatedKeys, [](WriteBatch*) { return absl::OkStatus(); },
      [&](WriteBatch*) -> absl::StatusOr<CommitResult> {
        ++tries;
        return absl::AbortedError("lost");
      });
  EXPECT_TRUE(absl::IsAborted(result.status()));
  EXPECT_GT(tries, kTriesWithOthers);
}

// Two keys of a list may share a stripe, which is taken once.
TEST_F(OptimisticUpdateTest, LosersOfOneKeyGoOneAfterTheOther) {
  const std::vector<std::string_view> keys = {"key", "other", "key"};
  std::atomic<int> tries_of_second{0};
  std::atomic<bool> first_is_done{false};
  std::thread second;
  const auto lose_and_then = [](int* tries, const std::function<void()>& alone) {
    return [tries, alone](WriteBatch*) -> absl::StatusOr<CommitResult> {
      if (++*tries <= kTriesWithOthers) return absl::AbortedError("lost");
      alone();
      return CommitResult{};
    };
  };
  const auto decide = [](WriteBatch*) { return absl::OkStatus(); };
  int tries_of_first = 0;
  const auto start_second = [&] {
    second = std::thread([&] {
      int tries = 0;
      const auto submit = lose_and_then(&tries, [&] { EXPECT_TRUE(first_is_done); });
      EXPECT_TRUE(updates_
                      .Run(keys, decide,
                           [&](WriteBatch* batch) {
                             ++tries_of_second;
                             return submit(batch);
                           })
                      .ok());
    });
    EXPECT_TRUE(Eventually([&] { return tries_of_second == kTriesWithOthers; }));
    first_is_done = true;
  };
  EXPECT_TRUE(updates_.Run(keys, decide, lose_and_then(&tries_of_first, start_second)).ok());
  second.join();
  EXPECT_EQ(tries_of_second, kTriesWithOthers + 1);
}

TEST_F(OptimisticUpdateTest, NoIncrementOfManyWritersIsLost) {
  constexpr int kThreads = 4, kIncrements = 50;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kIncrements; ++i) {
        const auto decide = [&](WriteBatch* batch) {
          const SequenceNumber read_at = parts_.versions().visible();
          const std::string value = parts_.Get("key");
          batch->RequireUnchanged("key", read_at);
          batch->Put("key", std::to_string(value == "-" ? 1 : std::stoi(value) + 1));
          return absl::OkStatus();
        };
        const auto result =
            updates_.Run(kUpdatedKeys, decide, [&](WriteBatch* batch) { return Submit(batch); });
        ASSERT_TRUE(result.ok()) << result.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(parts_.Get("key"), std::to_string(kThreads * kIncrements));
}

}  // namespace
}  // namespace varve
