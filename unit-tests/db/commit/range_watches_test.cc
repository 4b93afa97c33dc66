// Watches on ranges tell of every change, and of no other write, whatever is flushed and merged.
#include "db/commit/range_watches.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::TestStore;

EngineOptions SmallBuffers() {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  options.write_buffer_size = 64u << 10;
  return options;
}

std::unique_ptr<RangeWatch> Watch(TestStore& store, std::string_view lower,
                                  std::string_view upper) {
  absl::StatusOr<std::unique_ptr<RangeWatch>> watch =
      store->WatchRange(kDefaultNamespace, lower, upper);
  EXPECT_TRUE(watch.ok()) << watch.status();
  return *std::move(watch);
}

bool Changed(TestStore& store, RangeWatch& watch) {
  const absl::StatusOr<bool> changed = watch.Changed({}, store->NowMillis());
  EXPECT_TRUE(changed.ok()) << changed.status();
  return changed.value_or(true);
}

TEST(RangeWatchesTest, AModelOfRandomWritesAgrees) {
  struct Watched {
    std::string lower, upper;
    std::unique_ptr<RangeWatch> watch;
    bool changed = false;
  };
  std::mt19937 random(3);
  const auto key = [&] { return std::string(1, static_cast<char>('a' + random() % 26)); };
  TestStore store(SmallBuffers());
  std::vector<Watched> watches;
  for (int step = 0; step < 4000; ++step) {
    const uint32_t what = random() % 100;
    std::string lower = key(), upper = key();
    if (lower > upper) std::swap(lower, upper);
    upper += '!';     // no range is empty
    if (what < 50) {  // outside of most ranges
      ASSERT_TRUE(store->Put("zz" + lower, std::string(200, 'v')).ok());
      for (Watched& each : watches) each.changed |= each.upper.empty();
    } else if (what < 55) {
      WriteBatch batch;
      random() % 2 == 0 ? batch.Put(lower, "v") : batch.Delete(lower);
      ASSERT_TRUE(store->Write({}, &batch).ok());
      for (Watched& each : watches)
        each.changed |= each.lower <= lower && (each.upper.empty() || lower < each.upper);
    } else if (what < 57) {
      WriteBatch batch;
      batch.DeleteRange(lower, upper);
      ASSERT_TRUE(store->Write({}, &batch).ok());
      for (Watched& each : watches) {
        each.changed |=
            lower < upper && each.lower < upper && (each.upper.empty() || lower < each.upper);
      }
    } else if (what < 58) {
      ASSERT_TRUE(store->Flush().ok());
      if (random() % 4 == 0) ASSERT_TRUE(store->Compact("", "").ok());
    } else if (what < 78) {
      if (random() % 20 == 0) upper.clear();
      watches.push_back({lower, upper, Watch(store, lower, upper)});
    } else if (!watches.empty()) {
      const size_t index = random() % watches.size();
      Watched& watched = watches[index];
      ASSERT_EQ(Changed(store, *watched.watch), watched.changed)
          << step << ": " << watched.lower << " to " << watched.upper;
      if (random() % 2 == 0) watches.erase(watches.begin() + static_cast<ptrdiff_t>(index));
    }
  }
  for (Watched& each : watches) EXPECT_EQ(Changed(store, *each.watch), each.changed);
  EXPECT_GT(store.Statistic("flushes"), 20u);
}

TEST(RangeWatchesTest, AnEmptiedNamespaceHasChanged) {
  TestStore store(SmallBuffers());
  const std::unique_ptr<RangeWatch> watch = Watch(store, "a", "b");
  WriteBatch batch;
  batch.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact("", "").ok());
  EXPECT_TRUE(Changed(store, *watch));
  EXPECT_FALSE(store->WatchRange(12345, "", "").ok());
}

// While others write and buffers are flushed, nobody misses a write.
TEST(RangeWatchesTest, ManyThreads) {
  TestStore store(SmallBuffers());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int id = 0; id < 2; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; !stop; ++i) {
        // The same keys again and again: the store stays small however long the others take.
        const std::string key = "other/" + std::to_string(id * 1'000'000 + i % 5'000);
        ASSERT_TRUE(store->Put(key, std::string(500, 'v')).ok());
      }
    });
  }
  for (int id = 0; id < 3; ++id) {
    threads.emplace_back([&, id] {
      const std::string prefix = "own" + std::to_string(id) + "/";
      for (int round = 0; round < 300; ++round) {
        const std::unique_ptr<RangeWatch> watch = Watch(store, prefix, prefix + "~");
        EXPECT_FALSE(Changed(store, *watch));
        std::this_thread::yield();
        EXPECT_FALSE(Changed(store, *watch));
        ASSERT_TRUE(store->Put(prefix + std::to_string(round % 10), "v").ok());
        if (round % 10 == 0) ASSERT_TRUE(store->Flush().ok());
        EXPECT_TRUE(Changed(store, *watch));
        EXPECT_TRUE(Changed(store, *watch));
      }
    });
  }
  for (size_t i = 2; i < threads.size(); ++i) threads[i].join();
  stop = true;
  for (size_t i = 0; i < 2; ++i) threads[i].join();
}

}  // namespace
}  // namespace varve
