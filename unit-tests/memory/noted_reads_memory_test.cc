// Noted reads where memory runs out while the read journal takes them: each one waits, or is noted
// still, or is counted as dropped.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "server/eviction/read_journal.h"
#include "unit-tests/memory/allocation_faults.h"
#include "unit-tests/testing/temp_dir.h"
#include "util/base/memory_guard.h"

namespace varve::testing {
namespace {

TEST(NotedReadsMemoryTest, NoReadIsLostWithoutBeingCounted) {
  constexpr uint64_t kReads = 100;
  constexpr uint64_t kMostAllocations = 1000;
  uint64_t nth = 1;
  bool reached = true;
  for (; reached && nth < kMostAllocations; ++nth) {
    const TempDir dir;
    NotedReads noted;
    noted.Start();
    absl::StatusOr<std::unique_ptr<ReadJournal>> journal = ReadJournal::Open(
        dir.path(), PosixFileSystem(), &noted, [] { return uint64_t{1000}; }, 10'000);
    ASSERT_TRUE(journal.ok()) << journal.status();
    for (uint64_t i = 0; i < kReads; ++i) noted.Add(kDefaultNamespace, "key" + std::to_string(i));
    {
      const AllocationFaults faults(nth, 1);
      const AllocationFaults::Scope scope(true);
      GuardMemory("noting reads", [&] { return (*journal)->TakeReads(); }).IgnoreError();
      reached = faults.reached();
    }
    EXPECT_TRUE((*journal)->TakeReads().ok());
    uint64_t waiting = 0;
    for (const WaitingRead& read : (*journal)->BeginEntering()) waiting += read.count;
    EXPECT_EQ(waiting + noted.dropped(), kReads) << "allocation " << nth << " failed";
    EXPECT_TRUE((*journal)->EndEntering().ok());
  }
  EXPECT_GT(nth, 2u) << "no allocation failed";
  EXPECT_FALSE(reached);
}

}  // namespace
}  // namespace varve::testing
