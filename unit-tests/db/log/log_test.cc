#include "db/log/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "db/format/log_format.h"
#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/memory_file_system.h"

namespace varve {
namespace {

using std::chrono::steady_clock;
using ::testing::ElementsAre;
using testing::Eventually;
using testing::LogUser;
using ::testing::Pair;
using testing::Replay;
using testing::Replayed;

class LogTest : public ::testing::Test {
 protected:
  testing::TempDir dir_;
};

TEST_F(LogTest, WhatIsDurableIsReplayedInOrder) {
  LogUser user(dir_.path());
  user.Open();
  ASSERT_TRUE(user.Commit("one").ok());
  ASSERT_TRUE(user.Commit("two and three", 2).ok());
  ASSERT_TRUE(user.Commit("four").ok());
  EXPECT_EQ(user.log().durable_sequence(), 4u);
  EXPECT_EQ(user.log().last_always_sequence(), 4u);
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_THAT(replayed.batches,
              ElementsAre(Pair(1, "one"), Pair(2, "two and three"), Pair(4, "four")));
  EXPECT_EQ(replayed.recovery.last_sequence, 4u);
  EXPECT_EQ(replayed.recovery.torn_bytes, 0u);
}

TEST_F(LogTest, OnlyWhatWasNotFlushedIsReplayed) {
  LogUser user(dir_.path());
  user.Open();
  for (int i = 1; i <= 5; ++i) ASSERT_TRUE(user.Commit(std::to_string(i)).ok());
  EXPECT_THAT(Replay(dir_.path(), 3).batches, ElementsAre(Pair(4, "4"), Pair(5, "5")));
  const Replayed all_flushed = Replay(dir_.path(), 5);
  EXPECT_TRUE(all_flushed.batches.empty());
  EXPECT_EQ(all_flushed.recovery.last_sequence, 5u);
  EXPECT_TRUE(all_flushed.recovery.files.empty());
}

TEST_F(LogTest, ManyBatchesOfOneGroupShareOneSync) {
  LogUser user(dir_.path());
  user.Open();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(user.Add("value").ok());
  EXPECT_EQ(user.log().durable_sequence(), 0u);
  ASSERT_TRUE(user.log().Push().ok());
  ASSERT_TRUE(user.log().WaitUntilDurable(100).ok());
  EXPECT_EQ(user.log().statistics().syncs, 1u);
  EXPECT_EQ(user.log().statistics().bytes_appended, 100u * (kBatchHeaderSize + 5));
  EXPECT_EQ(Replay(dir_.path()).batches.size(), 100u);
}

TEST_F(LogTest, RecordsLargerThanAGroupAreWrittenAsTheyAre) {
  LogUser user(dir_.path());
  user.options().group_max_bytes = 1000;
  user.Open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(user.Add(std::string(400 + 100 * i, 'x')).ok());
  ASSERT_TRUE(user.log().Sync().ok());
  const Replayed replayed = Replay(dir_.path());
  ASSERT_EQ(replayed.batches.size(), 20u);
  EXPECT_EQ(replayed.batches[19].second, std::string(2300, 'x'));
}

TEST_F(LogTest, WithoutSyncTheKernelHasItWhenPushReturns) {
  for (Durability mode : {Durability::kEverySecond, Durability::kNone}) {
    testing::TempDir dir, killed;
    LogUser user(dir.path());
    user.Open();
    for (int i = 1; i <= 10; ++i) {
      ASSERT_TRUE(user.Add(std::to_string(i), mode).ok());
      ASSERT_TRUE(user.log().Push().ok());
      EXPECT_EQ(user.log().written_sequence(), static_cast<uint64_t>(i));
    }
    EXPECT_EQ(user.log().last_always_sequence(), 0u);
    testing::CopyDirectory(dir.path(), killed.path());
    EXPECT_EQ(Replay(killed.path()).batches.size(), 10u) << "a process that dies loses nothing";
  }
}

TEST_F(LogTest, EverySecondIsSyncedWithinAboutASecondAndNoneIsNot) {
  LogUser user(dir_.path());
  user.Open();
  ASSERT_TRUE(user.Add("none", Durability::kNone).ok());
  ASSERT_TRUE(user.log().Push().ok());
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_EQ(user.log().durable_sequence(), 0u);
  ASSERT_TRUE(user.Add("each second", Durability::kEverySecond).ok());
  ASSERT_TRUE(user.log().Push().ok());
  EXPECT_TRUE(Eventually([&] { return user.log().durable_sequence() == 2; }));
}

TEST_F(LogTest, AFileThatIsFullIsSyncedWithTheNextOne) {
  LogUser user(dir_.path(), 64u << 10);
  user.Open();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(user.Add(std::string(6000, 'n'), Durability::kNone).ok());
    ASSERT_TRUE(user.log().Push().ok());
  }
  const size_t files = user.log().Files().size();
  ASSERT_GE(files, 3u);
  EXPECT_EQ(user.log().statistics().syncs, 0u);
  ASSERT_TRUE(user.Commit("always").ok());
  EXPECT_EQ(user.log().statistics().syncs, files);
  EXPECT_EQ(user.log().durable_sequence(), 31u);
  ASSERT_TRUE(user.Commit("always").ok());
  EXPECT_EQ(user.log().statistics().syncs, files + 1);

  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(user.Add(std::string(6000, 'n'), Durability::kNone).ok());
    ASSERT_TRUE(user.log().Push().ok());
  }
  EXPECT_GT(user.log().durable_sequence(), 32u) << "not too many are left";
  EXPECT_LT(user.log().durable_sequence(), 232u);
}

TEST_F(LogTest, ASyncTakesRecordsOfOtherModesAlong) {
  LogUser user(dir_.path());
  user.Open();
  ASSERT_TRUE(user.Add("none", Durability::kNone).ok());
  ASSERT_TRUE(user.Add("always", Durability::kAlways).ok());
  ASSERT_TRUE(user.Add("none", Durability::kNone).ok());
  ASSERT_TRUE(user.log().Push().ok());
  ASSERT_TRUE(user.log().WaitUntilDurable(2).ok());
  EXPECT_GE(user.log().durable_sequence(), 2u);
  EXPECT_EQ(user.log().last_always_sequence(), 2u);
  ASSERT_TRUE(user.log().WaitUntilDurable(3).ok())
      << "a sync that somebody asks for comes, whatever the mode";
  EXPECT_EQ(user.log().durable_sequence(), 3u);
  EXPECT_TRUE(absl::IsInvalidArgument(user.log().WaitUntilDurable(4)));
}

TEST_F(LogTest, ListenersHearOfEachGroupUntilTheyAreRemoved) {
  LogUser user(dir_.path());
  user.Open();
  std::atomic<SequenceNumber> heard{0};
  const uint64_t token = user.log().AddListener([&] { heard = user.log().durable_sequence(); });
  ASSERT_TRUE(user.Add("parked").ok());
  ASSERT_TRUE(user.log().Push().ok());
  EXPECT_TRUE(Eventually([&] { return heard == 1; }))
      << "nobody waits in a thread, the listener tells";
  user.log().RemoveListener(token);
  ASSERT_TRUE(user.Commit("unheard").ok());
  EXPECT_EQ(heard, 1u);
}

TEST_F(LogTest, WhoTriesToSyncWaitsForNobody) {
  testing::FaultFileSystem files;
  std::vector<std::thread::id> told;  // outlives the log's threads
  LogUser user(dir_.path(), /*file_size=*/1u << 20, /*last=*/0, /*file_number=*/1, &files);
  user.Open();
  user.log().AddListener([&] { told.push_back(std::this_thread::get_id()); });
  EXPECT_FALSE(user.log().TrySync()) << "nothing was written";
  ASSERT_TRUE(user.Add("none", Durability::kNone).ok());
  EXPECT_FALSE(user.log().TrySync()) << "nothing waits for the disk";
  ASSERT_TRUE(user.Add("always").ok());
  EXPECT_TRUE(user.log().TrySync());
  EXPECT_EQ(user.log().durable_sequence(), 2u);
  EXPECT_THAT(told, ElementsAre(std::this_thread::get_id()));
  ASSERT_TRUE(user.Add("always").ok());
  files.StandStill([&] {
    ASSERT_TRUE(user.log().Push().ok());
    EXPECT_FALSE(user.log().TrySync()) << "a thread of the log is at it";
  });
  EXPECT_TRUE(user.log().WaitUntilDurable(3).ok());
}

TEST_F(LogTest, ALoneWriterIsNotDelayed) {
  testing::MemoryFileSystem files;  // however slow the disk is
  LogUser user("store", /*file_size=*/1u << 20, /*last=*/0, /*file_number=*/1, &files);
  user.Open();
  // With no delay set, a commit costs one sync; twenty of them stay below a tick of the log thread,
  // if the machine is not busy.
  EXPECT_TRUE(Eventually([&] {
    const uint64_t syncs = user.log().statistics().syncs;
    const auto begin = steady_clock::now();
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(user.Commit("alone").ok());
    return steady_clock::now() - begin < std::chrono::milliseconds(900) &&
           user.log().statistics().syncs == syncs + 20;
  }));
}

TEST_F(LogTest, GroupMaxDelayGathersCompany) {
  // On a busy machine the second may come too late.
  EXPECT_TRUE(Eventually([] {
    testing::TempDir dir;
    LogUser user(dir.path());
    user.options().group_max_delay = std::chrono::milliseconds(50);
    user.Open();
    const auto begin = steady_clock::now();
    EXPECT_TRUE(user.Add("first").ok());
    EXPECT_TRUE(user.log().Push().ok());
    EXPECT_TRUE(user.Add("second").ok());
    EXPECT_TRUE(user.log().Push().ok());
    EXPECT_TRUE(user.log().WaitUntilDurable(1).ok());
    EXPECT_GE(steady_clock::now() - begin, std::chrono::milliseconds(49));
    return user.log().durable_sequence() == 2 && user.log().statistics().groups == 1;
  }));
}

TEST_F(LogTest, AFullGroupDoesNotWaitForTheDelay) {
  LogUser user(dir_.path());
  user.options().group_max_delay = std::chrono::hours(1);
  user.options().group_max_bytes = 1000;
  user.Open();
  ASSERT_TRUE(user.Add(std::string(2000, 'x')).ok());
  ASSERT_TRUE(user.log().Push().ok());
  EXPECT_TRUE(Eventually([&] { return user.log().durable_sequence() == 1; }));
}

TEST_F(LogTest, ThreadsThatCommitAtOnceAllBecomeDurableInOrder) {
  constexpr int kThreads = 8, kCommits = 200;
  LogUser user(dir_.path(), /*file_size=*/256u << 10);
  user.Open();
  absl::Mutex commit_mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kCommits; ++i) {
        SequenceNumber sequence;
        {
          absl::MutexLock lock(&commit_mutex);
          const auto mode = static_cast<Durability>((t + i) % 3);
          ASSERT_TRUE(user.Add(std::to_string(t) + ":" + std::to_string(i), mode).ok());
          sequence = user.last();
        }
        ASSERT_TRUE(user.log().Push().ok());
        if (i % 2 == 0) {
          ASSERT_TRUE(user.log().WaitUntilDurable(sequence).ok());
          ASSERT_GE(user.log().durable_sequence(), sequence);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto end = user.log().Close();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->last_sequence, static_cast<uint64_t>(kThreads * kCommits));
  const Replayed replayed = Replay(dir_.path(), 0, {*end});
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  ASSERT_EQ(replayed.batches.size(), static_cast<size_t>(kThreads * kCommits));
  std::vector<int> next(kThreads, 0);
  for (const auto& [sequence, operations] : replayed.batches) {
    const int thread = operations[0] - '0';
    EXPECT_EQ(operations, std::to_string(thread) + ":" + std::to_string(next[thread]++));
  }
}

TEST_F(LogTest, ClosingSyncsEverything) {
  LogUser user(dir_.path());
  user.Open();
  ASSERT_TRUE(user.Add("a", Durability::kNone).ok());
  ASSERT_TRUE(user.Add("b", Durability::kAlways).ok());
  const auto end = user.log().Close();
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_EQ(end->file_number, 1u);
  EXPECT_EQ(end->last_sequence, 2u);
  const Replayed replayed = Replay(dir_.path(), 0, {*end});
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 2u);
  ASSERT_EQ(replayed.recovery.files.size(), 1u);
  EXPECT_EQ(replayed.recovery.files[0].offset, end->offset);
}

}  // namespace
}  // namespace varve
