#include "tools/archive/archive_restore.h"

#include <string>
#include <vector>

#include "tools/archive/commit_replay.h"
#include "unit-tests/tools/archive/archive_fixture.h"
#include "varve/key_group.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadBytes;
using testing::Spaces;
using testing::WriteBytes;

class ArchiveRestoreTest : public testing::ArchiveTest {
 protected:
  // A base, and three change files behind it.
  void MakeArchive() {
    OpenStore();
    Fill(0, 50, "base");
    OpenArchive();
    TakeBase();
    Remember();
    for (int i = 0; i < 3; ++i) {
      clock_.Advance(10'000);
      Fill(10 * i, 20, "change");
      Follow();
      instants_.push_back(clock_.WallMillis());
    }
  }
  SequenceNumber Nth(size_t i) const {
    return std::next(model_.begin(), static_cast<long>(i))->first;
  }

  std::vector<uint64_t> instants_;
};

TEST_F(ArchiveRestoreTest, EachVersionComesBack) {
  MakeArchive();
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  for (const auto& [version, contents] : model_) {
    const auto report = Restore({.at_version = version});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->version, version);
    EXPECT_EQ(ContentsAt(restored_path()), contents) << version;
    EXPECT_EQ(report->next_version == kNoSequence, version == model_.rbegin()->first);
  }
  const auto newest = Restore({});
  ASSERT_TRUE(newest.ok()) << newest.status();
  EXPECT_EQ(ContentsAt(restored_path()), model_.rbegin()->second);
  EXPECT_EQ(newest->change_files, 3u);
}

TEST_F(ArchiveRestoreTest, ATimeMeansTheLastCommitAtOrBeforeIt) {
  MakeArchive();
  for (size_t i = 0; i < instants_.size(); ++i) {
    auto report = Restore({.at_time_ms = instants_[i]});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->version, Nth(i + 1));
    report = Restore({.at_time_ms = instants_[i] - 1});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->version, Nth(i));
    EXPECT_EQ(report->next_version, Nth(i + 1));
    EXPECT_EQ(report->next_instant_ms, instants_[i]);
  }
}

TEST_F(ArchiveRestoreTest, WhatIsOutsideIsRefusedWithWhatCanBeHad) {
  MakeArchive();
  const SequenceNumber first = model_.begin()->first, last = model_.rbegin()->first;
  for (const ArchivePoint& point :
       {ArchivePoint{.at_version = first - 1}, ArchivePoint{.at_version = last + 1},
        ArchivePoint{.at_time_ms = 1}, ArchivePoint{.at_time_ms = instants_.back() + 1}}) {
    const absl::Status status = Restore(point).status();
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(fmt::format("versions {} (", first)));
    EXPECT_FALSE(std::filesystem::exists(restored_path()));
  }
  // It was seen that nothing followed.
  ASSERT_EQ(place_->NoteCurrent(instants_.back() + 5000), absl::OkStatus());
  EXPECT_EQ(Restore({.at_time_ms = instants_.back() + 5000})->version, last);
}

TEST_F(ArchiveRestoreTest, ADeletedFileIsNamedByCheckAndRestore) {
  MakeArchive();
  for (uint64_t number = 1; number <= 3; ++number) {
    const std::string bytes = ReadBytes(FilePath(number));
    std::filesystem::remove(FilePath(number));
    const std::string name = "changes/" + ArchiveFileName(number);
    EXPECT_THAT(Damaged(Check()), ElementsAre(name));
    const absl::Status status = Restore({}).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(name));
    EXPECT_THAT(std::string(Restore({.at_version = Nth(3)}).status().message()), HasSubstr(name));
    // What lies before it can be had.
    const auto before = Restore({.at_version = Nth(number - 1)});
    ASSERT_TRUE(before.ok()) << before.status();
    EXPECT_EQ(ContentsAt(restored_path()), model_[Nth(number - 1)]);
    WriteBytes(FilePath(number), bytes);
  }
}

TEST_F(ArchiveRestoreTest, ADamagedFileIsNamedByCheckAndRestore) {
  MakeArchive();
  const std::string bytes = ReadBytes(FilePath(2));
  for (size_t at = 0; at < bytes.size(); at += 7) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    WriteBytes(FilePath(2), damaged);
    const auto contents = CheckArchive(PosixFileSystem(), archive_path(), nullptr);
    if (!contents.ok()) {  // of a later version, it seems
      EXPECT_THAT(std::string(contents.status().message()), HasSubstr(ArchiveFileName(2)));
    } else {
      EXPECT_THAT(Damaged(*contents), ElementsAre("changes/" + ArchiveFileName(2))) << at;
    }
  }
  const absl::Status status = Restore({}).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(ArchiveFileName(2)));
  EXPECT_FALSE(std::filesystem::exists(restored_path()));
}

TEST_F(ArchiveRestoreTest, AFileOfAnotherChainIsSeen) {
  MakeArchive();
  WriteBytes(FilePath(2), ReadBytes(FilePath(1)));
  EXPECT_THAT(Damaged(Check()), ElementsAre("changes/" + ArchiveFileName(2)));
  // The same number, versions and base, and other bytes before it.
  const auto file = DecodeArchiveFile(ReadBytes(FilePath(3)), "3");
  ArchiveFileHeader header = file->header;
  std::filesystem::remove(FilePath(2));
  header.number = 2;
  header.after = Nth(1);
  WriteBytes(FilePath(2), *EncodeArchiveFile(header, file->commits));
  EXPECT_THAT(Damaged(Check()), ::testing::Contains("changes/" + ArchiveFileName(2)));
  EXPECT_TRUE(absl::IsDataLoss(Restore({.at_version = Nth(2)}).status()));
}

TEST_F(ArchiveRestoreTest, AnythingElseThatIsMissingIsNamed) {
  MakeArchive();
  const std::string last = archive_path() + "/LAST", bytes = ReadBytes(last);
  WriteBytes(archive_path() + "/changes/notes.txt", "mine");
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  std::filesystem::remove(last);
  EXPECT_THAT(Damaged(Check()), ElementsAre("LAST"));
  WriteBytes(last, bytes + "more");
  EXPECT_THAT(Damaged(Check()), ElementsAre("LAST"));
  WriteBytes(last, bytes);
  const std::string base = place_->position()->base;
  std::filesystem::rename(archive_path() + "/base/" + base, dir_.File("away"));
  EXPECT_THAT(Damaged(Check()), ElementsAre("base/" + base));
  EXPECT_FALSE(Restore({}).ok());
}

TEST_F(ArchiveRestoreTest, AKilledRunGoesOnWhereItWas) {
  MakeArchive();
  const std::string last = archive_path() + "/LAST", before = ReadBytes(last);
  const ArchivePosition position = *place_->position();
  OpenArchive();
  EXPECT_EQ(*place_->position(), position);
  clock_.Advance(1000);
  Fill(0, 5, "more");
  Follow();
  const ArchivePosition then = *place_->position();
  // The file had its name, and LAST did not tell of it yet; another one had none.
  WriteBytes(last, before);
  WriteBytes(FilePath(5) + ".incomplete", "half");
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  OpenArchive();
  EXPECT_EQ(*place_->position(), then);
  EXPECT_FALSE(std::filesystem::exists(FilePath(5) + ".incomplete"));
  Fill(5, 5, "more");
  Follow();
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  ASSERT_TRUE(Restore({}).ok());
  EXPECT_EQ(ContentsAt(restored_path()), model_.rbegin()->second);
}

TEST_F(ArchiveRestoreTest, ANewBaseHealsAGap) {
  MakeArchive();
  const SequenceNumber end = model_.rbegin()->first;
  clock_.Advance(10'000);
  Fill(0, 5, "nobody sees it");
  place_->NeedBase("there is a gap");
  EXPECT_FALSE(place_->position().has_value());
  Fill(0, 5, "base again");
  TakeBase();
  Remember();
  clock_.Advance(10'000);
  Fill(5, 5, "then");
  Follow();
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  EXPECT_EQ(Check().chains.size(), 2u);
  for (const auto& [version, contents] : model_) {
    ASSERT_TRUE(Restore({.at_version = version}).ok()) << version;
    EXPECT_EQ(ContentsAt(restored_path()), contents) << version;
  }
  const absl::Status gap = Restore({.at_version = end + 1}).status();
  EXPECT_TRUE(absl::IsOutOfRange(gap)) << gap;
  EXPECT_THAT(std::string(gap.message()), HasSubstr(", and versions "));
  // The last file of the first chain is that chain's loss alone.
  std::filesystem::remove(FilePath(3));
  EXPECT_THAT(Damaged(Check()), ElementsAre("changes/" + ArchiveFileName(3)));
  EXPECT_TRUE(Restore({}).ok());
  EXPECT_TRUE(absl::IsDataLoss(Restore({.at_version = end}).status()));
}

TEST_F(ArchiveRestoreTest, ADamagedEndMakesANewBaseNecessary) {
  MakeArchive();
  for (const std::string& path : {FilePath(3), archive_path() + "/LAST"}) {
    const std::string bytes = ReadBytes(path);
    WriteBytes(path, bytes.substr(0, bytes.size() / 2));
    OpenArchive();
    EXPECT_FALSE(place_->position().has_value());
    EXPECT_THAT(place_->why_base(), HasSubstr(path));
    WriteBytes(path, bytes);
    std::filesystem::remove(path);
    OpenArchive();
    EXPECT_FALSE(place_->position().has_value());
    WriteBytes(path, bytes);
  }
  std::filesystem::remove(FilePath(3));
  OpenArchive();
  TakeBase();
  Remember();
  Fill(5, 5, "then");
  Follow();
  // Its number is not given again.
  EXPECT_EQ(place_->position()->number, 4u);
  EXPECT_THAT(Damaged(Check()), ElementsAre("changes/" + ArchiveFileName(3)));
  ASSERT_TRUE(Restore({}).ok());
  EXPECT_EQ(ContentsAt(restored_path()), model_.rbegin()->second);
}

TEST_F(ArchiveRestoreTest, ADirectoryOfAnotherIsLeftAlone) {
  std::filesystem::create_directory(archive_path());
  WriteBytes(archive_path() + "/MANIFEST", "x");
  const auto other = ArchivePlace::Open(PosixFileSystem(), archive_path());
  EXPECT_TRUE(absl::IsFailedPrecondition(other.status())) << other.status();
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("MANIFEST"));
  std::filesystem::remove(archive_path() + "/MANIFEST");
  OpenArchive();
  const auto second = ArchivePlace::Open(PosixFileSystem(), archive_path());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  const std::string id = place_->id();
  OpenArchive();
  EXPECT_EQ(place_->id(), id);
  place_.reset();
  WriteBytes(archive_path() + "/ARCHIVE", "varve-archive 2\n");
  EXPECT_TRUE(
      absl::IsFailedPrecondition(ReadArchiveId(PosixFileSystem(), archive_path()).status()));
  WriteBytes(archive_path() + "/ARCHIVE", "something");
  EXPECT_TRUE(absl::IsDataLoss(ReadArchiveId(PosixFileSystem(), archive_path()).status()));
}

TEST_F(ArchiveRestoreTest, EveryKindOfOperationIsReplayed) {
  OpenStore();
  Fill(0, 20, "base");
  OpenArchive();
  TakeBase();
  constexpr NamespaceId kOne = kFirstNamedNamespace, kTwo = kOne + 1, kThree = kOne + 2;
  std::vector<std::function<void(WriteBatch*)>> steps = {
      [](WriteBatch* b) { b->CreateNamespace({.id = kOne, .name = "one"}); },
      [](WriteBatch* b) {
        b->Put("a", "1", {.metadata = "of a"}, kOne);
        b->Put("b", "2", kOne);
        b->Put("c", "3", kOne);
      },
      [](WriteBatch* b) { b->CloneNamespace(kOne, {.id = kTwo, .name = "two"}); },
      [](WriteBatch* b) { b->Delete("b", kTwo); },
      [](WriteBatch* b) { b->AlterNamespace({.id = kOne, .name = "renamed"}); },
      [](WriteBatch* b) { b->Put("y", "of the renamed one", kOne); },
      [](WriteBatch* b) { b->CreateNamespace({.id = kThree, .name = "one"}); },
      [](WriteBatch* b) { b->Put("z", "of the new one", kThree); },
      [](WriteBatch* b) { b->SwapNamespaces(kOne, kTwo); },
      [](WriteBatch* b) { b->DeleteRange("key00003", "key00008"); },
      [](WriteBatch* b) { b->CreateNamespace({.id = 5}); },
      [](WriteBatch* b) { b->Put("k", std::string(5000, 'l'), NamespaceId{5}); },
      [](WriteBatch* b) {
        b->Put("mortal", "v", kDefaultNamespace, testing::ManualClock::kStart * 2);
      },
      [](WriteBatch* b) { b->DropNamespace(kTwo); },
      [](WriteBatch* b) { b->ClearNamespace(NamespaceId{5}); },
      [](WriteBatch* b) { b->DeleteRange("key00015", "key00018"); },
  };
  for (const auto& step : steps) {
    WriteBatch batch;
    step(&batch);
    clock_.Advance(1);
    Commit(&batch);
    if (!ChangesBehind(place_->position()->version).empty()) Follow();
  }
  EXPECT_GT(model_.size(), 12u);
  for (const auto& [version, contents] : model_) {
    const auto report = Restore({.at_version = version});
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(ContentsAt(restored_path()), contents) << version;
  }
  const auto report = Restore({});
  EXPECT_THAT(report->without_options, ElementsAre("one", "renamed"));
  auto restored = *StorageEngine::Open(restored_path(), options_);
  std::string value;
  const auto mortal = restored->Get({}, "mortal", &value);
  ASSERT_TRUE(mortal.ok() && mortal->found);
  EXPECT_EQ(mortal->expiry_ms, testing::ManualClock::kStart * 2);
}

TEST_F(ArchiveRestoreTest, ANameThatIsNotKnownYetIsStoodInFor) {
  OpenStore();
  Fill(0, 3, "base");
  OpenArchive();
  TakeBase();
  constexpr NamespaceId kOne = kFirstNamedNamespace, kTwo = kOne + 1;
  WriteBatch batch;
  batch.CreateNamespace({.id = kOne, .name = "one"});
  Commit(&batch);
  batch.Put("a", "of the first", kOne);
  Commit(&batch);
  batch.AlterNamespace({.id = kOne, .name = "other"});
  Commit(&batch);
  batch.CreateNamespace({.id = kTwo, .name = "one"});
  Commit(&batch);
  Follow();
  auto report = Restore({});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->without_names, ElementsAre("renamed-65536"));
  EXPECT_EQ(ContentsAt(restored_path())["renamed-65536"].size(), 1u);
  batch.Put("b", "of the first", kOne);
  Commit(&batch);
  Follow();
  report = Restore({});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->without_names, IsEmpty());
  EXPECT_EQ(ContentsAt(restored_path()), model_.rbegin()->second);
}

TEST_F(ArchiveRestoreTest, MetadataComesBack) {
  OpenStore();
  Fill(0, 3, "base");
  OpenArchive();
  TakeBase();
  WriteBatch batch;
  batch.Put("a", "1", {.metadata = "of a"}, kDefaultNamespace);
  Commit(&batch);
  Follow();
  ASSERT_TRUE(Restore({}).ok());
  auto restored = *StorageEngine::Open(restored_path(), options_);
  const auto cursor = restored->NewIterator({}, "a", "b", nullptr);
  cursor->SeekToFirst();
  ASSERT_TRUE(cursor->Valid());
  EXPECT_EQ(cursor->metadata(), "of a");
}

TEST_F(ArchiveRestoreTest, GroupsOfKeysComeBackAndRefuseTheSame) {
  OpenStore();
  constexpr NamespaceId kOld = kFirstNamedNamespace, kNew = kOld + 1, kClone = kOld + 2;
  const NamespaceOptions by_colon{.grouping = KeyGrouping::By(':')};
  WriteBatch batch;
  batch.CreateNamespace({.id = kOld, .name = "old", .options = by_colon});
  Commit(&batch);
  Fill(0, 3, "base");
  OpenArchive();
  TakeBase();
  // Commits of several groups, which a replay writes together.
  for (int i = 0; i < 20; ++i) {
    batch.Put(fmt::format("user{}:a", i), "1", kOld);
    batch.Put(fmt::format("user{}:b", i), "2", kOld);
    Commit(&batch);
  }
  batch.CreateNamespace(
      {.id = kNew, .name = "new", .options = {.grouping = KeyGrouping::Together()}});
  Commit(&batch);
  batch.Put("a", "1", kNew);
  batch.Put("b", "2", kNew);
  Commit(&batch);
  batch.CloneNamespace(kOld, {.id = kClone, .name = "clone", .options = by_colon});
  Commit(&batch);
  batch.AlterNamespace({.id = kOld, .name = "renamed", .options = by_colon});
  Commit(&batch);
  batch.Delete("user7:a", kOld);
  Commit(&batch);
  Follow();

  const auto report = Restore({});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(ContentsAt(restored_path()), model_.rbegin()->second);
  auto restored = *StorageEngine::Open(restored_path(), options_);
  EXPECT_EQ(restored->GroupsOf(kOld), KeyGrouping::By(':'));
  EXPECT_EQ(restored->GroupsOf(kNew), KeyGrouping::Together());
  EXPECT_EQ(restored->GroupsOf(kClone), KeyGrouping::By(':'));
  for (const NamespaceId space : {kOld, kClone}) {
    batch.Put("user1:a", "lost", space);
    batch.Put("user2:a", "lost", space);
    EXPECT_TRUE(IsCrossGroup(restored->Write({}, &batch).status()));
    batch.Clear();
  }
}

TEST(CommitReplayTest, WhatChangesAloneCannotRepeatIsNamed) {
  Change commit{.version = 42};
  commit.operations = {{.kind = ChangeOperation::Kind::kClone, .name = "copy", .key = "source"}};
  EXPECT_EQ(WhyNotReplayed(commit), "");
  commit.operations[0].value = "17";
  EXPECT_THAT(WhyNotReplayed(commit), AllOf(HasSubstr("42"), HasSubstr("copy")));
  commit.operations = {{.kind = ChangeOperation::Kind::kIngest, .key = "a", .value = "b"}};
  EXPECT_THAT(WhyNotReplayed(commit), AllOf(HasSubstr("42"), HasSubstr("INGEST")));
}

}  // namespace
}  // namespace varve
