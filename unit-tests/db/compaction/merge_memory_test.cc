// A merge keeps none of the memory that a huge value took, once the value is written.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "db/compaction/merge_compression.h"
#include "db/compaction/value_recompression.h"
#include "db/compaction/value_separation.h"
#include "db/version/manifest.h"
#include "type/tree_key.h"
#include "unit-tests/testing/process_memory.h"
#include "unit-tests/testing/temp_dir.h"
#include "unit-tests/testing/test_store.h"
#include "util/base/kept_buffer.h"
#include "varve/compaction_filter.h"

namespace varve {
namespace {

using testing::HeapBytes;

constexpr Compression kMergedLz4{CompressionMethod::kLz4, 0};
constexpr NamespaceGeneration kGeneration = 1;
constexpr size_t kHuge = size_t{16} << 20;

CompressionPolicy PolicyOfLz4() {
  Manifest manifest;
  manifest.has_history = true;
  return {NamespaceTable(manifest), kMergedLz4};
}

std::string Noise(size_t size) {
  std::mt19937_64 random(size);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(KeptBufferTest, OnlyWhatIsLargeIsGivenBack) {
  std::string buffer(kMostKeptBuffer, 'v');
  GiveBackIfLarge(&buffer);
  EXPECT_EQ(buffer.size(), kMostKeptBuffer);
  buffer.push_back('v');
  GiveBackIfLarge(&buffer);
  EXPECT_LT(buffer.capacity(), 100u);
  buffer = "longer than three";
  GiveBackIfLarge(&buffer, 3);
  EXPECT_EQ(buffer, "");
}

class MergeMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::kMemoryIsTold) GTEST_SKIP() << "the allocator is the sanitizer's";
  }

  ValueFileWriter::Options Files() {
    return {.file_system = PosixFileSystem(),
            .directory = directory_.path(),
            .next_file_number = [this] { return next_number_++; },
            .registry = &registry_};
  }
  std::unique_ptr<ValueSeparation> Flush(CompressionPolicy compression) {
    return NewFlushSeparation(
        {.separation_size = [](NamespaceGeneration) { return uint64_t{1024}; },
         .compression = std::move(compression)},
        Files());
  }
  // Gives the job the values, of which the first is small. Returns what it writes in their place.
  std::vector<std::string> Separate(ValueSeparation* job, const std::vector<std::string>& values,
                                    uint8_t flags) {
    std::vector<std::string> written;
    size_t before = 0;
    for (const std::string& value : values) {
      const absl::StatusOr<RecordView> record =
          job->Separate({.key = key_.view(), .value = value, .sequence = 7, .flags = flags});
      EXPECT_TRUE(record.ok()) << record.status();
      if (!record.ok()) break;
      written.emplace_back(record->value);
      if (before == 0) before = HeapBytes();
      EXPECT_LT(HeapBytes(), before + kHuge / 4) << value.size();
    }
    return written;
  }
  // Has a flush keep the values apart as they are, and the job move them.
  void MoveBy(const std::function<std::unique_ptr<ValueSeparation>()>& new_job) {
    const auto flush = Flush({});
    const std::vector<std::string> handles = Separate(flush.get(), values_, kNoFlags);
    ASSERT_TRUE(flush->Finish().ok());
    flush->Keep();
    std::vector<std::shared_ptr<ValueFile>> held;
    for (uint64_t number = 1; number < next_number_; ++number)
      held.push_back(registry_.Acquire(PosixFileSystem(), directory_.path(), number));
    const auto job = new_job();
    EXPECT_NE(Separate(job.get(), handles, kSeparatedValue).back(), handles.back()) << "moved";
    ASSERT_TRUE(job->Finish().ok());
  }

  const testing::TempDir directory_;
  const TreeKey key_{kGeneration, "key"};
  const std::vector<std::string> values_ = {std::string(2000, 'v'), Noise(kHuge),
                                            std::string(kHuge, 'v')};
  ValueFiles registry_;
  uint64_t next_number_ = 1;
};

TEST_F(MergeMemoryTest, OfAFlushThatKeepsValuesApart) {
  Separate(Flush(PolicyOfLz4()).get(), values_, kNoFlags);
}

TEST_F(MergeMemoryTest, OfACollectionOfValues) {
  MoveBy([this] { return NewCollectionSeparation({1}, Files(), PolicyOfLz4()); });
}

TEST_F(MergeMemoryTest, OfARecompressionOfValues) {
  MoveBy([this] { return NewValueRecompression(Files(), PolicyOfLz4()); });
}

// A segment with values of which each is huge once it is plain.
class HugeDecoder final : public ValueDecoder {
 public:
  absl::StatusOr<std::string_view> PlainValue(const RecordView&, std::string* buffer) override {
    buffer->assign(kHuge, 'v');
    return *buffer;
  }
  absl::StatusOr<const ValueDictionary*> Dictionary() override { return nullptr; }
  Compression CompressionOf(NamespaceGeneration) const override { return {}; }
};

TEST_F(MergeMemoryTest, OfCompression) {
  const CompressionOptions options{.policy = PolicyOfLz4()};
  MergeCompression compression(options);
  HugeDecoder decoder;
  const RecordView small{.key = key_.view(), .value = values_.front(), .sequence = 7};
  ASSERT_TRUE(compression.Encode(small).ok());
  const size_t before = HeapBytes();
  RecordView huge = small;
  huge.flags = kCompressed;
  huge.decoder = &decoder;
  const absl::StatusOr<RecordView> encoded = compression.Encode(huge);
  ASSERT_TRUE(encoded.ok()) << encoded.status();
  EXPECT_LT(encoded->value.size(), kHuge / 8);
  EXPECT_GT(HeapBytes(), before + kHuge);
  ASSERT_TRUE(compression.Encode(small).ok());
  EXPECT_LT(HeapBytes(), before + kHuge / 4);
}

class NotesHeap final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord& record) const override {
    (record.value.size() == kHuge ? beside_huge : behind_it) = HeapBytes();
    return false;
  }
  mutable std::atomic<size_t> beside_huge{0}, behind_it{0};
};

TEST_F(MergeMemoryTest, OfWhatAFilterIsShown) {
  const auto filter = std::make_shared<NotesHeap>();
  EngineOptions options;
  options.sync = Durability::kNone;
  options.compaction_filter = filter;
  testing::TestStore store(options);
  ASSERT_TRUE(store->Put("a", values_[1]).ok());
  ASSERT_TRUE(store->Put("b", "small").ok());
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();  // without a write buffer that held the value
  filter->beside_huge = filter->behind_it = 0;
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_GT(filter->behind_it, 0u);
  EXPECT_LT(filter->behind_it + kHuge / 2, filter->beside_huge);
}

}  // namespace
}  // namespace varve
