// An evictor whose rules change while it works.
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <string>

#include "unit-tests/server/eviction/evictor_fixture.h"

namespace varve {
namespace {

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

}  // namespace
}  // namespace varve
