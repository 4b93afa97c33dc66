#include "db/segment/offset_table_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "util/base/coding.h"

namespace varve {
namespace {

// An index of segment `number` with `pages` pages of table and no fences.
std::shared_ptr<const SegmentIndex> Index(uint64_t number, uint32_t pages) {
  SegmentFooter footer;
  footer.info.number = number;
  footer.table_pages = pages;
  footer.block_size = 4096;
  AlignedBytes bytes(pages * kOffsetTablePageSize);
  std::fill_n(bytes.data(), bytes.size(), '\0');
  return std::make_shared<const SegmentIndex>(footer, std::move(bytes));
}

TEST(OffsetTableCacheTest, WhatIsInsertedIsPinnedUntilItIsErased) {
  OffsetTableCache cache(1 << 20);
  ResidentIndex resident;
  EXPECT_FALSE(ResidentIndex::Pin(resident));
  const auto index = Index(1, 2);
  EXPECT_TRUE(cache.Insert(&resident, index));
  EXPECT_EQ(cache.usage(), index->charge());
  {
    const ResidentIndex::Pin pin(resident);
    ASSERT_TRUE(pin);
    EXPECT_EQ(pin->footer().info.number, 1u);
  }
  EXPECT_TRUE(cache.Insert(&resident, Index(1, 2))) << "one hangs there already";
  EXPECT_EQ(cache.usage(), index->charge());
  const auto shared = resident.Share();
  cache.Erase(&resident);
  cache.Erase(&resident);
  EXPECT_EQ(cache.usage(), 0u);
  EXPECT_FALSE(ResidentIndex::Pin(resident));
  EXPECT_EQ(shared->footer().info.number, 1u) << "a reference keeps it";
}

TEST(OffsetTableCacheTest, StaysWithinItsBudgetAndRefusesWhatIsLarger) {
  const size_t charge = Index(1, 4)->charge();
  OffsetTableCache cache(3 * charge);
  std::vector<std::unique_ptr<ResidentIndex>> residents;
  for (uint64_t number = 1; number <= 20; ++number) {
    residents.push_back(std::make_unique<ResidentIndex>());
    EXPECT_TRUE(cache.Insert(residents.back().get(), Index(number, 4)));
    EXPECT_LE(cache.usage(), cache.capacity());
    EXPECT_TRUE(ResidentIndex::Pin(*residents.back())) << "the newest one is there";
  }
  int resident = 0;
  for (const auto& each : residents) resident += ResidentIndex::Pin(*each) ? 1 : 0;
  EXPECT_EQ(resident, 3);
  ResidentIndex large;
  EXPECT_FALSE(cache.Insert(&large, Index(99, 40)));
  EXPECT_FALSE(cache.Fits(Index(99, 40)->charge()));
  for (const auto& each : residents) cache.Erase(each.get());
  EXPECT_EQ(cache.usage(), 0u);
}

TEST(OffsetTableCacheTest, ABuilderLeavesAnIndexForTheReaderOnce) {
  OffsetTableCache cache(1 << 20);
  cache.Leave(Index(7, 1));
  EXPECT_GT(cache.usage(), 0u);
  EXPECT_EQ(cache.Collect(8), nullptr);
  const auto index = cache.Collect(7);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->footer().info.number, 7u);
  EXPECT_EQ(cache.Collect(7), nullptr);
  EXPECT_EQ(cache.usage(), 0u);
}

TEST(OffsetTableCacheTest, WhatNobodyCollectsGivesWayFirst) {
  const size_t charge = Index(1, 1)->charge();
  OffsetTableCache cache(2 * charge);
  ResidentIndex resident;
  EXPECT_TRUE(cache.Insert(&resident, Index(1, 1)));
  cache.Leave(Index(2, 1));
  cache.Leave(Index(3, 1));
  EXPECT_TRUE(ResidentIndex::Pin(resident));
  EXPECT_EQ(cache.Collect(2), nullptr);
  EXPECT_NE(cache.Collect(3), nullptr);
  cache.Erase(&resident);
}

TEST(OffsetTableCacheTest, APinnedIndexStaysWhileOthersEvict) {
  const size_t charge = Index(1, 1)->charge();
  OffsetTableCache cache(2 * charge);
  std::vector<std::unique_ptr<ResidentIndex>> residents(4);
  for (auto& each : residents) each = std::make_unique<ResidentIndex>();
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!done) {
      for (uint64_t i = 0; i < residents.size(); ++i) {
        const ResidentIndex::Pin pin(*residents[i]);
        if (pin && pin->footer().info.number != i + 1) ++wrong;
      }
    }
  });
  for (int round = 0; round < 2000; ++round) {
    const uint64_t i = round % residents.size();
    EXPECT_TRUE(cache.Insert(residents[i].get(), Index(i + 1, 1)));
    EXPECT_LE(cache.usage(), cache.capacity());
  }
  done = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  for (auto& each : residents) cache.Erase(each.get());
}

}  // namespace
}  // namespace varve
