#include "db/commit/commit_groups.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace varve {
namespace {

// A member that remembers whether it was served.
struct Served : CommitGroups::Member {
  int times = 0;
};

// Joins, and leads if it has to; `order` is what leaders change under the lock.
int JoinAndLead(CommitGroups* groups, absl::Mutex* lock, uint64_t* order, Served* member) {
  if (!groups->Join(member)) return 0;
  absl::MutexLock held(lock);
  const auto serve = [&](CommitGroups::Member* served) {
    ++static_cast<Served*>(served)->times;
    ++*order;
  };
  return groups->Lead(member, serve, [](CommitGroups::Member*) {});
}

TEST(CommitGroupsTest, AThreadThatComesAloneLeadsAndServesItself) {
  CommitGroups groups;
  absl::Mutex lock;
  uint64_t order = 0;
  for (int i = 1; i <= 3; ++i) {
    Served member;
    EXPECT_EQ(JoinAndLead(&groups, &lock, &order, &member), 1);
    EXPECT_EQ(member.times, 1);
    EXPECT_EQ(order, static_cast<uint64_t>(i));
  }
  EXPECT_EQ(groups.timed_batches(), 1u) << "the first group of 64 is timed";
}

TEST(CommitGroupsTest, EachMemberIsServedOnceWhoeverLeads) {
  constexpr int kThreads = 4, kRounds = 3000;
  CommitGroups groups;
  absl::Mutex lock;
  uint64_t order = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        Served member;
        JoinAndLead(&groups, &lock, &order, &member);
        ASSERT_EQ(member.times, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, uint64_t{kThreads * kRounds});
}

// The first leader serves nobody else until so many threads are on their way that one group does
// not hold them.
TEST(CommitGroupsTest, ALeaderHandsTheQueueOnAfterManyMembers) {
  constexpr int kThreads = 100;
  CommitGroups groups;
  absl::Mutex lock;
  uint64_t order = 0;
  std::atomic<int> coming{0}, largest{0}, served{0};
  const auto note = [&](int group) {
    int most = largest.load();
    while (group > most && !largest.compare_exchange_weak(most, group)) {
    }
    served += group;
  };
  Served first;
  ASSERT_TRUE(groups.Join(&first));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      Served member;
      ++coming;
      note(JoinAndLead(&groups, &lock, &order, &member));
      EXPECT_EQ(member.times, 1);
    });
  }
  while (coming.load() < kThreads) std::this_thread::yield();
  {
    absl::MutexLock held(&lock);
    note(groups.Lead(
        &first,
        [&](CommitGroups::Member* member) {
          ++static_cast<Served*>(member)->times;
          ++order;
        },
        [](CommitGroups::Member*) {}));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, uint64_t{kThreads + 1});
  EXPECT_EQ(served.load(), kThreads + 1);
  EXPECT_LE(largest.load(), 64);
}

}  // namespace
}  // namespace varve
