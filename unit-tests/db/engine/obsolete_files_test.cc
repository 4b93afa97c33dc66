// Files out of use (util/os/file_remover.h), as the engine removes them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::TestStore;

class ObsoleteFilesTest : public ::testing::Test {
 protected:
  ObsoleteFilesTest() {
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
  // The paths of the store's files with this extension.
  std::set<std::string> Files(const std::string& extension) const {
    std::set<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
      if (entry.path().extension() == extension) files.insert(entry.path());
    }
    return files;
  }

  TestStore store_;
};

TEST_F(ObsoleteFilesTest, SegmentsThatWereMergedGo) {
  Fill("first");
  const std::set<std::string> old = Files(".seg");
  ASSERT_EQ(old.size(), 1u);
  Fill("second");
  Compact();
  // Both of the segments that were merged go, one after the other.
  EXPECT_TRUE(Eventually([&] { return Files(".seg").size() == 1; }));
  EXPECT_FALSE(std::filesystem::exists(*old.begin()));
  ExpectAll("second");
}

TEST_F(ObsoleteFilesTest, ASegmentThatIsStillReadStays) {
  Fill("first");
  const std::set<std::string> old = Files(".seg");
  ASSERT_EQ(old.size(), 1u);
  auto iterator = store_->NewIterator({.fill_cache = false}, {}, {}, nullptr);
  iterator->SeekToFirst();
  for (int i = 0; i < 10; ++i) {
    Fill("another");
    Compact();
  }
  int read = 0;
  for (; iterator->Valid(); iterator->Next(), ++read) ASSERT_EQ(iterator->value(), "first");
  EXPECT_TRUE(iterator->status().ok());
  EXPECT_EQ(read, 500);
  EXPECT_TRUE(std::filesystem::exists(*old.begin())) << "the iterator's own";
}

TEST_F(ObsoleteFilesTest, ValueFilesGoWithTheSegmentsThatPointToThem) {
  const std::string large(5000, 'v');
  // So much else that the log isn't kept for its large values.
  for (int i = 0; i < 2500; ++i)
    ASSERT_TRUE(store_->Put(fmt::format("small{:06}", i), std::string(900, 's')).ok());
  Fill(large);
  const std::set<std::string> old = Files(".val");
  ASSERT_EQ(old.size(), 1u);
  Fill("small");
  Compact();
  EXPECT_TRUE(Eventually([&] { return !std::filesystem::exists(*old.begin()); }));
  ExpectAll("small");
  store_.Reopen();
  ExpectAll("small");
}

// Versions before this one kept files for reuse, and a crash left them.
TEST_F(ObsoleteFilesTest, SparesOfAnEarlierVersionGoWhenTheStoreIsOpened) {
  Fill("value");
  store_.Close();
  const std::string left = store_.directory.File("000999.seg.spare");
  std::ofstream(left) << "of a former life";
  store_.Open();
  EXPECT_FALSE(std::filesystem::exists(left));
  ExpectAll("value");
}

// A log keeps files ahead of need, a multiple of what a small store holds.
class SpaceAtRestTest : public ObsoleteFilesTest, public ::testing::WithParamInterface<size_t> {
 protected:
  SpaceAtRestTest() {
    store_.options.log_file_size = size_t{64} << 20;
    store_.options.sync = Durability::kNone;
    store_.Reopen();
  }
  void FillToRest() {
    for (int i = 0; i < keys_; ++i)
      ASSERT_TRUE(store_->Put(fmt::format("key{:06}", i), value_).ok());
  }
  // The sizes of all files, or the blocks that they take, whichever is more.
  uint64_t BytesOnDisk() const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
      struct stat found = {};
      if (::stat(entry.path().c_str(), &found) != 0) continue;  // gone since the listing
      bytes += std::max<uint64_t>(static_cast<uint64_t>(found.st_size),
                                  static_cast<uint64_t>(found.st_blocks) * 512);
    }
    return bytes;
  }
  // Waits until the store takes at most `percent` of its live bytes.
  ::testing::AssertionResult ComesTo(uint64_t percent) {
    if (Eventually([&] { return BytesOnDisk() * 100 <= live_ * percent; }))
      return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << BytesOnDisk() << " bytes for " << live_;
  }

  const std::string value_ = std::string(GetParam(), 'v');
  const int keys_ = static_cast<int>((size_t{30} << 20) / value_.size());
  const uint64_t live_ = static_cast<uint64_t>(keys_) * (value_.size() + 9);
};

INSTANTIATE_TEST_SUITE_P(ValueSizes, SpaceAtRestTest, ::testing::Values(1000, 4096));

TEST_P(SpaceAtRestTest, AStoreTakesLittleMoreThanItsData) {
  FillToRest();
  EXPECT_GT(BytesOnDisk(), live_ * 3 / 2) << "the log has files ahead of need";
  EXPECT_TRUE(ComesTo(130));
  ExpectAll(value_, keys_);
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_TRUE(ComesTo(110)) << "closed";
  store_.Reopen();
  EXPECT_TRUE(ComesTo(130)) << "opened again";
  ExpectAll(value_, keys_);
}

TEST_P(SpaceAtRestTest, AStoreThatIsClosedBeforeItRestsDoesToo) {
  FillToRest();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_TRUE(ComesTo(110)) << "all of it in the log, or in segments";
  store_.Reopen();
  EXPECT_TRUE(ComesTo(130)) << "what was replayed is flushed";
  ExpectAll(value_, keys_);
}

TEST_P(SpaceAtRestTest, AStoreWithAnEmptyBufferDoesToo) {
  FillToRest();
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_TRUE(ComesTo(130));
  ASSERT_TRUE(store_->Put("more", "data").ok());
  ExpectAll(value_, keys_);
  store_.Reopen();
  EXPECT_EQ(store_.Get("more"), "data");
  ExpectAll(value_, keys_);
}

}  // namespace
}  // namespace varve
