// Files out of use (util/os/file_remover.h), as the engine removes them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <ostream>
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
  void ExpectAll(const std::string& value, int keys = 500, int step = 1) {
    for (int i = 0; i < keys; i += step)
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

// Files out of use that were to be written over.
TEST_F(ObsoleteFilesTest, SparesThatACrashLeftGoWhenTheStoreIsOpened) {
  Fill("value");
  store_.Close();
  const std::string left = store_.directory.File("000999.seg.spare");
  std::ofstream(left) << "of a former life";
  store_.Open();
  EXPECT_FALSE(std::filesystem::exists(left));
  ExpectAll("value");
}

struct SpaceBounds {
  size_t value_size;
  uint64_t at_rest, closed;  // percent of the live bytes
};
void PrintTo(const SpaceBounds& bounds, std::ostream* out) { *out << bounds.value_size; }

// A log keeps files ahead of need, a multiple of what a small store holds.
class SpaceAtRestTest : public ObsoleteFilesTest,
                        public ::testing::WithParamInterface<SpaceBounds> {
 protected:
  SpaceAtRestTest() {
    store_.options.log_file_size = size_t{64} << 20;
    store_.options.sync = Durability::kNone;
    store_.Reopen();
  }
  // Each record of the log has about 1000 bytes or more, so that its headers are little of it.
  void FillToRest() {
    WriteBatch batch;
    for (int i = 0; i < keys_; ++i) {
      batch.Put(fmt::format("key{:06}", i), value_);
      if (batch.size() * value_.size() >= 1000 || i + 1 == keys_)
        ASSERT_TRUE(store_->Write({}, &batch).ok());
    }
  }
  void ExpectValues() { ExpectAll(value_, keys_, value_.size() < 1000 ? 11 : 1); }
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

  ::testing::AssertionResult ComesToRest() { return ComesTo(GetParam().at_rest); }
  ::testing::AssertionResult IsClosed() { return ComesTo(GetParam().closed); }

  const std::string value_ = std::string(GetParam().value_size, 'v');
  const int keys_ = static_cast<int>((size_t{30} << 20) / value_.size());
  const uint64_t live_ = static_cast<uint64_t>(keys_) * (value_.size() + 9);
};

INSTANTIATE_TEST_SUITE_P(ValueSizes, SpaceAtRestTest,
                         ::testing::Values(SpaceBounds{100, 150, 130}, SpaceBounds{1000, 130, 110},
                                           SpaceBounds{4096, 130, 110}),
                         ::testing::PrintToStringParamName());

TEST_P(SpaceAtRestTest, AStoreTakesLittleMoreThanItsData) {
  FillToRest();
  EXPECT_GT(BytesOnDisk(), live_ * 3 / 2) << "the log has files ahead of need";
  EXPECT_TRUE(ComesToRest());
  ExpectValues();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_TRUE(IsClosed()) << "closed";
  store_.Reopen();
  EXPECT_TRUE(ComesToRest()) << "opened again";
  ExpectValues();
}

TEST_P(SpaceAtRestTest, AStoreThatIsClosedBeforeItRestsDoesToo) {
  FillToRest();
  ASSERT_TRUE(store_->Close().ok());
  EXPECT_TRUE(IsClosed()) << "all of it in the log, or in segments";
  store_.Reopen();
  EXPECT_TRUE(ComesToRest()) << "what was replayed is flushed";
  ExpectValues();
}

TEST_P(SpaceAtRestTest, AStoreWithAnEmptyBufferDoesToo) {
  FillToRest();
  ASSERT_TRUE(store_->Flush().ok());
  EXPECT_TRUE(ComesToRest());
  ASSERT_TRUE(store_->Put("more", "data").ok());
  ExpectValues();
  store_.Reopen();
  EXPECT_EQ(store_.Get("more"), "data");
  ExpectValues();
}

}  // namespace
}  // namespace varve
