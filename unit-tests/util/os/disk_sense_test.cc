#include "util/os/disk_sense.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace varve {
namespace {

uint64_t blocks_read = 0;  // what the kernel is supposed to have counted

uint64_t BlocksRead() { return blocks_read; }

TEST(DiskSenseTest, OneReadFromTheDiskCountsForTheNextCalls) {
  blocks_read = 1000;
  DiskSense sense(BlocksRead);
  EXPECT_FALSE(sense.ReadsDisk()) << "what was read before does not count";
  blocks_read += 8;
  for (uint32_t i = 0; i + 1 < DiskSense::kCallsAVerdict; ++i)
    ASSERT_FALSE(sense.ReadsDisk()) << "it looks once in a while only";
  for (uint32_t i = 0; i < DiskSense::kCallsAVerdict; ++i) ASSERT_TRUE(sense.ReadsDisk());
  EXPECT_FALSE(sense.ReadsDisk()) << "nothing was read since";
}

TEST(DiskSenseTest, TheKernelCountsUpwards) {
  const uint64_t before = DiskSense::BlocksReadForThread();
  EXPECT_LE(before, DiskSense::BlocksReadForThread());
  for (uint32_t i = 0; i < 2 * DiskSense::kCallsAVerdict; ++i) ThreadReadsDisk();
  EXPECT_FALSE(ThreadReadsDisk()) << "the thread has read nothing meanwhile";
}

}  // namespace
}  // namespace varve
