#include "server/config/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace varve {
namespace {

constexpr uint64_t kMi = uint64_t{1} << 20;
constexpr uint64_t kGi = uint64_t{1} << 30;

uint64_t WriteBuffersOf(const ServerConfig& config) {
  return config.engine.write_buffer_size *
         (static_cast<uint64_t>(config.engine.max_full_write_buffers) + 1);
}

uint64_t SumOf(const ServerConfig& config) {
  return WriteBuffersOf(config) + config.engine.offset_table_cache_size +
         config.engine.block_cache_size + config.engine.mapped_read_budget +
         config.server.max_clients_memory;
}

ServerConfig Given(const std::vector<std::pair<const char*, const char*>>& settings) {
  ServerConfig config;
  for (const auto& [name, value] : settings)
    EXPECT_TRUE(AssignSetting(*FindSetting(name), value, &config).ok()) << name;
  return config;
}

TEST(MemoryPlanTest, PartsKeepToTheLimitTogether) {
  for (const uint64_t limit : {128 * kMi, 200 * kMi, 512 * kMi, kGi, 16 * kGi, 512 * kGi}) {
    ServerConfig config;
    config.memory_limit = limit;
    const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(config, kGi);
    ASSERT_TRUE(fitted.ok()) << fitted.status();
    EXPECT_EQ(fitted->memory_limit, limit);
    EXPECT_LE(SumOf(*fitted), limit - limit / 8);
    EXPECT_GE(SumOf(*fitted) + (24 * kMi), limit / 10 * 8)
        << "what is left goes to the block cache";
    EXPECT_GE(fitted->engine.block_cache_size, limit / 10);
    EXPECT_GE(fitted->engine.write_buffer_size, 4 * kMi);
    EXPECT_LE(fitted->engine.write_buffer_size, ServerConfig().engine.write_buffer_size);
  }
}

TEST(MemoryPlanTest, EvictionsHaveTheirPartOrTakeLessOfWhatIsNotCounted) {
  for (const uint64_t limit : {128 * kMi, 200 * kMi, 512 * kMi, kGi, 16 * kGi, 512 * kGi}) {
    ServerConfig config;
    config.memory_limit = limit;
    config.server.max_memory_policy = "allkeys-lru";
    const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(config, kGi);
    ASSERT_TRUE(fitted.ok()) << fitted.status();
    const uint64_t not_counted = limit / 8 + 24 * kMi;
    EXPECT_LE(SumOf(*fitted) + EvictionMemory(limit, /*is_planned=*/true), limit - not_counted);
    // Nobody has set this aside.
    EXPECT_LT(EvictionMemory(limit, /*is_planned=*/false), not_counted / 2);
  }
  EXPECT_EQ(EvictionMemory(kGi, /*is_planned=*/true), 40 * kMi);
  EXPECT_EQ(EvictionMemory(kGi, /*is_planned=*/false), 32 * kMi);
}

TEST(MemoryPlanTest, JobsBeyondTheSecondNeedMemory) {
  const auto jobs_of = [](const std::vector<std::pair<const char*, const char*>>& settings) {
    const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(Given(settings), kGi);
    EXPECT_TRUE(fitted.ok()) << fitted.status();
    return fitted.ok() ? fitted->engine.max_background_jobs : 0;
  };
  EXPECT_EQ(jobs_of({{"memory-limit", "512MiB"}}), 2);
  EXPECT_EQ(jobs_of({{"memory-limit", "3GiB"}}), std::min(5, DefaultBackgroundJobs()));
  EXPECT_EQ(jobs_of({{"memory-limit", "16TiB"}}), DefaultBackgroundJobs());
  EXPECT_EQ(jobs_of({{"memory-limit", "512MiB"}, {"max-background-jobs", "7"}}), 7);
}

TEST(MemoryPlanTest, MappingsHaveHalfOfTheBlockCacheOrWhatIsLeft) {
  const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(ServerConfig(), 16 * kGi);
  ASSERT_TRUE(fitted.ok());
  EXPECT_NEAR(static_cast<double>(fitted->engine.mapped_read_budget),
              static_cast<double>(fitted->engine.block_cache_size), kMi);
  const absl::StatusOr<ServerConfig> little =
      FitIntoMemory(Given({{"memory-limit", "128MiB"}}), kGi);
  ASSERT_TRUE(little.ok());
  EXPECT_EQ(little->engine.mapped_read_budget, 0u) << "too little to be kept to";
  const absl::StatusOr<ServerConfig> none =
      FitIntoMemory(Given({{"mapped-read-budget", "0"}}), 16 * kGi);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->engine.mapped_read_budget, 0u);
  const absl::StatusOr<ServerConfig> cache =
      FitIntoMemory(Given({{"memory-limit", "8GiB"}, {"block-cache-size", "100MiB"}}), kGi);
  ASSERT_TRUE(cache.ok());
  EXPECT_GE(cache->engine.mapped_read_budget, 100 * kMi);
  EXPECT_LE(SumOf(*cache), 7 * kGi - 24 * kMi);
}

TEST(MemoryPlanTest, WithoutALimitHalfOfTheMemoryAtHandIsDivided) {
  const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(ServerConfig(), 16 * kGi);
  ASSERT_TRUE(fitted.ok());
  EXPECT_EQ(fitted->memory_limit, 8 * kGi);
  EXPECT_LE(SumOf(*fitted), 7 * kGi);
  EXPECT_GE(fitted->engine.block_cache_size + fitted->engine.mapped_read_budget, 4 * kGi);
  EXPECT_GT(MemoryAtHand(), 64 * kMi);
}

TEST(MemoryPlanTest, ASizeThatWasGivenStays) {
  const ServerConfig config = Given({{"memory-limit", "1GiB"},
                                     {"write-buffer-size", "16MiB"},
                                     {"block-cache-size", "0"},
                                     {"maxmemory-clients", "300MiB"}});
  const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(config, kGi);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(fitted->engine.write_buffer_size, 16 * kMi);
  EXPECT_EQ(fitted->engine.block_cache_size, 0u);
  EXPECT_EQ(fitted->server.max_clients_memory, 300 * kMi);
}

TEST(MemoryPlanTest, ADefaultThatWasGivenStays) {
  const ServerConfig config =
      Given({{"block-cache-size", "512MiB"}, {"offset-table-cache-size", "512MiB"}});
  const absl::StatusOr<ServerConfig> fitted = FitIntoMemory(config, 64 * kGi);
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(fitted->engine.block_cache_size, 512 * kMi);
  EXPECT_EQ(fitted->engine.offset_table_cache_size, 512 * kMi);
}

TEST(MemoryPlanTest, TheOthersShareWhatTheGivenOnesLeave) {
  for (const auto& [name, size] : {std::pair{"block-cache-size", "300MiB"},
                                   {"write-buffer-size", "128MiB"},
                                   {"offset-table-cache-size", "600MiB"},
                                   {"maxmemory-clients", "800MiB"}}) {
    const absl::StatusOr<ServerConfig> fitted =
        FitIntoMemory(Given({{"memory-limit", "1GiB"}, {name, size}}), kGi);
    ASSERT_TRUE(fitted.ok()) << name << " " << fitted.status();
    EXPECT_LE(SumOf(*fitted), kGi - kGi / 8 - 24 * kMi) << name;
    EXPECT_GE(fitted->engine.write_buffer_size, 4 * kMi) << name;
    EXPECT_GE(fitted->engine.block_cache_size, 8 * kMi) << name;
  }
}

TEST(MemoryPlanTest, WhatDoesNotFitIsRefusedWhereBothWereGiven) {
  const auto error_of = [](std::vector<std::pair<const char*, const char*>> settings) {
    return std::string(FitIntoMemory(Given(settings), kGi).status().message());
  };
  EXPECT_EQ(error_of({{"block-cache-size", "2GiB"}}), "") << "nobody has given a limit";
  EXPECT_THAT(
      error_of({{"memory-limit", "1GiB"}, {"block-cache-size", "2GiB"}}),
      ::testing::HasSubstr("memory-limit=1GiB: the sizes that were given take 2GiB of the 872MiB"));
  EXPECT_THAT(error_of({{"memory-limit", "1GiB"}, {"block-cache-size", "870MiB"}}),
              ::testing::HasSubstr("leaves too little"));
  EXPECT_THAT(error_of({{"memory-limit", "127MiB"}}), ::testing::HasSubstr("at least 128MiB"));
  EXPECT_THAT(error_of({{"memory-limit", "1GiB"}, {"maxmemory-clients", "0"}}),
              ::testing::HasSubstr("maxmemory-clients=0"));
}

}  // namespace
}  // namespace varve
