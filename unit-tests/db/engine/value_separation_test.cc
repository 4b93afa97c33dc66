// Large values are written once: segments point to where they lie, and files of values come, stay
// and go as segments need them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "db/format/large_operation.h"
#include "db/values/value_file_format.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "util/base/hash.h"
#include "varve/compaction_filter.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using ::testing::HasSubstr;
using testing::TestStore;

EngineOptions SeparationOptions() {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 256 << 10;
  options.log_file_size = 256 << 10;
  options.segment_size = 64 << 10;
  return options;
}

std::string KeyOfValue(int number) { return fmt::format("key{:05}", number); }
std::string LargeValue(int number, size_t size = 4096) {
  std::string value = fmt::format("{}:", number);
  value.resize(size, static_cast<char>('a' + number % 26));
  return value;
}

// Batches, so that the log is dense.
void FillLarge(TestStore& store, int begin, int end, int version = 0, size_t size = 4096) {
  WriteBatch batch;
  for (int i = begin; i < end; ++i) {
    batch.Put(KeyOfValue(i), LargeValue(i + version, size));
    if (batch.size() == 8 || i + 1 == end) ASSERT_TRUE(store->Write({}, &batch).ok());
  }
}

void ExpectAll(TestStore& store, int count, int version = 0, size_t size = 4096) {
  for (int i = 0; i < count; ++i)
    ASSERT_EQ(store.Get(KeyOfValue(i)), LargeValue(i + version, size)) << i;
}

uint64_t BytesOnDisk(const std::string& directory, std::string_view ending) {
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::error_code gone;  // it may be removed at this moment
    const uintmax_t size = entry.file_size(gone);
    if (!gone && entry.path().string().ends_with(ending)) bytes += size;
  }
  return bytes;
}

// Returns the path of the oldest file of values that the log has given up.
std::string OldestValueFile(const std::string& directory) {
  std::string oldest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".val" && (oldest.empty() || entry.path() < oldest))
      oldest = entry.path();
  }
  EXPECT_NE(oldest, "");
  return oldest;
}

size_t FilesOnDisk(const std::string& directory, std::string_view ending) {
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files += entry.path().string().ends_with(ending) ? 1 : 0;
  }
  return files;
}

TEST(LargeOperationTest, GoldenBytes) {
  std::string bytes;
  RecordView record{.key = std::string_view("\0\0\0\1k", 5), .value = "v", .sequence = 7};
  AppendLargeOperation(record, &bytes);
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  EXPECT_EQ(hex, "8105010700000000000000599f4227000000016b76");
  EXPECT_EQ(bytes.size(), LargeOperationSizeOf(record));
  record.flags = kHasExpiry | kHasMetadata;
  record.expiry_ms = 0x0102030405060708;
  record.metadata = "meta";
  bytes.clear();
  hex.clear();
  AppendLargeOperation(record, &bytes);
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(c));
  EXPECT_EQ(hex, "b1050107000000000000009666e1350807060504030201046d657461000000016b76");
  EXPECT_EQ(bytes.size(), LargeOperationSizeOf(record));
  EXPECT_EQ(LargeOperationSize(std::string_view(bytes).substr(0, kMaxLargeHeaderSize)),
            bytes.size());
  RecordView decoded;
  const std::string longer = bytes + "more";
  ASSERT_EQ(DecodeLargeOperation(longer, &decoded), bytes.size());
  EXPECT_EQ(decoded.key, record.key);
  EXPECT_EQ(decoded.value, record.value);
  EXPECT_EQ(decoded.metadata, record.metadata);
  EXPECT_EQ(decoded.sequence, 7u);
  EXPECT_EQ(decoded.expiry_ms, record.expiry_ms);
  EXPECT_EQ(decoded.flags, record.flags);
}

TEST(LargeOperationTest, EachFlippedBitAndEachCutIsFound) {
  std::string bytes;
  const RecordView record{
      .key = std::string_view("\0\0\0\1key", 7), .value = "value", .sequence = 300};
  AppendLargeOperation(record, &bytes);
  RecordView decoded;
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(DecodeLargeOperation(damaged, &decoded), 0u) << bit;
  }
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(DecodeLargeOperation(bytes.substr(0, size), &decoded), 0u) << size;
  }
}

TEST(ValueFileTest, GoldenHeader) {
  const std::string page = EncodeValueFileHeader(0x0102030405);
  ASSERT_EQ(page.size(), kValueFilePageSize);
  EXPECT_EQ(page.substr(0, 8), "VARVEVAL");
  EXPECT_EQ(page.substr(8, 4), std::string("\1\0\0\0", 4));
  EXPECT_EQ(page.substr(16, 8), std::string("\5\4\3\2\1\0\0\0", 8));
  EXPECT_EQ(HashKey(page), 501952621246314956u);
  EXPECT_TRUE(CheckValueFileHeader(page, "f", 0x0102030405).ok());
  for (size_t i = 0; i < page.size(); ++i) {
    std::string damaged = page;
    damaged[i] ^= 1;
    EXPECT_FALSE(CheckValueFileHeader(damaged, "f", 0x0102030405).ok()) << i;
  }
}

TEST(ValueSeparationTest, AFlushLeavesValuesWhereTheLogWroteThem) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 500);
  ASSERT_TRUE(store->Flush().ok());
  // Keys and places alone.
  EXPECT_LT(store.Statistic("flushed_bytes"), 500u * 200);
  EXPECT_GT(store.Statistic("value_files"), 0u);
  ExpectAll(store, 500);
  store.Reopen();
  ExpectAll(store, 500);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_LT(store.Statistic("compacted_bytes"), 500u * 200);
  ExpectAll(store, 500);
  int i = 0;
  const auto iterator = store->NewIterator({}, {}, {}, nullptr);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i) {
    ASSERT_EQ(iterator->key(), KeyOfValue(i));
    ASSERT_EQ(iterator->value(), LargeValue(i));
    ASSERT_EQ(iterator->value_size(), 4096u);
  }
  EXPECT_EQ(i, 500);
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
    --i;
    ASSERT_EQ(iterator->key(), KeyOfValue(i));
    ASSERT_EQ(iterator->value(), LargeValue(i));
    ASSERT_EQ(iterator->value_size(), 4096u);
  }
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  EXPECT_EQ(i, 0);
}

TEST(ValueSeparationTest, AGetIsOneReadAndWhoWantsNoValueReadsNone) {
  EngineOptions options = SeparationOptions();
  options.block_cache_size = 0;
  TestStore store(options);
  FillLarge(store, 0, 500);
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  const uint64_t before = store.Statistic("record_reads");
  for (int i = 0; i < 500; ++i) ASSERT_EQ(store.Get(KeyOfValue(i)), LargeValue(i));
  EXPECT_LE(store.Statistic("record_reads") - before, 501u);
  // Without a value the file of values may as well be gone.
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".val") std::filesystem::resize_file(entry.path(), 0);
  }
  const absl::StatusOr<ReadResult> size =
      store->Get({.without_value = true}, KeyOfValue(7), nullptr);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_TRUE(size->found);
  EXPECT_EQ(size->value_size, 4096u);
  const absl::StatusOr<CountResult> count = store->Count({}, {}, {});
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count->keys, 500u);
  const auto iterator = store->NewIterator({.without_value = true}, {}, {}, nullptr);
  int keys = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++keys;
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  EXPECT_EQ(keys, 500);
}

TEST(ValueSeparationTest, AScanLeavesItsValuesInTheBlockCache) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 40);
  ASSERT_TRUE(store->Flush().ok());
  const auto scan = [&](bool fill_cache) {
    const auto iterator = store->NewIterator({.fill_cache = fill_cache}, {}, {}, nullptr);
    int at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      EXPECT_EQ(iterator->value(), LargeValue(at++));
    EXPECT_EQ(at, 40);
  };
  scan(false);
  const uint64_t before = store.Statistic("record_reads");
  store.Get(KeyOfValue(0));
  EXPECT_GT(store.Statistic("record_reads"), before);
  scan(true);
  scan(true);
  const uint64_t cached = store.Statistic("record_reads");
  ExpectAll(store, 40);
  EXPECT_EQ(store.Statistic("record_reads"), cached);
}

TEST(ValueSeparationTest, TooLargeAValueIsNotRead) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 64);
  ASSERT_TRUE(store->Flush().ok());
  std::string value;
  const absl::StatusOr<ReadResult> result =
      store->Get({.max_value_bytes = 2000}, KeyOfValue(3), &value);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->too_large);
}

TEST(ValueSeparationTest, OlderVersionsAreFoundInSnapshots) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 100);
  const auto first = store->GetSnapshot();
  FillLarge(store, 0, 100, 1000);
  const auto second = store->GetSnapshot();
  FillLarge(store, 0, 100, 2000);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(store.Get(KeyOfValue(i), first.get()), LargeValue(i));
      ASSERT_EQ(store.Get(KeyOfValue(i), second.get()), LargeValue(i + 1000));
      ASSERT_EQ(store.Get(KeyOfValue(i)), LargeValue(i + 2000));
    }
    ASSERT_TRUE((round == 0 ? store->Flush() : store->Compact({}, {})).ok());
  }
}

TEST(ValueSeparationTest, WhatIsNotDenseGoesToAFileOfItsOwn) {
  TestStore store(SeparationOptions());
  for (int i = 0; i < 200; ++i) {
    WriteBatch batch;
    for (int j = 0; j < 100; ++j)
      batch.Put(fmt::format("small{:03}{:03}", i, j), std::string(100, 's'));
    if (i % 10 == 0) batch.Put(KeyOfValue(i / 10), LargeValue(i / 10));
    ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  ASSERT_TRUE(store->Flush().ok());
  // Headers and values, nothing of what lay around them in the log.
  EXPECT_GT(FilesOnDisk(store.directory.path(), ".val"), 0u);
  EXPECT_LT(BytesOnDisk(store.directory.path(), ".val"),
            20u * 4200 + FilesOnDisk(store.directory.path(), ".val") * 4096);
  ExpectAll(store, 20);
  store.Reopen();
  ExpectAll(store, 20);
}

TEST(ValueSeparationTest, SwitchedOffValuesAreInSegments) {
  EngineOptions options = SeparationOptions();
  options.value_separation_size = 0;
  TestStore store(options);
  FillLarge(store, 0, 200);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_GT(store.Statistic("flushed_bytes"), 200u * 4096);
  EXPECT_EQ(FilesOnDisk(store.directory.path(), ".val"), 0u);
  ExpectAll(store, 200);
}

TEST(ValueSeparationTest, ANamespaceHasASizeOfItsOwn) {
  EngineOptions options = SeparationOptions();
  options.value_separation_size = 0;
  TestStore store(options);
  WriteBatch batch;
  NamespaceDescription space{.id = kFirstNamedNamespace, .name = "apart"};
  space.options.value_separation_size = 2048;
  batch.CreateNamespace(space);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  for (int i = 0; i < 50; ++i) {
    batch.Put(KeyOfValue(i), LargeValue(i), space.id);
    batch.Put(KeyOfValue(i), LargeValue(i));
    batch.Put("small" + KeyOfValue(i), LargeValue(i, 2000), space.id);
  }
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  const uint64_t in_segments = 50 * (4096 + 2000);
  EXPECT_GT(store.Statistic("segment_bytes"), in_segments);
  EXPECT_LT(store.Statistic("segment_bytes"), in_segments + 50 * 1000);
  std::string value;
  ASSERT_TRUE(store->Get({.space = space.id}, KeyOfValue(7), &value)->found);
  EXPECT_EQ(value, LargeValue(7));
}

TEST(ValueSeparationTest, ACloneReadsTheValuesOfItsParent) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 100);
  WriteBatch batch;
  batch.CloneNamespace(kDefaultNamespace, {.id = kFirstNamedNamespace, .name = "clone"});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  FillLarge(store, 0, 100, 1000);
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  std::string value;
  ASSERT_TRUE(store->Get({.space = kFirstNamedNamespace}, KeyOfValue(5), &value)->found);
  EXPECT_EQ(value, LargeValue(5));
  const auto iterator = store->NewIterator({.space = kFirstNamedNamespace}, {}, {}, nullptr);
  int i = 0;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++i)
    ASSERT_EQ(iterator->value(), LargeValue(i));
  EXPECT_EQ(i, 100);
  ExpectAll(store, 100, 1000);
}

TEST(ValueSeparationTest, OverwritingGivesSpaceBack) {
  TestStore store(SeparationOptions());
  constexpr int kKeys = 2000;
  std::mt19937 random(7);
  std::vector<int> versions(kKeys, 0);
  FillLarge(store, 0, kKeys);
  WriteBatch batch;
  for (int i = 0; i < 10 * kKeys; ++i) {
    const int key = static_cast<int>(random() % kKeys);
    versions[key] = i;
    batch.Put(KeyOfValue(key), LargeValue(key + i));
    if (batch.size() == 8) ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  if (!batch.empty()) ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  const uint64_t live = uint64_t{kKeys} * 4096;
  EXPECT_TRUE(Eventually([&] {
    return BytesOnDisk(store.directory.path(), ".val") +
               BytesOnDisk(store.directory.path(), ".seg") <
           live * 3 / 2;
  })) << BytesOnDisk(store.directory.path(), ".val") * 1.0 / live;
  for (int i = 0; i < kKeys; ++i)
    ASSERT_EQ(store.Get(KeyOfValue(i)), LargeValue(i + versions[i])) << i;
  store.Reopen();
  for (int i = 0; i < kKeys; ++i)
    ASSERT_EQ(store.Get(KeyOfValue(i)), LargeValue(i + versions[i])) << i;
}

TEST(ValueSeparationTest, FilesGoWhenNothingPointsIntoThem) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 500);
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_GT(BytesOnDisk(store.directory.path(), ".val"), 400u * 4096);
  const auto iterator = store->NewIterator({}, {}, {}, nullptr);
  iterator->SeekToFirst();
  WriteBatch batch;
  batch.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  // Who reads on holds them.
  for (int i = 0; iterator->Valid(); iterator->Next(), ++i)
    ASSERT_EQ(iterator->value(), LargeValue(i));
  ASSERT_TRUE(iterator->status().ok()) << iterator->status();
  const_cast<std::unique_ptr<Iterator>&>(iterator).reset();
  EXPECT_TRUE(Eventually([&] {
    batch.Put("small", "value");  // states are let go by who comes after
    EXPECT_TRUE(store->Write({}, &batch).ok() && store->Flush().ok());
    return FilesOnDisk(store.directory.path(), ".val") == 0;
  })) << FilesOnDisk(store.directory.path(), ".val");
}

TEST(ValueSeparationTest, DamageIsNamedAndContained) {
  EngineOptions options = SeparationOptions();
  TestStore store(options);
  FillLarge(store, 0, 200);
  ASSERT_TRUE(store->Flush().ok());
  store.Close();
  std::string damaged_file;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".val") damaged_file = entry.path();
  }
  ASSERT_FALSE(damaged_file.empty());
  std::fstream file(damaged_file, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(20000);
  file.put('#');
  file.close();
  store.Open();
  int damaged = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string value = store.Get(KeyOfValue(i));
    if (value == LargeValue(i)) continue;
    ++damaged;
    EXPECT_THAT(value, HasSubstr("DATA_LOSS"));
    EXPECT_THAT(value, HasSubstr(damaged_file + " is damaged at offset "));
  }
  EXPECT_EQ(damaged, 1);
  // Merges don't read it, and take its place along.
  ASSERT_TRUE(store->Compact({}, {}).ok());
  damaged = 0;
  for (int i = 0; i < 200; ++i) damaged += store.Get(KeyOfValue(i)) == LargeValue(i) ? 0 : 1;
  EXPECT_EQ(damaged, 1);
}

TEST(ValueSeparationTest, AMissingFileIsNamed) {
  TestStore store(SeparationOptions());
  FillLarge(store, 0, 200);
  ASSERT_TRUE(store->Flush().ok());
  store.Close();
  std::string missing;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".val") missing = entry.path();
  }
  std::filesystem::remove(missing);
  store.Open();
  int damaged = 0;
  for (int i = 0; i < 200; ++i) {
    const std::string value = store.Get(KeyOfValue(i));
    if (value == LargeValue(i)) continue;
    ++damaged;
    EXPECT_THAT(value, HasSubstr(missing));
  }
  EXPECT_GT(damaged, 0);
  EXPECT_LT(damaged, 200);
}

// A collection that failed was planned again and again, before any other merge.
TEST(ValueSeparationTest, AFileThatTheDeviceFailsToReadHoldsUpNoCollection) {
  FaultFileSystem files;
  EngineOptions options = SeparationOptions();
  options.file_system = &files;
  options.segment_size = 1 << 20;  // one segment points into all of the files
  TestStore store(options);
  constexpr int kKeys = 500;
  FillLarge(store, 0, kKeys);
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  // The file may be open under the name that it had as one of the log.
  const std::string unreadable =
      std::filesystem::path(OldestValueFile(store.directory.path())).stem().string() + ".";
  files.Fail(FileOperation::kRead, 1, absl::InternalError("the device says no"),
             FaultFileSystem::kUnlimited, unreadable);
  // One value of three stays in each file.
  const auto version = [](int key) { return key % 3 == 0 ? 0 : 1000; };
  WriteBatch batch;
  for (int i = 0; i < kKeys; ++i) {
    if (version(i) != 0) batch.Put(KeyOfValue(i), LargeValue(i + version(i)));
    if (batch.size() == 8) ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  if (!batch.empty()) ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_TRUE(Eventually([&] { return store.Statistic("compactions_value_garbage") > 0; }));
  EXPECT_LE(store.Statistic("failed_compactions"), 1u) << "it is known from then on";
  files.ClearFaults();
  for (int i = 0; i < kKeys; ++i)
    ASSERT_EQ(store.Get(KeyOfValue(i)), LargeValue(i + version(i))) << i;
}

class DropsAllOnceOn final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord&) const override { return on; }
  std::atomic<bool> on{false};
};

TEST(ValueSeparationTest, AFilterIsNotAskedAboutValuesThatCannotBeRead) {
  for (const bool device_fails : {false, true}) {
    SCOPED_TRACE(device_fails);
    FaultFileSystem files;
    const auto filter = std::make_shared<DropsAllOnceOn>();
    EngineOptions options = SeparationOptions();
    options.file_system = &files;
    options.compaction_filter = filter;
    TestStore store(options);
    FillLarge(store, 0, 200);
    ASSERT_TRUE(store->Flush().ok());
    store.Close();
    const std::string path = OldestValueFile(store.directory.path());
    if (device_fails) {
      files.Fail(FileOperation::kRead, 1, absl::InternalError("the device says no"),
                 FaultFileSystem::kUnlimited, path);
    } else {
      std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(20000);
      file.put('#');
    }
    store.Open();
    filter->on = true;
    const absl::Status merged = store->Compact({}, {});
    ASSERT_TRUE(merged.ok()) << merged;
    files.ClearFaults();
    int kept = 0;
    for (int i = 0; i < 200; ++i) {
      const std::string value = store.Get(KeyOfValue(i));
      if (value == "(missing)") continue;
      ++kept;
      if (device_fails) {
        EXPECT_EQ(value, LargeValue(i));
      } else {
        EXPECT_THAT(value, HasSubstr("DATA_LOSS"));
      }
    }
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, device_fails ? 100 : 2);
  }
}

// The guard of mapped reads (util/os/mapped_reads.h): a value that can't be read is an error of
// that key, and no signal.
TEST(MappedStoreTest, AFileThatWasShortenedIsAnErrorOfItsKeys) {
  TestStore store(SeparationOptions());
  store.options.mapped_read_budget = size_t{64} << 20;
  store.Reopen();
  constexpr int kKeys = 400;
  ASSERT_NO_FATAL_FAILURE(FillLarge(store, 0, kKeys));
  ASSERT_TRUE(store->Flush().ok());
  for (int pass = 0; pass < 3; ++pass) ExpectAll(store, kKeys);
  std::string largest;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".val" &&
        (largest.empty() || entry.file_size() > std::filesystem::file_size(largest)))
      largest = entry.path();
  }
  ASSERT_FALSE(largest.empty());
  std::filesystem::resize_file(largest, 4096 * 3);
  int lost = 0;
  for (int i = 0; i < kKeys; ++i) {
    std::string value;
    const auto read = store->Get({}, KeyOfValue(i), &value);
    if (read.ok()) {
      EXPECT_EQ(value, LargeValue(i)) << i;
    } else {
      EXPECT_TRUE(absl::IsDataLoss(read.status())) << read.status();
      EXPECT_THAT(std::string(read.status().message()), HasSubstr(".val"));
      ++lost;
    }
  }
  EXPECT_GT(lost, 5);
  EXPECT_LT(lost, kKeys);
}

// Scans take values through the block cache only where it can hold all of them; in a smaller one
// they would lie beside the kernel's copy and drive each other out.
TEST(MappedStoreTest, AScanCachesValuesOnlyIfAllFit) {
  constexpr int kKeys = 1000;
  TestStore store(SeparationOptions());
  store.options.mapped_read_budget = size_t{64} << 20;
  const auto scan = [&] {
    const auto iterator = store->NewIterator({}, {}, {}, nullptr);
    int at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      EXPECT_EQ(iterator->value(), LargeValue(at++));
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    EXPECT_EQ(at, kKeys);
    return store.Statistic("block_cache_bytes");
  };
  store.options.block_cache_size = size_t{2} << 20;
  store.Reopen();
  ASSERT_NO_FATAL_FAILURE(FillLarge(store, 0, kKeys));
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_LT(scan(), 200u << 10);
  store.options.block_cache_size = size_t{64} << 20;
  store.Reopen();
  EXPECT_GT(scan(), uint64_t{kKeys} * 4096);
  EXPECT_GT(scan(), uint64_t{kKeys} * 4096);
}

}  // namespace
}  // namespace varve
