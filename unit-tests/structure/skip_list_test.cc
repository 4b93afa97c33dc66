#include "structure/skip_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

namespace varve {
namespace {

struct CompareNumbers {
  int operator()(const uint64_t& a, const uint64_t& b) const { return a < b ? -1 : a > b; }
};
using NumberList = SkipList<uint64_t, CompareNumbers>;

TEST(SkipListTest, AgreesWithASetInAnyOrderOfInsertion) {
  std::mt19937_64 random(7);
  for (const bool ascending : {true, false}) {
    Arena arena(4096);
    NumberList list(&arena, CompareNumbers{});
    std::set<uint64_t> model;
    for (uint64_t i = 0; i < 3000; ++i) {
      const uint64_t number = ascending ? i * 3 : random() % 100000;
      if (model.insert(number).second) list.Insert(number);
    }
    NumberList::Cursor cursor(&list);
    cursor.SeekToFirst();
    for (const uint64_t number : model) {
      ASSERT_TRUE(cursor.Valid());
      ASSERT_EQ(cursor.item(), number);
      cursor.Next();
    }
    EXPECT_FALSE(cursor.Valid());
    for (int i = 0; i < 2000; ++i) {
      const uint64_t target = random() % 100000;
      const auto at_or_after = model.lower_bound(target);
      cursor.Seek(target);
      ASSERT_EQ(cursor.Valid(), at_or_after != model.end());
      if (cursor.Valid()) ASSERT_EQ(cursor.item(), *at_or_after);
      cursor.Before(target);
      ASSERT_EQ(cursor.Valid(), at_or_after != model.begin());
      if (cursor.Valid()) ASSERT_EQ(cursor.item(), *std::prev(at_or_after));
    }
    cursor.SeekToLast();
    for (auto number = model.rbegin(); number != model.rend(); ++number, cursor.Prev()) {
      ASSERT_TRUE(cursor.Valid());
      ASSERT_EQ(cursor.item(), *number);
    }
    EXPECT_FALSE(cursor.Valid());
  }
}

TEST(SkipListTest, AscendingRunsThatFallBehindTheFingerAreInsertedRight) {
  Arena arena(4096);
  NumberList list(&arena, CompareNumbers{});
  for (uint64_t start = 50; start-- > 0;) {
    for (uint64_t i = 0; i < 40; ++i) list.Insert(start + i * 50);
  }
  NumberList::Cursor cursor(&list);
  cursor.SeekToFirst();
  for (uint64_t i = 0; i < 2000; ++i, cursor.Next()) ASSERT_EQ(cursor.item(), i);
  EXPECT_FALSE(cursor.Valid());
}

TEST(SkipListTest, ASeekNeverLandsInFrontOfItsTargetWhileTheListGrows) {
  Arena arena(1 << 16);
  NumberList list(&arena, CompareNumbers{});
  constexpr uint64_t kTarget = uint64_t{1} << 40;
  list.Insert(kTarget);
  std::atomic<bool> done{false};
  std::thread reader([&] {
    NumberList::Cursor cursor(&list);
    while (!done) {
      cursor.Seek(kTarget);
      ASSERT_TRUE(cursor.Valid());
      ASSERT_EQ(cursor.item(), kTarget);
    }
  });
  // Each right in front of the target.
  for (uint64_t number = 1; number < 300000; ++number) list.Insert(number);
  done = true;
  reader.join();
}

TEST(SkipListTest, ReadersSeeASortedListWhileItGrows) {
  Arena arena(1 << 16);
  NumberList list(&arena, CompareNumbers{});
  std::atomic<bool> done{false};
  std::thread reader([&] {
    while (!done) {
      NumberList::Cursor cursor(&list);
      uint64_t previous = 0;
      for (cursor.SeekToFirst(); cursor.Valid(); cursor.Next()) {
        ASSERT_LE(previous, cursor.item());
        previous = cursor.item();
      }
    }
  });
  std::mt19937_64 random(3);
  std::set<uint64_t> inserted;
  while (inserted.size() < 20000) {
    const uint64_t number = random();
    if (inserted.insert(number).second) list.Insert(number);
  }
  done = true;
  reader.join();
}

}  // namespace
}  // namespace varve
