// The read journal on files: what is there after the end of a process, and when files are emptied.
#include "server/eviction/read_journal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/testing/temp_dir.h"
#include "util/base/hash.h"

namespace varve {
namespace {

using testing::TempDir;

class ReadJournalTest : public ::testing::Test {
 protected:
  ReadJournalTest() {
    noted_.Start();
    Open(dir_.path());
  }
  void Open(const std::string& directory) {
    journal_.reset();
    absl::StatusOr<std::unique_ptr<ReadJournal>> journal = ReadJournal::Open(
        directory, PosixFileSystem(), &noted_, [this] { return now_ms_; }, kMostWaiting);
    ASSERT_TRUE(journal.ok()) << journal.status();
    journal_ = *std::move(journal);
  }
  // Goes on with a copy of the files as they are now, as if the process had been killed.
  void Kill() {
    const std::string copy = dir_.File("copy" + std::to_string(++copies_));
    std::filesystem::create_directory(copy);
    for (const std::string name : {"reads-0", "reads-1"})
      std::filesystem::copy_file(directory_ + "/" + name, copy + "/" + name);
    Open(copy);
    directory_ = copy;
  }
  void Read(std::string_view key) { noted_.Add(kSpace, key); }
  void Take() { EXPECT_TRUE(journal_->TakeReads().ok()); }
  // Returns when the key was last read; 0: it was not.
  uint64_t ReadAt(std::string_view key) {
    return journal_->With(KeyAccess(), kSpace, HashKey(key)).at_ms;
  }
  void EnterAll() {
    (void)journal_->BeginEntering();
    EXPECT_TRUE(journal_->EndEntering().ok());
  }
  uint64_t BytesOf(int file) const {
    return std::filesystem::file_size(directory_ + "/reads-" + std::to_string(file));
  }

  static constexpr NamespaceId kSpace = 3;
  static constexpr size_t kMostWaiting = 10'000;
  TempDir dir_;
  std::string directory_ = dir_.path();
  int copies_ = 0;
  uint64_t now_ms_ = 1000;
  NotedReads noted_;
  std::unique_ptr<ReadJournal> journal_;
};

TEST_F(ReadJournalTest, WhatWasTakenIsThereAfterAKill) {
  Read("a");
  Read("a");
  Read("b");
  EXPECT_EQ(ReadAt("a"), 1000u) << "noted";
  Take();
  now_ms_ = 2000;
  EXPECT_EQ(ReadAt("a"), 1000u) << "taken";
  Read("b");
  Read("c");
  EXPECT_EQ(ReadAt("b"), 2000u);
  Take();
  EXPECT_EQ(journal_->taken(), 4u);
  Kill();
  EXPECT_EQ(ReadAt("a"), 1000u);
  EXPECT_EQ(ReadAt("b"), 2000u);
  EXPECT_EQ(ReadAt("c"), 2000u);
  EXPECT_EQ(ReadAt("d"), 0u);
  const std::vector<WaitingRead>& reads = journal_->BeginEntering();
  ASSERT_EQ(reads.size(), 3u) << "each key once";
  uint64_t counts = 0;
  for (const WaitingRead& read : reads) {
    counts += read.count;
    EXPECT_EQ(read.space, kSpace);
  }
  EXPECT_EQ(counts, 5u);
  EXPECT_EQ(ReadAt("c"), 2000u) << "it is not in the index yet";
  ASSERT_TRUE(journal_->EndEntering().ok());
  EXPECT_EQ(ReadAt("c"), 0u);
}

TEST_F(ReadJournalTest, WhatWasEnteredLeavesTheFiles) {
  for (int round = 0; round < 20; ++round) {
    const std::string before = "k" + std::to_string(round), after = "m" + std::to_string(round);
    Read(before);
    Take();
    (void)journal_->BeginEntering();
    Read(after);
    Take();
    ASSERT_TRUE(journal_->EndEntering().ok());
    EXPECT_EQ(BytesOf(0) + BytesOf(1), 44u) << "one chunk of a read";
    Kill();
    EXPECT_EQ(ReadAt(before), 0u);
    EXPECT_EQ(ReadAt(after), 1000u);
  }
  EnterAll();
  EXPECT_EQ(BytesOf(0) + BytesOf(1), 0u);
  Kill();
  EXPECT_TRUE(journal_->BeginEntering().empty());
}

TEST_F(ReadJournalTest, AKillWhileReadsAreEnteredLosesNone) {
  Read("a");
  Take();
  (void)journal_->BeginEntering();
  now_ms_ = 2000;
  Read("b");
  Take();
  Kill();
  EXPECT_EQ(ReadAt("a"), 1000u);
  EXPECT_EQ(ReadAt("b"), 2000u);
}

TEST_F(ReadJournalTest, AChunkThatWasNotWrittenToItsEndIsLeftOut) {
  Read("a");
  Take();
  Read("b");
  Take();
  std::filesystem::resize_file(directory_ + "/reads-0", BytesOf(0) - 1);
  Kill();
  EXPECT_EQ(ReadAt("a"), 1000u);
  EXPECT_EQ(ReadAt("b"), 0u);
  Read("c");
  Take();
  Kill();
  EXPECT_EQ(ReadAt("a"), 1000u);
  EXPECT_EQ(ReadAt("c"), 1000u) << "it lies where the torn one lay";
}

TEST_F(ReadJournalTest, WhatLiesBehindADamagedChunkIsCutOff) {
  for (const char* const key : {"a", "b", "c"}) {
    Read(key);
    Take();
  }
  {
    std::fstream file(directory_ + "/reads-0", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(44 + 30);
    file.put('x');
  }
  Kill();
  EXPECT_EQ(ReadAt("a"), 1000u);
  EXPECT_EQ(BytesOf(0), 44u);
  EXPECT_EQ(BytesOf(1), 0u);
  Read("d");
  Take();
  Kill();
  EXPECT_EQ(ReadAt("d"), 1000u) << "it lies where the damaged one lay";
  EXPECT_EQ(ReadAt("c"), 0u) << "it came before the newest reads, and may be out of date";
}

// An evictor that is busy for long enters nothing meanwhile.
TEST_F(ReadJournalTest, AFileOfAnyLengthIsTaken) {
  constexpr int kKeys = 5000;
  for (uint64_t bytes = 0; bytes < (uint64_t{70} << 20); bytes += kKeys * 16) {
    for (int key = 0; key < kKeys; ++key) Read(std::to_string(key));
    Take();
  }
  now_ms_ = 2000;
  Read("late");
  Take();
  EXPECT_GT(BytesOf(0) + BytesOf(1), uint64_t{70} << 20);
  Kill();
  EXPECT_EQ(ReadAt("late"), 2000u);
  EXPECT_EQ(ReadAt("7"), 1000u);
}

TEST_F(ReadJournalTest, MuchIsDueAndNoMoreIsTakenThanMayWait) {
  size_t key = 0;
  EXPECT_FALSE(journal_->IsDue());
  for (; key < 10; ++key) Read(std::to_string(key));
  Take();
  EXPECT_FALSE(journal_->IsDue());
  for (; key < 8000; ++key) Read(std::to_string(key));
  Take();
  EXPECT_TRUE(journal_->IsDue());
  for (; key < 11'000; ++key) Read(std::to_string(key));
  Take();
  EXPECT_EQ(journal_->taken(), 11'000u);
  Read("more");
  Take();
  EXPECT_EQ(journal_->taken(), 11'000u);
  EXPECT_EQ(ReadAt("more"), 1000u) << "it stays noted";
  EnterAll();
  Take();
  EXPECT_EQ(journal_->taken(), 11'001u);
}

// The evictor may not keep up; then no read stays where a kill would lose it and nobody counts it.
TEST_F(ReadJournalTest, WhatMayNotWaitIsDroppedAndCountedWithinASecond) {
  for (size_t key = 0; key < kMostWaiting + 100; ++key) Read(std::to_string(key));
  Take();
  const uint64_t taken = journal_->taken(), dropped = noted_.dropped();
  EXPECT_EQ(taken + dropped, kMostWaiting + 100);
  ASSERT_GT(ReadAt("7"), 0u);
  now_ms_ = 5000;
  Read("7");
  Read("more");
  Read("more");
  constexpr int kRoundsOfASecond = std::chrono::seconds(1) / ReadJournal::kRound;
  for (int round = 1; round < kRoundsOfASecond; ++round) Take();
  EXPECT_EQ(journal_->taken(), taken + 1) << "the key that waits";
  EXPECT_EQ(noted_.dropped(), dropped + 2);
  EXPECT_EQ(ReadAt("more"), 0u);
  Kill();
  EXPECT_EQ(ReadAt("7"), 5000u);
  EXPECT_EQ(ReadAt("8"), 1000u);
}

TEST_F(ReadJournalTest, WhatIsNotedLastIsTakenByStop) {
  Read("a");
  journal_->Stop();
  Kill();
  EXPECT_EQ(ReadAt("a"), 1000u);
}

}  // namespace
}  // namespace varve
