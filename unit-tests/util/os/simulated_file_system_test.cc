#include "unit-tests/testing/simulated_file_system.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <set>
#include <string>

namespace varve {
namespace {

using ::testing::ElementsAre;
using testing::FileOperation;
using testing::SimulatedDisk;
using testing::SimulatedFileSystem;

class SimulatedFileSystemTest : public ::testing::Test {
 protected:
  SimulatedFileSystemTest() {
    EXPECT_TRUE(fs_.CreateDirectory("/dir").ok());
    EXPECT_TRUE(fs_.SyncDirectory("").ok());
  }

  static std::string Content(const SimulatedDisk& disk, const std::string& name) {
    const std::optional<uint64_t> inode = disk.Find("/dir/" + name);
    return inode ? disk.Content(*inode) : "(missing)";
  }
  std::string Content(const std::string& name) const { return Content(fs_.disk(), name); }
  std::unique_ptr<File> Create(const std::string& name, const std::string& content) {
    auto file = fs_.OpenForWrite("/dir/" + name, true).value();
    EXPECT_TRUE(file->Write(0, content).ok());
    EXPECT_TRUE(file->Sync().ok());
    EXPECT_TRUE(fs_.SyncDirectory("/dir").ok());
    return file;
  }
  // What power cuts leave of the file, in many choices.
  std::set<std::string> Leftovers(const std::string& name) const {
    std::set<std::string> contents;
    for (uint64_t choice = 0; choice < 500; ++choice)
      contents.insert(Content(fs_.disk().CutPower(choice), name));
    return contents;
  }

  SimulatedFileSystem fs_;
};

TEST_F(SimulatedFileSystemTest, TheNthCallFails) {
  const auto file = Create("a", "");
  fs_.Fail(FileOperation::kWrite, 2, absl::InternalError("EIO"), /*times=*/1);
  EXPECT_TRUE(file->Write(0, "1").ok());
  EXPECT_EQ(file->Write(1, "2"), absl::InternalError("EIO"));
  EXPECT_TRUE(file->Write(1, "3").ok());
  EXPECT_EQ(Content("a"), "13");
  EXPECT_EQ(fs_.failed_calls(), 1u);
  fs_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"), SimulatedFileSystem::kUnlimited,
           "other");
  EXPECT_TRUE(file->Sync().ok()) << "the fault is for another path";
}

TEST_F(SimulatedFileSystemTest, WhatAKilledProcessWroteStays) {
  const auto file = Create("a", "synced");
  ASSERT_TRUE(file->Write(6, " and not").ok());
  fs_.StopHere();
  EXPECT_FALSE(file->Write(0, "c").ok());
  EXPECT_FALSE(file->Sync().ok());
  fs_.GoOn();
  EXPECT_EQ(Content("a"), "synced and not");
  EXPECT_EQ(Content(fs_.disk().CutPower(SimulatedDisk::kLoseAll), "a"), "synced");
}

TEST_F(SimulatedFileSystemTest, WhatWasSyncedStaysAndTheRestIsLostKeptOrTorn) {
  const auto file = Create("a", std::string(2 * 512, 'a'));
  ASSERT_TRUE(file->Write(512, std::string(2 * 512, 'b')).ok());
  const std::string a(512, 'a'), b(512, 'b'), zeros(512, '\0');
  const std::set<std::string> left = Leftovers("a");
  for (const std::string& each :
       {a + a, a + b + b, a + b + zeros, a + a + b, a + b, a + a + zeros}) {
    EXPECT_TRUE(left.contains(each)) << each.size() << " bytes";
  }
  EXPECT_EQ(left.size(), 6u) << "and nothing else";
}

TEST_F(SimulatedFileSystemTest, ALaterWriteMayGetThereBeforeAnEarlierOne) {
  const auto file = Create("a", "......");
  for (const int i : {0, 1, 2}) ASSERT_TRUE(file->Write(2 * i, std::to_string(i)).ok());
  const std::set<std::string> left = Leftovers("a");
  EXPECT_EQ(left.size(), 8u);
  EXPECT_TRUE(left.contains("....2."));
}

TEST_F(SimulatedFileSystemTest, NamesAreLostUntilTheDirectoryIsSynced) {
  Create("kept", "1");
  Create("renamed", "2");
  Create("removed", "3");
  ASSERT_TRUE(fs_.OpenForWrite("/dir/created", true).ok());
  ASSERT_TRUE(fs_.Rename("/dir/renamed", "/dir/kept").ok());
  ASSERT_TRUE(fs_.Remove("/dir/removed").ok());
  EXPECT_THAT(fs_.List("/dir").value(), ElementsAre("created", "kept"));
  const SimulatedDisk before = fs_.disk().CutPower(SimulatedDisk::kLoseAll);
  EXPECT_THAT(before.List("/dir"), ElementsAre("kept", "removed", "renamed"));
  EXPECT_EQ(Content(before, "kept"), "1");
  for (uint64_t choice = 0; choice < 100; ++choice) {
    const std::string kept = Content(fs_.disk().CutPower(choice), "kept");
    EXPECT_TRUE(kept == "1" || kept == "2") << "a file that another one replaces is never missing";
  }
  ASSERT_TRUE(fs_.SyncDirectory("/dir").ok());
  const SimulatedDisk after = fs_.disk().CutPower(SimulatedDisk::kLoseAll);
  EXPECT_THAT(after.List("/dir"), ElementsAre("created", "kept"));
  EXPECT_EQ(Content(after, "kept"), "2");
}

TEST_F(SimulatedFileSystemTest, ALinkHasTheContentOfTheFileOnceTheDirectoryIsSynced) {
  Create("a", "1");
  ASSERT_TRUE(fs_.Link("/dir/a", "/dir/b").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(fs_.Link("/dir/a", "/dir/b")));
  EXPECT_THAT(fs_.disk().CutPower(SimulatedDisk::kLoseAll).List("/dir"), ElementsAre("a"));
  ASSERT_TRUE(fs_.SyncDirectory("/dir").ok());
  ASSERT_TRUE(fs_.Remove("/dir/a").ok());
  ASSERT_TRUE(fs_.SyncDirectory("/dir").ok());
  EXPECT_EQ(Content(fs_.disk().CutPower(SimulatedDisk::kLoseAll), "b"), "1");
}

TEST_F(SimulatedFileSystemTest, WhatAFailedSyncLostStaysLost) {
  const auto file = Create("a", std::string(100 * 512, 'a'));
  ASSERT_TRUE(file->Write(0, std::string(100 * 512, 'b')).ok());
  fs_.Fail(FileOperation::kSync, 1, absl::InternalError("EIO"), /*times=*/1);
  EXPECT_FALSE(file->Sync().ok());
  EXPECT_TRUE(file->Sync().ok()) << "the kernel takes the pages for clean";
  EXPECT_EQ(Content("a"), std::string(100 * 512, 'b')) << "and shows them";
  const std::string left = Content(fs_.disk().CutPower(SimulatedDisk::kLoseAll), "a");
  EXPECT_NE(left.find('a'), std::string::npos);
  EXPECT_NE(left.find('b'), std::string::npos);
}

TEST_F(SimulatedFileSystemTest, TheTraceMakesTheSameDisk) {
  const SimulatedDisk begun = fs_.disk();
  const size_t before = fs_.trace().size();
  const auto file = Create("a", "content");
  ASSERT_TRUE(file->Truncate(3).ok());
  ASSERT_TRUE(fs_.Rename("/dir/a", "/dir/b").ok());
  SimulatedDisk again = begun;
  for (size_t i = before; i < fs_.trace().size(); ++i) again.Apply(fs_.trace()[i]);
  EXPECT_EQ(again.Hash(), fs_.disk().Hash());
  EXPECT_NE(again.Hash(), begun.Hash());
  EXPECT_EQ(Content(again, "b"), "con");
}

TEST_F(SimulatedFileSystemTest, TheDiskIsFullUntilSomethingIsRemoved) {
  const auto file = Create("a", std::string(1000, 'a'));
  fs_.SetFreeBytes(100);
  EXPECT_TRUE(absl::IsResourceExhausted(file->Write(1000, std::string(101, 'b'))));
  EXPECT_TRUE(file->Write(0, std::string(1000, 'b')).ok()) << "what is there can be written over";
  EXPECT_TRUE(file->Write(1000, std::string(100, 'b')).ok());
  ASSERT_TRUE(fs_.Remove("/dir/a").ok());
  EXPECT_TRUE(fs_.OpenForWrite("/dir/b", true).value()->Write(0, std::string(1100, 'b')).ok());
}

}  // namespace
}  // namespace varve
