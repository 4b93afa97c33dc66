// The map of keys by bytes: groups from fences, from write buffers, and where no fences are known.
#include "db/counting/key_map.h"

#include <gtest/gtest.h>

#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/namespace_calls.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::TestStore;

constexpr size_t kMostGroups = 150;

EngineOptions UnsyncedOptions() {
  EngineOptions options;
  options.sync = Durability::kNone;
  return options;
}

SurveyedStore& Survey(TestStore& store) { return *SurveyOf(&*store); }

void Put(TestStore& store, const std::string& prefix, int keys, size_t size) {
  for (int i = 0; i < keys; ++i)
    ASSERT_TRUE(store->Put(fmt::format("{}{:05}", prefix, i), std::string(size, 'v')).ok());
}

// The group of that prefix; an empty one if the map has none.
KeyGroup Find(const KeyGroup& group, const std::string& prefix) {
  if (group.prefix == prefix) return group;
  for (const KeyGroup& within : group.groups) {
    if (prefix.starts_with(within.prefix)) return Find(within, prefix);
  }
  return {};
}

KeyGroup FindIn(const KeyMap& map, const std::string& prefix) {
  return map.namespaces.empty() ? KeyGroup() : Find(map.namespaces[0].keys, prefix);
}

size_t CountOf(const KeyGroup& group) {
  size_t count = 1;
  for (const KeyGroup& within : group.groups) count += CountOf(within);
  return count;
}

void PutKinds(TestStore& store) {
  Put(store, "order:2025/", 1000, 100);
  Put(store, "order:2026/", 3000, 100);
  Put(store, "user:", 2000, 100);
  Put(store, "loose", 1000, 100);
}

TEST(KeyMapTest, AnEmptyStoreHasNothingToShow) {
  TestStore store(UnsyncedOptions());
  EXPECT_TRUE(Survey(store).MapKeys(kMostGroups).namespaces.empty());
}

TEST(KeyMapTest, AFewRecordsInAWriteBufferCountExactly) {
  TestStore store(UnsyncedOptions());
  Put(store, "order:2025/", 300, 100);
  Put(store, "order:2026/", 900, 100);
  Put(store, "user:", 500, 100);
  Put(store, "loose", 200, 100);
  const KeyMap map = Survey(store).MapKeys(kMostGroups);
  ASSERT_EQ(map.namespaces.size(), 1u);
  EXPECT_EQ(map.namespaces[0].name, "0");
  EXPECT_EQ(map.namespaces[0].keys.keys, 1900u);
  EXPECT_EQ(FindIn(map, "order:").keys, 1200u);
  EXPECT_EQ(FindIn(map, "order:2026/").keys, 900u);
  EXPECT_EQ(FindIn(map, "order:2026/").bytes, 900u * 116);
  EXPECT_EQ(FindIn(map, "user:").bytes, 500u * 110);
  EXPECT_EQ(map.segment_bytes, 0u);
  Put(store, "user:", 500, 100);
  EXPECT_EQ(FindIn(Survey(store).MapKeys(kMostGroups), "user:").keys, 500u) << "overwritten";
}

TEST(KeyMapTest, ManyRecordsInAWriteBufferAreSampled) {
  TestStore store(UnsyncedOptions());
  PutKinds(store);
  const KeyMap map = Survey(store).MapKeys(kMostGroups);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "").keys), 7000, 50);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "order:2026/").keys), 3000, 50);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "user:").bytes), 2000 * 110, 50 * 110);
}

TEST(KeyMapTest, WhatIsNewerThanTheWalkIsShownAndTheWalkCatchesUp) {
  EngineOptions options = UnsyncedOptions();
  options.write_buffer_size = 64 << 20;
  // So that the log stays below what a store at rest may keep: however slow the looks are, the
  // buffer is not flushed meanwhile.
  options.log_file_size = 512 << 10;
  TestStore store(options);
  constexpr uint64_t kWrites = 300'000;
  for (uint64_t i = 0; i < kWrites / 1000; ++i) {
    WriteBatch batch;
    for (int of_batch = 0; of_batch < 1000; ++of_batch) batch.Put("same", "value");
    ASSERT_TRUE(store->Write({}, &batch).ok());
  }
  Put(store, "new:", 25, 3000);
  KeyMap map = Survey(store).MapKeys(kMostGroups);
  EXPECT_EQ(FindIn(map, "new:").keys, 25u);
  EXPECT_EQ(map.buffer_records, kWrites + 25);
  for (uint64_t known = 0; known < kWrites + 25;) {
    ASSERT_GT(map.known_buffer_records, known) << "each look walks on";
    known = map.known_buffer_records;
    map = Survey(store).MapKeys(kMostGroups);
  }
  EXPECT_EQ(map.known_buffer_records, map.buffer_records);
  EXPECT_EQ(FindIn(map, "new:").keys, 25u);
}

TEST(KeyMapTest, SegmentsCountButForABlockAtEachEnd) {
  TestStore store(UnsyncedOptions());
  PutKinds(store);
  ASSERT_TRUE(store->Flush().ok());
  const KeyMap map = Survey(store).MapKeys(kMostGroups);
  EXPECT_EQ(map.known_segment_bytes, map.segment_bytes);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "order:").keys), 4000, 100);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "order:2026/").keys), 3000, 100);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "user:").keys), 2000, 100);
  EXPECT_NEAR(static_cast<double>(FindIn(map, "order:2026/").bytes), 3000 * 130, 3000 * 30);
  // What is new in the write buffer comes on top.
  Put(store, "new:", 500, 100);
  Put(store, "user:x", 700, 100);
  const KeyMap later = Survey(store).MapKeys(kMostGroups);
  EXPECT_EQ(FindIn(later, "new:").keys, 500u);
  EXPECT_NEAR(static_cast<double>(FindIn(later, "user:").keys), 2700, 100);
}

TEST(KeyMapTest, WithoutFencesGroupsAreGuessedUntilTheyAreInMemory) {
  TestStore store(UnsyncedOptions());
  PutKinds(store);
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  const KeyMap map = Survey(store).MapKeys(kMostGroups);
  EXPECT_GT(map.segment_bytes, 500'000u);
  EXPECT_EQ(map.known_segment_bytes, 0u);
  ASSERT_EQ(map.namespaces.size(), 1u);
  EXPECT_GT(map.namespaces[0].keys.bytes, 500'000u);
  EXPECT_TRUE(testing::Eventually([&] {
    const KeyMap later = Survey(store).MapKeys(kMostGroups);
    return later.known_segment_bytes == later.segment_bytes;
  }));
  EXPECT_NEAR(static_cast<double>(FindIn(Survey(store).MapKeys(kMostGroups), "user:").keys), 2000,
              100);
}

TEST(KeyMapTest, IndexesComeIntoMemoryOnlyWhereThereIsRoom) {
  EngineOptions options = UnsyncedOptions();
  options.offset_table_cache_size = 1;
  TestStore store(options);
  PutKinds(store);
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  const uint64_t loads = store.Statistic("offset_table_loads");
  EXPECT_EQ(Survey(store).MapKeys(kMostGroups).known_segment_bytes, 0u);
  Survey(store).MapKeys(kMostGroups);
  EXPECT_LE(store.Statistic("offset_table_loads"), loads + 1) << "at most the footer";
}

TEST(KeyMapTest, ManyGroupsAreBounded) {
  TestStore store(UnsyncedOptions());
  // Each of them takes some blocks: what is smaller than one can't be told apart in a segment.
  for (int i = 0; i < 60; ++i) Put(store, fmt::format("tenant{:03}:a:", i), 200, 50);
  for (int i = 0; i < 2000; ++i) Put(store, fmt::format("user:{}:", i), 2, 50);
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_TRUE(store->Flush().ok());
    const KeyMap map = Survey(store).MapKeys(40);
    ASSERT_EQ(map.namespaces.size(), 1u);
    EXPECT_LE(CountOf(map.namespaces[0].keys), 40u + 24);
    EXPECT_GT(CountOf(map.namespaces[0].keys), 5u);
    EXPECT_NEAR(static_cast<double>(FindIn(map, "user:").keys), 4000, 250);
    uint64_t listed = 0;
    for (const KeyGroup& group : map.namespaces[0].keys.groups) listed += group.keys;
    EXPECT_LE(listed, map.namespaces[0].keys.keys + 200);
  }
}

TEST(KeyMapTest, NamespacesAreApart) {
  TestStore store(UnsyncedOptions());
  Put(store, "a:", 10, 100);
  ASSERT_TRUE(testing::Create(store, 3).ok());
  WriteBatch batch;
  batch.UseNamespace(3);
  for (int i = 0; i < 50; ++i) batch.Put(fmt::format("b:{}", i), std::string(100, 'v'));
  ASSERT_TRUE(store->Write({}, &batch).ok());
  const KeyMap map = Survey(store).MapKeys(kMostGroups);
  ASSERT_EQ(map.namespaces.size(), 2u);
  EXPECT_EQ(map.namespaces[0].name, "3") << "the largest comes first";
  EXPECT_EQ(Find(map.namespaces[0].keys, "b:").keys, 50u);
  EXPECT_EQ(Find(map.namespaces[1].keys, "a:").keys, 10u);
  EXPECT_EQ(map.bytes, map.namespaces[0].keys.bytes + map.namespaces[1].keys.bytes);
}

}  // namespace
}  // namespace varve
