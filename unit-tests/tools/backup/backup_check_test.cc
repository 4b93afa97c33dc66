#include "tools/backup/backup_check.h"

#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/tools/backup/backup_fixture.h"

namespace varve {
namespace {

using testing::BackupTest;
using ::testing::ElementsAre;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::FilesBelow;
using testing::FlipBit;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ReadBytes;
using ::testing::SizeIs;
using testing::WriteBytes;

class BackupCheckTest : public BackupTest {
 protected:
  BackupsReport Verify(const std::string& path, FileSystem* file_system = PosixFileSystem()) {
    auto report = VerifyBackups(file_system, path, {});
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *std::move(report) : BackupsReport();
  }
  // Returns the names of the damaged files, each once.
  static std::vector<std::string> DamagedOf(const BackupsReport& report) {
    std::vector<std::string> files;
    for (const StoreFinding& finding : report.report.findings) {
      if (finding.kind != StoreFinding::Kind::kDamage) continue;
      if (files.empty() || files.back() != finding.file) files.push_back(finding.file);
    }
    EXPECT_EQ(files.empty(), report.report.damaged_places == 0);
    return files;
  }
};

TEST_F(BackupCheckTest, ADirectoryTellsWhatLiesInIt) {
  OpenStore();
  Fill(0, 10, "value");
  const std::string id = BackUp(false);
  const auto content = [](const std::string& path) {
    return ContentOf(PosixFileSystem(), path).value_or(DirectoryContent::kNothing);
  };
  EXPECT_EQ(content(store_path()), DirectoryContent::kStore);
  EXPECT_EQ(content(place_path()), DirectoryContent::kBackups);
  EXPECT_EQ(content(PathOf(id)), DirectoryContent::kBackup);
  std::filesystem::create_directory(dir_.File("other"));
  EXPECT_EQ(content(dir_.File("other")), DirectoryContent::kNothing);
  WriteBytes(dir_.File("other/ARCHIVE"), "x");
  EXPECT_EQ(content(dir_.File("other")), DirectoryContent::kArchive);
  EXPECT_TRUE(absl::IsNotFound(ContentOf(PosixFileSystem(), dir_.File("missing")).status()));
  for (const std::string& path : {store_path(), dir_.File("other"), dir_.File("missing")})
    EXPECT_TRUE(absl::IsNotFound(VerifyBackups(PosixFileSystem(), path, {}).status())) << path;
}

TEST_F(BackupCheckTest, EachFlippedBitIsFoundInItsFile) {
  OpenStore();
  Fill(0, 300, "value");
  const std::string id = BackUp(false);
  EXPECT_THAT(Verify(place_path()).report.findings, IsEmpty());
  for (const auto& [name, bytes] : FilesBelow(PathOf(id))) {
    const std::string path = PathOf(id) + "/" + name;
    const size_t step = bytes.size() / 10 + 1;
    for (size_t offset = 0; offset < bytes.size(); offset += step) {
      FlipBit(path, offset, static_cast<int>(offset % 8));
      EXPECT_THAT(DamagedOf(Verify(place_path())), ElementsAre(id + "/" + name)) << offset;
      EXPECT_THAT(DamagedOf(Verify(PathOf(id))), ElementsAre(id + "/" + name)) << offset;
      WriteBytes(path, bytes);
    }
  }
}

TEST_F(BackupCheckTest, MissingCutAndForeignFilesAreFound) {
  OpenStore();
  Fill(0, 300, "value");
  const std::string id = BackUp(false);
  for (const auto& [name, bytes] : FilesBelow(PathOf(id))) {
    const std::string path = PathOf(id) + "/" + name;
    std::filesystem::remove(path);
    std::vector<std::string> damaged = DamagedOf(Verify(place_path()));
    ASSERT_THAT(damaged, ::testing::Contains(id + "/" + name));
    WriteBytes(path, bytes.substr(0, bytes.size() / 2));
    damaged = DamagedOf(Verify(place_path()));
    ASSERT_THAT(damaged, ::testing::Contains(id + "/" + name));
    // That of another store.
    WriteBytes(path, std::string(bytes.size(), 'x'));
    damaged = DamagedOf(Verify(place_path()));
    ASSERT_THAT(damaged, ::testing::Contains(id + "/" + name));
    WriteBytes(path, bytes);
  }
  WriteBytes(PathOf(id) + "/000099.seg", "foreign");
  WriteBytes(PathOf(id) + "/notes", "foreign");
  const BackupsReport report = Verify(place_path());
  EXPECT_EQ(report.report.damaged_places, 0u);
  ASSERT_THAT(report.report.findings, SizeIs(2));
  for (const StoreFinding& finding : report.report.findings)
    EXPECT_EQ(finding.kind, StoreFinding::Kind::kLeftover) << finding.file;
}

TEST_F(BackupCheckTest, WhatBackupsShareIsReadOnceAndFoundInEach) {
  options_.compaction_picker = std::make_shared<testing::NeverMerges>();
  OpenStore();
  Fill(0, 3000, "value");
  const std::string first = BackUp(false);
  const auto bytes_read = [&] {
    FaultFileSystem file_system;
    const BackupsReport report = Verify(place_path(), &file_system);
    EXPECT_THAT(report.report.findings, IsEmpty());
    return std::pair(report.backups, file_system.calls(FileOperation::kRead));
  };
  const auto one = bytes_read();
  EXPECT_EQ(one.first, 1u);
  Fill(5000, 5, "more");
  const std::string second = BackUp(true);
  const auto two = bytes_read();
  EXPECT_EQ(two.first, 2u);
  EXPECT_LT(two.second, one.second + one.second * 3 / 4);
  // Both have the same damaged file.
  const auto list = ReadBackupList(PosixFileSystem(), PathOf(first));
  ASSERT_TRUE(list.ok());
  for (const BackupFile& file : list->files) {
    if (!file.name.ends_with(".seg")) continue;
    std::fstream damaged(PathOf(first) + "/" + file.name,
                         std::ios::binary | std::ios::in | std::ios::out);
    damaged.seekp(static_cast<std::streamoff>(file.size / 3));
    damaged.put('\xff');
    damaged.close();
    EXPECT_THAT(DamagedOf(Verify(place_path())),
                ElementsAre(first + "/" + file.name, second + "/" + file.name));
    break;
  }
}

TEST_F(BackupCheckTest, ProgressComesToItsEnd) {
  OpenStore();
  Fill(0, 300, "value");
  BackUp(false);
  BackUp(true);
  uint64_t last = 0, total = 0;
  const auto report =
      VerifyBackups(PosixFileSystem(), place_path(), [&](uint64_t done, uint64_t of) {
        EXPECT_GE(done, last);
        EXPECT_LE(done, of);
        last = done;
        total = of;
      });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(last, total);
  EXPECT_GT(total, 0u);
}

TEST_F(BackupCheckTest, WhatTheDiskCannotReadIsDamage) {
  OpenStore();
  Fill(0, 300, "value");
  const std::string id = BackUp(false);
  FaultFileSystem file_system;
  file_system.Fail(FileOperation::kRead, 1, IoError(EIO, "read", "disk"),
                   FaultFileSystem::kUnlimited, ".seg");
  const BackupsReport report = Verify(place_path(), &file_system);
  EXPECT_GT(report.report.damaged_places, 0u);
  EXPECT_THAT(DamagedOf(report), ::testing::Contains(HasSubstr(".seg")));
}

}  // namespace
}  // namespace varve
