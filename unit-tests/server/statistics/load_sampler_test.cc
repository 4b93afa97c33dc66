// What limits the server, from samples of its figures.
#include "server/statistics/load_sampler.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace varve {
namespace {

constexpr std::chrono::seconds kSecond{1};

// A sample at rest, so many seconds after the server's start.
LoadSample At(int seconds) {
  LoadSample sample;
  sample.at += std::chrono::hours(1) + seconds * kSecond;
  sample.loop_idle_nanos = {seconds * int64_t{1'000'000'000}, seconds * int64_t{1'000'000'000}};
  sample.max_connections = 10;
  return sample;
}

std::string LimitAfter(LoadSample sample) {
  LoadSampler sampler;
  sampler.Look(At(0));
  sampler.Look(At(1));
  return std::string(LimitOf(sampler.Look(std::move(sample))).id);
}

TEST(LoadSamplerTest, NothingLimitsAServerAtRest) { EXPECT_EQ(LimitAfter(At(2)), "nothing"); }

TEST(LoadSamplerTest, EachConditionIsNamed) {
  LoadSample full = At(2);
  full.disk_is_full = true;
  EXPECT_EQ(LimitAfter(full), "disk_full");
  LoadSample flush = At(2);
  flush.flush_pressure = 0.75;
  flush.merge_pressure = 0.6;
  EXPECT_EQ(LimitAfter(flush), "flush");
  LoadSample merge = At(2);
  merge.merge_pressure = 0.6;
  EXPECT_EQ(LimitAfter(merge), "merge");
  LoadSample clients = At(2);
  clients.connections = 10;
  EXPECT_EQ(LimitAfter(clients), "clients");
  LoadSample refused = At(2);
  refused.connections_refused = 1;
  EXPECT_EQ(LimitAfter(refused), "clients");
  LoadSample failed = At(2);
  failed.log_failed = true;
  EXPECT_EQ(LimitAfter(failed), "sync");
}

TEST(LoadSamplerTest, TheBusierOfDiskAndProcessorLimits) {
  LoadSample sync = At(2);
  sync.sync_busy_nanos = 800'000'000;  // of a second
  EXPECT_EQ(LimitAfter(sync), "sync");
  LoadSample cpu = sync;
  cpu.loop_idle_nanos[1] = 100'000'000;
  EXPECT_EQ(LimitAfter(cpu), "cpu");
  LoadSample hangs = At(2);
  hangs.sync_wait_nanos = 2'000'000'000;
  EXPECT_EQ(LimitAfter(hangs), "sync");
}

TEST(LoadSamplerTest, AStoreOnOtherMachinesLimitsWhereItHasRequestsMostOfTheTime) {
  LoadSample store = At(2);
  store.store_busy_millis = 800;  // of a second
  EXPECT_EQ(LimitAfter(store), "store");
  LoadSample cpu = store;
  cpu.loop_idle_nanos[1] = 100'000'000;
  EXPECT_EQ(LimitAfter(cpu), "cpu");
  LoadSample crowded = cpu;
  crowded.store_is_crowded = true;
  EXPECT_EQ(LimitAfter(crowded), "store");
  LoadSample idle = At(2);
  idle.store_busy_millis = 300;
  EXPECT_EQ(LimitAfter(idle), "nothing");
}

TEST(LoadSamplerTest, ATimeThatBeginsAnewIsStillATime) {
  LoadSampler sampler;
  LoadSample before = At(0), later = At(1), now = At(2);
  before.store_busy_millis = later.store_busy_millis = UINT32_MAX - 99;
  now.store_busy_millis = 600;  // 700 ms later
  sampler.Look(before);
  sampler.Look(later);
  EXPECT_NEAR(sampler.Look(now).store_busy, 0.7, 1e-9);
}

// Samples whose pool threads have rested for these times between the first and the last.
Limit LimitWithPool(std::vector<int64_t> idle_nanos, uint64_t sync_busy_nanos = 0) {
  LoadSampler sampler;
  LoadSample before = At(0), later = At(1), now = At(2);
  before.pool_idle_nanos.resize(idle_nanos.size());
  later.pool_idle_nanos.resize(idle_nanos.size());
  now.pool_idle_nanos = std::move(idle_nanos);
  now.sync_busy_nanos = sync_busy_nanos;
  sampler.Look(before);
  sampler.Look(later);
  return LimitOf(sampler.Look(now));
}

TEST(LoadSamplerTest, APoolWithoutAnIdleThreadLimits) {
  const Limit busy = LimitWithPool({10'000'000, 50'000'000});
  EXPECT_EQ(busy.id, "cpu");
  EXPECT_EQ(busy.text,
            "Requests wait for a thread: each of the 2 threads of the pool is busy for at least "
            "95 % of the time.");
  EXPECT_EQ(LimitWithPool({0, 200'000'000}).id, "nothing") << "one of them takes what comes";
  EXPECT_EQ(LimitWithPool({}).id, "nothing");
  EXPECT_EQ(LimitWithPool({0, 0}, 800'000'000).id, "sync") << "the pool waits for the disk";
}

TEST(LoadSamplerTest, WhatIsOverForASecondOrTwoCountsNoMore) {
  LoadSampler sampler;
  sampler.Look(At(0));
  sampler.Look(At(1));
  LoadSample refused = At(2);
  refused.connections_refused = 1;
  EXPECT_EQ(LimitOf(sampler.Look(refused)).id, "clients");
  for (const int seconds : {3, 4}) {
    LoadSample later = At(seconds);
    later.connections_refused = 1;
    sampler.Look(later);
  }
  LoadSample now = At(5);
  now.connections_refused = 1;
  const Load load = sampler.Look(now);
  EXPECT_EQ(LimitOf(load).id, "nothing");
  EXPECT_DOUBLE_EQ(load.seconds, 1);
}

TEST(LoadSamplerTest, TheFirstSampleSaysNothingOfShares) {
  LoadSampler sampler;
  const Load load = sampler.Look(At(5));
  EXPECT_EQ(load.seconds, 0);
  EXPECT_EQ(LimitOf(load).id, "nothing");
}

}  // namespace
}  // namespace varve
