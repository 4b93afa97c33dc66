// Archives that go on for long: bases that join the changes, what a pruning leaves, and what any
// failure leaves of either.
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/testing/simulated_file_system.h"
#include "unit-tests/tools/archive/archive_fixture.h"
#include "unit-tests/tools/backup/watched_file_system.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using testing::FaultFileSystem;
using testing::FileOperation;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::WatchedFileSystem;

constexpr uint64_t kMinute = 60'000;

class ArchivePruneTest : public testing::ArchiveTest {
 protected:
  // A base is taken here, and changes come before the archive joins it.
  void JoinBase(int changes) {
    const std::string id = CopyBase();
    for (int i = 0; i < changes; ++i) Step();
    Join(id);
  }
  std::string CopyBase() {
    const BackupOrigin origin = Seal();
    const auto id = Copy(place_->bases(), sealed_path(), origin, /*incremental=*/true);
    EXPECT_TRUE(id.ok()) << id.status();
    return *id;
  }
  // Copies the archive to another file system, where all of it is on disk.
  void CopyAll(FileSystem* to, const std::string& directory) const {
    ASSERT_EQ(to->CreateDirectory(directory + "/changes"), absl::OkStatus());
    for (const auto& [name, bytes] : testing::FilesBelow(archive_path())) {
      const std::string path = directory + "/" + name;
      if (name.ends_with('/')) {
        ASSERT_EQ(to->CreateDirectory(path.substr(0, path.size() - 1)), absl::OkStatus());
        continue;
      }
      ASSERT_EQ(to->CreateDirectory(ParentDirectory(path)), absl::OkStatus());
      const auto file = to->OpenForWrite(path, /*create=*/true);
      ASSERT_TRUE(file.ok()) << file.status();
      ASSERT_EQ((*file)->Write(0, bytes), absl::OkStatus());
      ASSERT_EQ((*file)->Sync(), absl::OkStatus());
      for (std::string each = path; each != directory; each = ParentDirectory(each))
        ASSERT_EQ(to->SyncDirectory(ParentDirectory(each)), absl::OkStatus());
    }
  }
  void Join(const std::string& id) {
    const auto base = ReadBackupList(PosixFileSystem(), place_->bases()->PathOf(id));
    ASSERT_TRUE(base.ok()) << base.status();
    ASSERT_EQ(place_->JoinBase(*base), absl::OkStatus());
  }
  // A minute goes by, and a change file is written.
  void Step() {
    clock_.Advance(kMinute);
    Fill(step_ % 40, 15, "step " + std::to_string(step_));
    ++step_;
    Follow();
    instants_.push_back(clock_.WallMillis());
  }
  // A base and `bases` that join, each with three change files behind it.
  void MakeArchive(int bases) {
    OpenStore();
    Fill(0, 30, "first");
    OpenArchive();
    TakeBase();
    Remember();
    for (int i = 0; i <= bases; ++i) {
      for (int j = 0; j < 3; ++j) Step();
      if (i < bases) JoinBase(2);
    }
  }
  void ExpectAllVersions(SequenceNumber from, const std::string& when = "") {
    EXPECT_THAT(Damaged(Check()), IsEmpty()) << when;
    for (const auto& [version, contents] : model_) {
      if (version < from) continue;
      const auto report = Restore({.at_version = version});
      ASSERT_TRUE(report.ok()) << when << report.status();
      EXPECT_EQ(report->version, version) << when;
      EXPECT_TRUE(ContentsAt(restored_path()) == contents) << when << version;
    }
  }
  std::string LastPath() const { return archive_path() + "/LAST"; }

  int step_ = 0;
  std::vector<uint64_t> instants_;  // of change files
};

TEST_F(ArchivePruneTest, ABaseJoinsWithoutAGap) {
  MakeArchive(2);
  const ArchiveContents contents = Check();
  EXPECT_THAT(Damaged(contents), IsEmpty());
  ASSERT_THAT(contents.chains, SizeIs(3));
  EXPECT_THAT(contents.chains[0].files, SizeIs(13));
  EXPECT_THAT(contents.chains[1].files, SizeIs(10));
  EXPECT_THAT(contents.chains[2].files, SizeIs(5));
  for (size_t i = 1; i < 3; ++i) {
    const BackupDescription& base = contents.chains[i].base;
    EXPECT_TRUE(contents.chains[i - 1].Holds(base.history_id, base.version));
  }
  ExpectAllVersions(0);
  // Each restore begins with the newest base that it can.
  EXPECT_EQ(Restore({})->base, contents.chains[2].base.id);
  EXPECT_EQ(Restore({})->change_files, 5u);
  EXPECT_EQ(Restore({.at_time_ms = instants_[3]})->base, contents.chains[1].base.id);
  // It goes on where it was.
  OpenArchive();
  ASSERT_TRUE(place_->position().has_value()) << place_->why_base();
  Step();
  ExpectAllVersions(std::prev(model_.end())->first);
}

TEST_F(ArchivePruneTest, EachFileIsNeededByTheBasesBeforeIt) {
  MakeArchive(1);
  const std::vector<ArchiveChain> chains = Check().chains;
  for (uint64_t number = 1; number <= 8; ++number) {
    const std::string name = "changes/" + ArchiveFileName(number);
    std::filesystem::rename(FilePath(number), dir_.File("away"));
    EXPECT_THAT(Damaged(Check()), ElementsAre(name));
    const absl::Status newest = Restore({}).status();
    if (number <= 3) {
      EXPECT_TRUE(newest.ok()) << number << newest;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(newest)) << number << newest;
      EXPECT_THAT(std::string(newest.message()), HasSubstr(name));
    }
    const absl::Status first = Restore({.at_version = chains[1].base.version - 1}).status();
    EXPECT_EQ(first.ok(), number > 3) << number << first;
    std::filesystem::rename(dir_.File("away"), FilePath(number));
  }
}

TEST_F(ArchivePruneTest, ABaseInTheMiddleOfAFileIsGoneOnFrom) {
  OpenStore();
  Fill(0, 30, "first");
  OpenArchive();
  TakeBase();
  Remember();
  Fill(0, 10, "in front");
  const std::string id = CopyBase();
  Fill(5, 10, "behind");
  Follow();  // one file with both
  Join(id);
  const auto report = Restore({});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->base, id);
  EXPECT_EQ(report->commits, 1u);
  EXPECT_TRUE(ContentsAt(restored_path()) == std::prev(model_.end())->second);
}

// The version of a base may be one that no change has, as what only the store knows has versions.
TEST_F(ArchivePruneTest, ABaseBehindTheNewestChangeJoins) {
  MakeArchive(0);
  WriteBatch batch;
  batch.CreateNamespace({.id = kFirstNamedNamespace, .name = "one"});
  Commit(&batch);
  Follow();
  ASSERT_TRUE(store_->CreateFeed({.name = "a feed", .position = place_->position()->version}).ok());
  const std::string id = CopyBase();
  Join(id);
  EXPECT_GE(place_->base().version, place_->position()->version);
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  EXPECT_EQ(Restore({})->base, id);
  OpenArchive();
  ASSERT_TRUE(place_->position().has_value()) << place_->why_base();
  Step();
  EXPECT_EQ(Restore({})->base, id);
  ExpectAllVersions(0);
}

TEST_F(ArchivePruneTest, WhatNoRestoreNeedsIsRemoved) {
  MakeArchive(2);
  const ArchiveContents before = Check();
  // Everything is younger, or needed for what is.
  EXPECT_EQ(*place_->Prune(1000 * kMinute), 0u);
  EXPECT_EQ(*place_->Prune(instants_.back() - before.chains[1].base.instant_ms + 1), 0u);
  const uint64_t since = before.chains[1].base.instant_ms;
  EXPECT_EQ(*place_->Prune(instants_.back() - since), 1u);
  EXPECT_THAT(Check().chains, SizeIs(2));
  EXPECT_THAT(Check().findings, IsEmpty());
  EXPECT_FALSE(std::filesystem::exists(FilePath(3)));
  EXPECT_TRUE(std::filesystem::exists(FilePath(4)));
  ExpectAllVersions(before.chains[1].base.version);
  const absl::Status gone = Restore({.at_time_ms = since - 1}).status();
  EXPECT_TRUE(absl::IsOutOfRange(gone)) << gone;
  // The newest complete chain stays, however old it is.
  EXPECT_EQ(*place_->Prune(0), 1u);
  EXPECT_EQ(*place_->Prune(0), 0u);
  EXPECT_THAT(Check().chains, SizeIs(1));
  OpenArchive();
  Step();
  JoinBase(1);
  ExpectAllVersions(before.chains[2].base.version);
  // A file that is needed is missed all the same.
  std::filesystem::remove(FilePath(place_->position()->number - 1));
  EXPECT_THAT(Damaged(Check()), SizeIs(1));
}

TEST_F(ArchivePruneTest, ABrokenChainIsNotWhatStays) {
  MakeArchive(1);
  std::filesystem::remove(FilePath(7));
  EXPECT_THAT(Damaged(Check()), ElementsAre("changes/" + ArchiveFileName(7)));
  EXPECT_EQ(*place_->Prune(0), 0u);
  JoinBase(1);
  EXPECT_EQ(*place_->Prune(0), 2u);
  EXPECT_THAT(Damaged(Check()), IsEmpty());
  ASSERT_TRUE(Restore({}).ok());
  EXPECT_TRUE(ContentsAt(restored_path()) == model_.rbegin()->second);
}

// Its list is sent last.
TEST_F(ArchivePruneTest, APartOfABaseIsALeftover) {
  MakeArchive(1);
  const std::string base = archive_path() + "/base/" + place_->position()->base;
  const std::string part = archive_path() + "/base/20261125T193300Z-99";
  std::filesystem::create_directory(part);
  testing::WriteBytes(part + "/000010.seg", "half");
  ASSERT_THAT(Check().findings, SizeIs(1));
  EXPECT_EQ(Check().findings[0].kind, StoreFinding::Kind::kLeftover);
  EXPECT_EQ(Check().findings[0].file, "base/20261125T193300Z-99");
  EXPECT_TRUE(Restore({}).ok());
  // One that changes stand on is missed.
  std::filesystem::remove(base + "/BACKUP");
  EXPECT_THAT(Damaged(Check()), ::testing::Contains("base/" + place_->position()->base));
}

TEST_F(ArchivePruneTest, ADamagedBeginningIsNamed) {
  MakeArchive(1);
  ASSERT_EQ(*place_->Prune(0), 1u);
  const std::string path = archive_path() + "/FIRST", bytes = testing::ReadBytes(path);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 2);
    testing::WriteBytes(path, damaged);
    const auto contents = CheckArchive(PosixFileSystem(), archive_path(), nullptr);
    if (contents.ok())
      EXPECT_THAT(Damaged(*contents), ::testing::Contains("FIRST")) << at;
    else
      EXPECT_THAT(std::string(contents.status().message()), HasSubstr("FIRST")) << at;
  }
}

TEST_F(ArchivePruneTest, AKillAtAnyMomentLeavesWhatIsGood) {
  MakeArchive(1);
  const SequenceNumber kept = Check().chains[1].base.version;
  const std::string copies = dir_.File("copies");
  std::filesystem::create_directory(copies);
  int kills = 0;
  WatchedFileSystem file_system([&] {
    std::filesystem::copy(archive_path(), copies + "/" + std::to_string(kills++),
                          std::filesystem::copy_options::recursive);
  });
  place_.reset();
  place_ = *ArchivePlace::Open(&file_system, archive_path());
  Step();
  ASSERT_EQ(*place_->Prune(0), 1u);
  Step();
  EXPECT_GT(kills, 25);
  place_.reset();
  for (int i = 0; i < kills; ++i) {
    const std::string left = copies + "/" + std::to_string(i);
    const auto contents = CheckArchive(PosixFileSystem(), left, nullptr);
    ASSERT_TRUE(contents.ok()) << contents.status();
    EXPECT_THAT(Damaged(*contents), IsEmpty()) << i;
    const auto place = ArchivePlace::Open(PosixFileSystem(), left);
    ASSERT_TRUE(place.ok()) << place.status();
    ASSERT_TRUE((*place)->position().has_value()) << i << (*place)->why_base();
    const auto then = CheckArchive(PosixFileSystem(), left, nullptr);
    EXPECT_THAT(then->findings, IsEmpty()) << i;
    std::filesystem::remove_all(restored_path());
    const auto report =
        RestoreArchive(PosixFileSystem(), left, restored_path(), {}, false, nullptr);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_GE(report->version, kept);
    EXPECT_TRUE(ContentsAt(restored_path()) == model_[report->version]) << i;
    std::filesystem::remove_all(left);
  }
}

// What a power cut leaves at any moment: what was reported to be on disk is there, and nothing is
// missing that a check looks for.
TEST_F(ArchivePruneTest, APowerCutAtAnyMomentLeavesWhatIsGood) {
  MakeArchive(1);
  const SequenceNumber newest = place_->position()->version;
  place_.reset();
  testing::SimulatedFileSystem first;
  CopyAll(&first, "disk/archive");
  std::vector<std::vector<Change>> changes;
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(kMinute);
    Fill(i, 3, "change");
    changes.push_back(ChangesBehind(changes.empty() ? newest : changes.back().back().version));
  }
  int cuts = 0;
  for (uint64_t choice = 0; choice < 8; ++choice) {
    for (uint64_t calls = 1;; calls += 1 + choice / 4) {
      testing::SimulatedFileSystem file_system(first.disk());
      file_system.StopAfter(calls);
      SequenceNumber reported = newest;
      const bool is_done = [&] {
        const auto place = ArchivePlace::Open(&file_system, "disk/archive");
        if (!place.ok()) return false;
        for (const std::vector<Change>& commits : changes) {
          if (!(*place)->Append(commits).ok()) return false;
          reported = commits.back().version;
        }
        return (*place)->NoteCurrent(clock_.WallMillis() * 2).ok();
      }();
      file_system.RestorePower(choice);
      const std::string when = fmt::format("choice {}, {} calls", choice, calls);
      const auto contents = CheckArchive(&file_system, "disk/archive", nullptr);
      ASSERT_TRUE(contents.ok()) << when << contents.status();
      EXPECT_THAT(Damaged(*contents), IsEmpty()) << when;
      const auto place = ArchivePlace::Open(&file_system, "disk/archive");
      ASSERT_TRUE(place.ok() && (*place)->position().has_value()) << when << place.status();
      EXPECT_GE((*place)->position()->version, reported) << when;
      EXPECT_THAT(CheckArchive(&file_system, "disk/archive", nullptr)->findings, IsEmpty()) << when;
      if (is_done) break;
      ++cuts;
    }
  }
  EXPECT_GT(cuts, 100);
}

// Each call of an archiver fails once. What is there is good at all times, and the next run goes on
// without a base.
TEST_F(ArchivePruneTest, AnyCallMayFail) {
  MakeArchive(1);
  const std::string kept = dir_.File("kept");
  place_.reset();
  std::filesystem::copy(archive_path(), kept, std::filesystem::copy_options::recursive);
  const std::vector<Change> commits = [&] {
    OpenArchive();
    Fill(0, 5, "more");
    std::vector<Change> behind = ChangesBehind(place_->position()->version);
    place_.reset();
    return behind;
  }();
  FaultFileSystem file_system;
  int failed = 0;
  for (int i = 0; i < static_cast<int>(FileOperation::kCount); ++i) {
    const auto operation = static_cast<FileOperation>(i);
    for (uint64_t nth = 1;; ++nth) {
      std::filesystem::remove_all(archive_path());
      std::filesystem::copy(kept, archive_path(), std::filesystem::copy_options::recursive);
      const uint64_t failures = file_system.failed_calls();
      file_system.Fail(operation, nth, IoError(EIO, "test", "disk"), /*times=*/1);
      absl::Status done;
      {
        auto place = ArchivePlace::Open(&file_system, archive_path());
        done = place.status();
        const bool has_position = done.ok() && (*place)->position().has_value();
        if (has_position) done = (*place)->Append(commits);
        if (has_position && done.ok()) done = (*place)->Prune(0).status();
        if (has_position && done.ok()) done = (*place)->NoteCurrent(instants_.back() * 2);
      }
      file_system.ClearFaults();
      const std::string when = std::string(NameOf(operation)) + " " + std::to_string(nth);
      if (!done.ok()) ++failed;
      EXPECT_THAT(Damaged(Check()), IsEmpty()) << when << done;
      OpenArchive();
      ASSERT_TRUE(place_->position().has_value()) << when << place_->why_base();
      if (place_->position()->version < commits.back().version)
        ASSERT_EQ(place_->Append(commits), absl::OkStatus()) << when;
      EXPECT_THAT(Check().findings, IsEmpty()) << when;
      place_.reset();
      if (file_system.failed_calls() == failures) break;
    }
  }
  EXPECT_GT(failed, 25);
  ASSERT_TRUE(Restore({}).ok());
  EXPECT_TRUE(ContentsAt(restored_path()) == ContentsOf(store_.get()));
}

TEST_F(ArchivePruneTest, AFullDiskIsWaitedOut) {
  MakeArchive(0);
  place_.reset();
  FaultFileSystem file_system;
  place_ = *ArchivePlace::Open(&file_system, archive_path());
  const ArchivePosition before = *place_->position();
  Fill(0, 5, "more");
  std::vector<Change> commits = ChangesBehind(before.version);
  for (uint64_t bytes = 0; bytes < 4000; bytes += 100) {
    file_system.SetFreeBytes(bytes);
    const absl::Status status = place_->Append(commits);
    if (status.ok()) break;
    ASSERT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_EQ(*place_->position(), before);
    EXPECT_THAT(Damaged(Check()), IsEmpty()) << bytes;
  }
  file_system.SetFreeBytes(FaultFileSystem::kUnlimited);
  // Another attempt may have more to write.
  Fill(20, 5, "then");
  if (place_->position()->version == before.version) {
    Follow();
  } else {
    Remember();
  }
  EXPECT_THAT(Check().findings, IsEmpty());
  EXPECT_TRUE(Restore({}).ok());
}

// A restore that any call of fails leaves nothing behind under the new directory's name.
TEST_F(ArchivePruneTest, AnyCallOfARestoreMayFail) {
  MakeArchive(1);
  FaultFileSystem file_system;
  int failed = 0;
  for (int i = 0; i < static_cast<int>(FileOperation::kCount); ++i) {
    const auto operation = static_cast<FileOperation>(i);
    // The engine makes many calls; some of each kind are tried.
    for (uint64_t nth = 1;; nth += 1 + nth / 8) {
      std::filesystem::remove_all(restored_path());
      const uint64_t failures = file_system.failed_calls();
      file_system.Fail(operation, nth, IoError(EIO, "test", "disk"), /*times=*/1);
      const auto report =
          RestoreArchive(&file_system, archive_path(), restored_path(), {}, false, nullptr);
      file_system.ClearFaults();
      const std::string when = std::string(NameOf(operation)) + " " + std::to_string(nth);
      if (report.ok()) {
        EXPECT_TRUE(ContentsAt(restored_path()) == model_.rbegin()->second)
            << when << " commits " << report->commits << " files " << report->change_files;
      } else {
        ++failed;
        EXPECT_FALSE(std::filesystem::exists(restored_path())) << when << report.status();
      }
      if (file_system.failed_calls() == failures) break;
    }
  }
  EXPECT_GT(failed, 20);
}

TEST_F(ArchivePruneTest, ARestoreToAFullDiskLeavesNothing) {
  MakeArchive(1);
  FaultFileSystem file_system;
  for (const uint64_t bytes : {0, 10'000, 100'000, 300'000}) {
    std::filesystem::remove_all(restored_path());
    file_system.SetFreeBytes(bytes);
    const absl::Status status =
        RestoreArchive(&file_system, archive_path(), restored_path(), {}, false, nullptr).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << bytes << status;
    EXPECT_FALSE(std::filesystem::exists(restored_path()));
  }
  EXPECT_THAT(Damaged(Check()), IsEmpty());
}

}  // namespace
}  // namespace varve
