#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "db/format/batch_codec.h"
#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::kTestStore;
using testing::LogUser;
using ::testing::Pair;
using testing::ReadFile;
using testing::Replay;
using testing::Replayed;
using testing::WriteFile;

constexpr size_t kSmallLogFile = 64u << 10;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

// A directory as a killed process leaves it, which tests then damage.
class LogRecoveryTest : public ::testing::Test {
 protected:
  // Commits each of `groups` on its own and keeps a copy of the directory as it was then.
  void Write(const std::vector<std::string>& groups, size_t file_size = kSmallLogFile) {
    testing::TempDir live;
    LogUser user(live.path(), file_size);
    user.Open();
    for (const std::string& group : groups) ASSERT_TRUE(user.Commit(group).ok());
    testing::CopyDirectory(live.path(), dir_.path());
  }
  std::string Path(uint64_t number = 1) const { return dir_.File(LogFileName(number)); }
  void Flip(uint64_t number, size_t offset, int bit = 0) {
    std::string content = ReadFile(Path(number));
    content[offset] = static_cast<char>(content[offset] ^ (1 << bit));
    WriteFile(Path(number), content);
  }

  testing::TempDir dir_;
};

TEST_F(LogRecoveryTest, AnEmptyDirectoryHoldsNothing) {
  const Replayed replayed = Replay(dir_.path(), 17);
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.recovery.last_sequence, 17u);
  EXPECT_EQ(replayed.recovery.last_file_number, 0u);
}

// Wherever the last write was cut off, whole batches remain, from the front, and nothing else.
TEST_F(LogRecoveryTest, EveryCutOfTheLastBlockLeavesAPrefix) {
  testing::TempDir live;
  LogUser user(live.path(), kSmallLogFile);
  user.Open();
  ASSERT_TRUE(user.Commit("acknowledged").ok());
  for (int i = 2; i <= 5; ++i) ASSERT_TRUE(user.Add("batch " + std::to_string(i)).ok());
  ASSERT_TRUE(user.log().Sync().ok());
  testing::CopyDirectory(live.path(), dir_.path());
  const std::string whole = ReadFile(Path());
  const size_t begin = 2 * kLogPageSize;  // of the block with batches 2 to 5
  const size_t record_size = kBatchHeaderSize + 7;
  const size_t end = begin + kLogBlockHeaderSize + 4 * record_size;
  for (size_t cut = begin; cut <= end; ++cut) {
    WriteFile(Path(), whole.substr(0, cut) + std::string(whole.size() - cut, '\0'));
    const Replayed replayed = Replay(dir_.path());
    ASSERT_TRUE(replayed.status.ok()) << replayed.status;
    const size_t whole_batches =
        cut < begin + kLogBlockHeaderSize ? 0 : (cut - begin - kLogBlockHeaderSize) / record_size;
    ASSERT_EQ(replayed.batches.size(), 1 + whole_batches) << "cut at " << cut;
    for (size_t i = 1; i <= whole_batches; ++i)
      EXPECT_EQ(replayed.batches[i].second, "batch " + std::to_string(i + 1));
    ASSERT_EQ(replayed.recovery.last_sequence, 1 + whole_batches);
  }
}

// A log file that was cut at the end of a block looked like one that had ended there, and lost its
// acknowledged end without a word.
//
// A file has its size before it has its name: a shorter one lost an end that may have been
// acknowledged.
TEST_F(LogRecoveryTest, AFileThatBecameShorterIsCorruption) {
  Write({"first", "second"});
  const std::string whole = ReadFile(Path());
  for (const size_t cut :
       {size_t{0}, size_t{31}, kLogPageSize - 1, kLogPageSize, kLogPageSize + 50, 2 * kLogPageSize,
        2 * kLogPageSize + 60, 3 * kLogPageSize, whole.size() - 1}) {
    WriteFile(Path(), whole.substr(0, cut));
    const Replayed replayed = Replay(dir_.path());
    EXPECT_TRUE(absl::IsDataLoss(replayed.status)) << cut << ' ' << replayed.status;
    EXPECT_THAT(Message(replayed.status),
                AllOf(HasSubstr(Path()), HasSubstr("offset " + std::to_string(cut))));
  }
  WriteFile(Path(), whole);
  WriteFile(dir_.File("000002.log"), "");
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path()).status)) << "it may have been in use";
}

// Damage in operations that segments held already, in a file with later ones, kept the store from
// opening.
//
// Operations that are in segments are not needed, wherever in a file they stand.
TEST_F(LogRecoveryTest, DamageInWhatWasFlushedHarmsNothingInTheMiddleOfAFile) {
  Write({"first", "second", "third", "fourth", "fifth"});
  Flip(1, 2 * kLogPageSize + 10);
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path(), 1).status)) << "the second one is needed";
  const Replayed replayed = Replay(dir_.path(), 3);
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_THAT(replayed.batches, ElementsAre(Pair(4, "fourth"), Pair(5, "fifth")));
  Flip(1, kLogPageSize + 10);  // the first block, too
  EXPECT_THAT(Replay(dir_.path(), 3).batches, ElementsAre(Pair(4, "fourth"), Pair(5, "fifth")));
}

// Recovery continued with a block behind a newer one while it looked for the first that is not
// flushed; recovering once more gave something else.
//
// No writer leaves blocks that descend. Looking for where to go on behind what is flushed must not
// step over one that is too new.
TEST_F(LogRecoveryTest, ABlockBehindANewerOneIsNotGoneOnWith) {
  std::string bytes = EncodeLogHeaderPage(1, kTestStore);
  const auto append = [&bytes](SequenceNumber first, SequenceNumber mark) {
    const std::string record = testing::MakeRecord(first, "operations", 50);
    char header[kLogBlockHeaderSize];
    EncodeLogBlockHeader(header, {static_cast<uint32_t>(record.size()), 1, first, first + 49, mark},
                         kTestStore, bytes.size());
    bytes.append(header, sizeof(header)).append(record);
    bytes.resize(LogBlockAlign(bytes.size()));
  };
  append(1, 0);
  append(200, 199);
  append(120, 119);
  bytes.resize(kSmallLogFile);
  WriteFile(Path(), bytes);
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path(), 130).status));
}

TEST_F(LogRecoveryTest, ASurveyGoesOnBehindDamageAndChangesNothing) {
  Write({"first", "second", "third", "fourth", "fifth"});
  Flip(1, 2 * kLogPageSize + 10);
  Flip(1, 17);
  const std::string damaged = ReadFile(Path());
  std::vector<SequenceNumber> delivered;
  const auto survey = SurveyLog(PosixFileSystem(), dir_.path(), testing::kTestStore, 0, {},
                                [&](std::string_view, SequenceNumber first, uint32_t) {
                                  delivered.push_back(first);
                                  return absl::OkStatus();
                                });
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_THAT(delivered, ElementsAre(1, 3, 4, 5));
  ASSERT_EQ(survey->gaps.size(), 2u);
  EXPECT_EQ(survey->gaps[0].first, survey->gaps[0].last + 1);
  EXPECT_THAT(Message(survey->gaps[0].damage), HasSubstr("log header"));
  EXPECT_EQ(survey->gaps[1].first, 2u);
  EXPECT_EQ(survey->gaps[1].last, 2u);
  EXPECT_THAT(Message(survey->gaps[1].damage), HasSubstr("damaged or missing from operation 2 on"));
  EXPECT_EQ(ReadFile(Path()), damaged);
}

TEST_F(LogRecoveryTest, OneFlippedBitInAnAcknowledgedBlockIsCorruption) {
  Write({"first", "second", "third"});
  const std::string whole = ReadFile(Path());
  // The third block's mark says that these two are acknowledged.
  for (size_t page = 1; page <= 2; ++page) {
    const size_t begin = page * kLogPageSize;
    const size_t size = kLogBlockHeaderSize + kBatchHeaderSize + (page == 1 ? 5 : 6);
    for (size_t i = 0; i < size; ++i) {
      WriteFile(Path(), whole);
      Flip(1, begin + i, static_cast<int>(i % 8));
      const Replayed replayed = Replay(dir_.path());
      ASSERT_TRUE(absl::IsDataLoss(replayed.status)) << "byte " << i << ": " << replayed.status;
      EXPECT_THAT(Message(replayed.status), AllOf(HasSubstr(Path()), HasSubstr("offset")));
      EXPECT_EQ(replayed.batches.size(), page - 1);
    }
  }
}

TEST_F(LogRecoveryTest, OneFlippedBitInTheLastBlockIsATear) {
  Write({"first", "second", "third"});
  const std::string whole = ReadFile(Path());
  for (size_t i = 0; i < kLogBlockHeaderSize + kBatchHeaderSize + 5; ++i) {
    WriteFile(Path(), whole);
    Flip(1, 3 * kLogPageSize + i, static_cast<int>(i % 8));
    const Replayed replayed = Replay(dir_.path());
    ASSERT_TRUE(replayed.status.ok()) << "byte " << i << ": " << replayed.status;
    EXPECT_EQ(replayed.recovery.last_sequence, 2u);
    // A damaged header cannot be told from what an earlier life left there.
    EXPECT_EQ(replayed.recovery.torn_bytes > 0, i >= kLogBlockHeaderSize);
  }
}

TEST_F(LogRecoveryTest, APauseMakesTheLastGroupsDamageCorruption) {
  testing::TempDir live;
  LogUser user(live.path(), kSmallLogFile);
  user.Open();
  ASSERT_TRUE(user.Commit("only group").ok());
  // After a second of rest the log writes the durable mark, a page, behind it.
  const uint64_t written = user.log().statistics().bytes_written;
  ASSERT_TRUE(testing::Eventually(
      [&] { return user.log().statistics().bytes_written >= written + kLogPageSize; }));
  ASSERT_TRUE(user.Commit("after the mark").ok());
  testing::CopyDirectory(live.path(), dir_.path());
  EXPECT_THAT(Replay(dir_.path()).batches,
              ElementsAre(Pair(1, "only group"), Pair(2, "after the mark")));
  std::string content = ReadFile(Path());
  content.resize(3 * kLogPageSize);  // without the second group
  WriteFile(Path(), content);
  EXPECT_THAT(Replay(dir_.path()).batches, ElementsAre(Pair(1, "only group")));
  Flip(1, kLogPageSize + kLogBlockHeaderSize + kBatchHeaderSize);
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path()).status));
}

TEST_F(LogRecoveryTest, ZerosBehindTheLogAreItsEnd) {
  Write({"first", "second"}, 256u << 10);
  const std::string content = ReadFile(Path());
  ASSERT_EQ(content.find_first_not_of('\0', 3 * kLogPageSize), std::string::npos);
  WriteFile(Path(), content + std::string(64u << 10, '\0'));
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 2u);
  EXPECT_EQ(replayed.recovery.torn_bytes, 0u);
}

TEST_F(LogRecoveryTest, DamageInThePaddingHarmsNothing) {
  Write({"first", "second", "third"});
  Flip(1, kLogPageSize + 2000);
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 3u);
}

TEST_F(LogRecoveryTest, ALogWithinAValueIsNoBlock) {
  Write({"first", "second", "third"});
  const std::string log_as_value = ReadFile(Path()).substr(0, 4 * kLogPageSize);
  testing::TempDir live;
  LogUser user(live.path(), kSmallLogFile);
  user.Open();
  ASSERT_TRUE(user.Commit("first").ok());
  ASSERT_TRUE(user.Commit(log_as_value).ok());
  testing::CopyDirectory(live.path(), dir_.path());
  Flip(1, 2 * kLogPageSize);  // the block with the value is torn
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.recovery.last_sequence, 1u);
}

// --- Several files -------------------------------------------------------------------------------

// Groups that fill about three small files.
std::vector<std::string> ManyGroups() {
  std::vector<std::string> groups;
  for (int i = 1; i <= 40; ++i) groups.push_back(std::to_string(i) + std::string(3500, 'v'));
  return groups;
}

TEST_F(LogRecoveryTest, FilesContinueEachOther) {
  Write(ManyGroups());
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 40u);
  ASSERT_EQ(replayed.recovery.files.size(), 3u);
  EXPECT_EQ(replayed.recovery.files[0].file_number, 1u);
  EXPECT_EQ(replayed.recovery.files[0].last_sequence, 15u) << "15 pages behind the header";
  EXPECT_EQ(replayed.recovery.files[2].last_sequence, 40u);
  EXPECT_GE(replayed.recovery.last_file_number, replayed.recovery.files[2].file_number);
  // What was flushed makes whole files obsolete.
  const Replayed later = Replay(dir_.path(), 20);
  EXPECT_THAT(later.recovery.obsolete_paths, ::testing::Contains(Path(1)));
  EXPECT_EQ(later.batches.front().first, 21u);
}

TEST_F(LogRecoveryTest, AMissingFileInTheMiddleIsCorruption) {
  Write(ManyGroups());
  std::filesystem::remove(Path(2));
  const Replayed replayed = Replay(dir_.path());
  EXPECT_TRUE(absl::IsDataLoss(replayed.status)) << replayed.status;
  EXPECT_TRUE(Replay(dir_.path(), 30).status.ok()) << "what it held is in segments";
}

TEST_F(LogRecoveryTest, AMissingFirstFileIsCorruption) {
  Write(ManyGroups());
  std::filesystem::remove(Path(1));
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path()).status));
}

TEST_F(LogRecoveryTest, DamageAtTheEndOfAFullFileIsCorruption) {
  Write(ManyGroups());
  Flip(1, 15 * kLogPageSize + 100);
  const Replayed replayed = Replay(dir_.path());
  EXPECT_TRUE(absl::IsDataLoss(replayed.status)) << replayed.status;
  EXPECT_THAT(Message(replayed.status), HasSubstr(Path(1)));
  EXPECT_TRUE(Replay(dir_.path(), 15).status.ok()) << "damage in what was flushed does not matter";
}

TEST_F(LogRecoveryTest, NumberedFilesWithoutContentArePassedOver) {
  Write({"first", "second"});
  WriteFile(dir_.File("000077.log"), EncodeLogHeaderPage(77, testing::kTestStore, kLogPageSize));
  WriteFile(dir_.File("000078.log"),
            EncodeLogHeaderPage(78, testing::kTestStore, 8192) + std::string(4096, '\0'));
  WriteFile(dir_.File("000079.log.tmp"), "half prepared");
  WriteFile(dir_.File("notes.txt"), "not a log");
  const Replayed replayed = Replay(dir_.path());
  ASSERT_TRUE(replayed.status.ok()) << replayed.status;
  EXPECT_EQ(replayed.batches.size(), 2u);
  EXPECT_EQ(replayed.recovery.last_file_number, 79u);
  EXPECT_THAT(replayed.recovery.obsolete_paths,
              AllOf(::testing::Contains(dir_.File("000077.log")),
                    ::testing::Contains(dir_.File("000078.log")),
                    ::testing::Contains(dir_.File("000079.log.tmp"))));
}

TEST_F(LogRecoveryTest, AFileOfAnotherStoreIsRefused) {
  Write({"first"});
  WriteFile(dir_.File("000077.log"),
            EncodeLogHeaderPage(77, testing::kTestStore + 1, kLogPageSize));
  EXPECT_TRUE(absl::IsFailedPrecondition(Replay(dir_.path()).status));
}

TEST_F(LogRecoveryTest, ADamagedFileHeaderIsCorruption) {
  Write({"first"});
  Flip(1, 17);
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path()).status));
}

// --- Ends that the manifest knows ----------------------------------------------------------------

TEST_F(LogRecoveryTest, AfterACleanCloseAnyDamageIsCorruption) {
  LogUser user(dir_.path(), kSmallLogFile);
  user.Open();
  ASSERT_TRUE(user.Commit("first").ok());
  ASSERT_TRUE(user.Commit("second").ok());
  const LogEnd end = user.log().Close().value();
  user.Drop();
  ASSERT_TRUE(Replay(dir_.path(), 0, {end}).status.ok());
  Flip(1, 2 * kLogPageSize + 50);
  EXPECT_TRUE(Replay(dir_.path()).status.ok()) << "not knowing better, it looks torn";
  const Replayed replayed = Replay(dir_.path(), 0, {end});
  EXPECT_TRUE(absl::IsDataLoss(replayed.status)) << replayed.status;
  EXPECT_THAT(Message(replayed.status), HasSubstr(Path()));
  EXPECT_TRUE(Replay(dir_.path(), 2, {end}).status.ok()) << "flushed by then";
  std::filesystem::remove(Path());
  EXPECT_TRUE(absl::IsDataLoss(Replay(dir_.path(), 0, {end}).status));
  EXPECT_TRUE(Replay(dir_.path(), 2, {end}).status.ok());
}

TEST_F(LogRecoveryTest, TheLogGoesOnBehindACut) {
  testing::TempDir live;
  LogUser first(live.path(), kSmallLogFile);
  first.Open();
  ASSERT_TRUE(first.Commit("one").ok());
  for (const char* batch : {"two", "cut off", "cut off too"}) ASSERT_TRUE(first.Add(batch).ok());
  ASSERT_TRUE(first.log().Sync().ok());
  testing::CopyDirectory(live.path(), dir_.path());
  // The last group's third batch is torn.
  Flip(1, 2 * kLogPageSize + kLogBlockHeaderSize + kBatchHeaderSize + 3 + kBatchHeaderSize);
  const Replayed cut = Replay(dir_.path());
  ASSERT_TRUE(cut.status.ok()) << cut.status;
  ASSERT_EQ(cut.recovery.last_sequence, 2u);
  ASSERT_EQ(cut.recovery.files.size(), 1u);
  const LogEnd end = cut.recovery.files[0];
  EXPECT_EQ(end.last_sequence, 2u);

  // A second life with the same sequences, and its own crash.
  testing::TempDir live_again;
  testing::CopyDirectory(dir_.path(), live_again.path());
  LogUser second(live_again.path(), kSmallLogFile, /*last=*/2,
                 /*file_number=*/cut.recovery.last_file_number + 1);
  second.Open();
  second.log().Adopt(cut.recovery.files);
  for (const char* batch : {"three", "four", "five"}) ASSERT_TRUE(second.Commit(batch).ok());
  ASSERT_EQ(second.log().Files().size(), 2u);
  testing::TempDir crashed;
  testing::CopyDirectory(live_again.path(), crashed.path());
  for (const auto& known : {std::vector<LogEnd>{}, std::vector<LogEnd>{end}}) {
    const Replayed replayed = Replay(crashed.path(), 0, known);
    ASSERT_TRUE(replayed.status.ok()) << replayed.status;
    EXPECT_THAT(replayed.batches, ElementsAre(Pair(1, "one"), Pair(2, "two"), Pair(3, "three"),
                                              Pair(4, "four"), Pair(5, "five")));
    EXPECT_EQ(replayed.recovery.files.size(), 2u);
  }
  // With the cut known, damage before it is corruption.
  std::string content = ReadFile(crashed.File(LogFileName(1)));
  content[2 * kLogPageSize + kLogBlockHeaderSize + kBatchHeaderSize] ^= 1;
  WriteFile(crashed.File(LogFileName(1)), content);
  EXPECT_TRUE(absl::IsDataLoss(Replay(crashed.path(), 0, {end}).status));
}

TEST_F(LogRecoveryTest, ProgressIsToldFromTheFirstByteToTheLast) {
  std::vector<ReplayProgress> told;
  const auto recover = [&] {
    return RecoverLog(
        PosixFileSystem(), dir_.path(), testing::kTestStore, 0, {},
        [](std::string_view, SequenceNumber, uint32_t) { return absl::OkStatus(); },
        [&](const ReplayProgress& progress) { told.push_back(progress); });
  };
  ASSERT_TRUE(recover().ok());
  EXPECT_TRUE(told.empty()) << "there is no log";

  // 24 MiB in files of 1 MiB.
  Write(std::vector<std::string>(48, std::string(512 << 10, 'x')));
  ASSERT_TRUE(recover().ok());
  ASSERT_GE(told.size(), 4u);
  EXPECT_EQ(told.front().bytes_read, 0u);
  EXPECT_EQ(told.back().bytes_read, told.back().bytes_total);
  EXPECT_GE(told.back().bytes_total, 24u << 20);
  for (size_t i = 1; i < told.size(); ++i) {
    EXPECT_GT(told[i].bytes_read, told[i - 1].bytes_read);
    EXPECT_EQ(told[i].bytes_total, told[0].bytes_total);
  }
}

TEST_F(LogRecoveryTest, ADeliveryThatFailsEndsRecovery) {
  Write({"first", "second"});
  const auto recovered =
      RecoverLog(PosixFileSystem(), dir_.path(), testing::kTestStore, 0, {},
                 [](std::string_view, SequenceNumber first, uint32_t) {
                   return first == 2 ? absl::DataLossError("no such kind") : absl::OkStatus();
                 });
  EXPECT_TRUE(absl::IsDataLoss(recovered.status()));
  EXPECT_THAT(Message(recovered.status()), AllOf(HasSubstr(Path()), HasSubstr("no such kind")));
}

TEST_F(LogRecoveryTest, TimeMarksComeWithTheirBatches) {
  LogUser user(dir_.path());
  user.Open();
  ASSERT_TRUE(user.Commit("one").ok());
  const auto mark = EncodeTimeMark(2, 1'700'000'000'123);
  const std::string record = testing::MakeRecord(2, "two");
  ASSERT_TRUE(user.log().Reserve(mark.size() + record.size(), /*for_deletes=*/false).ok());
  ASSERT_TRUE(user.log()
                  .Append(record, 2, 2, Durability::kAlways, nullptr, {mark.data(), mark.size()})
                  .ok());
  ASSERT_TRUE(user.log().Sync().ok());
  user.Drop();
  const testing::Replayed all = testing::Replay(dir_.path());
  ASSERT_TRUE(all.status.ok()) << all.status;
  EXPECT_EQ(all.batches.size(), 2u);
  EXPECT_EQ(all.recovery.marks, (std::vector<TimeMark>{{2, 1'700'000'000'123}}));
  EXPECT_TRUE(testing::Replay(dir_.path(), /*flushed=*/2).recovery.marks.empty());
}

}  // namespace
}  // namespace varve
