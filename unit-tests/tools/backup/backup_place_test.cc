#include "tools/backup/backup_place.h"

#include <algorithm>

#include "tools/backup/backup_check.h"
#include "unit-tests/tools/backup/backup_fixture.h"
#include "unit-tests/tools/backup/watched_file_system.h"
#include "util/base/hash.h"
#include "util/os/file_identity.h"

namespace varve {
namespace {

using ::testing::AnyOf;
using testing::BackupTest;
using ::testing::ElementsAre;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::FilesBelow;
using testing::FlipBit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::NameOf;
using ::testing::Not;
using testing::ReadBytes;
using ::testing::SizeIs;
using testing::WatchedFileSystem;
using testing::WriteBytes;

class BackupPlaceTest : public BackupTest {
 protected:
  std::unique_ptr<BackupPlace> OpenPlace(FileSystem* file_system = PosixFileSystem()) {
    auto place = BackupPlace::Open(file_system, place_path());
    EXPECT_TRUE(place.ok()) << place.status();
    return place.ok() ? *std::move(place) : nullptr;
  }
  std::vector<std::string> Ids() const {
    const auto listing = ListBackups(PosixFileSystem(), place_path());
    EXPECT_TRUE(listing.ok() && listing->unreadable.empty());
    std::vector<std::string> ids;
    for (const BackupDescription& backup : listing->backups) ids.push_back(backup.id);
    return ids;
  }
  void ExpectAllGood(const std::string& place, const std::string& when) const {
    const auto report = VerifyBackups(PosixFileSystem(), place, {});
    ASSERT_TRUE(report.ok()) << when << report.status();
    EXPECT_THAT(report->report.findings, IsEmpty()) << when;
  }
  // The files of the place that are no lock.
  std::map<std::string, uint64_t> Held() const {
    std::map<std::string, uint64_t> files;
    for (const auto& [name, bytes] : FilesBelow(place_path())) files[name] = HashKey(bytes);
    files.erase("LOCK");
    return files;
  }
};

TEST_F(BackupPlaceTest, ABackupHasTheFilesOfTheStoreAndItsList) {
  OpenStore();
  Fill(0, 300, "value");
  const BackupOrigin origin = Seal();
  const auto place = OpenPlace();
  const auto id = Copy(place.get(), sealed_path(), origin, /*incremental=*/false);
  ASSERT_TRUE(id.ok()) << id.status();
  auto copied = FilesBelow(PathOf(*id));
  EXPECT_TRUE(copied.erase("BACKUP") == 1);
  EXPECT_EQ(copied, FilesBelow(sealed_path()));
  const auto listing = place->List();
  ASSERT_TRUE(listing.ok());
  ASSERT_THAT(listing->backups, SizeIs(1));
  const BackupDescription& backup = listing->backups[0];
  EXPECT_EQ(backup.id, BackupIdOf(origin.sealed_ms, origin.version));
  EXPECT_EQ(backup.version, origin.version);
  EXPECT_EQ(backup.store_id, origin.store_id);
  EXPECT_EQ(backup.history_id, origin.history_id);
  EXPECT_EQ(backup.instant_ms, origin.instant_ms);
  EXPECT_EQ(backup.shared_bytes, 0u);
  uint64_t bytes = 0;
  for (const auto& [name, content] : copied) bytes += content.size();
  EXPECT_EQ(backup.new_bytes, bytes);
  ExpectAllGood(place_path(), "");
}

TEST_F(BackupPlaceTest, AnIncrementSharesWhatEarlierBackupsHave) {
  options_.compaction_picker = std::make_shared<testing::NeverMerges>();
  OpenStore();
  Fill(0, 2000, "value");
  const std::string first = BackUp(false);
  Fill(3000, 20, "more");
  const std::string second = BackUp(true);
  EXPECT_THAT(Ids(), ElementsAre(first, second));
  const auto list = ReadBackupList(PosixFileSystem(), PathOf(second));
  ASSERT_TRUE(list.ok());
  EXPECT_LT(list->new_bytes * 5, list->shared_bytes);
  int shared = 0;
  for (const BackupFile& file : list->files) {
    const bool is_same =
        IdentityOf(PathOf(first) + "/" + file.name) == IdentityOf(PathOf(second) + "/" + file.name);
    shared += is_same ? 1 : 0;
    EXPECT_TRUE(!is_same || file.name.ends_with(".seg") || file.name.ends_with(".val"))
        << file.name;
  }
  EXPECT_GT(shared, 1);
  ExpectAllGood(place_path(), "");
  // Without being asked for it shares nothing.
  const std::string third = BackUp(false);
  const auto whole = ReadBackupList(PosixFileSystem(), PathOf(third));
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->shared_bytes, 0u);
  // What it shares stays when an earlier backup goes.
  auto place = OpenPlace();
  ASSERT_TRUE(place->Remove(first).ok());
  EXPECT_THAT(Ids(), ElementsAre(second, third));
  ExpectAllGood(place_path(), "");
  EXPECT_TRUE(absl::IsNotFound(place->Remove(first)));
  EXPECT_TRUE(absl::IsNotFound(place->Remove("LOCK")));
  EXPECT_TRUE(absl::IsNotFound(place->Remove("../store")));
}

TEST_F(BackupPlaceTest, NothingIsSharedWithAnotherStoreOrHistory) {
  options_.compaction_picker = std::make_shared<testing::NeverMerges>();
  OpenStore();
  Fill(0, 300, "value");
  BackUp(false);
  const BackupOrigin origin = Seal();
  auto place = OpenPlace();
  const std::string segment = [&] {
    for (const auto& [name, bytes] : FilesBelow(sealed_path()))
      if (name.ends_with(".seg")) return name;
    return std::string();
  }();
  const uint64_t size = ReadBytes(sealed_path() + "/" + segment).size();
  for (const bool is_other : {false, true}) {
    BackupOrigin other = origin;
    (is_other ? other.store_id : other.history_id) += 1;
    BackupWriter writer(place.get());
    ASSERT_TRUE(writer.Begin(other, /*incremental=*/true).ok());
    const auto shared = writer.Share(segment, size);
    ASSERT_TRUE(shared.ok());
    EXPECT_FALSE(*shared);
  }
  BackupWriter writer(place.get());
  ASSERT_TRUE(writer.Begin(origin, /*incremental=*/true).ok());
  EXPECT_FALSE(*writer.Share("MANIFEST", ReadBytes(sealed_path() + "/MANIFEST").size()));
  EXPECT_FALSE(*writer.Share("999999.seg", size));
  EXPECT_FALSE(*writer.Share("000999.val", size + 1));
  EXPECT_TRUE(*writer.Share(segment, size));
  EXPECT_TRUE(absl::IsInvalidArgument(writer.Share(segment, size).status()));
}

TEST_F(BackupPlaceTest, AFileThatLostItsSizeIsNotShared) {
  options_.compaction_picker = std::make_shared<testing::NeverMerges>();
  OpenStore();
  Fill(0, 300, "value");
  const std::string first = BackUp(false);
  std::filesystem::path cut;
  for (const auto& entry : std::filesystem::directory_iterator(PathOf(first)))
    if (entry.path().extension() == ".seg") cut = entry.path();
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) - 1);
  const std::string second = BackUp(true);
  EXPECT_NE(IdentityOf(cut), IdentityOf(PathOf(second) + "/" + cut.filename().string()));
  ExpectAllGood(PathOf(second), "");
}

TEST_F(BackupPlaceTest, ASecondRunAndAStoreAreRefused) {
  OpenStore();
  Fill(0, 10, "value");
  const auto place = OpenPlace();
  const auto second = BackupPlace::Open(PosixFileSystem(), place_path());
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("another run"));
  Seal();
  const auto before = FilesBelow(sealed_path());
  for (const std::string& path : {store_path(), sealed_path()}) {
    const auto refused = BackupPlace::Open(PosixFileSystem(), path);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  }
  EXPECT_EQ(FilesBelow(sealed_path()), before);
}

TEST_F(BackupPlaceTest, ForeignFilesAreLeftAlone) {
  std::filesystem::create_directories(place_path() + "/lost+found");
  std::filesystem::create_directories(place_path() + "/.incomplete-mine");
  std::filesystem::create_directories(place_path() + "/.incomplete-20261125T193300Z-1234");
  WriteBytes(place_path() + "/.incomplete-20261125T193300Z-1234/000001.seg", "x");
  WriteBytes(place_path() + "/README", "mine");
  OpenStore();
  Fill(0, 10, "value");
  const std::string id = BackUp(false);
  EXPECT_THAT(Ids(), ElementsAre(id));
  EXPECT_EQ(ReadBytes(place_path() + "/README"), "mine");
  EXPECT_TRUE(std::filesystem::exists(place_path() + "/lost+found"));
  EXPECT_TRUE(std::filesystem::exists(place_path() + "/.incomplete-mine"));
  EXPECT_FALSE(std::filesystem::exists(place_path() + "/.incomplete-20261125T193300Z-1234"));
}

TEST_F(BackupPlaceTest, TwoBackupsOfOneSecondHaveTwoNames) {
  OpenStore();
  Fill(0, 10, "value");
  const BackupOrigin origin = Seal();
  const auto place = OpenPlace();
  const auto first = Copy(place.get(), sealed_path(), origin, true);
  const auto second = Copy(place.get(), sealed_path(), origin, true);
  ASSERT_TRUE(first.ok() && second.ok()) << second.status();
  EXPECT_EQ(*second, *first + "-2");
  ExpectAllGood(place_path(), "");
}

TEST_F(BackupPlaceTest, WhatAServerMustNotSendIsRefusedAndNothingIsLeft) {
  OpenStore();
  Fill(0, 10, "value");
  const BackupOrigin origin = Seal();
  const auto place = OpenPlace();
  const auto fails = [&](absl::StatusCode code,
                         const std::function<absl::Status(BackupWriter*)>& call) {
    BackupWriter writer(place.get());
    ASSERT_TRUE(writer.Begin(origin, false).ok());
    const absl::Status status = call(&writer);
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(Held(), IsEmpty());
    EXPECT_TRUE(absl::IsFailedPrecondition(writer.Seal().status()));
  };
  for (const char* name : {"../../evil", "BACKUP", "LOCK", "000001.log", ""}) {
    fails(absl::StatusCode::kInvalidArgument,
          [&](BackupWriter* writer) { return writer->BeginFile(name, 1); });
    fails(absl::StatusCode::kInvalidArgument,
          [&](BackupWriter* writer) { return writer->Share(name, 1).status(); });
  }
  fails(absl::StatusCode::kDataLoss, [](BackupWriter* writer) {
    VARVE_RETURN_IF_ERROR(writer->BeginFile("MANIFEST", 3));
    VARVE_RETURN_IF_ERROR(writer->Append("ab"));
    return writer->EndFile();
  });
  fails(absl::StatusCode::kDataLoss, [](BackupWriter* writer) {
    VARVE_RETURN_IF_ERROR(writer->BeginFile("MANIFEST", 3));
    return writer->Append("abcd");
  });
  fails(absl::StatusCode::kDataLoss, [](BackupWriter* writer) { return writer->Seal().status(); });
  // The manifest of another version than the server said.
  BackupOrigin other = origin;
  ++other.version;
  const auto id = Copy(place.get(), sealed_path(), other, false);
  EXPECT_TRUE(absl::IsDataLoss(id.status())) << id.status();
  EXPECT_THAT(Held(), IsEmpty());
}

// A writer that goes unsealed leaves nothing, also in the middle of a file.
TEST_F(BackupPlaceTest, AnAbandonedBackupLeavesNothing) {
  OpenStore();
  Fill(0, 10, "value");
  const BackupOrigin origin = Seal();
  const auto place = OpenPlace();
  for (const bool in_file : {false, true}) {
    {
      BackupWriter writer(place.get());
      ASSERT_TRUE(writer.Begin(origin, false).ok());
      if (in_file) ASSERT_TRUE(writer.BeginFile("000001.seg", 1 << 20).ok());
      EXPECT_THAT(Held(), Not(IsEmpty()));
    }
    EXPECT_THAT(Held(), IsEmpty());
  }
}

TEST_F(BackupPlaceTest, DamageInWhatTheServerSendsIsNamedAndNothingIsSealed) {
  OpenStore();
  Fill(0, 300, "value");
  Fill(200, 300, "other");
  const BackupOrigin origin = Seal();
  const auto place = OpenPlace();
  const auto files = FilesBelow(sealed_path());
  for (const auto& [name, bytes] : files) {
    std::vector<uint64_t> offsets = {0, bytes.size() / 3, bytes.size() - 1};
    // Of a former log file, the values alone that segments lead to.
    if (name.ends_with(".val")) offsets = {bytes.rfind("vvv") - 1000, bytes.rfind("vvv")};
    for (const uint64_t offset : offsets) {
      FlipBit(sealed_path() + "/" + name, offset, 3);
      const auto id = Copy(place.get(), sealed_path(), origin, false);
      EXPECT_TRUE(absl::IsDataLoss(id.status())) << name << " " << offset << id.status();
      EXPECT_THAT(std::string(id.status().message()), HasSubstr(name + " is damaged at offset "));
      EXPECT_THAT(Held(), IsEmpty());
      WriteBytes(sealed_path() + "/" + name, bytes);
    }
    std::filesystem::remove(sealed_path() + "/" + name);
    const auto id = Copy(place.get(), sealed_path(), origin, false);
    EXPECT_TRUE(absl::IsDataLoss(id.status())) << name << id.status();
    EXPECT_THAT(std::string(id.status().message()), HasSubstr(name));
    EXPECT_THAT(Held(), IsEmpty());
    WriteBytes(sealed_path() + "/" + name, bytes);
  }
  ASSERT_TRUE(Copy(place.get(), sealed_path(), origin, false).ok());
}

// Each call of an increment fails once: the place is as before or has the whole backup, and the
// next run makes it.
TEST_F(BackupPlaceTest, AnyCallMayFail) {
  OpenStore();
  Fill(0, 200, "value");
  const std::string first = BackUp(false);
  Fill(300, 50, "more");
  const BackupOrigin origin = Seal();
  FaultFileSystem file_system;
  int failed = 0;
  for (int i = 0; i < static_cast<int>(FileOperation::kCount); ++i) {
    const auto operation = static_cast<FileOperation>(i);
    for (uint64_t nth = 1;; ++nth) {
      const auto before = Held();
      const uint64_t failures = file_system.failed_calls();
      file_system.Fail(operation, nth, IoError(EIO, "test", "disk"), /*times=*/1);
      absl::StatusOr<std::string> id;
      {
        const auto place = BackupPlace::Open(&file_system, place_path());
        id = place.ok() ? Copy(place->get(), sealed_path(), origin, true) : place.status();
      }
      file_system.ClearFaults();
      const std::string when = std::string(NameOf(operation)) + " " + std::to_string(nth);
      const bool all_was_called = file_system.failed_calls() == failures;
      if (id.ok()) {
        EXPECT_THAT(Ids(), ElementsAre(first, *id)) << when;
        ExpectAllGood(place_path(), when);
        ASSERT_TRUE(OpenPlace()->Remove(*id).ok());
      } else {
        ++failed;
      }
      EXPECT_EQ(Held(), before) << when << id.status();
      if (all_was_called) break;
    }
  }
  EXPECT_GT(failed, 20);
}

TEST_F(BackupPlaceTest, AFullDiskLeavesThePlaceAsItWas) {
  OpenStore();
  Fill(0, 200, "value");
  BackUp(false);
  const BackupOrigin origin = Seal();
  const auto before = Held();
  uint64_t bytes = 0;
  for (const auto& [name, content] : FilesBelow(sealed_path())) bytes += content.size();
  for (uint64_t i = 0; i < 10; ++i) {
    FaultFileSystem file_system;
    const auto place = BackupPlace::Open(&file_system, place_path());
    ASSERT_TRUE(place.ok());
    file_system.SetFreeBytes(bytes * i / 10);
    const auto id = Copy(place->get(), sealed_path(), origin, false);
    EXPECT_TRUE(absl::IsResourceExhausted(id.status())) << i << id.status();
    EXPECT_THAT(std::string(id.status().message()), HasSubstr("is as it was before"));
    EXPECT_EQ(Held(), before);
  }
}

// What lies there whenever a process is killed that makes a backup and removes one.
TEST_F(BackupPlaceTest, AKillAtAnyMomentLeavesWholeBackups) {
  OpenStore();
  Fill(0, 200, "value");
  const std::string first = BackUp(false);
  Fill(300, 50, "more");
  const BackupOrigin origin = Seal();
  const std::string copies = dir_.File("copies");
  std::filesystem::create_directory(copies);
  int kills = 0;
  WatchedFileSystem file_system([&] {
    std::filesystem::copy(place_path(), copies + "/" + std::to_string(kills++),
                          std::filesystem::copy_options::recursive);
  });
  std::string second;
  {
    const auto place = OpenPlace(&file_system);
    const auto id = Copy(place.get(), sealed_path(), origin, true);
    ASSERT_TRUE(id.ok()) << id.status();
    second = *id;
    ASSERT_TRUE(place->Remove(first).ok());
  }
  EXPECT_GT(kills, 10);
  for (int i = 0; i < kills; ++i) {
    const std::string left = copies + "/" + std::to_string(i);
    const auto place = BackupPlace::Open(PosixFileSystem(), left);
    ASSERT_TRUE(place.ok()) << place.status();
    const auto listing = (*place)->List();
    ASSERT_TRUE(listing.ok());
    EXPECT_THAT(listing->unreadable, IsEmpty());
    std::vector<std::string> ids;
    for (const BackupDescription& backup : listing->backups) ids.push_back(backup.id);
    EXPECT_THAT(ids, AnyOf(ElementsAre(first), ElementsAre(first, second), ElementsAre(second)));
    ExpectAllGood(left, std::to_string(i));
    for (const auto& entry : std::filesystem::directory_iterator(left))
      EXPECT_THAT(entry.path().filename().string(), AnyOf("LOCK", first, second));
  }
}

TEST_F(BackupPlaceTest, DamagedListsAreNamedAndDoNoHarm) {
  OpenStore();
  Fill(0, 20, "value");
  const std::string first = BackUp(false);
  const std::string second = BackUp(true);
  FlipBit(PathOf(first) + "/BACKUP", 40, 0);
  auto listing = ListBackups(PosixFileSystem(), place_path());
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(listing->backups, SizeIs(1));
  ASSERT_THAT(listing->unreadable, SizeIs(1));
  EXPECT_THAT(std::string(listing->unreadable[0].message()), HasSubstr(first + "/BACKUP"));
  const std::string third = BackUp(true);
  std::filesystem::rename(PathOf(third), PathOf("20261125T193300Z-99"));
  listing = ListBackups(PosixFileSystem(), place_path());
  ASSERT_TRUE(listing.ok());
  EXPECT_THAT(listing->unreadable, SizeIs(2));
}

}  // namespace
}  // namespace varve
