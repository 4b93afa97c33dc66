#include "db/format/expiry_index.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace varve {
namespace {

constexpr uint64_t kNow = 1'700'000'000'000;

TEST(ExpiryIndexTest, AnEntryIsDueWhenItsKeyHasExpiredAndNotMuchLater) {
  const std::string tree_key = FirstTreeKey(7) + "key";
  std::mt19937_64 random(1);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t left = random() >> (20 + random() % 44);
    const uint64_t expiry = kNow + left;
    const ExpiryIndexEntry entry = ExpiryIndexEntryFor(tree_key, expiry, kNow);
    EXPECT_GE(entry.due_ms, expiry);
    EXPECT_LT(entry.due_ms - expiry, uint64_t{1} << entry.width);
    EXPECT_LE(entry.due_ms - expiry, left / 16);
  }
  EXPECT_EQ(ExpiryIndexEntryFor(tree_key, kNow - 5, kNow).due_ms, kNow - 5);
  EXPECT_GE(ExpiryIndexEntryFor(tree_key, ~uint64_t{0} - 1, kNow).due_ms, ~uint64_t{0} - 1)
      << "the end of time";
}

TEST(ExpiryIndexTest, AnEntryTellsWhenItsKeyExpires) {
  const std::string tree_key = FirstTreeKey(7) + "key";
  const RecordView record{.key = tree_key, .value = "v", .sequence = 5, .expiry_ms = kNow + 12345};
  std::string bytes;
  const RecordView entry = ExpiryIndexRecord(record, kNow, &bytes);
  EXPECT_EQ(GenerationOf(entry.key), kExpiryGeneration);
  EXPECT_EQ(DecodeExpiryIndexKey(UserKeyOf(entry.key))->tree_key, tree_key);
  EXPECT_EQ(entry.sequence, 5u);
  EXPECT_EQ(ExpiryInIndex(entry.value), kNow + 12345);
  EXPECT_EQ(ExpiryIndexRecord(bytes, 6).key, entry.key);
  EXPECT_EQ(ExpiryIndexRecord(bytes, 6).value, entry.value);
  EXPECT_EQ(ExpiryInIndex(entry.value.substr(1)), kNoExpiry);
}

TEST(ExpiryIndexTest, AKeyThatIsRefreshedLeavesFewEntries) {
  const std::string tree_key = FirstTreeKey(7) + "session";
  constexpr uint64_t kTtl = 1'800'000;
  std::set<std::string> waiting;
  size_t most = 0;
  for (uint64_t now = kNow; now < kNow + 10 * kTtl; now += 1000) {
    std::string key;
    EncodeExpiryIndexKey(ExpiryIndexEntryFor(tree_key, now + kTtl, now), &key);
    waiting.insert(key);
    std::erase_if(waiting, [&](const std::string& each) {
      return DecodeExpiryIndexKey(each)->due_ms <= now;
    });
    most = std::max(most, waiting.size());
  }
  EXPECT_LE(most, 34u);
}

TEST(ExpiryIndexTest, KeysSortByWidthThenByTheTimeTheyAreDue) {
  const std::string tree_key = FirstTreeKey(1) + std::string("k\0y", 3);
  std::string early, late;
  EncodeExpiryIndexKey({3, 255, tree_key}, &early);
  EncodeExpiryIndexKey({3, 256, tree_key}, &late);
  EXPECT_LT(early, late);
  EXPECT_LT(ExpiryIndexBound(3, 255), early);
  EXPECT_LT(early, ExpiryIndexBound(3, 256));
  EXPECT_LT(late, ExpiryIndexBound(4, 0));
  const auto decoded = DecodeExpiryIndexKey(late);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(decoded->width, 3);
  EXPECT_EQ(decoded->due_ms, 256u);
  EXPECT_EQ(decoded->tree_key, tree_key);
  EXPECT_FALSE(DecodeExpiryIndexKey(std::string_view(late).substr(0, kExpiryIndexPrefixSize - 1))
                   .has_value());
  late[0] = static_cast<char>(kExpiryWidths);
  EXPECT_FALSE(DecodeExpiryIndexKey(late).has_value());
}

}  // namespace
}  // namespace varve
