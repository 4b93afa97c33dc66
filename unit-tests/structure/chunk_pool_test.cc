#include "structure/chunk_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "structure/arena.h"
#include "util/os/file_thread.h"

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

TEST(ChunkPoolTest, AnArenaGivesRoomForAChunkOfAnotherSize) {
  const auto pool = std::make_shared<ChunkPool>();
  pool->KeepUpTo(8 * kChunk);
  { Arena(kChunk, pool).Allocate(100); }
  EXPECT_EQ(pool->kept(), kChunk);
  Arena arena(kChunk, pool);
  arena.Allocate(3 * kChunk);
  EXPECT_EQ(pool->kept(), 0u);
}

TEST(ChunkPoolTest, WhatIsGivenLastIsTakenFirst) {
  ChunkPool pool;
  pool.KeepUpTo(4 * kChunk);
  AlignedBytes first = pool.Take(kChunk), second = pool.Take(kChunk);
  const char* const bytes[] = {first.data(), second.data()};
  pool.Give(std::move(first));
  pool.Give(std::move(second));
  EXPECT_EQ(pool.Take(kChunk).data(), bytes[1]);
  EXPECT_EQ(pool.Take(kChunk).data(), bytes[0]);
}

// Waits until the file thread has done what it was woken for before: its jobs take turns.
void AwaitFileThread(FileThread* thread) {
  class Done final : public FileThread::Job {
   public:
    SteadyTime Step() noexcept override {
      if (!done.HasBeenNotified()) done.Notify();
      return kEndOfTime;
    }
    absl::Notification done;
  } job;
  thread->Add(&job);
  thread->Wake(&job);
  job.done.WaitForNotification();
  thread->Remove(&job);
}

TEST(ChunkPoolTest, ALargeChunkIsMadeAhead) {
  constexpr size_t kLarge = ChunkPool::kWorthMaking;
  FileThread thread;
  ChunkPool pool(&thread);
  const AlignedBytes first = pool.Take(kLarge);
  AwaitFileThread(&thread);
  EXPECT_EQ(pool.kept(), kLarge) << "one chunk, whatever the pool may keep";
  AlignedBytes second = pool.Take(kLarge);
  std::memset(second.data(), 1, kLarge);
  AwaitFileThread(&thread);
  EXPECT_EQ(pool.kept(), kLarge) << "and the next one once it is taken";

  pool.KeepUpTo(0);
  EXPECT_EQ(pool.kept(), 0u);
  const AlignedBytes small = pool.Take(kChunk);
  AwaitFileThread(&thread);
  EXPECT_EQ(pool.kept(), 0u) << "a small chunk is not worth it";
}

TEST(ChunkPoolTest, NoChunkIsMadeAfterStopMaking) {
  constexpr size_t kLarge = ChunkPool::kWorthMaking;
  ChunkPool pool;
  {
    FileThread thread;
    ChunkPool stopped(&thread);
    const AlignedBytes first = stopped.Take(kLarge);
    stopped.StopMaking();
    const AlignedBytes second = stopped.Take(kLarge), third = stopped.Take(kLarge);
    AwaitFileThread(&thread);
    EXPECT_EQ(stopped.kept(), 0u);
  }
  const AlignedBytes chunk = pool.Take(kLarge);
  EXPECT_EQ(pool.kept(), 0u) << "without a file thread none is made";
}

TEST(ChunkPoolTest, ThreadsShareIt) {
  constexpr size_t kLarge = ChunkPool::kWorthMaking;
  FileThread maker;
  ChunkPool pool(&maker);
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
