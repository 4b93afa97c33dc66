// Scans ask the disk for the separated values ahead of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

constexpr int kKeys = 400;

// Notes which values are asked for, and which of those that are read were asked for before.
//
// Thread-safety: one thread scans; the store's own threads are at rest meanwhile.
class NotedValues final : public testing::FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    absl::StatusOr<std::unique_ptr<File>> file = FaultFileSystem::OpenForRead(path);
    if (!file.ok() || !path.ends_with(".val")) return file;
    return std::make_unique<NotedFile>(this, *std::move(file));
  }

  void Restart() {
    asked.clear();
    read = 0;
    read_as_asked = 0;
  }

  std::set<std::pair<std::string, uint64_t>> asked;
  bool is_in_memory = false;  // what files say when they are asked
  size_t read = 0;
  size_t read_as_asked = 0;

 private:
  class NotedFile final : public ForwardingFile {
   public:
    NotedFile(NotedValues* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}
    absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
      ++owner_->read;
      if (owner_->asked.contains({path(), offset})) ++owner_->read_as_asked;
      return ForwardingFile::Read(offset, size, buffer);
    }
    bool Prefetch(uint64_t offset, uint64_t size) const override {
      owner_->asked.insert({path(), offset});
      ForwardingFile::Prefetch(offset, size);
      return owner_->is_in_memory;
    }

   private:
    NotedValues* const owner_;
  };
};

class ValueReadAheadTest : public ::testing::Test {
 protected:
  static EngineOptions OptionsOn(FileSystem* file_system) {
    EngineOptions options;
    options.file_system = file_system;
    options.sync = Durability::kNone;
    return options;
  }

  // Values of 4 KiB, written in another order than that of their keys, none of them in the cache.
  void SetUp() override {
    std::vector<int> numbers(kKeys);
    std::iota(numbers.begin(), numbers.end(), 0);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(1));
    for (const int number : numbers) {
      WriteBatch batch;
      batch.Put(fmt::format("key{:05}", number), std::string(4096, 'v'));
      ASSERT_TRUE(store_->Write({}, &batch).ok());
    }
    ASSERT_TRUE(store_->Flush().ok());
    store_.Reopen();
    // The files of values are open from the first read on.
    Scan({}, 1);
    values_.Restart();
  }

  void Scan(const ReadOptions& options, size_t count) {
    const auto iterator = store_->NewIterator(options, {}, {}, nullptr);
    iterator->SeekToFirst();
    for (size_t i = 0; i < count; ++i, iterator->Next()) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status();
      if (!options.without_value) ASSERT_EQ(iterator->value().size(), 4096u);
    }
  }

  NotedValues values_;
  testing::TestStore store_{OptionsOn(&values_)};
};

TEST_F(ValueReadAheadTest, ALongScanReadsWhatWasAskedFor) {
  Scan({}, kKeys);
  EXPECT_GT(values_.read, kKeys * 9 / 10);
  EXPECT_GT(values_.read_as_asked, values_.read * 9 / 10);
}

TEST_F(ValueReadAheadTest, AShortScanAsksForHalfOfWhatItReadsBeyondItsEnd) {
  Scan({}, 20);
  EXPECT_GT(values_.read_as_asked, 10u);
  EXPECT_LE(values_.asked.size(), 20u + 10u);
}

TEST_F(ValueReadAheadTest, AScanOfWhatIsInMemoryAsksForLittle) {
  values_.is_in_memory = true;
  Scan({}, kKeys);
  EXPECT_GT(values_.asked.size(), 0u);
  EXPECT_LT(values_.asked.size(), kKeys / 10u);
}

TEST_F(ValueReadAheadTest, AScanOfKeysAsksForNothing) {
  Scan({.without_value = true}, kKeys);
  EXPECT_EQ(values_.asked.size(), 0u);
  EXPECT_EQ(values_.read, 0u);
}

// The values of one segment lie in many files, in another order than that of their keys.
class ManyValueFilesTest : public ValueReadAheadTest {
 protected:
  ManyValueFilesTest() {
    store_.options.write_buffer_size = store_.options.log_file_size = 256 << 10;
    store_.Reopen();
  }
};

TEST_F(ManyValueFilesTest, EachValueIsAskedForInItsFile) {
  ASSERT_TRUE(store_->Compact({}, {}).ok());
  Scan({.fill_cache = false}, kKeys);  // all files are open from now on
  values_.Restart();
  Scan({.fill_cache = false}, kKeys);
  EXPECT_GT(values_.read, kKeys / 2u);
  EXPECT_GT(values_.read_as_asked, values_.read * 9 / 10);
  std::set<std::string> paths;
  for (const auto& [path, offset] : values_.asked) paths.insert(path);
  EXPECT_GT(paths.size(), 3u);
}

TEST_F(ValueReadAheadTest, ValuesInTheCacheAreNotAskedFor) {
  Scan({}, kKeys);
  values_.Restart();
  Scan({}, kKeys);
  EXPECT_LT(values_.asked.size(), kKeys / 10u);
}

}  // namespace
}  // namespace varve
