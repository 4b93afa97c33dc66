#include "server/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;
constexpr uint64_t kGi = uint64_t{1} << 30;

uint64_t WriteBuffersOf(const ServerConfig& config) {
  return config.engine.write_buffer_size * (static_cast<uint64_t>(config.engine.max_full_write_buffers) + 1);
}

uint64_t SumOf(const ServerConfig& config) {
  return WriteBuffersOf(config) + config.engine.offset_table_cache_size + config.engine.block_cache_size +
         config.server.max_clients_memory;
}

TEST(MemoryPlanTest, PartsKeepToTheLimitTogether) {
  for (const uint64_t limit : {128 * kMi, 200 * kMi, 512 * kMi, kGi, 16 * kGi, 512 * kGi}) {
    ServerConfig config;
    config.memory_limit = limit;
    const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(config, kGi);
    ASSERT_TRUE(fitted.ok()) << fitted.status();
    EXPECT_EQ(fitted->memory_limit, limit);
    EXPECT_LE(SumOf(*fitted), limit - limit / 8);
    EXPECT_GE(SumOf(*fitted) + (24 * kMi), limit / 10 * 8) << "what is left goes to the block cache";
    EXPECT_GE(fitted->engine.block_cache_size, limit / 10);
    EXPECT_GE(fitted->engine.write_buffer_size, kMi);
    EXPECT_LE(fitted->engine.write_buffer_size, ServerConfig().engine.write_buffer_size);
  }
}

TEST(MemoryPlanTest, WithoutALimitHalfOfTheMemoryAtHandIsDivided) {
  const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(ServerConfig(), 16 * kGi);
  ASSERT_TRUE(fitted.ok());
  EXPECT_EQ(fitted->memory_limit, 8 * kGi);
  EXPECT_LE(SumOf(*fitted), 7 * kGi);
  EXPECT_GE(fitted->engine.block_cache_size, 4 * kGi);
  EXPECT_GT(MemoryAtHand(), 64 * kMi);
}

TEST(MemoryPlanTest, ASizeThatWasGivenStays) {
  ServerConfig config;
  config.memory_limit = kGi;
  config.engine.write_buffer_size = 16 * kMi;
  config.engine.block_cache_size = 0;
  config.server.max_clients_memory = 300 * kMi;
  const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(config, kGi);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(fitted->engine.write_buffer_size, 16 * kMi);
  EXPECT_EQ(fitted->engine.block_cache_size, 0u);
  EXPECT_EQ(fitted->server.max_clients_memory, 300 * kMi);
}

TEST(MemoryPlanTest, WhatDoesNotFitIsRefusedWhereBothWereGiven) {
  ServerConfig config;
  config.engine.block_cache_size = 2 * kGi;
  EXPECT_TRUE(FitIntoMemory(config, kGi).ok()) << "nobody has given a limit";
  config.memory_limit = kGi;
  EXPECT_THAT(FitIntoMemory(config, kGi).status().message(), testing::HasSubstr("memory-limit=1GiB: the sizes"));
  config = ServerConfig();
  config.memory_limit = 127 * kMi;
  EXPECT_THAT(FitIntoMemory(config, kGi).status().message(), testing::HasSubstr("at least 128MiB"));
}

}  // namespace
}  // namespace varve
