// The replication file: what is written is read again, and damage is found.
#include "server/replication/replication_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

class ReplicationFileTest : public ::testing::Test {
 protected:
  std::string path() const { return directory_.File(std::string(kReplicationFile)); }
  absl::StatusOr<ReplicationRecord> Read() {
    return ReadReplicationFile(PosixFileSystem(), directory_.File(""));
  }
  absl::Status Write(const ReplicationRecord& record) {
    return WriteReplicationFile(PosixFileSystem(), directory_.File(""), record);
  }

  testing::TempDir directory_;
};

TEST_F(ReplicationFileTest, WhatIsWrittenIsReadAgain) {
  EXPECT_EQ(Read().value(), ReplicationRecord()) << "no file";
  ReplicationRecord record{
      .primary = PrimaryAddress{"db.example", 7777},
      .retains = true,
      .diverged = 12,
      .lineage = {.past = {{0xabc, 7}, {2, 9}}, .current = 0xfedcba9876543210}};
  ASSERT_TRUE(Write(record).ok());
  EXPECT_EQ(Read().value(), record);
  record.primary = PrimaryAddress();
  ASSERT_TRUE(Write(record).ok());
  EXPECT_EQ(Read().value(), record) << "a primary";
}

TEST_F(ReplicationFileTest, EachDamagedByteIsFound) {
  ASSERT_TRUE(Write({.primary = PrimaryAddress{"a", 1}, .lineage = {.current = 1}}).ok());
  const std::string text = testing::ReadFile(path());
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    std::ofstream(path(), std::ios::binary) << damaged;
    EXPECT_TRUE(absl::IsDataLoss(Read().status())) << i;
    std::ofstream(path(), std::ios::binary) << text.substr(0, i);
    EXPECT_TRUE(absl::IsDataLoss(Read().status())) << i;
  }
}

TEST_F(ReplicationFileTest, TheErrorNamesTheFileAndTheLineAndSaysWhatToDo) {
  ASSERT_TRUE(Write({.primary = PrimaryAddress{"a", 1}, .lineage = {.current = 1}}).ok());
  const std::string text = testing::ReadFile(path());  // of six lines
  const auto replaced = [&](const std::string& part, const std::string& with) {
    std::string damaged = text;
    return damaged.replace(text.find(part), part.size(), with);
  };
  const std::pair<std::string, std::string> damages[] = {
      {"", "line 1 is not \"varve-replication 1\""},
      {replaced("replication 1", "replication 2"), "line 1 is not \"varve-replication 1\""},
      {replaced("primary a 1", "primary a 65536"), "line 2 makes no sense"},
      {replaced("primary a 1", "primary a -1"), "line 2 makes no sense"},
      {replaced("retains", "retained"), "line 3 makes no sense"},
      {replaced("diverged 0", "diverged"), "line 4 makes no sense"},
      {replaced("diverged 0", "diverged 7"), "line 6 is not the checksum of the lines before it"},
      {text + "retains 1\n", "line 7 follows the checksum"},
      {text.substr(0, text.size() - 1), "it ends in line 6 without a checksum"},
      {text.substr(0, text.find("checksum")), "it ends in line 6 without a checksum"}};
  for (const auto& [damaged, what] : damages) {
    std::ofstream(path(), std::ios::binary) << damaged;
    const std::string message(Read().status().message());
    for (const std::string& part :
         {directory_.File("") + "/REPLICATION is damaged: " + what + ". ",
          std::string("from a copy of the directory"),
          std::string("remove the file: the server then starts as a primary of its own")})
      EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks " << part;
  }
}

}  // namespace
}  // namespace varve
