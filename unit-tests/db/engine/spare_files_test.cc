// Files out of use that new segments are written over (util/os/file_recycler.h), as the engine does
// it.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::TestStore;

class SpareFilesTest : public ::testing::Test {
 protected:
  SpareFilesTest() {
    // Flushes and merges are these tests' own, whatever size of write buffer the environment asks
    // for.
    store_.options.write_buffer_size = EngineOptions().write_buffer_size;
    store_.options.runs_per_level = 1000;
    store_.Reopen();
  }

  void Fill(const std::string& value, int keys = 500) {
    for (int i = 0; i < keys; ++i) ASSERT_TRUE(store_->Put(fmt::format("key{:06}", i), value).ok());
    const absl::Status flushed = store_->Flush();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }
  void Compact() {
    const absl::Status compacted = store_->Compact({}, {});
    ASSERT_TRUE(compacted.ok()) << compacted;
  }
  void ExpectAll(const std::string& value, int keys = 500) {
    for (int i = 0; i < keys; ++i)
      ASSERT_TRUE(store_.Get(fmt::format("key{:06}", i)) == value) << i;
  }
  std::set<ino_t> Inodes(const std::string& extension) const {
    std::set<ino_t> inodes;
    for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
      struct stat info;
      if (entry.path().extension() == extension && ::stat(entry.path().c_str(), &info) == 0)
        inodes.insert(info.st_ino);
    }
    return inodes;
  }

  TestStore store_;
};

TEST_F(SpareFilesTest, SegmentsAreWrittenOverThem) {
  Fill("first");
  Fill("second");
  const std::set<ino_t> old = Inodes(".seg");
  ASSERT_EQ(old.size(), 2u);
  Compact();
  ASSERT_TRUE(Eventually([&] { return Inodes(".spare") == old; }));
  EXPECT_GT(store_.Statistic("spare_bytes"), 0u);
  Fill("third, which is longer", 2000);
  Fill("fourth", 3);
  EXPECT_EQ(store_.Statistic("spare_bytes"), 0u);
  const std::set<ino_t> now = Inodes(".seg");
  for (const ino_t inode : old) EXPECT_TRUE(now.contains(inode));
  for (int round = 0; round < 2; ++round) {
    ExpectAll("fourth", 3);
    EXPECT_EQ(store_.Get("key001999"), "third, which is longer");
    EXPECT_EQ(store_.Get("key000003"), "third, which is longer");
    store_.Reopen();
  }
  EXPECT_TRUE(Inodes(".spare").empty());
}

TEST_F(SpareFilesTest, WhatIsStillReadIsNone) {
  Fill("first");
  const std::set<ino_t> old = Inodes(".seg");
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
    if (entry.path().extension() == ".seg") path = entry.path();
  }
  const auto iterator = store_->NewIterator({.fill_cache = false}, {}, {}, nullptr);
  iterator->SeekToFirst();
  for (int i = 0; i < 10; ++i) {
    Fill("another");
    Compact();
  }
  int read = 0;
  for (; iterator->Valid(); iterator->Next(), ++read) ASSERT_EQ(iterator->value(), "first");
  EXPECT_TRUE(iterator->status().ok());
  EXPECT_EQ(read, 500);
  struct stat info;
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_TRUE(old.contains(info.st_ino)) << "the iterator's own";
}

TEST_F(SpareFilesTest, ValueFilesAreSpares) {
  const std::string large(5000, 'v');
  // So much else that the log isn't kept for its large values.
  for (int i = 0; i < 2500; ++i)
    ASSERT_TRUE(store_->Put(fmt::format("small{:06}", i), std::string(900, 's')).ok());
  Fill(large);
  const std::set<ino_t> old = Inodes(".val");
  Fill("small");
  Compact();
  EXPECT_TRUE(Eventually([&] { return store_.Statistic("spare_bytes") >= 500 * large.size(); }));
  const std::set<ino_t> spares = Inodes(".spare");
  ASSERT_EQ(old.size(), 1u);
  EXPECT_TRUE(spares.contains(*old.begin()));
  for (int i = 0; i < 2500; ++i)
    ASSERT_TRUE(store_->Put(fmt::format("small{:06}", i), std::string(900, 's')).ok());
  Fill(large + "!");
  ASSERT_EQ(Inodes(".val").size(), 1u);
  EXPECT_TRUE(spares.contains(*Inodes(".val").begin()));
  ExpectAll(large + "!");
  store_.Reopen();
  ExpectAll(large + "!");
}

TEST_F(SpareFilesTest, ThoseThatACrashLeftGoWhenTheStoreIsOpened) {
  Fill("value");
  store_.Close();
  const std::string left = store_.directory.File("000999.seg.spare");
  std::ofstream(left) << "of a former life";
  store_.Open();
  EXPECT_FALSE(std::filesystem::exists(left));
  ExpectAll("value");
}

}  // namespace
}  // namespace varve
