#include "structure/chunk_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "structure/arena.h"

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

}  // namespace
}  // namespace varve
