// An evictor whose rules change while it works.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "unit-tests/server/evictor_fixture.h"
#include "unit-tests/testing/delayed_store.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/log_lines.h"

namespace varve {
namespace {

using testing::DelayedStore;
using testing::Eventually;
using testing::LogLines;

constexpr EvictionRule kLfu{EvictionOrder::kLfu};

class EvictorRulesTest : public testing::EvictorFixture {
 protected:
  ReadResult Read(size_t key, NamespaceId space) {
    ReadOptions options;
    options.space = space;
    options.wait_until_durable = false;
    std::string value;
    const absl::StatusOr<ReadResult> read = store_->Get(options, Key(key), &value);
    EXPECT_TRUE(read.ok() && read->found) << read.status();
    return read.ok() ? *read : ReadResult();
  }
  // Returns what OBJECT tells of the key.
  Evictor::Use UseOf(size_t key, NamespaceId space = kDefaultNamespace) {
    return evictor_->LookUp(space, Key(key), Read(key, space));
  }
  // Ends the evictor, and returns the namespaces of which its index has a record.
  std::vector<NamespaceId> RecordedSpaces() {
    evictor_.reset();
    const auto index = AccessIndex::Open(access(), kMemory, PosixFileSystem());
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return {};
    const absl::StatusOr<std::vector<NamespaceId>> spaces = (*index)->ReadSpaces();
    EXPECT_TRUE(spaces.ok()) << spaces.status();
    return spaces.value_or(std::vector<NamespaceId>());
  }
  // Reads the key as a client does.
  void Get(size_t key, NamespaceId space = kDefaultNamespace) {
    evictor_->NoteRead(space, Key(key), Read(key, space).version);
  }
};

TEST_F(EvictorRulesTest, TheUseOfAKeyIsToldByTheRuleThatIsInForceAtOnce) {
  Use(kLru, 0);
  Put(0, 1);
  evictor_->RunRound();
  EXPECT_EQ(UseOf(0).order, EvictionOrder::kLru);
  Use(kLfu, 0);
  EXPECT_EQ(UseOf(0).order, EvictionOrder::kLfu);
  EXPECT_EQ(UseOf(0).frequency, 5);
  WriteBatch select;  // as SELECT does
  select.CreateNamespace({.id = 3});
  Submit(&select);
  Put(0, 1, /*space=*/3);
  EXPECT_EQ(UseOf(0, /*space=*/3).order, EvictionOrder::kLfu) << "used for the first time";
  CreateCache({.max_keys = 10, .eviction = kLru});
  Put(0, 1, kCache);
  EXPECT_EQ(UseOf(0, kCache).order, EvictionOrder::kLru);
  AlterCache({.max_keys = 10, .eviction = kLfu});
  EXPECT_EQ(UseOf(0, kCache).order, EvictionOrder::kLfu);
  Use({}, 0);
  EXPECT_EQ(UseOf(0).order, EvictionOrder::kNone);
}

TEST_F(EvictorRulesTest, ReadsCountFromTheFirstRequestAfterARestart) {
  Use(kLru, 0);
  Put(0, 1);
  evictor_->RunRound();
  clock_.Advance(50'000);
  Get(0);
  evictor_->RunRound();
  clock_.Advance(100'000);
  evictor_.reset();
  StartEvictor();
  Use(kLru, 0);
  EXPECT_EQ(UseOf(0).idle_ms, 100'000u);
}

TEST_F(EvictorRulesTest, TheRuleIsToldAlsoWithoutAnIndex) {
  std::ofstream(access()) << "no directory";
  Put(0, 1);
  Use(kLfu, 0);
  EXPECT_EQ(UseOf(0).order, EvictionOrder::kLfu);
  CreateCache({.max_keys = 10, .eviction = kLfu});
  Put(0, 1, kCache);
  Use({}, 0);
  EXPECT_EQ(UseOf(0, kCache).order, EvictionOrder::kLfu);
  EXPECT_EQ(UseOf(0).order, EvictionOrder::kNone);
}

TEST_F(EvictorRulesTest, AnOrderGoesWhenItsRuleIsSwitchedOff) {
  CreateCache({.max_keys = 10, .eviction = kLru}, kCache);
  CreateCache({.max_keys = 10, .eviction = kLru}, kCache + 1);
  evictor_->RunRound();
  AlterCache({.max_keys = 10}, kCache);
  evictor_->RunRound();
  EXPECT_EQ(RecordedSpaces(), std::vector<NamespaceId>{kCache + 1});
}

TEST_F(EvictorRulesTest, OrdersGoThatNoRuleAsksForWhenTheIndexIsOpened) {
  for (const NamespaceId id : {kCache, kCache + 1, kCache + 2})
    CreateCache({.max_keys = 10, .eviction = kLru}, id);
  evictor_->RunRound();
  evictor_.reset();
  WriteBatch drop, alter;
  drop.DropNamespace(kCache);
  Submit(&drop);
  alter.AlterNamespace({.id = kCache + 1, .name = "no cache", .options = {}});
  Submit(&alter);
  StartEvictor();
  evictor_->RunRound();
  EXPECT_EQ(RecordedSpaces(), std::vector<NamespaceId>{kCache + 2});
}

TEST_F(EvictorRulesTest, TheIndexIsEmptiedAndClosedWithTheLastRule) {
  Use(kLru, 0);
  Put(0, 100);
  evictor_->RunRound();
  FinishWork();
  Get(0);
  Use({}, 0);
  evictor_->RunRound();
  {
    // An open index would be locked.
    const auto index = AccessIndex::Open(access(), kMemory, PosixFileSystem());
    ASSERT_TRUE(index.ok()) << index.status();
    EXPECT_EQ(*(*index)->ReadSpaces(), std::vector<NamespaceId>{});
    ASSERT_TRUE((*index)->Close().ok());
  }
  Get(0);
  clock_.Advance(1000);
  Use(kLru, 50 * kEntrySize);
  Get(0);
  evictor_->RunRound();
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), 50u);
  EXPECT_EQ(UseOf(0).idle_ms, 0u) << "it was read, and so it is there";
}

TEST_F(EvictorRulesTest, AnErrorThatEachRoundMeetsIsToldOnce) {
  std::ofstream(access()) << "no directory";
  Use(kLru, 0);
  const LogLines lines;
  for (int round = 0; round < 3; ++round) evictor_->RunRound();
  EXPECT_EQ(lines.Count("The order of evictions: "), 1u);
}

// The thread of this evictor asks a store for the namespaces that tells when it is asked.
class EvictorThreadTest : public EvictorRulesTest {
 protected:
  EvictorThreadTest() { evictor_ = std::make_unique<Evictor>(&delayed_, &clients_, &replication_); }
  ~EvictorThreadTest() override {
    delayed_.Release();
    evictor_.reset();
  }

  DelayedStore delayed_{store_.get()};
};

TEST_F(EvictorThreadTest, AnIndexThatCouldNotBeOpenedIsOpenedByALaterRound) {
  Put(0, 1);
  std::ofstream(access()) << "no directory";
  evictor_->SetDatabases(kLru, 0);
  evictor_->Start(access(), kMemory, /*disk=*/nullptr, Evictor::Work::kByThread);
  // The start asks for two rounds at most.
  for (int round = 0; round < 3; ++round) {
    delayed_.Withhold("blocking");
    ASSERT_TRUE(Eventually([&] { return delayed_.withheld() == 1; })) << round;
    delayed_.Release();
  }
  std::filesystem::remove(access());
  EXPECT_TRUE(Eventually([&] {
    Get(0);
    return evictor_->noted_reads() > 0;
  }));
}

}  // namespace
}  // namespace varve
