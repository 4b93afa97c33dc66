// The rounds of an evictor: what it owes, and what has it owe nothing any more.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "unit-tests/server/evictor_fixture.h"

namespace varve {
namespace {

class EvictorRoundsTest : public testing::EvictorFixture {};

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
