// Evictions for a disk that is short of room (--max-disk-bytes).
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "unit-tests/server/evictor_fixture.h"

namespace varve {
namespace {

// So large that a 128th of it is far more than what logs allocate ahead of time.
constexpr uint64_t kEvictorsDiskLimit = 1u << 30;

class EvictorDiskTest : public testing::EvictorFixture {
 protected:
  EvictorDiskTest() : EvictorFixture(kEvictorsDiskLimit) {}

  static constexpr size_t kKeys = 1000;

  // Does what the thread does in one round, and all that is left to do behind it.
  void DoRound() {
    evictor_->RunRound();
    FinishWork();
  }
  // Writes kKeys keys, which the order knows, and then fills the disk.
  void FillUnderLru() {
    Use(kLru, 0);
    Put(0, kKeys);
    DoRound();
    FillTheDisk();
  }
  std::string filler() const { return data() + "/filler"; }
  // Takes room of the directory, so that only a part of the reserve is left. The file is sparse.
  void FillTheDisk() {
    auto file = disk_->OpenForWrite(filler(), /*create=*/true);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(
        (*file)->Truncate(kEvictorsDiskLimit - disk_->bound().reserve / 2 - disk_->used()).ok());
    ASSERT_TRUE(disk_->IsTight());
  }
};

// Evictions give nothing back here, as on a disk where merges have no room.
TEST_F(EvictorDiskTest, EachRegularRoundEvictsALittleMoreWhileWritersAreRefused) {
  FillUnderLru();
  DoRound();
  const uint64_t first = evictor_->evicted_keys();
  EXPECT_GT(first, kKeys / 10) << "in proportion to what is too much";
  EXPECT_LT(first, kKeys / 2);
  DoRound();
  EXPECT_EQ(evictor_->evicted_keys(), first) << "nobody asks for room";
  ASSERT_TRUE(evictor_->RelieveDisk());
  evictor_->RunRound(Evictor::Reads::kAll, Evictor::Round::kForDisk);
  FinishWork();
  EXPECT_EQ(evictor_->evicted_keys(), first) << "however often writers ask for it";
  DoRound();
  const uint64_t second = evictor_->evicted_keys();
  EXPECT_GT(second, first);
  EXPECT_LE(second, first + kKeys / 64);
  DoRound();
  EXPECT_EQ(evictor_->evicted_keys(), second) << "nobody has asked since the last regular round";
}

TEST_F(EvictorDiskTest, ALoweredBoundIsAnsweredAlthoughTheOneBeforeWas) {
  FillUnderLru();
  ASSERT_TRUE(disk_->SetLimit(2 * kEvictorsDiskLimit).ok());
  DoRound();
  EXPECT_EQ(evictor_->evicted_keys(), 0u) << "there is room";
  ASSERT_TRUE(disk_->SetLimit(kEvictorsDiskLimit / 16 * 19).ok());
  DoRound();
  const uint64_t first = evictor_->evicted_keys();
  EXPECT_GT(first, 0u);
  ASSERT_TRUE(disk_->SetLimit(kEvictorsDiskLimit / 16 * 17).ok());
  DoRound();
  const uint64_t second = evictor_->evicted_keys();
  EXPECT_GT(second, first + kKeys / 20);
  DoRound();
  EXPECT_EQ(evictor_->evicted_keys(), second) << "the space comes back with merges";
}

TEST_F(EvictorDiskTest, AnotherRuleOwesTheDiskWhatTheLastOneDidAndNoMore) {
  FillUnderLru();
  evictor_->RunRound();
  Use({EvictionOrder::kLfu}, 0);
  FinishWork();
  const uint64_t evicted = evictor_->evicted_keys();
  EXPECT_GT(evicted, kKeys / 10);
  EXPECT_LT(evicted, kKeys / 2);
  Use(kLru, 0);
  DoRound();
  EXPECT_EQ(evictor_->evicted_keys(), evicted) << "the space comes back with merges";
}

TEST_F(EvictorDiskTest, ANamespaceOwesTheDiskWhatItDidUnderAnotherRule) {
  CreateCache({.max_keys = 10 * kKeys, .eviction = kLru});
  Put(0, kKeys, kCache);
  DoRound();
  FillTheDisk();
  evictor_->RunRound();
  AlterCache({.max_keys = 10 * kKeys, .eviction = {EvictionOrder::kLfu}});
  FinishWork();
  EXPECT_GT(evictor_->evicted_keys(), kKeys / 10);
  EXPECT_LT(evictor_->evicted_keys(), kKeys / 2);
}

TEST_F(EvictorDiskTest, NothingGoesOnceThereIsRoomAgain) {
  FillUnderLru();
  evictor_->RunRound();
  ASSERT_TRUE(disk_->Remove(filler()).ok());
  DoRound();
  EXPECT_EQ(evictor_->evicted_keys(), 0u);
}

TEST_F(EvictorDiskTest, WhatAnOperatorRemovesIsNoticedAlsoWithoutAnIndex) {
  std::ofstream(access()) << "no directory";
  Use(kLru, 0);
  FillTheDisk();
  std::filesystem::remove(filler());
  ASSERT_TRUE(disk_->IsTight());
  evictor_->RunRound();
  EXPECT_FALSE(disk_->IsTight());
}

}  // namespace
}  // namespace varve
