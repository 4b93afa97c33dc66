// The read journal on files: what is there after the end of a process, and when files are emptied.
#include "server/eviction/read_journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

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
    absl::StatusOr<std::unique_ptr<ReadJournal>> journal =
        ReadJournal::Open(directory, PosixFileSystem(), &noted_, [this] { return now_ms_; });
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
  bool Has(std::string_view key) const { return journal_->Contains(kSpace, HashKey(key)); }
  uint64_t BytesOf(int file) const {
    return std::filesystem::file_size(directory_ + "/reads-" + std::to_string(file));
  }

  static constexpr NamespaceId kSpace = 3;
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
  EXPECT_TRUE(Has("a")) << "noted";
  Take();
  EXPECT_TRUE(Has("a")) << "taken";
  now_ms_ = 2000;
  Read("c");
  Take();
  Kill();
  const auto chunks = journal_->Waiting();
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0]->instant_ms, 1000u);
  ASSERT_EQ(chunks[0]->touches.size(), 2u);
  EXPECT_EQ(chunks[0]->touches[0].count + chunks[0]->touches[1].count, 3u);
  EXPECT_EQ(chunks[1]->instant_ms, 2000u);
  EXPECT_TRUE(Has("a"));
  EXPECT_TRUE(Has("c"));
  EXPECT_FALSE(Has("d"));
}

TEST_F(ReadJournalTest, WhatIsForgottenLeavesTheFiles) {
  for (uint64_t round = 0; round < 20; ++round) {
    Read("k" + std::to_string(round));
    Take();
    EXPECT_LE(BytesOf(0) + BytesOf(1), 6 * 44u) << "no file only grows";
    // The newest chunk is not in the index yet.
    if (round > 0) EXPECT_TRUE(journal_->Forget(journal_->Waiting().front()->order).ok());
  }
  Kill();
  EXPECT_TRUE(Has("k19"));
  // Orders go on where they were, so that the chunk of the earlier process goes first.
  Read("new");
  Take();
  const auto chunks = journal_->Waiting();
  ASSERT_TRUE(journal_->Forget(chunks[chunks.size() - 2]->order).ok());
  EXPECT_FALSE(Has("k19"));
  EXPECT_TRUE(Has("new"));
  ASSERT_TRUE(journal_->Forget(chunks.back()->order).ok());
  EXPECT_EQ(BytesOf(0) + BytesOf(1), 0u);
  Kill();
  EXPECT_TRUE(journal_->Waiting().empty());
}

TEST_F(ReadJournalTest, AChunkThatWasNotWrittenToItsEndIsLeftOut) {
  Read("a");
  Take();
  const uint64_t whole = BytesOf(0);
  Kill();
  // Both in one file, as the other one is not empty.
  std::filesystem::copy_file(directory_ + "/reads-0", directory_ + "/reads-1",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::resize_file(directory_ + "/reads-1", whole - 1);
  Kill();
  EXPECT_EQ(journal_->Waiting().size(), 1u);
  Read("b");
  Take();
  Kill();
  EXPECT_TRUE(Has("a"));
  EXPECT_TRUE(Has("b"));
}

TEST_F(ReadJournalTest, NoMoreIsTakenThanMayWait) {
  for (size_t key = 0; key < 3 * ReadJournal::kMostWaiting; ++key) {
    Read(std::to_string(key));
    if (key % 10'000 == 0) Take();
  }
  size_t waiting = 0;
  for (const auto& chunk : journal_->Waiting()) waiting += chunk->touches.size();
  EXPECT_GT(waiting, ReadJournal::kMostWaiting);
  EXPECT_LE(waiting, ReadJournal::kMostWaiting + 10'000);
  EXPECT_GT(noted_.dropped(), 0u) << "the reads that find no room are counted";
  ASSERT_TRUE(journal_->Forget(journal_->Waiting().back()->order).ok());
  Take();
  EXPECT_FALSE(journal_->Waiting().empty());
}

TEST_F(ReadJournalTest, WhatIsNotedLastIsTakenByStop) {
  Read("a");
  journal_->Stop();
  Kill();
  EXPECT_TRUE(Has("a"));
}

}  // namespace
}  // namespace varve
