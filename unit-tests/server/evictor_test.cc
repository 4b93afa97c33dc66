// The evictor on an engine, without connections: what it evicts, and what it knows after a crash.
#include "server/eviction/evictor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/eviction/read_journal.h"
#include "server/user_commands/command_rights.h"
#include "unit-tests/server/access_trace.h"
#include "unit-tests/testing/delayed_store.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/namespace_status.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::DelayedStore;
using testing::Eventually;
using testing::ManualClock;
using testing::TempDir;
using testing::TrueLru;
using testing::ZipfKeys;

constexpr size_t kKeySize = 8, kEntrySize = 100;
constexpr EvictionRule kLru{EvictionOrder::kLru};

class EvictorTest : public ::testing::Test {
 protected:
  EvictorTest() { Open("data"); }
  ~EvictorTest() override { Close(); }

  // The databases have `rule` from the beginning, as they have by the server's settings.
  void Open(const std::string& name, EvictionRule rule = {},
            Evictor::Work work = Evictor::Work::kByThread) {
    EngineOptions options;
    options.write_buffer_size = 256u << 10;
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.File(name), options);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    evictor_ = std::make_unique<Evictor>(store_.get(), &clients_, &replication_);
    evictor_->SetDatabases(rule, 0);
    evictor_->Start(dir_.File(name) + "/access", 24u << 20, nullptr, work);
  }
  void Close() {
    evictor_.reset();
    store_.reset();
  }
  void Use(EvictionRule rule, uint64_t bytes) {
    store_->SetDataLimit(bytes);
    evictor_->SetDatabases(rule, bytes);
    evictor_->RunRound();
  }

  static std::string Key(size_t key) {
    const std::string digits = std::to_string(key);
    return "k" + std::string(kKeySize - 1 - digits.size(), '0') + digits;
  }
  // Writes as a client does, and makes room where that is needed.
  absl::Status Put(size_t key, NamespaceId space = kDefaultNamespace, uint64_t expiry_ms = 0) {
    WriteBatch batch;
    batch.Put(Key(key), std::string(kEntrySize - kKeySize, 'v'), space, expiry_ms);
    return evictor_
        ->WriteWithRoom(evictor_->NeedOf(batch), WriteOptions(),
                        [&] { return store_->Submit(WriteOptions(), &batch); })
        .status();
  }
  bool Get(size_t key, NamespaceId space = kDefaultNamespace) {
    std::string value;
    ReadOptions options;
    options.space = space;
    options.wait_until_durable = false;
    const absl::StatusOr<ReadResult> read = store_->Get(options, Key(key), &value);
    EXPECT_TRUE(read.ok()) << read.status();
    if (read.ok() && read->found) evictor_->NoteRead(space, Key(key), read->version);
    return read.ok() && read->found;
  }
  size_t CountThere(size_t from, size_t to) {
    size_t there = 0;
    std::string value;
    ReadOptions options;
    options.wait_until_durable = false;
    for (size_t key = from; key < to; ++key)
      there += store_->Get(options, Key(key), &value)->found ? 1 : 0;
    return there;
  }
  // Returns the hits in a hundred requests of the trace, and stores those of true LRU.
  double RunTrace(EvictionRule rule, size_t requests, double* true_lru) {
    constexpr size_t kKeys = 100'000, kCapacity = 10'000;
    Use(rule, kCapacity * kEntrySize);
    ZipfKeys keys(kKeys, 0.99);
    TrueLru lru(kCapacity);
    size_t hits = 0, true_hits = 0;
    for (size_t request = 0; request < requests; ++request) {
      const size_t key = keys.Next();
      if (request % 100 == 0) clock_.Advance(1);  // 100,000 requests a second
      if (request % 80'000 == 0) evictor_->RunRound();
      const bool hit = Get(key);
      if (!hit) EXPECT_TRUE(Put(key).ok());
      hits += hit ? 1 : 0;
      true_hits += lru.Use(key) ? 1 : 0;
    }
    *true_lru = 100.0 * static_cast<double>(true_hits) / static_cast<double>(requests);
    return 100.0 * static_cast<double>(hits) / static_cast<double>(requests);
  }

  TempDir dir_;
  ManualClock clock_;
  Clients clients_{&AccessCatalog(), ServerOptions()};
  ReplicationState replication_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Evictor> evictor_;
};

// An evictor that has no thread: what it does depends on the calls of the test alone.
class EvictorByHandTest : public EvictorTest {
 protected:
  EvictorByHandTest() {
    Close();
    Open("data", {}, Evictor::Work::kByCallers);
  }
  // Does what the thread would do in time left over.
  void FinishWork() {
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = evictor_->WorkOn();
    EXPECT_TRUE(more.ok()) << more.status();
  }
};

TEST_F(EvictorTest, HitsAreThoseOfTrueLru) {
  double true_lru = 0;
  const double hits = RunTrace(kLru, 120'000, &true_lru);
  RecordProperty("hits_percent", std::to_string(hits));
  RecordProperty("true_lru_percent", std::to_string(true_lru));
  EXPECT_GE(hits, true_lru - 1);
}

TEST_F(EvictorTest, CountsOfUsesHitMoreThanTrueLru) {
  double true_lru = 0;
  const double hits = RunTrace({EvictionOrder::kLfu}, 120'000, &true_lru);
  RecordProperty("hits_percent", std::to_string(hits));
  EXPECT_GE(hits, true_lru);
}

TEST_F(EvictorByHandTest, AKeyOfTheLastTStaysWhileAnIdleOneIsThere) {
  Use(kLru, 2000 * kEntrySize);
  std::vector<uint64_t> used(20'000, 0);
  ZipfKeys keys(20'000, 0.8);
  for (size_t request = 0; request < 30'000; ++request) {
    const size_t key = keys.Next();
    clock_.Advance(5);
    if (request % 160 == 0) {
      evictor_->RunRound();
      FinishWork();
    }
    if (!Get(key)) ASSERT_TRUE(Put(key).ok());
    used[key] = clock_.WallMillis();
  }
  // The oldest that is there, and the youngest that is not.
  uint64_t oldest_there = ~uint64_t{0}, youngest_gone = 0;
  for (size_t key = 0; key < 20'000; ++key) {
    if (used[key] == 0) continue;
    CountThere(key, key + 1) == 1 ? oldest_there = std::min(oldest_there, used[key])
                                  : youngest_gone = std::max(youngest_gone, used[key]);
  }
  EXPECT_LE(youngest_gone, oldest_there + 1000);
}

TEST_F(EvictorTest, AFollowerEvictsNothing) {
  Use(kLru, 100 * kEntrySize);
  for (size_t key = 0; key < 100; ++key) ASSERT_TRUE(Put(key).ok());
  replication_.SetPrimary({.host = "primary", .port = 1});
  evictor_->RunRound();
  EXPECT_TRUE(IsStoreFull(Put(100)));
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
  replication_.SetPrimary({});
  evictor_->RunRound();
  EXPECT_TRUE(Put(100).ok());
  EXPECT_GT(evictor_->evicted_keys(), 0u);
}

// A server that is killed leaves reads that the journal has and the index has not.
TEST_F(EvictorTest, ReadsThatOnlyTheJournalHasCountAfterAKill) {
  Use(kLru, 0);
  for (size_t key = 0; key < 1000; ++key) ASSERT_TRUE(Put(key).ok());
  evictor_->RunRound();
  clock_.Advance(100'000);
  Close();
  NotedReads noted;
  noted.Start();
  for (size_t key = 0; key < 1000; key += 2) noted.Add(kDefaultNamespace, Key(key));
  auto journal = ReadJournal::Open(
      dir_.File("data") + "/access", PosixFileSystem(), &noted,
      [this] { return clock_.WallMillis(); }, 10'000);
  ASSERT_TRUE(journal.ok()) << journal.status();
  ASSERT_TRUE((*journal)->TakeReads().ok());
  *journal = nullptr;
  clock_.Advance(100'000);
  Open("data");
  Use(kLru, 1000 * kEntrySize);
  EXPECT_EQ(evictor_->noted_reads(), 500u);
  for (size_t key = 1000; key < 1400; ++key) ASSERT_TRUE(Put(key).ok());
  for (size_t key = 0; key < 1000; key += 2) EXPECT_EQ(CountThere(key, key + 1), 1u) << key;
}

// The evictor's thread opens the index meanwhile.
TEST_F(EvictorTest, ReadsCountFromTheFirstRequestOn) {
  constexpr size_t kKeys = 1000;
  for (size_t key = 0; key < kKeys; ++key) ASSERT_TRUE(Put(key).ok());
  clock_.Advance(100'000);
  for (size_t start = 0; start < 3; ++start) {
    Close();
    Open("data", kLru);
    for (size_t key = start; key < kKeys; key += 3) ASSERT_TRUE(Get(key));
    clock_.Advance(10'000);
    evictor_->RunRound();
  }
  std::string value;
  for (size_t key = 0; key < kKeys; ++key) {
    const absl::StatusOr<ReadResult> read = store_->Get(ReadOptions(), Key(key), &value);
    ASSERT_TRUE(read.ok()) << read.status();
    const uint64_t idle_ms = evictor_->LookUp(kDefaultNamespace, Key(key), *read).idle_ms;
    EXPECT_LE(idle_ms, 10'000 * (3 - key % 3)) << key;
  }
}

TEST_F(EvictorTest, ADamagedIndexBeginsAnew) {
  Use(kLru, 0);
  for (size_t key = 0; key < 1000; ++key) {
    clock_.Advance(10);
    ASSERT_TRUE(Put(key).ok());
  }
  Close();
  std::filesystem::resize_file(dir_.File("data") + "/access/MANIFEST", 30);
  Open("data");
  Use(kLru, 1000 * kEntrySize);
  for (size_t key = 1000; key < 1100; ++key) ASSERT_TRUE(Put(key).ok());
  EXPECT_EQ(CountThere(0, 100), 0u);
  EXPECT_EQ(CountThere(200, 1100), 900u);
}

TEST_F(EvictorByHandTest, ALoweredBoundIsReachedInTheBackground) {
  Use(kLru, 0);
  for (size_t key = 0; key < 3000; ++key) ASSERT_TRUE(Put(key).ok());
  Use(kLru, 1000 * kEntrySize);
  FinishWork();
  EXPECT_EQ(*store_->CountData(), 1000 * kEntrySize);
}

TEST_F(EvictorByHandTest, WhatIsOwedStaysOwedWhileAnotherThreadWritesAlone) {
  Use(kLru, 0);
  for (size_t key = 0; key < 3000; ++key) ASSERT_TRUE(Put(key).ok());
  Use(kLru, 1000 * kEntrySize);
  std::unique_ptr<ExclusiveWrite> alone = store_->BeginExclusiveWrite();
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
  alone.reset();
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 2000u);
}

// Damage of a segment is found when somebody reads there, here the front of the order.
TEST_F(EvictorByHandTest, AnIndexBeginsAnewWhoseDamageIsFoundByARead) {
  Use(kLru, 0);
  for (size_t key = 0; key < 1000; ++key) {
    clock_.Advance(10);
    ASSERT_TRUE(Put(key).ok());
  }
  FinishWork();
  Close();
  const std::string directory = dir_.File("data") + "/access";
  {
    auto index = StorageEngine::Open(directory, EngineOptions());
    ASSERT_TRUE(index.ok()) << index.status();
    ASSERT_TRUE((*index)->Flush().ok());
    ASSERT_TRUE((*index)->Close().ok());
  }
  size_t damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() != ".seg") continue;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);  // in the first block, which has the lowest entries
    file.put('\xff');
    ++damaged;
  }
  ASSERT_GT(damaged, 0u);
  Open("data", kLru, Evictor::Work::kByCallers);
  Use(kLru, 1000 * kEntrySize);
  for (size_t key = 1000; key < 1100; ++key) ASSERT_TRUE(Put(key).ok()) << key;
  EXPECT_EQ(CountThere(0, 100), 0u);
  EXPECT_EQ(CountThere(100, 1100), 1000u);
}

// The store has lost its last writes, and gives their versions to others. The index has not.
TEST_F(EvictorByHandTest, KeysGetTheirPlacesWhoseVersionsTheOrderKnowsFromBeforeAPowerCut) {
  for (size_t key = 0; key < 10; ++key) ASSERT_TRUE(Put(key).ok());
  Close();
  std::filesystem::copy(dir_.File("data"), dir_.File("before"),
                        std::filesystem::copy_options::recursive);
  Open("data", kLru, Evictor::Work::kByCallers);
  for (size_t key = 1000; key < 2000; ++key) ASSERT_TRUE(Put(key).ok());
  clock_.Advance(100'000);
  evictor_->RunRound();
  FinishWork();
  Close();
  std::filesystem::rename(dir_.File("data") + "/access", dir_.File("before") + "/access");
  std::filesystem::remove_all(dir_.File("data"));
  std::filesystem::rename(dir_.File("before"), dir_.File("data"));

  Open("data", kLru, Evictor::Work::kByCallers);
  constexpr size_t kOld = 50, kYoung = 1200;
  for (size_t key = 0; key < kOld; ++key) ASSERT_TRUE(Put(3000 + key).ok());
  clock_.Advance(100'000);
  for (size_t key = 0; key < kYoung; ++key) ASSERT_TRUE(Put(4000 + key).ok());
  clock_.Advance(100'000);
  Use(kLru, (10 + kOld + kYoung) * kEntrySize);
  FinishWork();
  for (size_t key = 0; key < 40; ++key) ASSERT_TRUE(Put(6000 + key).ok());
  EXPECT_EQ(CountThere(4000, 4000 + kYoung), kYoung);
  EXPECT_LT(CountThere(3000, 3000 + kOld), kOld);
}

// A namespace may have many keys to count. Here the count is not answered for a while.
class EvictorCountTest : public EvictorByHandTest {
 protected:
  EvictorCountTest() {
    WriteBatch batch;
    batch.CreateNamespace({.id = kFirstNamedNamespace,
                           .name = "a",
                           .options = {.max_bytes = 10u << 20, .eviction = kLru}});
    EXPECT_TRUE(store_->Submit(WriteOptions(), &batch).ok());
    delayed_ = std::make_unique<DelayedStore>(store_.get());
    evictor_ = std::make_unique<Evictor>(delayed_.get(), &clients_, &replication_);
    evictor_->Start(dir_.File("counting"), 24u << 20, nullptr, Evictor::Work::kByCallers);
  }
  ~EvictorCountTest() override { evictor_.reset(); }

  // Expects that clients are answered while `counts` waits for a count.
  void ExpectAnswersWhile(const std::function<void()>& counts) {
    delayed_->Withhold("blocking count");
    std::thread counting(counts);
    delayed_->AwaitWithheld(1);
    std::atomic<bool> is_answered{false};
    std::thread client([&] {
      (void)evictor_->LookUp(kFirstNamedNamespace, Key(1), ReadResult());
      is_answered = true;
    });
    EXPECT_TRUE(Eventually([&] { return is_answered.load(); }));
    EXPECT_EQ(delayed_->withheld(), 1u);
    delayed_->Release();
    client.join();
    counting.join();
  }

  std::unique_ptr<DelayedStore> delayed_;
};

TEST_F(EvictorCountTest, ClientsDoNotWaitWhileTheEvictorLooksForExcess) {
  ExpectAnswersWhile([this] { evictor_->RunRound(); });
}

TEST_F(EvictorCountTest, ClientsDoNotWaitWhileAWriteOfMuchLearnsWhatItIsShortOf) {
  evictor_->RunRound();
  const absl::Status full = NamespaceIsFull(
      {.space = kFirstNamedNamespace, .of = NamespaceQuota::Of::kBytes}, "it is full");
  ExpectAnswersWhile([&] {
    EXPECT_FALSE(evictor_->MakeRoom(full, {.bytes = 1u << 20, .keys = 1}, WriteOptions()))
        << "there is nothing to evict";
  });
}

}  // namespace
}  // namespace varve
