#include "tools/backup/backup_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "util/base/hash.h"

namespace varve {
namespace {

using ::testing::HasSubstr;

BackupDescription Example() {
  return {.id = "20261125T193300Z-1234",
          .store_id = 0x1234,
          .history_id = 0xfedcba9876543210,
          .version = 1234,
          .instant_ms = 1764099180000,
          .sealed_ms = 1764099181000,
          .new_bytes = 1100,
          .shared_bytes = 50,
          .files = {{"000010.seg", 1000, 7}, {"000012.val", 50, 8}, {"MANIFEST", 100, ~0ull}}};
}

TEST(BackupListTest, WhatIsWrittenIsRead) {
  const std::string text = EncodeBackupList(Example());
  EXPECT_THAT(text, ::testing::StartsWith("varve-backup 1\nid 20261125T193300Z-1234\n"
                                          "store 0000000000001234\nhistory fedcba9876543210\n"));
  EXPECT_THAT(text, HasSubstr("\nfile 000012.val 50 0000000000000008\n"));
  const auto read = DecodeBackupList(text, "dest/BACKUP");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, Example());
}

TEST(BackupListTest, EveryFlippedBitAndEveryCutIsFound) {
  const std::string text = EncodeBackupList(Example());
  for (size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      const auto read = DecodeBackupList(damaged, "dest/BACKUP");
      ASSERT_TRUE(absl::IsDataLoss(read.status())) << i << " " << bit << " " << read.status();
      ASSERT_THAT(std::string(read.status().message()), HasSubstr("dest/BACKUP is damaged at"));
      ASSERT_THAT(std::string(read.status().message()), HasSubstr("line "));
    }
    ASSERT_TRUE(absl::IsDataLoss(DecodeBackupList(text.substr(0, i), "p").status())) << i;
  }
}

// As an attentive user would edit it, with a checksum that is right.
std::string Edited(const std::string& from, const std::string& to) {
  std::string text = EncodeBackupList(Example());
  text = text.substr(0, text.find("checksum "));
  text.replace(text.find(from), from.size(), to);
  char checksum[32];
  snprintf(checksum, sizeof(checksum), "checksum %016llx\n",
           static_cast<unsigned long long>(HashKey(text)));
  return text + checksum;
}

TEST(BackupListTest, WhatIsNotFullyUnderstoodIsRefusedWithItsLine) {
  const struct {
    const char* from;
    const char* to;
    const char* line;
  } kCases[] = {
      {"id 20261125T193300Z-1234", "id ../evil", "line 2: "},
      {"store ", "stone ", "line 3: it does not begin with store"},
      {"version 1234", "version 12x4", "line 5: no number follows version"},
      {"version 1234", "version 01234", "not written as Varve writes it"},
      {"new_bytes 1100\n", "new_bytes 1100\nold_bytes 3\n", "line 9: "},
      {"file 000010.seg", "file ../10.seg", "line 10: no name of a backup's file"},
      {"file 000010.seg", "file 10.seg", "line 10: no name of a backup's file"},
      {"file 000010.seg 1000", "file 000010.seg", "line 10: a size and a checksum"},
      {"file 000010.seg", "file 000013.seg", "line 11: the files do not ascend"},
      {"file MANIFEST 100 ffffffffffffffff\n", "", "the files have no MANIFEST"},
  };
  for (const auto& each : kCases) {
    const auto read = DecodeBackupList(Edited(each.from, each.to), "dest/BACKUP");
    EXPECT_TRUE(absl::IsDataLoss(read.status())) << each.to << " " << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(each.line)) << each.to;
  }
  EXPECT_TRUE(DecodeBackupList(Edited("version 1234", "version 1235"), "p").ok());
}

TEST(BackupListTest, ALaterVersionIsNamed) {
  const auto read = DecodeBackupList(Edited("varve-backup 1", "varve-backup 2"), "dest/BACKUP");
  EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
  EXPECT_THAT(std::string(read.status().message()), HasSubstr("a later version of Varve"));
}

TEST(BackupListTest, IdsAreTheSecondAndTheVersion) {
  EXPECT_EQ(BackupIdOf(1764099181999, 5), "20251125T193301Z-5");
  for (const char* id : {"20261125T193300Z-1234", "20261125T193300Z-0", "20261125T193300Z-12-2"})
    EXPECT_TRUE(IsBackupId(id)) << id;
  for (const char* id : {"", "LOCK", "2026", "20261125T193300Z", "20261125T193300Z-",
                         "20261125T193300Z-x", "20261125T19330Z-1", "20261125T193300Z-1/2",
                         "20261125T193300Z-1-x", "x20261125T193300Z-1", "../20261125T193300Z-1"})
    EXPECT_FALSE(IsBackupId(id)) << id;
}

TEST(BackupListTest, FilesHaveTheNamesOfAStore) {
  for (const char* name : {"MANIFEST", "000010.seg", "000012.val", "000001.tim", "1000000.seg"})
    EXPECT_TRUE(IsBackupFileName(name)) << name;
  for (const char* name : {"", "BACKUP", "LOCK", "MANIFEST.copy", "10.seg", "../000010.seg",
                           "000010.log", "000010.seg.spare", "0000010.seg", "a/000010.seg"})
    EXPECT_FALSE(IsBackupFileName(name)) << name;
}

}  // namespace
}  // namespace varve
