#include "db/format/range_tombstone.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"

namespace varve {
namespace {

std::string Key(int number) { return fmt::format("{:06}", number); }

SequenceNumber BruteForce(const std::vector<RangeTombstone>& tombstones, const std::string& key,
                          SequenceNumber at) {
  SequenceNumber newest = kNoSequence;
  for (const RangeTombstone& tombstone : tombstones) {
    if (tombstone.begin <= key && key < tombstone.end && tombstone.sequence <= at) {
      newest = std::max(newest, tombstone.sequence);
    }
  }
  return newest;
}

TEST(RangeTombstoneListTest, AnEmptyListCoversNothing) {
  const RangeTombstoneList list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.CoveringSequence("a", kMaxSequence), kNoSequence);
  EXPECT_EQ(list.Covering("a", kMaxSequence), nullptr);
  EXPECT_TRUE(list.tombstones().empty());
}

TEST(RangeTombstoneListTest, TheBeginIsCoveredAndTheEndIsNot) {
  const RangeTombstoneList list({{"b", "d", 7}});
  EXPECT_EQ(list.CoveringSequence("a", kMaxSequence), kNoSequence);
  EXPECT_EQ(list.CoveringSequence("b", kMaxSequence), 7u);
  EXPECT_EQ(list.CoveringSequence("czz", kMaxSequence), 7u);
  EXPECT_EQ(list.CoveringSequence("d", kMaxSequence), kNoSequence);
  EXPECT_EQ(list.CoveringSequence("b", 6), kNoSequence) << "an older read doesn't see it";
  EXPECT_EQ(list.CoveringSequence("b", 7), 7u);
}

TEST(RangeTombstoneListTest, EmptyAndInvertedRangesCoverNothing) {
  const RangeTombstoneList list({{"b", "b", 7}, {"d", "c", 8}});
  EXPECT_TRUE(list.empty());
}

TEST(RangeTombstoneListTest, PiecesOfOneTombstoneAreJoinedAgain) {
  const RangeTombstoneList list({{"c", "e", 7}, {"a", "c", 7}, {"a", "c", 7}, {"e", "f", 8}});
  const std::vector<RangeTombstone> expected = {{"a", "e", 7}, {"e", "f", 8}};
  EXPECT_EQ(list.tombstones(), expected);
  EXPECT_EQ(list.size(), 2u);
}

TEST(RangeTombstoneListTest, AgreesWithALookThroughAllTombstones) {
  std::mt19937 random(4711);
  for (int round = 0; round < 200; ++round) {
    std::vector<RangeTombstone> tombstones;
    const int count = static_cast<int>(random() % 12);
    const int keys = 1 + static_cast<int>(random() % 30);
    for (int i = 0; i < count; ++i) {
      tombstones.push_back({Key(static_cast<int>(random() % keys)),
                            Key(static_cast<int>(random() % keys)),
                            static_cast<SequenceNumber>(1 + random() % 20)});
    }
    const RangeTombstoneList list(tombstones);
    for (size_t i = 1; i < list.size(); ++i)
      EXPECT_LE(list.fragments()[i - 1].end, list.fragments()[i].begin);
    for (int key = 0; key < keys; ++key) {
      for (SequenceNumber at = 0; at <= 21; ++at) {
        const SequenceNumber expected = BruteForce(tombstones, Key(key), at);
        ASSERT_EQ(list.CoveringSequence(Key(key), at), expected)
            << round << " " << key << " " << at;
        const RangeTombstoneList::Fragment* fragment = list.Covering(Key(key), at);
        ASSERT_EQ(fragment != nullptr, expected != kNoSequence);
        if (fragment != nullptr) {
          ASSERT_LE(fragment->begin, Key(key));
          ASSERT_GT(fragment->end, Key(key));
        }
      }
    }
    const RangeTombstoneList again(list.tombstones());
    for (int key = 0; key < keys; ++key) {
      ASSERT_EQ(again.CoveringSequence(Key(key), 10), list.CoveringSequence(Key(key), 10));
    }
  }
}

// One inside the other: each fragment lies under up to 20,000 of them. A list that wrote them down
// for each would take 3 GB.
TEST(RangeTombstoneListTest, ManyNestedTombstones) {
  constexpr int kCount = 20000;
  std::vector<RangeTombstone> tombstones;
  for (int i = 0; i < kCount; ++i) {
    tombstones.push_back({Key(i), Key(2 * kCount - i), static_cast<SequenceNumber>(i + 1)});
  }
  std::shuffle(tombstones.begin(), tombstones.end(), std::mt19937(1));
  const RangeTombstoneList list(std::move(tombstones));
  EXPECT_EQ(list.size(), static_cast<size_t>(2 * kCount - 1));
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ(list.CoveringSequence(Key(i), kMaxSequence), static_cast<SequenceNumber>(i + 1));
    ASSERT_EQ(list.CoveringSequence(Key(kCount - 1), static_cast<SequenceNumber>(i)),
              static_cast<SequenceNumber>(i));
  }
}

}  // namespace
}  // namespace varve
