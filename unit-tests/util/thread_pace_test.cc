#include "util/thread_pace.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace varve {
namespace {

// Works for so long, or until it has rested.
std::chrono::nanoseconds RestsOfWork(std::chrono::milliseconds longest, bool hurries) {
  std::chrono::nanoseconds rested{0};
  std::thread worker([&] {
    ThreadPace pace;
    const SteadyTime end = SteadyNow() + longest;
    while (SteadyNow() < end && pace.rested().count() == 0) pace.Rest(hurries);
    rested = pace.rested();
  });
  worker.join();
  return rested;
}

TEST(ThreadPaceTest, RestsWhereOthersWantTheProcessorsUnlessItHurries) {
  if (!std::filesystem::exists("/proc/thread-self/schedstat")) GTEST_SKIP() << "the kernel doesn't say who waits";
  std::atomic<bool> ends{false};
  std::vector<std::thread> others(2 * std::thread::hardware_concurrency());
  for (std::thread& other : others) {
    other = std::thread([&] {
      while (!ends) {
      }
    });
  }
  EXPECT_EQ(RestsOfWork(std::chrono::milliseconds(200), /*hurries=*/true).count(), 0);
  EXPECT_GT(RestsOfWork(std::chrono::seconds(20), /*hurries=*/false).count(), 0);
  ends = true;
  for (std::thread& other : others) other.join();
}

}  // namespace
}  // namespace varve
