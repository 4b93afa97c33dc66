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

}  // namespace
}  // namespace varve
