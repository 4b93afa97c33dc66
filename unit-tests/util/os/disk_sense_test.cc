#include "util/os/disk_sense.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace varve {
namespace {

uint64_t blocks_read = 0;  // what the kernel is supposed to have counted

uint64_t BlocksRead() { return blocks_read; }

// Returns what the sense says at the end of a verdict's time, once it has looked.
bool NextVerdict(DiskSense* sense) {
  bool verdict = false;
  for (uint32_t i = 0; i < DiskSense::kCallsAVerdict; ++i) verdict = sense->ReadsDisk();
  return verdict;
}

TEST(DiskSenseTest, OneReadFromTheDiskCountsForTheNextCalls) {
  DiskSense sense(BlocksRead);
  EXPECT_FALSE(NextVerdict(&sense));
  blocks_read += 8;
  for (uint32_t i = 0; i + 1 < DiskSense::kCallsAVerdict; ++i)
    ASSERT_FALSE(sense.ReadsDisk()) << "it looks once in a while only";
  EXPECT_TRUE(sense.ReadsDisk());
  for (uint32_t i = 0; i + 1 < DiskSense::kCallsAVerdict; ++i) ASSERT_TRUE(sense.ReadsDisk());
  EXPECT_FALSE(sense.ReadsDisk()) << "nothing was read since";
}

TEST(DiskSenseTest, WhatWasReadBeforeDoesNotCount) {
  blocks_read += 8;
  DiskSense sense(BlocksRead);
  EXPECT_FALSE(NextVerdict(&sense));
}

TEST(DiskSenseTest, TheKernelCountsUpwards) {
  const uint64_t before = DiskSense::BlocksReadForThread();
  EXPECT_LE(before, DiskSense::BlocksReadForThread());
  for (uint32_t i = 0; i < 2 * DiskSense::kCallsAVerdict; ++i) ThreadReadsDisk();
  EXPECT_FALSE(ThreadReadsDisk()) << "the thread has read nothing meanwhile";
}

}  // namespace
}  // namespace varve
