// An access index on a device that fails, and what evictions make of it.
#include <errno.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "server/eviction/access_index.h"
#include "server/eviction/evictor.h"
#include "server/user_commands/command_rights.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/log_lines.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/status.h"
#include "util/os/bounded_file_system.h"
#include "util/os/steady_condition.h"
#include "varve/namespace_status.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::FileOperation;
using testing::LogLines;
using testing::ManualClock;
using testing::TempDir;

constexpr EvictionRule kLeastRecent{EvictionOrder::kLru};

class IndexFaultsTest : public ::testing::Test {
 protected:
  // Has all that the index holds be in segments, where a read of it meets the device.
  void FlushIndex() {
    auto index = StorageEngine::Open(access_, EngineOptions());
    ASSERT_TRUE(index.ok()) << index.status();
    ASSERT_TRUE((*index)->Flush().ok());
    ASSERT_TRUE((*index)->Close().ok());
  }
  // All these calls fail until the faults are cleared.
  void Fail(FileOperation operation, const std::string& files) {
    files_.Fail(operation, 1, IoError(EIO, "use", "the test's device"), FaultFileSystem::kUnlimited,
                files);
  }

  TempDir dir_;
  const std::string access_ = dir_.File("data") + "/access";
  FaultFileSystem files_;  // of the index
};

TEST_F(IndexFaultsTest, AnIndexIsDamagedWhoseReadsFailThreeTimesInARow) {
  constexpr uint64_t kEntries = 20'000;
  const auto entry = [](uint64_t rank) {
    return AccessIndex::OrderKey(kDefaultNamespace, 0, rank, "key" + std::to_string(rank));
  };
  ASSERT_TRUE(PosixFileSystem()->CreateDirectory(dir_.File("data")).ok());
  auto index = AccessIndex::Open(access_, 64u << 20, &files_);
  ASSERT_TRUE(index.ok()) << index.status();
  WriteBatch batch;
  for (uint64_t rank = 0; rank < kEntries; ++rank) batch.Put(entry(rank), "");
  ASSERT_TRUE((*index)->Commit(&batch).ok());
  ASSERT_TRUE((*index)->Close().ok());
  index->reset();
  FlushIndex();
  index = AccessIndex::Open(access_, 64u << 20, &files_);
  ASSERT_TRUE(index.ok()) << index.status();
  const auto expect_failure = [&] {
    const auto read = (*index)->ReadOrder(kDefaultNamespace, 0, "", 1);
    EXPECT_TRUE(absl::IsInternal(read.status())) << read.status();
  };

  Fail(FileOperation::kRead, ".seg");
  expect_failure();
  expect_failure();
  files_.ClearFaults();
  // Of other blocks than those that fail, as a cache keeps what was read.
  const auto last = (*index)->ReadOrder(kDefaultNamespace, 0, entry(kEntries - 1), 1);
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->size(), 1u);
  Fail(FileOperation::kRead, ".seg");
  expect_failure();
  expect_failure();
  EXPECT_FALSE((*index)->is_damaged());
  expect_failure();
  EXPECT_TRUE((*index)->is_damaged());
}

TEST_F(IndexFaultsTest, AnIndexIsDamagedWhoseLogHasFailed) {
  ASSERT_TRUE(PosixFileSystem()->CreateDirectory(dir_.File("data")).ok());
  auto index = AccessIndex::Open(access_, 64u << 20, &files_);
  ASSERT_TRUE(index.ok()) << index.status();
  Fail(FileOperation::kWrite, ".log");
  WriteBatch batch;
  AccessIndex::PutAccess(kDefaultNamespace, 1, {.at_ms = 1, .uses = 1}, &batch);
  EXPECT_FALSE((*index)->Commit(&batch).ok());
  EXPECT_TRUE((*index)->is_damaged());
  index->reset();
  files_.ClearFaults();
  index = AccessIndex::OpenAnew(access_, 64u << 20, &files_);
  ASSERT_TRUE(index.ok()) << index.status();
  batch.Clear();
  AccessIndex::PutAccess(kDefaultNamespace, 1, {.at_ms = 1, .uses = 1}, &batch);
  EXPECT_TRUE((*index)->Commit(&batch).ok());
  EXPECT_FALSE((*index)->is_damaged());
}

// An evictor without a thread, which is full of keys to the last byte.
class FullOnFaultsTest : public IndexFaultsTest {
 protected:
  static constexpr size_t kKeys = 3000, kKeySize = 8, kEntrySize = 100;

  FullOnFaultsTest() {
    EngineOptions options;
    options.clock = &clock_;
    auto store = StorageEngine::Open(dir_.File("data"), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    store_->SetDataLimit(kKeys * kEntrySize);
    OpenEvictor();
    for (size_t key = 0; key < kKeys; ++key) EXPECT_TRUE(Put(key).ok()) << key;
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = evictor_->WorkOn();
    EXPECT_TRUE(more.ok()) << more.status();
  }
  ~FullOnFaultsTest() override { evictor_.reset(); }

  void OpenEvictor() {
    evictor_ = std::make_unique<Evictor>(store_.get(), &clients_, &replication_);
    evictor_->SetDatabases(kLeastRecent, kKeys * kEntrySize);
    evictor_->Start(access_, 24u << 20, &disk_, Evictor::Work::kByCallers);
    evictor_->RunRound();
  }
  absl::Status Put(size_t key) {
    clock_.Advance(10);
    std::string name = std::to_string(key);
    name = "k" + std::string(kKeySize - 1 - name.size(), '0') + name;
    WriteBatch batch;
    batch.Put(name, std::string(kEntrySize - kKeySize, 'v'));
    return evictor_
        ->WriteWithRoom(evictor_->NeedOf(batch), WriteOptions(),
                        [&] { return store_->Submit(WriteOptions(), &batch); })
        .status();
  }

  BoundedFileSystem disk_{&files_, dir_.File("data"), uint64_t{1} << 40};
  ManualClock clock_;
  Clients clients_{&AccessCatalog(), ServerOptions()};
  ReplicationState replication_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Evictor> evictor_;
};

// What is evicted stays in the order then, until nothing else is at its front.
TEST_F(FullOnFaultsTest, RoomIsMadeAlthoughTheLogOfTheIndexHasFailed) {
  Fail(FileOperation::kWrite, ".log");
  EXPECT_TRUE(Put(kKeys).ok());
  EXPECT_GE(files_.failed_calls(), 1u);
  files_.ClearFaults();
  for (size_t key = kKeys + 1; key < kKeys + 500; ++key) {
    const absl::Status put = Put(key);
    ASSERT_TRUE(put.ok()) << key << ": " << put;
  }
}

TEST_F(FullOnFaultsTest, RoomIsMadeAlthoughTheFrontOfTheOrderCannotBeRead) {
  evictor_.reset();
  FlushIndex();
  OpenEvictor();
  Fail(FileOperation::kRead, ".seg");
  EXPECT_TRUE(IsStoreFull(Put(kKeys))) << "the device may just be busy";
  for (size_t key = kKeys; key < kKeys + 500; ++key) {
    const absl::Status put = Put(key);
    ASSERT_TRUE(put.ok()) << key << ": " << put;
  }
  EXPECT_GE(files_.failed_calls(), 3u);
}

TEST_F(FullOnFaultsTest, AnIndexBeginsAnewThatCannotBeReadAtThreeOpenings) {
  evictor_.reset();
  FlushIndex();
  const auto count_segments = [&] {
    const auto names = PosixFileSystem()->List(access_);
    EXPECT_TRUE(names.ok()) << names.status();
    return names.ok() ? std::count_if(names->begin(), names->end(),
                                      [](const auto& name) { return name.ends_with(".seg"); })
                      : 0;
  };
  const auto segments = count_segments();
  ASSERT_GT(segments, 0);
  Fail(FileOperation::kRead, ".seg");
  OpenEvictor();
  evictor_->RunRound();
  EXPECT_EQ(count_segments(), segments) << "the device may just be busy";
  evictor_->RunRound();
  EXPECT_EQ(count_segments(), 0);
  const absl::Status put = Put(kKeys);
  EXPECT_TRUE(put.ok()) << put;
}

TEST_F(FullOnFaultsTest, ARoundTellsOnceWhatWritersHaveMet) {
  const LogLines lines;
  Fail(FileOperation::kWrite, ".log");
  ASSERT_TRUE(Put(kKeys).ok());
  ASSERT_GE(files_.failed_calls(), 1u);
  EXPECT_EQ(lines.Count("The order of evictions: "), 0u) << "there may be many writers";
  files_.ClearFaults();
  evictor_->RunRound();
  EXPECT_EQ(lines.Count("The order of evictions: "), 1u);
  evictor_->RunRound();
  EXPECT_EQ(lines.Count("The order of evictions: "), 1u);
}

TEST_F(FullOnFaultsTest, WritersDoNotEachOpenAnIndexThatCannotBeOpened) {
  evictor_.reset();
  FlushIndex();
  Fail(FileOperation::kRead, ".seg");
  const LogLines lines;
  const SteadyTime began = SteadyNow();
  OpenEvictor();
  for (int put = 0; put < 100; ++put) {
    if (!Put(kKeys).ok()) continue;
    // The index has begun anew, at its third opening.
    EXPECT_GE(SteadyNow() - began, 2 * Evictor::kRound);
    break;
  }
  EXPECT_EQ(lines.Count("The order of evictions: "), 1u) << "of the round";
}

}  // namespace
}  // namespace varve
