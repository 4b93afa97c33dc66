// ReadOptions::max_value_bytes: wherever a value lies, one that is longer is named and not read.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

class ReadLimitTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ReadLimitTest, LongerValuesAreNamedAndNotRead) {
  const testing::TempDir dir;
  EngineOptions engine;
  engine.block_cache_size = GetParam();
  const std::unique_ptr<StorageEngine> store = *StorageEngine::Open(dir.File("data"), engine);
  const std::string large(300'000, 'x');
  ASSERT_TRUE(store->Put("large", large).ok());
  ASSERT_TRUE(store->Put("small", "s").ok());
  ReadOptions options;
  options.max_value_bytes = 100'000;
  const auto reads = [&] {
    for (const auto& [name, value] : store->Statistics()) {
      if (name == "record_reads") return value;
    }
    return uint64_t{0};
  };
  const auto look = [&](const std::string& where) {
    std::string value = "untouched";
    const absl::StatusOr<ReadResult> read = store->Get(options, "large", &value);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->too_large) << where;
    EXPECT_EQ(value, "untouched") << where;
    const std::vector<std::string_view> keys = {"large", "small", "none"};
    std::vector<MultiGetResult> results(3);
    ASSERT_TRUE(store->MultiGet(options, keys, absl::MakeSpan(results)).ok());
    EXPECT_TRUE(results[0].result.too_large) << where;
    EXPECT_TRUE(results[1].result.found && !results[1].result.too_large) << where;
    EXPECT_EQ(results[1].value, "s") << where;
    EXPECT_FALSE(results[2].result.found || results[2].result.too_large) << where;
  };
  look("in memory");
  ASSERT_TRUE(store->Flush().ok());
  const uint64_t before = reads();
  look("on disk");
  // A header tells the length of a record of this size; the small one is read.
  EXPECT_LE(reads() - before, 3u);
  std::string value;
  ASSERT_TRUE(store->Get({}, "large", &value).ok());
  EXPECT_EQ(value, large);
  look("after it was read");
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutCache, ReadLimitTest,
                         ::testing::Values(size_t{0}, size_t{64} << 20));

}  // namespace
}  // namespace varve
