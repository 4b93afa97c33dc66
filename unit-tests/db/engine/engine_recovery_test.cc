// What a store finds when it is opened after a crash: killed processes (a copy of the running
// store's directory), torn ends, damage, missing files. Power cuts at every moment are
// unit-tests/crash.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <random>
#include <thread>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "db/format/file_names.h"
#include "fmt/format.h"
#include "unit-tests/db/log/log_test_util.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::CopyDirectory;
using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::ReadFile;
using testing::SimulatedDisk;
using testing::SimulatedFileSystem;
using testing::TempDir;
using testing::TestStore;
using testing::WriteFile;

// With small log files: opening a store zero-fills one.
EngineOptions RecoveryOptions() {
  EngineOptions options = testing::TestEngineOptions();
  options.log_file_size = 256 << 10;
  return options;
}

std::string KeyOfPair(uint64_t i) { return fmt::format("key{:06}", i); }
std::string ValueOfPair(uint64_t i) {
  return fmt::format("value{}:", i) + std::string(i * 37 % 900, 'v');
}

// One batch: two keys that must be there both or not at all.
absl::Status WritePair(StorageEngine* store, uint64_t i) {
  WriteBatch batch;
  batch.Put("a" + KeyOfPair(i), ValueOfPair(i));
  batch.Put("b" + KeyOfPair(i), ValueOfPair(i));
  return store->Write({}, &batch).status();
}

// How many pairs, from 0 on without a gap, the store holds; nothing when a pair is torn or follows
// a gap.
std::optional<uint64_t> CountPairs(StorageEngine* store) {
  uint64_t pairs = 0;
  const auto a = store->NewIterator({}, "a", "b", nullptr);
  const auto b = store->NewIterator({}, "b", "c", nullptr);
  a->SeekToFirst();
  b->SeekToFirst();
  for (; a->Valid() && b->Valid(); a->Next(), b->Next(), ++pairs) {
    if (a->key().substr(1) != KeyOfPair(pairs) || b->key().substr(1) != KeyOfPair(pairs))
      return std::nullopt;
    if (a->value() != ValueOfPair(pairs) || b->value() != ValueOfPair(pairs)) return std::nullopt;
  }
  if (a->Valid() || b->Valid() || !a->status().ok() || !b->status().ok()) return std::nullopt;
  return pairs;
}

absl::StatusOr<std::unique_ptr<StorageEngine>> OpenAt(const std::string& directory,
                                                      EngineOptions options) {
  return StorageEngine::Open(directory, options);
}

// The newest log file that holds a block.
std::string NewestLog(const std::string& directory) {
  std::string newest;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(".log") || (path < newest && !newest.empty())) continue;
    if (ReadFile(path).find_first_not_of('\0', kLogPageSize) != std::string::npos) newest = path;
  }
  return newest;
}

TEST(EngineRecoveryTest, ATornLastRecordIsCutAtEachLength) {
  TestStore store(RecoveryOptions());
  ASSERT_TRUE(store->Put("acknowledged", "1").ok());
  TempDir copy;
  CopyDirectory(store.directory.path(), copy.path());
  const std::string path = NewestLog(copy.path());
  const size_t begin = LogPageAlign(ReadFile(path).find_last_not_of('\0'));
  ASSERT_TRUE(store->Put("last", std::string(100, 'x')).ok());
  const std::string whole = ReadFile(NewestLog(store.directory.path()));
  const size_t end = whole.find_last_not_of('\0') + 1;
  ASSERT_GT(end, begin);
  for (size_t length = begin; length <= end; length += 5) {
    TempDir torn;
    CopyDirectory(copy.path(), torn.path());
    std::string content = whole.substr(0, length);
    content.resize(whole.size(), '\0');
    WriteFile(torn.File(std::filesystem::path(path).filename().string()), content);
    for (int round = 0; round < 2; ++round) {  // what the first opening cut stays cut
      auto opened = OpenAt(torn.path(), store.options);
      ASSERT_TRUE(opened.ok()) << opened.status() << ", cut to " << length;
      std::string value;
      EXPECT_TRUE((*opened)->Get({}, "acknowledged", &value)->found);
      EXPECT_EQ((*opened)->Get({}, "last", &value)->found, length == end);
    }
    if (length < end && length + 5 > end) length = end - 5;
  }
}

TEST(EngineRecoveryTest, ALogThatEndsInZerosOrRubbishIsCutThere) {
  TestStore store(RecoveryOptions());
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(WritePair(&*store, i).ok());
  for (const char fill : {'\0', '\xff', 'V'}) {
    TempDir copy;
    CopyDirectory(store.directory.path(), copy.path());
    const std::string path = NewestLog(copy.path());
    std::string content = ReadFile(path);
    const size_t whole = content.size();
    content.resize(LogPageAlign(content.find_last_not_of('\0')));
    content.resize(whole, fill);
    WriteFile(path, content);
    auto opened = OpenAt(copy.path(), store.options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(CountPairs(opened->get()), 20u);
  }
}

TEST(EngineRecoveryTest, AKilledStoreHoldsAtLeastWhatWasAcknowledged) {
  for (const size_t buffer : {RecoveryOptions().write_buffer_size, size_t{64} << 10}) {
    FaultFileSystem file_system;
    EngineOptions options = RecoveryOptions();
    options.write_buffer_size = buffer;
    options.file_system = &file_system;
    TestStore store(options);
    options.file_system = nullptr;
    std::atomic<uint64_t> acknowledged{0}, sent{0};
    std::atomic<bool> stop{false};
    std::thread writer([&] {
      for (uint64_t i = 0; !stop && i < 5'000; ++i) {
        sent = i + 1;
        EXPECT_TRUE(WritePair(&*store, i).ok());
        acknowledged = i + 1;
      }
    });
    for (int round = 0; round < 6; ++round) {
      absl::SleepFor(absl::Milliseconds(10 + 10 * round));
      TempDir copy;
      uint64_t at_least = 0, at_most = 0;
      file_system.StandStill([&] {
        at_least = acknowledged;
        CopyDirectory(store.directory.path(), copy.path());
        at_most = sent;
      });
      auto opened = OpenAt(copy.path(), options);
      EXPECT_TRUE(opened.ok()) << opened.status();
      if (!opened.ok()) break;
      const std::optional<uint64_t> pairs = CountPairs(opened->get());
      EXPECT_TRUE(pairs.has_value()) << "a batch was torn, or one before it is missing";
      EXPECT_GE(pairs.value_or(0), at_least);
      EXPECT_LE(pairs.value_or(0), at_most);
    }
    stop = true;
    writer.join();
  }
}

TEST(EngineRecoveryTest, WhatAKilledProcessLeftToTheKernelIsOnDiskAfterTheNextOpening) {
  const std::string directory = "/disk/store";
  SimulatedFileSystem file_system;
  EngineOptions options = RecoveryOptions();
  options.file_system = &file_system;
  options.sync = Durability::kNone;
  auto opened = OpenAt(directory, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(WritePair(opened->get(), i).ok());
  const auto stop = [&] {
    file_system.StopHere();
    opened = absl::UnavailableError("");
  };
  stop();  // the process is killed: nothing was synced
  file_system.GoOn();
  opened = OpenAt(directory, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(CountPairs(opened->get()), 10u);
  EXPECT_EQ((*opened)->durable_sequence(), 20u);
  stop();
  file_system.RestorePower(SimulatedDisk::kLoseAll);
  opened = OpenAt(directory, options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(CountPairs(opened->get()), 10u);
}

TEST(EngineRecoveryTest, ARecoveryThatCannotSyncWhatItReadFails) {
  FaultFileSystem file_system;
  TestStore store(RecoveryOptions());
  ASSERT_TRUE(WritePair(&*store, 0).ok());
  TempDir copy;
  CopyDirectory(store.directory.path(), copy.path());
  const std::string log = std::filesystem::path(NewestLog(copy.path())).filename().string();
  EngineOptions options = store.options;
  options.file_system = &file_system;
  file_system.Fail(FileOperation::kSync, 1, absl::InternalError("the device says no"), 1, log);
  EXPECT_TRUE(absl::IsInternal(OpenAt(copy.path(), options).status()));
  auto opened = OpenAt(copy.path(), options);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(CountPairs(opened->get()), 1u);
}

TEST(EngineRecoveryTest, WhatACrashLeftBehindIsRemovedAndWhatIsNotOursStays) {
  TestStore store(RecoveryOptions());
  ASSERT_TRUE(store->Put("a", "1").ok());
  ASSERT_TRUE(store->Flush().ok());
  store.Close();
  for (const char* name : {"000900.seg", "MANIFEST.tmp", "000901.log.tmp", "notes.tmp",
                           "000902.val.spare", "notes.spare"})
    WriteFile(store.directory.File(name), "x");
  store.Open();
  EXPECT_FALSE(std::filesystem::exists(store.directory.File("000900.seg")));
  EXPECT_FALSE(std::filesystem::exists(store.directory.File("MANIFEST.tmp")));
  EXPECT_FALSE(std::filesystem::exists(store.directory.File("000901.log.tmp")));
  EXPECT_FALSE(std::filesystem::exists(store.directory.File("000902.val.spare")));
  EXPECT_TRUE(std::filesystem::exists(store.directory.File("notes.tmp")));
  EXPECT_TRUE(std::filesystem::exists(store.directory.File("notes.spare")));
  EXPECT_EQ(store.Get("a"), "1");
}

TEST(EngineRecoveryTest, ADamagedManifestIsRefusedWithFileAndOffset) {
  TestStore store(RecoveryOptions());
  ASSERT_TRUE(store->Put("a", "1").ok());
  store.Close();
  const std::string path = store.directory.File("MANIFEST"), content = ReadFile(path);
  for (const size_t at :
       {size_t{0}, size_t{9}, size_t{13}, content.size() / 2, content.size() - 1}) {
    std::string damaged = content;
    damaged[at] ^= 0x10;
    WriteFile(path, damaged);
    const absl::Status status = OpenAt(store.directory.path(), store.options).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(std::string(status.message()).find("MANIFEST"), std::string::npos) << status;
    EXPECT_NE(std::string(status.message()).find("offset"), std::string::npos) << status;
  }
  WriteFile(path, content);
  store.Open();
  EXPECT_EQ(store.Get("a"), "1");
}

TEST(EngineRecoveryTest, AMissingManifestOrSegmentIsNeitherAnEmptyNorAMissingStore) {
  TestStore store(RecoveryOptions());
  ASSERT_TRUE(store->Put("a", "1").ok());
  store.Close();
  const std::string manifest = ReadFile(store.directory.File("MANIFEST"));
  std::filesystem::remove(store.directory.File("MANIFEST"));
  EXPECT_TRUE(absl::IsDataLoss(OpenAt(store.directory.path(), store.options).status()))
      << "its log is there";
  WriteFile(store.directory.File("MANIFEST"), manifest);
  store.Open();
  ASSERT_TRUE(store->Flush().ok());
  store.Close();
  std::string segment;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".seg") segment = entry.path().string();
  }
  ASSERT_FALSE(segment.empty());
  const std::string content = ReadFile(segment);
  std::filesystem::remove(segment);
  const absl::Status status = OpenAt(store.directory.path(), store.options).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(std::string(status.message()).find(segment), std::string::npos) << status;
  WriteFile(segment, content);
  store.Open();
  EXPECT_EQ(store.Get("a"), "1");
}

TEST(EngineRecoveryTest, ADamagedRecordIsNamedAndTheOthersStayReadable) {
  TestStore store(RecoveryOptions());
  for (int i = 0; i < 400; ++i)
    ASSERT_TRUE(store->Put(KeyOfPair(i), ValueOfPair(i) + "needle" + KeyOfPair(i)).ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  store.Close();
  std::string segment;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".seg" &&
        ReadFile(entry.path()).find("needle" + KeyOfPair(200)) != std::string::npos)
      segment = entry.path();
  }
  ASSERT_FALSE(segment.empty());
  std::string content = ReadFile(segment);
  content[content.find("needle" + KeyOfPair(200)) + 2] ^= 1;
  WriteFile(segment, content);
  store.Open();
  const std::string error = store.Get(KeyOfPair(200));
  EXPECT_NE(error.find("DATA_LOSS"), std::string::npos) << error;
  EXPECT_NE(error.find(segment), std::string::npos) << error;
  EXPECT_NE(error.find("offset"), std::string::npos) << error;
  for (int i = 0; i < 400; ++i) {
    if (i != 200) ASSERT_EQ(store.Get(KeyOfPair(i)), ValueOfPair(i) + "needle" + KeyOfPair(i));
  }
  ASSERT_TRUE(store->Put("new", "v").ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(store.Get("new"), "v");
}

TEST(EngineRecoveryTest, SmallSyncedWritesDoNotLetTheLogGrowWithoutBound) {
  FaultFileSystem file_system;  // its syncs cost nothing
  EngineOptions options = RecoveryOptions();
  options.write_buffer_size = 1 << 20;
  options.file_system = &file_system;
  TestStore store(options);
  // 10 MB of pages for 0.2 MB of records.
  for (int i = 0; i < 2500; ++i) ASSERT_TRUE(store->Put(KeyOfPair(i), "v").ok());
  EXPECT_GT(store.Statistic("log_bytes_written"), 9u << 20);
  EXPECT_TRUE(Eventually([&] { return store.Statistic("flushes") >= 1; }));
  EXPECT_TRUE(Eventually([&] { return store.Statistic("log_live_bytes") < 7u << 20; }));
  EXPECT_EQ(store.Get(KeyOfPair(0)), "v");
  store.Reopen();
  EXPECT_EQ(store.Get(KeyOfPair(2499)), "v");
}

TEST(EngineRecoveryTest, ABufferOfNothingButDeletedRangesOrAnEmptyingIsFlushed) {
  TestStore store(RecoveryOptions());
  ASSERT_TRUE(store->Put("a", "1").ok());
  ASSERT_TRUE(store->Put("z", "1").ok());
  ASSERT_TRUE(store->Flush().ok());
  for (int i = 0; i < 1500; ++i)
    ASSERT_TRUE(store->DeleteRange(KeyOfPair(i), KeyOfPair(i + 1)).ok());
  ASSERT_TRUE(store->DeleteRange("a", "b").ok());
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  EXPECT_EQ(store.Scan(), "z=1 ");
  WriteBatch clear;
  clear.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &clear).ok());
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  EXPECT_EQ(store.Scan(), "");
  ASSERT_TRUE(store->Put("b", "2").ok());
  store.Reopen();
  EXPECT_EQ(store.Scan(), "b=2 ");
}

TEST(EngineRecoveryTest, ABatchOfAMillionOperationsIsWhole) {
  TestStore store(RecoveryOptions());
  WriteBatch batch;
  for (size_t i = 0; i < kMaxBatchOperations; ++i) batch.Put(KeyOfPair(i), "v");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  batch.Put("x", std::string(100 << 20, 'x'));
  ASSERT_TRUE(store->Write({}, &batch).ok());
  store.Reopen();
  EXPECT_EQ(store->Count({}, {}, {}).value().keys, kMaxBatchOperations + 1);
}

}  // namespace
}  // namespace varve
