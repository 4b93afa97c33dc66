#include "structure/chunk_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "structure/arena.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

constexpr size_t kChunk = 64u << 10;

TEST(ChunkPoolTest, KeepsAsMuchAsItIsTold) {
  ChunkPool pool;
  EXPECT_FALSE(pool.keeps());
  AlignedBytes chunk = pool.Take(kChunk);
  const char* const first = chunk.data();
  pool.KeepUpTo(2 * kChunk);
  EXPECT_TRUE(pool.keeps());
  pool.Give(std::move(chunk));
  chunk = pool.Take(kChunk);
  EXPECT_EQ(chunk.data(), first);
  std::memset(chunk.data(), 1, kChunk);

  std::vector<AlignedBytes> chunks;
  for (int i = 0; i < 4; ++i) chunks.push_back(pool.Take(kChunk));
  for (AlignedBytes& each : chunks) pool.Give(std::move(each));
  EXPECT_EQ(pool.kept(), 2 * kChunk);
  EXPECT_EQ(pool.Take(2 * kChunk).size(), 2 * kChunk) << "another size is not from the pool";
  EXPECT_EQ(pool.kept(), 2 * kChunk);
  pool.KeepUpTo(kChunk);
  EXPECT_EQ(pool.kept(), kChunk);
  pool.KeepUpTo(0);
  EXPECT_EQ(pool.kept(), 0u);
  EXPECT_FALSE(pool.keeps());
}

TEST(ChunkPoolTest, AnArenaLeavesItsChunksToTheNext) {
  const auto pool = std::make_shared<ChunkPool>();
  pool->KeepUpTo(8 * kChunk);
  {
    Arena arena(kChunk, pool);
    for (int i = 0; i < 24; ++i) arena.Allocate(kChunk / 8);
    arena.Allocate(3 * kChunk);  // a piece of its own
  }
  EXPECT_EQ(pool->kept(), 3 * kChunk);
  Arena arena(kChunk, pool);
  std::memset(arena.Allocate(100), 1, 100);
  EXPECT_EQ(pool->kept(), 2 * kChunk);
}

TEST(ChunkPoolTest, TheNextLargeOneIsMadeAhead) {
  constexpr size_t kLarge = ChunkPool::kWorthMaking;
  ChunkPool pool;
  for (int round = 0; round < 3; ++round) {
    AlignedBytes chunk = pool.Take(kLarge);
    ASSERT_EQ(chunk.size(), kLarge);
    std::memset(chunk.data(), 1, kLarge);
    EXPECT_TRUE(testing::Eventually([&] { return pool.kept() == kLarge; })) << "and one only";
  }
  EXPECT_EQ(pool.Take(kChunk).size(), kChunk);
  EXPECT_EQ(pool.kept(), kLarge) << "another size leaves it";
  // What was given back comes first, and while there is some, nothing is made.
  pool.KeepUpTo(4 * kLarge);
  AlignedBytes chunk = pool.Take(kLarge);
  ASSERT_TRUE(testing::Eventually([&] { return pool.kept() == kLarge; }));
  const char* const bytes = chunk.data();
  pool.Give(std::move(chunk));
  EXPECT_EQ(pool.kept(), 2 * kLarge);
  EXPECT_EQ(pool.Take(kLarge).data(), bytes);
  pool.KeepUpTo(0);
  EXPECT_EQ(pool.kept(), 0u);
}

TEST(ChunkPoolTest, AChunkOfAnotherSizeDoesNotTakeThePlaceOfTheNext) {
  constexpr size_t kLarge = ChunkPool::kWorthMaking;
  const auto pool = std::make_shared<ChunkPool>();
  Arena arena(kLarge, pool);
  std::memset(arena.Allocate(3 * kLarge), 1, 3 * kLarge);
  EXPECT_EQ(pool->kept(), 0u);
  std::memset(arena.Allocate(100), 1, 100);
  EXPECT_TRUE(testing::Eventually([&] { return pool->kept() == kLarge; }));
}

TEST(ChunkPoolTest, ThreadsShareIt) {
  constexpr size_t kLarge = ChunkPool::kWorthMaking;
  ChunkPool pool;
  pool.KeepUpTo(3 * kLarge);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        AlignedBytes chunk = pool.Take(kLarge);
        std::memset(chunk.data(), thread, kLarge);
        for (size_t at = 0; at < kLarge; at += 997) ASSERT_EQ(chunk.data()[at], thread);
        pool.Give(std::move(chunk));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace varve
