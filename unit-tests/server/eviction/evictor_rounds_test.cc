// The rounds of an evictor: what it owes, and what has it owe nothing any more. It has no thread,
// so that what it does depends on the calls of the test alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "server/eviction/evictor.h"
#include "server/user_commands/command_rights.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/temp_dir.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TempDir;

constexpr size_t kEntrySize = 100;
constexpr EvictionRule kLru{EvictionOrder::kLru};
constexpr NamespaceId kCache = kFirstNamedNamespace;

class EvictorRoundsTest : public ::testing::Test {
 protected:
  EvictorRoundsTest() {
    EngineOptions options;
    options.sync = Durability::kNone;
    options.write_buffer_size = 256u << 10;
    options.clock = &clock_;
    absl::StatusOr<std::unique_ptr<StorageEngine>> store =
        StorageEngine::Open(dir_.File("data"), options);
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    StartEvictor();
  }
  void StartEvictor() {
    evictor_ = std::make_unique<Evictor>(store_.get(), &clients_, &replication_);
    evictor_->Start(access(), 24u << 20, /*disk=*/nullptr, Evictor::Work::kByCallers);
  }
  std::string access() const { return dir_.File("data") + "/access"; }

  // As CONFIG SET does.
  void Use(EvictionRule rule, uint64_t bytes) {
    store_->SetDataLimit(bytes);
    evictor_->SetDatabases(rule, bytes);
  }
  // As NAMESPACE CREATE and NAMESPACE ALTER do.
  void CreateCache(const NamespaceOptions& options) {
    WriteBatch batch;
    batch.CreateNamespace({.id = kCache, .name = "cache", .options = options});
    Submit(&batch);
    evictor_->NoteNamespaces();
  }
  void AlterCache(const NamespaceOptions& options) {
    WriteBatch batch;
    batch.AlterNamespace({.id = kCache, .name = "cache", .options = options});
    Submit(&batch);
    evictor_->NoteNamespaces();
  }
  void Submit(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> written = store_->Submit(WriteOptions(), batch);
    ASSERT_TRUE(written.ok()) << written.status();
  }
  // A key of 8 bytes, with a value of 92.
  static std::string Key(size_t key) { return "k" + std::to_string(1'000'000 + key); }
  void Put(size_t from, size_t to, NamespaceId space = kDefaultNamespace) {
    for (size_t key = from; key < to; ++key) {
      WriteBatch batch;
      batch.Put(Key(key), std::string(kEntrySize - Key(key).size(), 'v'), space);
      Submit(&batch);
    }
  }
  void Delete(size_t from, size_t to, NamespaceId space = kDefaultNamespace) {
    WriteBatch batch;
    for (size_t key = from; key < to; ++key) batch.Delete(Key(key), space);
    Submit(&batch);
  }
  // Does what the thread would do in time left over.
  void FinishWork() {
    absl::StatusOr<bool> more = true;
    while (more.ok() && *more) more = evictor_->WorkOn();
    EXPECT_TRUE(more.ok()) << more.status();
  }

  TempDir dir_;
  ManualClock clock_;
  Clients clients_{&AccessCatalog(), ServerOptions()};
  ReplicationState replication_;
  std::unique_ptr<StorageEngine> store_;
  std::unique_ptr<Evictor> evictor_;
};

TEST_F(EvictorRoundsTest, NothingGoesForABoundThatWasRaisedSince) {
  Use(kLru, 0);
  Put(0, 3000);
  Use(kLru, 1000 * kEntrySize);
  evictor_->RunRound();
  Use(kLru, 10'000 * kEntrySize);
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
}

TEST_F(EvictorRoundsTest, AChangeOfTheBoundEndsEvictionsThatAreUnderWay) {
  Use(kLru, 0);
  Put(0, 10'000);
  Use(kLru, 1000 * kEntrySize);
  evictor_->RunRound();
  const absl::StatusOr<bool> more = evictor_->WorkOn();
  ASSERT_TRUE(more.ok()) << more.status();
  ASSERT_TRUE(*more);
  const uint64_t evicted = evictor_->evicted_keys();
  EXPECT_GT(evicted, 0u);
  Use(kLru, 10'000 * kEntrySize);
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), evicted);
}

TEST_F(EvictorRoundsTest, NothingGoesForClientsThatMadeRoomThemselves) {
  Use(kLru, 0);
  Put(0, 3000);
  Use(kLru, 1000 * kEntrySize);
  evictor_->RunRound();
  Delete(0, 2500);
  evictor_->RunRound();
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
}

TEST_F(EvictorRoundsTest, ABoundThatIsSetAgainAsksForWhatIsThereThen) {
  Use(kLru, 0);
  Put(0, 3000);
  Use(kLru, 1000 * kEntrySize);
  evictor_->RunRound();
  Use({}, 0);
  Delete(0, 2500);
  evictor_->RunRound();
  Use(kLru, 1000 * kEntrySize);
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
  Use(kLru, 0);
  Put(4000, 5000);
  Use(kLru, 1000 * kEntrySize);
  evictor_->RunRound();
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 500u);
}

TEST_F(EvictorRoundsTest, NothingGoesForAQuotaThatWasRaisedSince) {
  CreateCache({.max_keys = 10'000, .eviction = kLru});
  Put(0, 3000, kCache);
  AlterCache({.max_keys = 500, .eviction = kLru});
  evictor_->RunRound();
  AlterCache({.max_keys = 10'000, .eviction = kLru});
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
}

TEST_F(EvictorRoundsTest, NothingGoesForAQuotaBelowWhichClientsDeletedKeys) {
  CreateCache({.max_keys = 10'000, .eviction = kLru});
  Put(0, 3000, kCache);
  AlterCache({.max_keys = 500, .eviction = kLru});
  evictor_->RunRound();
  Delete(0, 2800, kCache);
  evictor_->RunRound();
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
}

}  // namespace
}  // namespace varve
