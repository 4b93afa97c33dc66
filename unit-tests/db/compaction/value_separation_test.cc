#include "db/compaction/value_separation.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "db/compression/value_codec.h"
#include "db/format/file_names.h"
#include "db/format/large_operation.h"
#include "db/format/value_handle.h"
#include "db/values/value_file_format.h"
#include "db/version/manifest.h"
#include "fmt/format.h"
#include "type/tree_key.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::FailingFileSystem;
using testing::FileOperation;

constexpr NamespaceGeneration kApart = 1, kTogether = 2;  // generations
constexpr uint64_t kSeparationSize = 2000;

// Jobs that write values into real files, numbered from 7 on.
class SeparationTest : public ::testing::Test {
 protected:
  ValueFileWriter::Options Files() {
    return {.file_system = &file_system_,
            .directory = directory_.path(),
            .next_file_number = [this] { return next_number_++; },
            .registry = &registry_};
  }
  std::unique_ptr<ValueSeparation> Flush(std::vector<LogBlockPlace> log_blocks = {}) {
    return NewFlushSeparation({.separation_size =
                                   [](NamespaceGeneration generation) {
                                     return generation == kApart ? kSeparationSize : uint64_t{0};
                                   },
                               .log_blocks = std::move(log_blocks)},
                              Files());
  }
  RecordView Record(NamespaceGeneration generation, size_t size, SequenceNumber sequence = 5) {
    key_ = std::string(TreeKey(generation, "key").view());
    value_ = std::string(size, 'v');
    return {.key = key_, .value = value_, .sequence = sequence};
  }
  // The handle that the job puts in place of the record's value.
  ValueHandle Separated(ValueSeparation* job, const RecordView& record) {
    const absl::StatusOr<RecordView> written = job->Separate(record);
    EXPECT_TRUE(written.ok()) << written.status();
    ValueHandle handle;
    EXPECT_TRUE(written.ok() && IsSeparated(*written) &&
                DecodeValueHandle(written->value, &handle));
    EXPECT_EQ(handle.value_size, record.value.size());
    return handle;
  }
  // The value that lies there.
  std::string Read(const ValueHandle& handle, SequenceNumber sequence = 5) {
    std::string bytes;
    RecordView operation;
    const absl::Status read =
        registry_.Acquire(&file_system_, directory_.path(), handle.file_number)
            ->ReadOperation(handle, "key", sequence, &bytes, &operation);
    return read.ok() ? std::string(operation.value) : read.ToString();
  }
  size_t CountFiles() const {
    const std::filesystem::directory_iterator entries(directory_.path());
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  const testing::TempDir directory_;
  testing::FaultFileSystem file_system_;
  ValueFiles registry_;
  uint64_t next_number_ = 7;
  std::string key_, value_;
};

TEST_F(SeparationTest, OnlyLargeValuesOfTheirNamespaceAreKeptApart) {
  const std::unique_ptr<ValueSeparation> flush = Flush();
  EXPECT_FALSE(IsSeparated(*flush->Separate(Record(kTogether, 100'000))));
  RecordView tombstone = Record(kApart, 0);
  tombstone.kind = RecordKind::kTombstone;
  EXPECT_FALSE(IsSeparated(*flush->Separate(tombstone)));
  const RecordView small = Record(kApart, kSeparationSize - 1);
  const absl::StatusOr<RecordView> written = flush->Separate(small);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_EQ(written->value, small.value);
  ASSERT_TRUE(flush->Finish().ok());
  EXPECT_EQ(flush->bytes_written(), 0u);
  EXPECT_EQ(CountFiles(), 0u);
}

TEST_F(SeparationTest, AFlushWritesAValueThatTheLogDoesNotHold) {
  const std::unique_ptr<ValueSeparation> flush = Flush();
  const ValueHandle handle = Separated(flush.get(), Record(kApart, 5000));
  EXPECT_EQ(handle.file_number, 7u);
  ASSERT_TRUE(flush->Finish().ok());
  flush->Keep();
  EXPECT_GT(flush->bytes_written(), 5000u);
  EXPECT_EQ(Read(handle), std::string(5000, 'v'));
  EXPECT_EQ(file_system_.calls(FileOperation::kSyncDirectory), 1u);
}

TEST_F(SeparationTest, AFlushLeavesAValueWhereTheLogWroteIt) {
  const std::unique_ptr<ValueSeparation> flush =
      Flush({{.first = 3, .file_number = 2, .payload_offset = 4096},
             {.first = 9, .file_number = 0, .payload_offset = 0}});
  RecordView record = Record(kApart, 5000, /*sequence=*/8);
  record.log_offset = 100;
  const ValueHandle handle = Separated(flush.get(), record);
  EXPECT_EQ(handle.file_number, 2u);
  EXPECT_EQ(handle.offset, 4196u);
  EXPECT_EQ(handle.operation_size, LargeOperationSizeOf(record));
  // The block is not on disk yet, and the one before the first is not known.
  for (const SequenceNumber elsewhere : {9u, 2u}) {
    record.sequence = elsewhere;
    EXPECT_EQ(Separated(flush.get(), record).file_number, 7u) << elsewhere;
  }
}

TEST_F(SeparationTest, ACollectionMovesTheValuesOfTheFilesThatItEmpties) {
  std::vector<ValueHandle> handles;
  for (int i = 0; i < 2; ++i) {
    const std::unique_ptr<ValueSeparation> flush = Flush();
    handles.push_back(Separated(flush.get(), Record(kApart, 5000)));
    ASSERT_TRUE(flush->Finish().ok());
    flush->Keep();
  }
  ASSERT_EQ(handles[1].file_number, 8u);
  const std::shared_ptr<ValueFile> held[] = {
      registry_.Acquire(&file_system_, directory_.path(), 7),
      registry_.Acquire(&file_system_, directory_.path(), 8)};
  const std::unique_ptr<ValueSeparation> collection = NewCollectionSeparation({7}, Files());
  for (const ValueHandle& handle : handles) {
    std::string bytes;
    AppendValueHandle(handle, &bytes);
    RecordView record = Record(kApart, 0);
    record.value = bytes;
    record.flags = kSeparatedValue;
    const absl::StatusOr<RecordView> written = collection->Separate(record);
    ASSERT_TRUE(written.ok()) << written.status();
    ValueHandle moved;
    ASSERT_TRUE(DecodeValueHandle(written->value, &moved));
    EXPECT_EQ(moved.file_number, handle.file_number == 7 ? 9u : 8u);
    EXPECT_EQ(moved.value_size, 5000u);
    if (moved.file_number != 9) continue;
    ASSERT_TRUE(collection->Finish().ok());
    EXPECT_EQ(Read(moved), std::string(5000, 'v'));
  }
}

TEST_F(SeparationTest, AFlushTakesACheaperLevelForAllButVeryLargeValues) {
  Manifest manifest;
  manifest.has_history = true;
  const NamespaceTable namespaces(manifest);
  ValueCompressor compressor(nullptr);
  constexpr size_t kSmall = 20'000, kVeryLarge = 40'000;
  for (const auto& [level, size, expected] :
       {std::tuple<uint8_t, size_t, uint8_t>{3, kSmall, 1}, {3, kVeryLarge, 3}, {9, kSmall, 9}}) {
    std::string text;
    for (uint64_t i = 0; text.size() < size; ++i)
      text += fmt::format("entry {} of the list has the size {}\n", i * 7919 % 1000, i * i % 8191);
    const auto compressed = [&](uint8_t with) {
      return std::string(compressor.Compress({CompressionMethod::kZstd, with}, text));
    };
    ASSERT_NE(compressed(expected), compressed(expected == 3 ? 1 : 3));
    const auto flush = NewFlushSeparation(
        {.separation_size = [](NamespaceGeneration) { return kSeparationSize; },
         .compression = CompressionPolicy(namespaces, {CompressionMethod::kZstd, level})},
        Files());
    RecordView record = Record(kApart, 0);
    record.value = text;
    const ValueHandle handle = Separated(flush.get(), record);
    ASSERT_TRUE(flush->Finish().ok());
    std::string bytes;
    RecordView operation;
    ASSERT_TRUE(registry_.Acquire(&file_system_, directory_.path(), handle.file_number)
                    ->ReadStoredOperation(handle, "key", 5, &bytes, &operation)
                    .ok());
    EXPECT_EQ(operation.value, compressed(expected)) << size;
  }
}

TEST_F(SeparationTest, FilesThatNobodyKeepsGoWithTheirWriter) {
  for (const bool finished : {false, true}) {
    std::unique_ptr<ValueSeparation> flush = Flush();
    Separated(flush.get(), Record(kApart, 5000));
    if (finished) {
      ASSERT_TRUE(flush->Finish().ok());
    }
    EXPECT_EQ(CountFiles(), 1u);
    flush.reset();
    EXPECT_EQ(CountFiles(), 0u) << finished;
  }
}

TEST_F(SeparationTest, AnErrorOfTheDiskIsTheJobs) {
  file_system_.Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("no disk"),
                    /*times=*/1);
  std::unique_ptr<ValueSeparation> flush = Flush();
  EXPECT_TRUE(absl::IsResourceExhausted(flush->Separate(Record(kApart, 5000)).status()));
  flush = Flush();
  Separated(flush.get(), Record(kApart, 5000));
  file_system_.Fail(FileOperation::kSync, 1, absl::InternalError("lost pages"));
  EXPECT_TRUE(absl::IsInternal(flush->Finish()));
  flush.reset();
  EXPECT_EQ(CountFiles(), 0u);
}

}  // namespace
}  // namespace varve
