// Namespaces of the engine: what is created, altered, dropped and swapped, across restarts; modes
// of their own.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/namespace_calls.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::Create;
using testing::Drop;
using testing::Put;
using testing::Scan;
using testing::Swap;
using testing::TestStore;
using Model = std::map<std::string, std::string>;

std::string Text(const Model& model) {
  std::string text;
  for (const auto& [key, value] : model) text += key + "=" + value + " ";
  return text;
}

constexpr NamespaceId kNamed = kFirstNamedNamespace;

TEST(EngineNamespacesTest, AreApartFromEachOther) {
  TestStore store;
  ASSERT_TRUE(Create(store, 1).ok());
  ASSERT_TRUE(Create(store, kNamed, "users").ok());
  for (const NamespaceId space : {0u, 1u, kNamed})
    ASSERT_TRUE(Put(store, space, "key", fmt::format("{}", space)).ok());
  for (int round = 0; round < 3; ++round) {
    for (const NamespaceId space : {0u, 1u, kNamed}) {
      EXPECT_EQ(Scan(store, space), fmt::format("key={} ", space));
      EXPECT_EQ(store->Count({.space = space}, {}, {})->keys, 1u);
    }
    if (round == 0) ASSERT_TRUE(store->Flush().ok());
    if (round == 1) store.Reopen();
  }
  const NamespaceList list = store->Namespaces().value();
  ASSERT_EQ(list.namespaces.size(), 3u);
  ASSERT_NE(list.Find("users"), nullptr);
  EXPECT_EQ(list.Find("users")->id, kNamed);
  EXPECT_EQ(list.next_id, kNamed + 1);
  EXPECT_EQ(store.Statistic("namespaces"), 3u);
}

TEST(EngineNamespacesTest, WhatThereIsNotIsSaidSo) {
  TestStore store;
  std::string value;
  EXPECT_TRUE(IsNoSuchNamespace(store->Get({.space = 7}, "key", &value).status()));
  EXPECT_TRUE(IsNoSuchNamespace(store->Count({.space = 7}, {}, {}).status()));
  EXPECT_TRUE(IsNoSuchNamespace(store->Compact({}, {}, 7)));
  EXPECT_TRUE(IsNoSuchNamespace(Put(store, 7, "key", "value")));
  EXPECT_TRUE(IsNoSuchNamespace(Swap(store, 0, 7)));
  EXPECT_TRUE(IsNoSuchNamespace(Drop(store, 7)));
  EXPECT_TRUE(absl::IsInvalidArgument(Drop(store, 0)));
  EXPECT_FALSE(store->HasNamespace(7));
  EXPECT_TRUE(store->HasNamespace(0));
  EXPECT_EQ(Scan(store, 7), "namespace 7 does not exist");
}

TEST(EngineNamespacesTest, ABatchMayUseWhatItCreates) {
  TestStore store;
  WriteBatch batch;
  batch.CreateNamespace({.id = kNamed, .name = "users"});
  batch.Put("key", "value", kNamed);
  batch.SwapNamespaces(0, kNamed);
  batch.Put("other", "value", kNamed);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_EQ(Scan(store, 0), "key=value ");
  EXPECT_EQ(Scan(store, kNamed), "other=value ");
  store.Reopen();
  EXPECT_EQ(Scan(store, 0), "key=value ");
  EXPECT_EQ(Scan(store, kNamed), "other=value ");
}

TEST(EngineNamespacesTest, ARefusedChangeTakesItsWholeBatchWithIt) {
  TestStore store;
  WriteBatch batch;
  batch.Put("key", "value");
  batch.CreateNamespace({.id = 1});
  batch.DropNamespace(9);
  EXPECT_TRUE(IsNoSuchNamespace(store->Write({}, &batch).status()));
  EXPECT_FALSE(store->HasNamespace(1));
  EXPECT_EQ(Scan(store, 0), "");
}

TEST(EngineNamespacesTest, SnapshotsAndIteratorsKeepWhatWasThere) {
  TestStore store;
  ASSERT_TRUE(Create(store, 1).ok());
  ASSERT_TRUE(Put(store, 0, "zero", "0").ok());
  ASSERT_TRUE(Put(store, 1, "one", "1").ok());
  const auto before = store->GetSnapshot();
  const auto iterator = store->NewIterator({.space = 1}, {}, {}, nullptr);
  ASSERT_TRUE(Swap(store, 0, 1).ok());
  const auto swapped = store->GetSnapshot();
  ASSERT_TRUE(Drop(store, 1).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(Scan(store, 0, before.get()), "zero=0 ");
  EXPECT_EQ(Scan(store, 1, before.get()), "one=1 ");
  EXPECT_EQ(Scan(store, 0, swapped.get()), "one=1 ");
  EXPECT_EQ(Scan(store, 1, swapped.get()), "zero=0 ");
  EXPECT_EQ(Scan(store, 0), "one=1 ");
  EXPECT_EQ(Scan(store, 1), "namespace 1 does not exist");
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "one");
}

TEST(EngineNamespacesTest, WhatADroppedOneHeldGoes) {
  EngineOptions options = testing::TestEngineOptions();
  TestStore store(options);
  ASSERT_TRUE(Create(store, kNamed, "big").ok());
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(Put(store, kNamed, fmt::format("key{}", i), std::string(1000, 'v')).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(Drop(store, kNamed).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_TRUE(testing::Eventually([&] { return store.Statistic("segment_entries") == 0; }));
  EXPECT_TRUE(absl::IsAlreadyExists(Create(store, kNamed, "big"))) << "an id is never given again";
  store.Reopen();
  EXPECT_TRUE(absl::IsAlreadyExists(Create(store, kNamed, "big")));
  ASSERT_TRUE(Create(store, store->Namespaces()->next_id, "big").ok());
  EXPECT_EQ(Scan(store, kNamed + 1), "");
}

TEST(EngineNamespacesTest, WhatABatchMadeAndDroppedIsNobodysAfterACrash) {
  testing::SimulatedFileSystem disk;
  EngineOptions options = testing::TestEngineOptions();
  options.file_system = &disk;
  ASSERT_TRUE(disk.CreateDirectory("/disk").ok());
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open("/disk/store", options);
  ASSERT_TRUE(store.ok()) << store.status();
  WriteBatch batch;
  batch.CreateNamespace({.id = kNamed, .name = "first"});
  batch.Put("key", "value", kNamed);
  batch.DropNamespace(kNamed);
  ASSERT_TRUE((*store)->Write({}, &batch).ok());
  disk.StopHere();
  store->reset();
  disk.RestorePower();

  store = StorageEngine::Open("/disk/store", options);
  ASSERT_TRUE(store.ok()) << store.status();
  batch.Clear();
  batch.CreateNamespace({.id = kNamed + 1, .name = "second"});
  ASSERT_TRUE((*store)->Write({}, &batch).ok());
  std::string value;
  const absl::StatusOr<ReadResult> read = (*store)->Get({.space = kNamed + 1}, "key", &value);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->found);
}

TEST(EngineNamespacesTest, AConditionFailsAcrossASwapAndADrop) {
  TestStore store;
  ASSERT_TRUE(Create(store, 1).ok());
  for (int round = 0; round < 2; ++round) {
    std::string value;
    const ReadResult read = store->Get({.space = 1}, "key", &value).value();
    if (round == 0) ASSERT_TRUE(Swap(store, 0, 1).ok());
    if (round == 1) {
      ASSERT_TRUE(Drop(store, 1).ok());
      ASSERT_TRUE(Create(store, 1).ok());
    }
    WriteBatch batch;
    batch.UseNamespace(1);
    batch.RequireUnchanged("key", read.read_sequence);
    batch.Put("key", "value");
    EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status())) << "round " << round;
  }
}

TEST(EngineNamespacesTest, WritesHaveTheModeOfTheirNamespace) {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  TestStore store(options);
  ASSERT_TRUE(Create(store, 1).ok());
  ASSERT_TRUE(Create(store, kNamed, "safe", {.sync = Durability::kAlways}).ok());
  const auto durable_after = [&](std::vector<NamespaceId> spaces, WriteOptions mode = {}) {
    WriteBatch batch;
    for (const NamespaceId space : spaces) batch.Put("key", "value", space);
    return store->Write(mode, &batch)->durable_after;
  };
  EXPECT_EQ(durable_after({0}), kNoSequence);
  EXPECT_EQ(durable_after({1, 0, 1}), kNoSequence);
  EXPECT_NE(durable_after({kNamed}), kNoSequence);
  EXPECT_NE(durable_after({0, kNamed, 1}), kNoSequence) << "the strongest of all";
  EXPECT_EQ(durable_after({kNamed}, {.sync = Durability::kNone, .override_sync = true}),
            kNoSequence);
  WriteBatch alter;
  alter.AlterNamespace({.id = kNamed, .name = "safe", .options = {.sync = Durability::kNone}});
  ASSERT_TRUE(store->Write({}, &alter).ok());
  EXPECT_EQ(durable_after({kNamed}), kNoSequence);
  store->SetSync(Durability::kAlways);
  EXPECT_EQ(durable_after({kNamed}), kNoSequence);
  EXPECT_NE(durable_after({0}), kNoSequence);
  store.Reopen();
  EXPECT_EQ(store->Namespaces()->Find("safe")->options.sync, Durability::kNone);
}

class NamespacesModelTest : public ::testing::TestWithParam<uint64_t> {};

// Four databases and a named one, all operations on them, at random.
TEST_P(NamespacesModelTest, AgreesWithMaps) {
  EngineOptions options = testing::TestEngineOptions();
  options.segment_size = 48 << 10;
  options.runs_per_level = 3;
  options.sync = Durability::kNone;
  if (GetParam() % 2 == 0) options.write_buffer_size = 16 << 10;
  TestStore store(options);
  std::mt19937_64 random(GetParam());
  std::map<NamespaceId, Model> models = {{0, {}}};
  std::vector<std::pair<std::shared_ptr<const Snapshot>, std::map<NamespaceId, Model>>> snapshots;
  NamespaceId named = 0;
  const auto any = [&] {
    auto space = models.begin();
    std::advance(space, random() % models.size());
    return space->first;
  };
  for (int step = 0; step < 500; ++step) {
    const uint64_t dice = random() % 100;
    WriteBatch batch;
    std::map<NamespaceId, Model> next = models;
    const auto add_writes = [&] {
      for (uint64_t writes = 1 + random() % 8; writes > 0; --writes) {
        auto space = next.begin();
        std::advance(space, random() % next.size());
        const std::string key = fmt::format("key{}", random() % 60);
        if (random() % 4 == 0) {
          batch.Delete(key, space->first);
          space->second.erase(key);
        } else {
          space->second[key] = std::string(random() % 300, static_cast<char>('a' + step % 26));
          batch.Put(key, space->second[key], space->first);
        }
      }
    };
    if (dice < 50) {
      add_writes();
    } else if (dice < 55) {
      const NamespaceId id = 1 + random() % 3;
      const bool is_there = next.contains(id);
      if (random() % 2 == 0) add_writes();
      batch.CreateNamespace({.id = id});
      if (is_there) {
        ASSERT_TRUE(absl::IsAlreadyExists(store->Write({}, &batch).status()));
        continue;
      }
      next[id] = {};
      if (random() % 2 == 0) add_writes();
    } else if (dice < 57) {
      if (named != 0) {
        batch.DropNamespace(named);
        next.erase(named);
        named = 0;
      } else {
        named = store->Namespaces()->next_id;
        batch.CreateNamespace({.id = named, .name = "named", .options = {.max_keys = 1000}});
        next[named] = {};
      }
      add_writes();
    } else if (dice < 60) {
      const NamespaceId id = any();
      if (id == 0 || id == named) continue;
      batch.DropNamespace(id);
      next.erase(id);
    } else if (dice < 66) {
      const NamespaceId one = any(), other = any();
      if (random() % 2 == 0) add_writes();
      batch.SwapNamespaces(one, other);
      std::swap(next[one], next[other]);
      if (random() % 2 == 0) add_writes();
    } else if (dice < 69) {
      const NamespaceId id = any();
      batch.ClearNamespace(id);
      next[id].clear();
      add_writes();
    } else if (dice < 73) {
      const NamespaceId id = any();
      const std::string begin = fmt::format("key{}", random() % 60);
      batch.DeleteRange(begin, begin + "~", id);
      next[id].erase(next[id].lower_bound(begin), next[id].lower_bound(begin + "~"));
    } else if (dice < 76) {
      ASSERT_TRUE(store->Flush().ok());
    } else if (dice < 78) {
      ASSERT_TRUE(store->Compact({}, {}, any()).ok());
    } else if (dice < 81) {
      if (snapshots.size() > 3) snapshots.erase(snapshots.begin());
      snapshots.emplace_back(store->GetSnapshot(), models);
    } else if (dice < 84) {
      snapshots.clear();
      store.Reopen();
    } else if (dice < 88 && !snapshots.empty()) {
      const auto& [snapshot, then] = snapshots[random() % snapshots.size()];
      for (const auto& [space, model] : then)
        ASSERT_EQ(Scan(store, space, snapshot.get()), Text(model)) << step;
    } else if (dice < 94) {
      for (const auto& [space, model] : models) ASSERT_EQ(Scan(store, space), Text(model)) << step;
      ASSERT_EQ(store->Namespaces()->namespaces.size(), models.size());
    } else {
      const NamespaceId space = any();
      uint64_t bytes = 0;
      for (const auto& [key, value] : models[space]) bytes += key.size() + value.size();
      const absl::StatusOr<CountResult> count = store->Count({.space = space}, {}, {});
      ASSERT_TRUE(count.ok()) << count.status();
      ASSERT_EQ(count->keys, models[space].size()) << "step " << step << ", namespace " << space;
      ASSERT_EQ(count->bytes, bytes) << "step " << step << ", namespace " << space;
    }
    if (batch.empty()) continue;
    const absl::Status written = store->Write({}, &batch).status();
    ASSERT_TRUE(written.ok()) << written << ", step " << step;
    models = std::move(next);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, NamespacesModelTest, ::testing::Range<uint64_t>(1, 9));

}  // namespace
}  // namespace varve
