// The log on disks that fail, fill up, and lose power.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/simulated_file_system.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using ::testing::HasSubstr;
using testing::LogUser;
using testing::Replay;
using testing::Replayed;
using testing::SimulatedDisk;
using testing::SimulatedFileSystem;

constexpr size_t kSmallFile = 64u << 10;

class LogFaultsTest : public ::testing::Test {
 protected:
  // Waits until the log has prepared its next file, so that nothing goes on in the background.
  bool NextFileIsReady(uint64_t number) {
    return Eventually(
        [&] { return PosixFileSystem()->OpenForRead(dir_.File(LogFileName(number))).ok(); });
  }

  testing::TempDir dir_;
  FaultFileSystem fs_;
};

TEST_F(LogFaultsTest, AFailedSyncIsFinal) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(NextFileIsReady(2));
  ASSERT_TRUE(user.Commit("good").ok());
  std::atomic<int> heard{0};
  user.log().AddListener([&] { ++heard; });
  fs_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"), /*times=*/1);
  const absl::Status lost = user.Commit("lost");
  EXPECT_TRUE(absl::IsUnavailable(lost)) << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("EIO"));
  EXPECT_TRUE(Eventually([&] { return heard.load() >= 1; }))
      << "parked requests hear of the failure";
  EXPECT_EQ(user.log().durable_sequence(), 1u);
  // The disk works again, but nobody may believe that the lost pages are there.
  const uint64_t writes = fs_.calls(FileOperation::kWrite), syncs = fs_.calls(FileOperation::kSync);
  EXPECT_TRUE(absl::IsUnavailable(user.log().status()));
  EXPECT_TRUE(absl::IsUnavailable(user.Add("refused")));
  EXPECT_TRUE(absl::IsUnavailable(user.log().Push()));
  EXPECT_TRUE(absl::IsUnavailable(user.log().Sync()));
  EXPECT_TRUE(absl::IsUnavailable(user.log().WaitUntilDurable(2)));
  EXPECT_TRUE(user.log().WaitUntilDurable(1).ok());
  EXPECT_TRUE(absl::IsUnavailable(user.log().Close().status()));
  EXPECT_EQ(fs_.calls(FileOperation::kWrite), writes);
  EXPECT_EQ(fs_.calls(FileOperation::kSync), syncs);
  EXPECT_EQ(user.log().durable_sequence(), 1u);
}

TEST_F(LogFaultsTest, AFailedSyncOfAFileThatWasLeftIsFinal) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(user.Commit("good").ok());
  while (user.log().Files().size() < 2) {
    ASSERT_TRUE(
        Eventually([&] { return user.Add(std::string(6000, 'n'), Durability::kNone).ok(); }));
    ASSERT_TRUE(user.log().Push().ok());
  }
  ASSERT_TRUE(NextFileIsReady(3));
  EXPECT_EQ(user.log().durable_sequence(), 1u);
  // The left file's; the other's would go well.
  fs_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"), /*times=*/1);
  EXPECT_TRUE(absl::IsUnavailable(user.Commit("lost")));
  EXPECT_EQ(user.log().durable_sequence(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(user.log().Sync()));
  EXPECT_EQ(user.log().durable_sequence(), 1u);
}

TEST_F(LogFaultsTest, AFailedWriteIsFinalInEveryMode) {
  for (Durability mode : {Durability::kAlways, Durability::kEverySecond, Durability::kNone}) {
    testing::TempDir dir;
    FaultFileSystem fs;
    LogUser user(dir.path(), kSmallFile, 0, 1, &fs);
    user.Open();
    ASSERT_TRUE(user.Add("good", mode).ok());
    ASSERT_TRUE(user.log().Push().ok());
    ASSERT_TRUE(user.log().Sync().ok());
    // With a record that waits, the log writes no mark, which would meet the fault.
    ASSERT_TRUE(user.Add("lost", mode).ok());
    fs.Fail(FileOperation::kWrite, 1, absl::InternalError("EIO"), 1, "000001.log");
    if (mode != Durability::kAlways) {
      EXPECT_TRUE(absl::IsUnavailable(user.log().Push()));
    }
    EXPECT_TRUE(absl::IsUnavailable(user.log().WaitUntilDurable(2)));
    EXPECT_TRUE(absl::IsUnavailable(user.Add("refused", mode)));
    EXPECT_EQ(user.log().written_sequence(), 1u);
    user.Drop();
    EXPECT_EQ(Replay(dir.path()).batches.size(), 1u);
  }
}

TEST_F(LogFaultsTest, AFailureWakesEveryoneWhoWaits) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(NextFileIsReady(2));
  absl::Mutex commit_mutex;
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  fs_.Fail(FileOperation::kSync, 20, absl::InternalError("EIO"));
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      while (true) {
        SequenceNumber sequence;
        {
          absl::MutexLock lock(&commit_mutex);
          if (!user.Add("value").ok()) break;
          sequence = user.last();
        }
        if (!user.log().Push().ok() || !user.log().WaitUntilDurable(sequence).ok()) break;
      }
      ++refused;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused.load(), 8);
}

TEST_F(LogFaultsTest, AFullDiskRefusesPutsAndGoesOnWhenThereIsSpace) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(NextFileIsReady(2));
  fs_.SetFreeBytes(1000);
  absl::Status status;
  const std::string value(1000, 'v');
  while ((status = user.Commit(value)).ok()) ASSERT_LT(user.last(), 1000u);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("No space left"));
  EXPECT_TRUE(user.log().status().ok()) << "a full disk is not final";
  EXPECT_EQ(user.log().durable_sequence(), user.last());

  // Deletes may use the last reserve, so that space can be won back.
  ASSERT_TRUE(user.Add("delete", Durability::kAlways, 1, /*for_deletes=*/true).ok());
  ASSERT_TRUE(user.log().Sync().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(user.Commit(value)));
  const Replayed while_full = Replay(dir_.path());
  ASSERT_TRUE(while_full.status.ok()) << while_full.status;
  EXPECT_EQ(while_full.batches.size(), user.last());

  fs_.SetFreeBytes(FaultFileSystem::kUnlimited);
  ASSERT_TRUE(Eventually([&] { return user.Commit(value).ok(); }));
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(user.Commit(value).ok());
  EXPECT_EQ(Replay(dir_.path()).batches.size(), user.last());
}

// A directory whose fsync failed once made writes end with `-ERR fsync directory ...`, as if the
// request were wrong, although the next attempt succeeded.
TEST_F(LogFaultsTest, AFileThatCannotBeMadeRefusesWritesUntilItCan) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(NextFileIsReady(2));
  // However long the commits take that fill the files which are there.
  fs_.Fail(FileOperation::kSyncDirectory, 1, absl::InternalError("EIO"));
  absl::Status status;
  while ((status = user.Commit(std::string(1000, 'v'))).ok()) ASSERT_LT(user.last(), 1000u);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("is tried again"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("EIO"));
  EXPECT_TRUE(user.log().status().ok()) << "nothing that was promised is at stake";
  fs_.ClearFaults();
  ASSERT_TRUE(Eventually([&] { return user.Commit("value").ok(); }));
  EXPECT_EQ(Replay(dir_.path()).batches.size(), user.last());
}

TEST_F(LogFaultsTest, OnAFullDiskRetiredFilesMakeRoom) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(NextFileIsReady(2));
  fs_.SetFreeBytes(0);
  while (user.Commit("value").ok()) ASSERT_LT(user.last(), 1000u);
  ASSERT_EQ(user.log().Files().size(), 2u);
  user.log().Retire(user.log().Files().front().last_sequence);
  ASSERT_TRUE(Eventually([&] { return user.Commit("value").ok(); }));
  EXPECT_EQ(user.log().statistics().files_recycled, 1u);
}

TEST_F(LogFaultsTest, ARecordLargerThanAFileGetsAFileOfItsSize) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  ASSERT_TRUE(user.Commit("small").ok());
  ASSERT_TRUE(user.Commit(std::string(1u << 20, 'L')).ok());
  ASSERT_TRUE(user.Commit("small again").ok());
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  ASSERT_EQ(replayed.batches.size(), 3u);
  EXPECT_EQ(replayed.batches[1].second.size(), 1u << 20);

  fs_.SetFreeBytes(1u << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(user.Commit(std::string(4u << 20, 'L'))));
  EXPECT_TRUE(user.Commit("small ones still fit").ok());
}

TEST_F(LogFaultsTest, RecycledFilesShowNothingOfTheirEarlierLife) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  std::map<SequenceNumber, std::string> live;
  SequenceNumber flushed = 0;
  std::minstd_rand random(1);
  for (int i = 0; i < 400; ++i) {
    const std::string value = std::to_string(i) + std::string(random() % 9000, 'v');
    // Where most is not synced at once, files aren't recycled.
    const auto mode = static_cast<Durability>(random() % 4 == 0 ? 1 + random() % 2 : 0);
    ASSERT_TRUE(user.Add(value, mode).ok());
    ASSERT_TRUE(user.log().Push().ok());
    live[user.last()] = value;
    if (i % 20 == 19) {
      flushed = user.last() - random() % 10;
      user.log().Retire(flushed);
      live.erase(live.begin(), live.upper_bound(flushed));
    }
    if (i % 7 == 6) {
      ASSERT_TRUE(user.log().Sync().ok());
      const Replayed replayed = Replay(dir_.path(), flushed);
      // A file may be renamed between the look at the directory and the look into it.
      if (absl::IsNotFound(replayed.status)) continue;
      ASSERT_TRUE(replayed.status.ok()) << replayed.status;
      const std::map<SequenceNumber, std::string> found(replayed.batches.begin(),
                                                        replayed.batches.end());
      ASSERT_TRUE(found == live) << found.size() << " batches, expected " << live.size();
    }
  }
  EXPECT_GT(user.log().statistics().files_recycled, 3u);
}

// Of the blocks of one write, the first end one file and the others begin the next. The page in
// which the first ones end is whole in either case: what a segment points into becomes a value
// file, whose bytes are all accounted for.
TEST_F(LogFaultsTest, ARecycledFileEndsWithZeros) {
  LogUser user(dir_.path(), kSmallFile, 0, 1, &fs_);
  user.Open();
  std::minstd_rand random(1);
  for (int file = 0; file < 60; ++file) {
    const uint64_t number = user.log().Files().back().file_number;
    ASSERT_TRUE(NextFileIsReady(number + 1));
    while (user.log().Files().back().file_number == number) {
      // Five records of one write; most bytes are synced at once, as files aren't recycled else.
      for (int i = 0; i < 5; ++i)
        ASSERT_TRUE(user.Add(std::string(random() % 2000, 'n'), Durability::kNone).ok());
      ASSERT_TRUE(user.log().Push().ok());
      ASSERT_TRUE(user.Commit(std::string(9000, 'o')).ok());
    }
    const std::vector<LogEnd> ends = user.log().Files();
    ASSERT_GE(ends.size(), 2u);
    const LogEnd& left = ends[ends.size() - 2];
    ASSERT_EQ(left.file_number, number);
    const auto opened = PosixFileSystem()->OpenForRead(dir_.File(LogFileName(number)));
    ASSERT_TRUE(opened.ok()) << opened.status();
    std::string rest(LogPageAlign(left.offset) - left.offset, 'x');
    ASSERT_EQ(*(*opened)->Read(left.offset, rest.size(), rest.data()), rest.size());
    EXPECT_EQ(rest, std::string(rest.size(), '\0')) << number;
    user.log().Retire(left.last_sequence);
  }
  EXPECT_GT(user.log().statistics().files_recycled, 10u);
}

// --- Power cuts ----------------------------------------------------------------------------------

// Many lives of one store: each recovers, goes on, and ends with a power cut somewhere, with what
// was not synced lost or torn.
class LogLives {
 public:
  explicit LogLives(uint32_t seed) : random_(seed) {
    EXPECT_TRUE(fs_.CreateDirectory(directory_).ok());
    EXPECT_TRUE(fs_.SyncDirectory("").ok());
  }

  void Live() {
    SCOPED_TRACE("life " + std::to_string(++life_));
    const bool goes_on = Recover();
    if (::testing::Test::HasFatalFailure() || !goes_on) return;
    LogUser user(directory_, kSmallFile, last_, next_file_number_, &fs_);
    fs_.StopAfter(random_() % 300);
    Write(&user);
    if (::testing::Test::HasFatalFailure()) return;
    fs_.StopHere();
    user.Drop();
    fs_.RestorePower(random_());
  }

 private:
  // False: the next crash comes before the manifest is written, and what is obsolete removed.
  bool Recover() {
    RecoverInside();
    if (::testing::Test::HasFatalFailure() || random_() % 4 == 0) return false;
    known_ends_ = adopted_;
    for (const std::string& path : obsolete_) EXPECT_TRUE(fs_.Remove(path).ok());
    EXPECT_TRUE(fs_.SyncDirectory(directory_).ok());
    return true;
  }

  void RecoverInside() {
    const Replayed replayed = Replay(directory_, flushed_, known_ends_, &fs_);
    ASSERT_TRUE(replayed.status.ok()) << replayed.status;
    ASSERT_GE(replayed.recovery.last_sequence, acknowledged_) << "acknowledged is acknowledged";
    SequenceNumber next = flushed_ + 1;
    for (const auto& [first, operations] : replayed.batches) {
      ASSERT_EQ(first, next++);
      ASSERT_TRUE(operations == model_[first])
          << first << ": not as the life that wrote it last had it";
    }
    last_ = replayed.recovery.last_sequence;
    ASSERT_EQ(last_, next - 1);
    model_.erase(model_.upper_bound(last_), model_.end());
    acknowledged_ = last_;  // a reader may rely on it from now on
    next_file_number_ = replayed.recovery.last_file_number + 1;
    adopted_ = replayed.recovery.files;
    obsolete_ = replayed.recovery.obsolete_paths;
  }

  void Write(LogUser* user) {
    LogOptions options = user->options();
    options.sync_backend = random_() % 2 == 0 ? SyncBackend::kPwrite : SyncBackend::kDirect;
    const uint32_t modes = random_() % 2 == 0 ? 3 : 1;  // all of them, or always alone
    // Then files are left before they are synced.
    const uint32_t waits_one_in = random_() % 2 == 0 ? 4 : 100;
    auto opened = Log::Open(&fs_, options, next_file_number_, last_);
    if (!opened.ok()) return;  // the power is off already
    Log& log = **opened;
    log.Adopt(adopted_);
    while (log.status().ok()) {
      const std::string value = std::to_string(life_) + ":" + std::to_string(last_ + 1) +
                                std::string(random_() % 6000, 'v');
      const std::string record = testing::MakeRecord(last_ + 1, value);
      if (!log.Reserve(record.size(), false).ok()) break;
      ++last_;
      model_[last_] = value;
      log.Append(record, last_, last_, static_cast<Durability>(random_() % modes)).IgnoreError();
      if (random_() % 2 == 0) log.Push().IgnoreError();
      if (random_() % waits_one_in == 0) log.WaitUntilDurable(last_).IgnoreError();
      acknowledged_ = std::max(acknowledged_, log.durable_sequence());
      if (random_() % 16 == 0) {
        flushed_ = std::max(flushed_,
                            log.durable_sequence() - random_() % 3 * (log.durable_sequence() > 2));
        log.Retire(flushed_);
      }
    }
    acknowledged_ = std::max(acknowledged_, log.durable_sequence());
    fs_.StopHere();
  }

  const std::string directory_ = "/log";
  std::minstd_rand random_;
  SimulatedFileSystem fs_;
  int life_ = 0;
  std::map<SequenceNumber, std::string> model_;
  SequenceNumber last_ = 0, flushed_ = 0, acknowledged_ = 0;
  uint64_t next_file_number_ = 1;
  std::vector<LogEnd> known_ends_, adopted_;
  std::vector<std::string> obsolete_;
};

TEST(LogPowerCutTest, WhatWasAcknowledgedSurvivesManyLives) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    LogLives lives(seed);
    for (int life = 0; life < 15; ++life) {
      lives.Live();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(LogPowerCutTest, TakesBackOnlyWhatWasNotSynced) {
  const std::string directory = "/log";
  SimulatedFileSystem disk;
  ASSERT_TRUE(disk.CreateDirectory(directory).ok());
  ASSERT_TRUE(disk.SyncDirectory("").ok());
  LogUser user(directory, kSmallFile, 0, 1, &disk);
  user.Open();
  ASSERT_TRUE(user.Commit("always").ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(user.Add("none", Durability::kNone).ok());
  ASSERT_TRUE(user.log().Push().ok());
  disk.StopHere();
  user.Drop();
  disk.RestorePower(SimulatedDisk::kLoseAll);
  const Replayed replayed = Replay(directory, 0, {}, &disk);
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.recovery.last_sequence, 1u);
}

}  // namespace
}  // namespace varve
