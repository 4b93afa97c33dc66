#include "unit-tests/testing/fault_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::ElementsAre;
using testing::FaultFileSystem;
using testing::FileOperation;

class FaultFileSystemTest : public ::testing::Test {
 protected:
  std::string Content(const std::string& name) {
    const auto file = PosixFileSystem()->OpenForRead(dir_.File(name));
    if (!file.ok()) return "(missing)";
    std::string content((*file)->Size().value(), '\0');
    EXPECT_EQ((*file)->Read(0, content.size(), content.data()).value(), content.size());
    return content;
  }
  std::unique_ptr<File> Create(const std::string& name, const std::string& content) {
    auto file = fs_.OpenForWrite(dir_.File(name), true).value();
    EXPECT_TRUE(file->Write(0, content).ok());
    EXPECT_TRUE(file->Sync().ok());
    EXPECT_TRUE(fs_.SyncDirectory(dir_.path()).ok());
    return file;
  }

  testing::TempDir dir_;
  FaultFileSystem fs_;
};

TEST_F(FaultFileSystemTest, TheNthCallFails) {
  const auto file = Create("a", "");
  fs_.Fail(FileOperation::kWrite, 2, absl::InternalError("EIO"), /*times=*/1);
  EXPECT_TRUE(file->Write(0, "1").ok());
  EXPECT_EQ(file->Write(1, "2"), absl::InternalError("EIO"));
  EXPECT_TRUE(file->Write(1, "3").ok());
  EXPECT_EQ(Content("a"), "13");
  fs_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"), FaultFileSystem::kUnlimited, "other");
  EXPECT_TRUE(file->Sync().ok()) << "the fault is for another path";
}

TEST_F(FaultFileSystemTest, APowerCutLosesWhatWasNotSynced) {
  const auto file = Create("a", std::string(2000, 'a'));
  ASSERT_TRUE(file->Write(500, std::string(3000, 'b')).ok());
  fs_.CutPower();
  EXPECT_FALSE(file->Write(0, "c").ok());
  EXPECT_FALSE(file->Sync().ok());
  fs_.RestorePower();
  EXPECT_EQ(Content("a"), std::string(2000, 'a'));
}

TEST_F(FaultFileSystemTest, WhatWasSyncedStaysAndTheRestMayBeTorn) {
  const auto file = Create("a", std::string(64 * 512, 'a'));
  ASSERT_TRUE(file->Write(0, std::string(512, 'b')).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Write(512, std::string(63 * 512, 'c')).ok());
  fs_.CutPower();
  fs_.RestorePower(/*seed=*/1);
  const std::string content = Content("a");
  EXPECT_EQ(content.substr(0, 512), std::string(512, 'b'));
  EXPECT_NE(content.find('c'), std::string::npos) << "some sectors got there";
  EXPECT_NE(content.find('a'), std::string::npos) << "and some did not";
}

TEST_F(FaultFileSystemTest, NamesAreLostUntilTheDirectoryIsSynced) {
  Create("kept", "1");
  Create("renamed", "2");
  Create("removed", "3");
  ASSERT_TRUE(fs_.OpenForWrite(dir_.File("created"), true).ok());
  ASSERT_TRUE(fs_.Rename(dir_.File("renamed"), dir_.File("kept")).ok());
  ASSERT_TRUE(fs_.Remove(dir_.File("removed")).ok());
  EXPECT_THAT(fs_.List(dir_.path()).value(), ElementsAre("created", "kept"));
  fs_.CutPower();
  fs_.RestorePower();
  EXPECT_THAT(fs_.List(dir_.path()).value(), ElementsAre("kept", "removed", "renamed"));
  EXPECT_EQ(Content("kept"), "1");
  EXPECT_EQ(Content("renamed"), "2");
  EXPECT_EQ(Content("removed"), "3");

  ASSERT_TRUE(fs_.Rename(dir_.File("renamed"), dir_.File("kept")).ok());
  ASSERT_TRUE(fs_.SyncDirectory(dir_.path()).ok());
  fs_.CutPower();
  fs_.RestorePower();
  EXPECT_EQ(Content("kept"), "2");
}

TEST_F(FaultFileSystemTest, TheDiskIsFullUntilSomethingIsRemoved) {
  const auto file = Create("a", std::string(1000, 'a'));
  fs_.SetFreeBytes(100);
  EXPECT_TRUE(absl::IsResourceExhausted(file->Write(1000, std::string(101, 'b'))));
  EXPECT_TRUE(file->Write(0, std::string(1000, 'b')).ok()) << "what is there can be written over";
  EXPECT_TRUE(file->Write(1000, std::string(100, 'b')).ok());
  ASSERT_TRUE(fs_.Remove(dir_.File("a")).ok());
  EXPECT_TRUE(fs_.OpenForWrite(dir_.File("b"), true).value()->Write(0, std::string(1100, 'b')).ok());
}

}  // namespace
}  // namespace varve
