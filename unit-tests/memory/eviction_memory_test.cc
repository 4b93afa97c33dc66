// A round of evictions in which memory runs out: what it would have noted is noted by a later one.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "server/eviction/evictor.h"
#include "server/user_commands/command_rights.h"
#include "unit-tests/memory/allocation_faults.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/memory_guard.h"
#include "util/os/bounded_file_system.h"
#include "varve/storage_engine.h"

namespace varve::testing {
namespace {

constexpr uint64_t kEvictionLimit = 1u << 30, kMostAllocationsOfEviction = 5000;

// An evictor without a thread.
class EvictionMemoryTest : public ::testing::Test {
 protected:
  static constexpr size_t kKeys = 40;
  static constexpr uint64_t kMemory = 24u << 20;
  static constexpr NamespaceId kCache = kFirstNamedNamespace;
  static constexpr EvictionRule kLru{EvictionOrder::kLru};

  EvictionMemoryTest() {
    EngineOptions options;
    options.sync = Durability::kNone;
    options.write_buffer_size = 256u << 10;
    options.file_system = &disk_;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(data_, options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    StartEvictor();
  }
  ~EvictionMemoryTest() override { evictor_.reset(); }
  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }

  void StartEvictor() {
    evictor_ = std::make_unique<Evictor>(store_.get(), &clients_, &replication_);
    evictor_->Start(access_, kMemory, &disk_, Evictor::Work::kByCallers);
  }
  void Submit(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> written = store_->Submit(WriteOptions(), batch);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  void Put(NamespaceId space) {
    WriteBatch batch;
    for (size_t key = 0; key < kKeys; ++key)
      batch.Put(std::to_string(key), std::string(100, 'v'), space);
    Submit(&batch);
  }
  // Has the cache hold so many keys and no more.
  void BoundCache(uint64_t keys) {
    WriteBatch batch;
    const NamespaceDescription cache{
        .id = kCache, .name = "cache", .options = {.max_keys = keys, .eviction = kLru}};
    store_->HasNamespace(kCache) ? batch.AlterNamespace(cache) : batch.CreateNamespace(cache);
    Submit(&batch);
    evictor_->NoteNamespaces();
  }
  // Does what the evictor's thread would do.
  void RunRound() {
    evictor_->RunRound();
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = evictor_->WorkOn();
    EXPECT_TRUE(more.ok()) << more.status();
  }
  // Lets allocation number `nth` of a round fail, and returns whether there was one.
  bool FailRound(uint64_t nth) {
    const AllocationFaults faults(nth, 1);
    const AllocationFaults::Scope scope(true);
    TryWithMemory([&] { evictor_->RunRound(); });
    return faults.reached();
  }
  // Returns how often the order of the namespace has begun anew. The evictor begins anew, too.
  uint32_t EpochOf(NamespaceId space) {
    evictor_.reset();
    absl::StatusOr<SpaceRecord> record;
    {
      const auto index = AccessIndex::Open(access_, kMemory, &disk_);
      EXPECT_TRUE(index.ok()) << index.status();
      if (index.ok()) record = (*index)->ReadSpace(space);
      EXPECT_TRUE(record.ok()) << record.status();
    }
    StartEvictor();
    return record.ok() ? record->epoch : 0;
  }
  uint64_t CountCache() {
    ReadOptions options;
    options.space = kCache;
    const absl::StatusOr<CountResult> count = store_->Count(options, "", "");
    EXPECT_TRUE(count.ok()) << count.status();
    return count.ok() ? count->keys : 0;
  }

  const TempDir dir_;
  const std::string data_ = dir_.File("data"), access_ = data_ + "/access";
  BoundedFileSystem disk_{PosixFileSystem(), data_, kEvictionLimit,
                          /*least_reserve=*/kEvictionLimit / 4};
  Clients clients_{&AccessCatalog(), ServerOptions()};
  ReplicationState replication_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Evictor> evictor_;
};

TEST_F(EvictionMemoryTest, AQuotaThatCouldNotBeCountedIsCountedLater) {
  BoundCache(10 * kKeys);
  uint64_t nth = 1;
  for (bool reached = true; reached && nth < kMostAllocationsOfEviction; ++nth) {
    Put(kCache);
    RunRound();
    BoundCache(kKeys / 2);
    reached = FailRound(nth);
    RunRound();
    ASSERT_EQ(CountCache(), kKeys / 2) << "allocation " << nth << " failed";
    BoundCache(10 * kKeys);
  }
  EXPECT_GT(nth, 2u) << "no allocation failed";
  EXPECT_LT(nth, kMostAllocationsOfEviction);
}

TEST_F(EvictionMemoryTest, WhatCouldNotBeCountedForTheDiskIsCountedLater) {
  const std::string filler = data_ + "/filler";
  evictor_->SetDatabases(kLru, 0);
  uint64_t nth = 1;
  for (bool reached = true; reached && nth < kMostAllocationsOfEviction; ++nth) {
    Put(kDefaultNamespace);
    RunRound();
    {
      auto file = disk_.OpenForWrite(filler, /*create=*/true);
      ASSERT_TRUE(file.ok()) << file.status();
      ASSERT_TRUE(
          (*file)->Truncate(kEvictionLimit - disk_.bound().reserve / 2 - disk_.used()).ok());
    }
    const uint64_t before = evictor_->evicted_keys();
    reached = FailRound(nth);
    RunRound();
    ASSERT_GT(evictor_->evicted_keys(), before) << "allocation " << nth << " failed";
    ASSERT_TRUE(disk_.Remove(filler).ok());
  }
  EXPECT_GT(nth, 2u) << "no allocation failed";
  EXPECT_LT(nth, kMostAllocationsOfEviction);
}

TEST_F(EvictionMemoryTest, AnOrderThatCouldNotBeMadeIsMadeLater) {
  BoundCache(10 * kKeys);  // keeps the index open
  Put(kDefaultNamespace);
  uint64_t nth = 1;
  for (bool reached = true; reached && nth < kMostAllocationsOfEviction; ++nth) {
    RunRound();
    evictor_->SetDatabases(kLru, 0);
    reached = FailRound(nth);
    RunRound();
    std::string value;
    const absl::StatusOr<ReadResult> read = store_->Get(ReadOptions(), "0", &value);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(evictor_->LookUp(kDefaultNamespace, "0", *read).order, EvictionOrder::kLru);
    evictor_->SetDatabases({}, 0);
  }
  EXPECT_GT(nth, 2u) << "no allocation failed";
  EXPECT_LT(nth, kMostAllocationsOfEviction);
}

TEST_F(EvictionMemoryTest, EachOrderOfAFormerFollowerBeginsAnew) {
  BoundCache(10 * kKeys);
  Put(kCache);
  Put(kDefaultNamespace);
  uint64_t nth = 1;
  std::map<NamespaceId, uint32_t> epochs;
  // The first allocations, and a sample of the others: each try empties and makes the index.
  for (bool reached = true; reached && nth < kMostAllocationsOfEviction; nth += nth < 20 ? 1 : 17) {
    evictor_->SetDatabases(kLru, 0);
    replication_.SetPrimary({.host = "primary", .port = 1});
    RunRound();
    replication_.SetPrimary({});
    reached = FailRound(nth);
    RunRound();
    for (const NamespaceId space : {kDefaultNamespace, kCache}) {
      const uint32_t epoch = EpochOf(space);
      ASSERT_GT(epoch, epochs[space]) << space << ", allocation " << nth << " failed";
      epochs[space] = epoch;
    }
  }
  EXPECT_GT(nth, 2u) << "no allocation failed";
  EXPECT_LT(nth, kMostAllocationsOfEviction);
}

}  // namespace
}  // namespace varve::testing
