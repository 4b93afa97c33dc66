#include "structure/clock_cache.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>

namespace varve {
namespace {

ClockCache::Handle Buffer(const ClockCache& cache, std::string_view bytes) {
  ClockCache::Handle handle = cache.New(bytes.size());
  std::memcpy(handle.mutable_data(), bytes.data(), bytes.size());
  return handle;
}

TEST(ClockCacheTest, WhatWasInsertedIsFoundUnderItsWholeKey) {
  ClockCache cache(1 << 20);
  cache.Insert(1, 2, Buffer(cache, "one-two"));
  cache.Insert(2, 1, Buffer(cache, "two-one"));
  EXPECT_EQ(cache.Lookup(1, 2, 0).data(), "one-two");
  EXPECT_EQ(cache.Lookup(2, 1, 0).data(), "two-one");
  EXPECT_FALSE(cache.Lookup(1, 1, 0));
  EXPECT_FALSE(cache.Lookup(2, 2, 0));
}

TEST(ClockCacheTest, NotesStayWithTheBytes) {
  ClockCache cache(1 << 20);
  ClockCache::Handle handle = cache.New(7, 5);
  std::memcpy(handle.mutable_data(), "one-two", 7);
  std::memcpy(handle.mutable_notes(), "notes", 5);
  cache.Insert(1, 2, std::move(handle));
  const size_t usage = cache.usage();
  EXPECT_EQ(cache.Lookup(1, 2, 0).data(), "one-two");
  EXPECT_EQ(cache.Lookup(1, 2, 0).notes(), "notes");
  cache.Insert(2, 1, Buffer(cache, "two-one"));
  EXPECT_TRUE(cache.Lookup(2, 1, 0).notes().empty());
  EXPECT_EQ(cache.usage(), 2 * usage - 5);
}

TEST(ClockCacheTest, PrefetchingTellsWhatThereIs) {
  ClockCache cache(1 << 20);
  EXPECT_EQ(cache.PrefetchEntry(1, 2, 0), nullptr);
  cache.PrefetchSlot(1, 2);
  cache.Insert(1, 2, Buffer(cache, "one-two"));
  cache.PrefetchSlot(1, 2);
  EXPECT_EQ(*cache.PrefetchEntry(1, 2, 4), 't');
  EXPECT_EQ(cache.PrefetchEntry(1, 3, 0), nullptr);
}

TEST(ClockCacheTest, TheFirstOfTwoInsertsStays) {
  ClockCache cache(1 << 20);
  const ClockCache::Handle first = cache.Insert(1, 2, Buffer(cache, "first"));
  const ClockCache::Handle second = cache.Insert(1, 2, Buffer(cache, "second"));
  EXPECT_EQ(second.data().data(), first.data().data());
}

TEST(ClockCacheTest, StaysWithinItsBudgetWhateverTheSizes) {
  for (const size_t capacity : {size_t{20000}, size_t{3} << 20}) {
    ClockCache cache(capacity);
    std::mt19937_64 random(3);
    size_t peak = 0;
    for (int i = 0; i < 20000; ++i) {
      cache.Insert(random() % 50, random() % 5000, cache.New(random() % 5000));
      if (i % 100 == 0) peak = std::max(peak, cache.usage());
      ASSERT_LE(peak, capacity);
    }
    EXPECT_GT(peak, capacity * 7 / 10) << "and uses it";
  }
}

TEST(ClockCacheTest, WithoutCapacityEverythingWorksAndNothingIsKept) {
  ClockCache cache(0);
  const ClockCache::Handle handle = cache.Insert(1, 2, Buffer(cache, "bytes"));
  EXPECT_EQ(handle.data(), "bytes");
  EXPECT_FALSE(cache.Lookup(1, 2, 0));
  EXPECT_EQ(cache.usage(), 0u);
}

TEST(ClockCacheTest, WhatIsTooLargeIsNotKept) {
  ClockCache cache(10000);
  EXPECT_EQ(cache.Insert(1, 2, cache.New(10001)).data().size(), 10001u);
  EXPECT_FALSE(cache.Lookup(1, 2, 0));
}

TEST(ClockCacheTest, WhatIsInUseIsNotEvicted) {
  ClockCache cache(50000);
  std::vector<ClockCache::Handle> held;
  for (uint64_t i = 0; i < 10; ++i)
    held.push_back(
        cache.Insert(1, i, Buffer(cache, std::string(4000, static_cast<char>('a' + i)))));
  for (uint64_t i = 0; i < 1000; ++i) cache.Insert(2, i, cache.New(4000));
  for (uint64_t i = 0; i < 10; ++i) {
    const ClockCache::Handle again = cache.Lookup(1, i, 0);
    ASSERT_TRUE(again);
    EXPECT_EQ(again.data().data(), held[i].data().data());
    EXPECT_EQ(again.data(), std::string(4000, static_cast<char>('a' + i)));
  }
  EXPECT_LE(cache.usage(), 50000u);
}

TEST(ClockCacheTest, AHandleOutlivesTheCache) {
  auto cache = std::make_unique<ClockCache>(100000);
  const ClockCache::Handle handle = cache->Insert(1, 2, Buffer(*cache, "bytes"));
  cache.reset();
  EXPECT_EQ(handle.data(), "bytes");
}

TEST(ClockCacheTest, WhatIsUsedAgainStaysLongerThanWhatIsUsedOnce) {
  ClockCache cache(100000);
  for (uint64_t i = 0; i < 10; ++i) cache.Insert(1, i, cache.New(1000));
  int lost = 0;
  for (uint64_t i = 0; i < 2000; ++i) {
    cache.Insert(2, i, cache.New(1000));
    if (!cache.Lookup(1, i % 10, 0)) ++lost;
  }
  EXPECT_EQ(lost, 0);
  EXPECT_FALSE(cache.Lookup(2, 0, 0));
}

// The hand of CLOCK stayed at the place that it had given to the newest entry, so a full cache
// dropped what had just come before it dropped anything old.
TEST(ClockCacheTest, WhatNobodyAsksForAnyMoreGivesWayToTheNew) {
  ClockCache cache(100000);
  for (uint64_t i = 0; i < 80; ++i) {
    cache.Insert(1, i, cache.New(1000));
    cache.Lookup(1, i, 0);
  }
  for (uint64_t i = 0; i < 300; ++i) cache.Insert(2, i, cache.New(1000));
  int old = 0, latest = 0;
  for (uint64_t i = 0; i < 80; ++i) old += cache.Lookup(1, i, 0) ? 1 : 0;
  for (uint64_t i = 250; i < 300; ++i) latest += cache.Lookup(2, i, 0) ? 1 : 0;
  EXPECT_EQ(old, 0);
  EXPECT_GE(latest, 45);
}

TEST(ClockCacheTest, BaseAndFlagStayWithTheirEntry) {
  ClockCache cache(100000);
  ClockCache::Handle handle = Buffer(cache, "bytes");
  handle.set_base(7);
  handle.set_flagged();
  cache.Insert(1, 2, std::move(handle));
  EXPECT_TRUE(cache.Lookup(1, 2, 9).flagged());
  EXPECT_EQ(cache.Lookup(1, 2, 9).base(), 7u);
}

TEST(ClockCacheTest, ALargeCacheIsFullAgainAfterEntriesOfAnotherSizeCame) {
  constexpr size_t kCapacity = size_t{128} << 20;
  for (const size_t size : {size_t{9000}, size_t{20000}}) {
    ClockCache cache(kCapacity);
    for (uint64_t i = 0; i < 50000; ++i) cache.Insert(1, i, cache.New(4200));
    const uint64_t others = 270'000'000 / size;
    for (uint64_t i = 0; i < others; ++i) {
      cache.Insert(2, i, cache.New(size));
      ASSERT_LE(cache.usage(), kCapacity);
    }
    EXPECT_GT(cache.usage(), kCapacity * 8 / 10);
    uint64_t found = 0;
    for (uint64_t i = others * 2 / 3; i < others; ++i) found += cache.Lookup(2, i, 0) ? 1 : 0;
    EXPECT_GT(found, others * 8 / 30);
  }
}

TEST(ClockCacheTest, PrefetchingGoesOnWhileTablesGrow) {
  constexpr uint64_t kEntries = 100'000;
  ClockCache cache(size_t{64} << 20);
  std::atomic<uint64_t> inserted{0};
  std::thread prefetching([&] {
    std::mt19937_64 random(1);
    while (inserted < kEntries) {
      const uint64_t key = random() % kEntries;
      cache.PrefetchSlot(key, 1);
      cache.PrefetchEntry(key, 1, 0);
    }
  });
  for (uint64_t key = 0; key < kEntries; ++key) {
    cache.Insert(key, 1, Buffer(cache, "entry"));
    ++inserted;
  }
  prefetching.join();
  for (uint64_t key = 0; key < kEntries; ++key) {
    ASSERT_EQ(cache.PrefetchEntry(key, 1, 0) != nullptr, bool(cache.Lookup(key, 1, 0))) << key;
  }
  EXPECT_TRUE(cache.Lookup(kEntries - 1, 1, 0));
}

TEST(ClockCacheTest, ThreadsNeverSeeBytesOfAnotherKey) {
  ClockCache cache(200000);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(thread);
      for (int i = 0; i < 20000; ++i) {
        const uint64_t key = random() % 200;
        ClockCache::Handle handle = cache.Lookup(key, key, 0);
        if (!handle) {
          handle = cache.New(2000 + key);
          std::memset(handle.mutable_data(), static_cast<int>(key), 2000 + key);
          handle = cache.Insert(key, key, std::move(handle));
        }
        const std::string_view bytes = handle.data();
        if (bytes.size() != 2000 + key || bytes.front() != static_cast<char>(key) ||
            bytes.back() != static_cast<char>(key)) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_LE(cache.usage(), 200000u);
}

}  // namespace
}  // namespace varve
