// Clones of namespaces: what each side keeps when the other one changes, goes, or what is below
// them is merged away.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "db/format/namespace_forks.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/namespace_calls.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::Clone;
using testing::Create;
using testing::Delete;
using testing::Drop;
using testing::Eventually;
using testing::ManualClock;
using testing::Put;
using testing::Scan;
using testing::TestStore;

constexpr NamespaceId kClone = 5, kSecond = 6;

absl::Status Clear(TestStore& store, NamespaceId id) {
  WriteBatch batch;
  batch.ClearNamespace(id);
  return store->Write({}, &batch).status();
}
uint64_t KeysIn(TestStore& store, NamespaceId space) {
  const absl::StatusOr<CountResult> count = store->Count({.space = space}, {}, {});
  EXPECT_TRUE(count.ok()) << count.status();
  return count.ok() ? count->keys : ~uint64_t{0};
}
void FillNamespace(TestStore& store, NamespaceId space, int keys) {
  WriteBatch batch;
  for (int i = 0; i < keys; ++i)
    batch.Put(fmt::format("key{:04}", i), std::string(100, 'v'), space);
  ASSERT_TRUE(store->Write({}, &batch).ok());
}

TEST(ClonesTest, EachSideGoesItsOwnWay) {
  TestStore store;
  for (const std::string key : {"a", "b", "c"}) ASSERT_TRUE(Put(store, 0, key, "old").ok());
  ASSERT_TRUE(Clone(store, 0, kClone).ok());
  ASSERT_TRUE(Put(store, 0, "a", "source").ok());
  ASSERT_TRUE(Delete(store, 0, "b").ok());
  ASSERT_TRUE(Put(store, kClone, "c", "clone").ok());
  ASSERT_TRUE(Delete(store, kClone, "a").ok());
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(Scan(store, 0), "a=source c=old ");
    EXPECT_EQ(Scan(store, kClone), "b=old c=clone ");
    EXPECT_EQ(KeysIn(store, 0), 2u);
    EXPECT_EQ(KeysIn(store, kClone), 2u);
    if (round == 0) store.Reopen();
    if (round == 1) ASSERT_TRUE(store->Flush().ok());
    if (round == 2) {
      ASSERT_TRUE(store->Compact({}, {}, kClone).ok());
      ASSERT_TRUE(store->Compact({}, {}, 0).ok());
    }
  }
}

TEST(ClonesTest, WhatIsRefusedChangesNothing) {
  TestStore store;
  ASSERT_TRUE(Put(store, 0, "key", "value").ok());
  EXPECT_TRUE(IsNoSuchNamespace(Clone(store, 9, kClone)));
  EXPECT_TRUE(absl::IsAlreadyExists(Clone(store, 0, 0)));
  EXPECT_TRUE(IsNoSuchNamespace(Clone(store, kExpirySpace, kClone))) << "the engine's own";
  WriteBatch batch;
  batch.Put("other", "value");
  batch.CloneNamespace(0, {.id = kClone});
  EXPECT_TRUE(absl::IsInvalidArgument(store->Write({}, &batch).status()));
  EXPECT_EQ(Scan(store, 0), "key=value ");
  EXPECT_FALSE(store->HasNamespace(kClone));
  NamespaceId last = 0;
  for (NamespaceId id = 10; id < 10 + kMaxCloneDepth; last = id++) {
    ASSERT_TRUE(Clone(store, last, id).ok());
    ASSERT_TRUE(Put(store, id, fmt::format("key{}", id), "").ok());
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Clone(store, last, kClone)));
  EXPECT_EQ(KeysIn(store, last), 1 + kMaxCloneDepth);
  ASSERT_TRUE(Clone(store, 0, kClone).ok()) << "the first one can be cloned for ever";
  EXPECT_EQ(Scan(store, kClone), "key=value ");
}

// Whole segments of the source are hidden from everybody but the clone.
TEST(ClonesTest, OutliveWhatTheirSourceDeletes) {
  for (int way = 0; way < 3; ++way) {
    TestStore store;
    ASSERT_TRUE(Create(store, 1).ok());
    FillNamespace(store, 1, 500);
    ASSERT_TRUE(store->Flush().ok());
    ASSERT_TRUE(Clone(store, 1, kClone).ok());
    const uint64_t compactions = store.Statistic("compactions");
    if (way == 0) {
      WriteBatch batch;
      batch.DeleteRange({}, {}, 1);
      ASSERT_TRUE(store->Write({}, &batch).ok());
    } else {
      ASSERT_TRUE(way == 1 ? Clear(store, 1).ok() : Drop(store, 1).ok());
    }
    ASSERT_TRUE(store->Flush().ok());
    store.Reopen();
    ASSERT_TRUE(Put(store, 0, "key", "value").ok());
    ASSERT_TRUE(store->Flush().ok());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ASSERT_TRUE(store->Compact({}, {}, kClone).ok());
    ASSERT_TRUE(store->Compact({}, {}, 0).ok());
    EXPECT_EQ(KeysIn(store, kClone), 500u)
        << "way " << way << ", compactions before: " << compactions;
    std::string value;
    EXPECT_TRUE(store->Get({.space = kClone}, "key0123", &value)->found);
    // When the clone goes, too, nothing keeps them.
    ASSERT_TRUE(Drop(store, kClone).ok());
    ASSERT_TRUE(store->Flush().ok());
    ASSERT_TRUE(store->Compact({}, {}, 0).ok());
    EXPECT_TRUE(Eventually([&] { return store.Statistic("segment_entries") == 1; }))
        << "way " << way;
  }
}

TEST(ClonesTest, ASnapshotKeepsAClonesParent) {
  TestStore store;
  ASSERT_TRUE(Create(store, 1).ok());
  FillNamespace(store, 1, 100);
  ASSERT_TRUE(Clone(store, 1, kClone).ok());
  ASSERT_TRUE(Delete(store, kClone, "key0000").ok());
  const auto snapshot = store->GetSnapshot();
  const auto iterator = store->NewIterator({.space = kClone}, {}, {}, nullptr);
  ASSERT_TRUE(Drop(store, 1).ok());
  ASSERT_TRUE(Drop(store, kClone).ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(Put(store, 0, "key", "value").ok());
    ASSERT_TRUE(store->Flush().ok());
    ASSERT_TRUE(store->Compact({}, {}, 0).ok());
  }
  EXPECT_EQ(store->Count({.snapshot = snapshot.get(), .space = kClone}, {}, {})->keys, 99u);
  iterator->SeekToLast();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "key0099");
}

TEST(ClonesTest, ConditionsOnTheSourceDontSeeThem) {
  TestStore store;
  ASSERT_TRUE(Put(store, 0, "key", "value").ok());
  std::string value;
  const ReadResult read = store->Get({}, "key", &value).value();
  ASSERT_TRUE(Clone(store, 0, kClone).ok());
  const ReadResult of_clone = store->Get({.space = kClone}, "key", &value).value();
  EXPECT_EQ(of_clone.version, read.version) << "it is the same record";
  ASSERT_TRUE(Put(store, kClone, "key", "changed").ok());
  WriteBatch batch;
  batch.RequireUnchanged("key", read.read_sequence);
  batch.Put("key", "again");
  EXPECT_TRUE(store->Write({}, &batch).ok());
  batch.RequireUnchanged("key", of_clone.read_sequence, kClone);
  batch.Put("key", "again", kClone);
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
}

class ExpiryInClonesTest : public ::testing::Test {
 protected:
  EngineOptions Options() {
    EngineOptions options = testing::TestEngineOptions();
    options.clock = &clock_;
    return options;
  }
  void Expire(NamespaceId space, const std::string& key, uint64_t expiry_ms) {
    WriteBatch batch;
    batch.Put(key, "value", space, expiry_ms);
    ASSERT_TRUE(store_->Write({}, &batch).ok());
  }

  ManualClock clock_;
  TestStore store_{Options()};
};

TEST_F(ExpiryInClonesTest, WhatExpiresIsRemovedOnEachSideWhereItHas) {
  const uint64_t soon = ManualClock::kStart + 1000, later = soon + 1000;
  for (const std::string key : {"both", "kept by source", "kept by clone", "renewed"})
    Expire(0, key, soon);
  ASSERT_TRUE(Clone(store_, 0, kClone).ok());
  Expire(0, "kept by source", kNoExpiry);
  Expire(kClone, "kept by clone", kNoExpiry);
  Expire(0, "renewed", later);
  ASSERT_TRUE(Clone(store_, kClone, kSecond).ok());
  for (int round = 0; round < 2; ++round) {
    if (round == 0) clock_.Advance(1000);
    if (round == 1) store_.Reopen();
    EXPECT_EQ(Scan(store_, 0), "kept by source=value renewed=value ");
    EXPECT_EQ(Scan(store_, kClone), "kept by clone=value ");
    EXPECT_EQ(Scan(store_, kSecond), "kept by clone=value ");
    EXPECT_EQ(KeysIn(store_, 0), 2u);
    EXPECT_EQ(KeysIn(store_, kClone), 1u);
    EXPECT_EQ(KeysIn(store_, kSecond), 1u);
  }
  clock_.Advance(1000);
  EXPECT_EQ(KeysIn(store_, 0), 1u);
}

// Where a clone comes between the sweep's look and its removal, the clone's key would stay for
// ever.
TEST_F(ExpiryInClonesTest, ACloneMadeDuringTheSweepLosesWhatHasExpired) {
  std::atomic<bool> stop{false};
  std::thread counting([&] {
    while (!stop) KeysIn(store_, 0);
  });
  uint64_t expiry = ManualClock::kStart;
  for (NamespaceId id = 10; id < 40; ++id) {
    for (int i = 0; i < 20; ++i) Expire(0, fmt::format("key{}", i), expiry + 1);
    clock_.Advance(++expiry + 1 - clock_.WallMillis());
    ASSERT_TRUE(Clone(store_, 0, id).ok());
  }
  stop = true;
  counting.join();
  clock_.Advance(1000);
  for (NamespaceId id = 10; id < 40; ++id) EXPECT_EQ(KeysIn(store_, id), 0u) << id;
}

// Each batch writes one number under two keys of the source; a clone has the same one under both.
TEST(ClonesTest, AreOfOneMomentUnderWriters) {
  TestStore store;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      WriteBatch batch;
      batch.Put("a", fmt::format("{}", i));
      batch.Put("b", fmt::format("{}", i));
      ASSERT_TRUE(store->Write({.sync = Durability::kNone, .override_sync = true}, &batch).ok());
    }
  });
  for (NamespaceId id = 10; id < 40; ++id) {
    ASSERT_TRUE(Clone(store, 0, id).ok());
    if (id % 8 == 0) ASSERT_TRUE(store->Flush().ok());
    std::string a, b;
    ASSERT_TRUE(store->Get({.space = id}, "a", &a).ok());
    ASSERT_TRUE(store->Get({.space = id}, "b", &b).ok());
    EXPECT_EQ(a, b);
    EXPECT_EQ(KeysIn(store, id), a.empty() ? 0u : 2u);
  }
  stop = true;
  writer.join();
  store.Reopen();
  for (NamespaceId id = 10; id < 40; ++id) {
    std::string a, b;
    ASSERT_TRUE(store->Get({.space = id}, "a", &a).ok());
    ASSERT_TRUE(store->Get({.space = id}, "b", &b).ok());
    EXPECT_EQ(a, b);
  }
}

// Another thread that counts at the same time may have looked further than to the fork point.
TEST(ClonesTest, CountsAreExactWhileOthersWriteAndCount) {
  TestStore store;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) {
      WriteBatch batch;
      const std::string key = fmt::format("k{}", i % 200);
      i / 200 % 2 == 0 ? batch.Put(key, "v") : batch.Delete(key);
      ASSERT_TRUE(store->Write({.sync = Durability::kNone, .override_sync = true}, &batch).ok());
    }
  });
  std::thread counting([&] {
    while (!stop) KeysIn(store, 0);
  });
  for (NamespaceId id = 10; id < 310; ++id) {
    ASSERT_TRUE(Clone(store, 0, id).ok());
    uint64_t keys = 0;
    const auto iterator = store->NewIterator({.space = id}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++keys;
    EXPECT_EQ(KeysIn(store, id), keys);
    ASSERT_TRUE(Drop(store, id).ok());
  }
  stop = true;
  writer.join();
  counting.join();
}

// A count looked up what was below a batch as of the sequence that was counted last. When a clone
// was made after it, range tombstones between the two were left out, and a key was counted as
// deleted once more.
TEST(ClonesTest, ACountOfAYoungCloneSeesWhatWasDeletedAboveItsParent) {
  constexpr NamespaceId kOfClone = kClone + 1;
  TestStore store;
  ASSERT_TRUE(Put(store, 0, "key", "value").ok());
  ASSERT_TRUE(Clone(store, 0, kClone).ok());
  EXPECT_EQ(KeysIn(store, kClone), 1u);
  // All of it behind what was counted up to here, so that the count looks up what was below.
  WriteBatch batch;
  batch.DeleteRange("k", "l", kClone);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(Clone(store, kClone, kOfClone).ok());
  ASSERT_TRUE(Delete(store, kOfClone, "key").ok());
  EXPECT_EQ(KeysIn(store, kOfClone), 0u);
  EXPECT_EQ(KeysIn(store, kClone), 0u);
}

TEST(ClonesTest, NothingStaysOfClonesThatAreGone) {
  TestStore store;
  ASSERT_TRUE(Put(store, 0, "a", "1").ok());
  const auto manifest_bytes = [&] {
    return std::filesystem::file_size(store.directory.path() + "/MANIFEST");
  };
  store.Reopen();
  const size_t before = manifest_bytes();
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Clone(store, 0, kClone).ok());
    EXPECT_EQ(KeysIn(store, kClone), 1u);
    ASSERT_TRUE(Drop(store, kClone).ok());
  }
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  EXPECT_LT(manifest_bytes(), before + 200);
}

// A clone's segment is counted by looking its keys up in the parent, never by reading
// the parent as a whole.
TEST(ClonesTest, CountingReadsLittleHoweverManyClonesThereAre) {
  EngineOptions options = testing::TestEngineOptions();
  options.block_cache_size = 0;
  TestStore store(options);
  FillNamespace(store, 0, 5000);
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Compact({}, {}, 0).ok());
  EXPECT_EQ(KeysIn(store, 0), 5000u);
  for (NamespaceId id = 10; id < 60; ++id) {
    ASSERT_TRUE(Clone(store, 0, id).ok());
    ASSERT_TRUE(Put(store, id, "a", "new").ok());
  }
  ASSERT_TRUE(store->Flush().ok());
  const uint64_t scanned = store.Statistic("scan_reads");
  for (NamespaceId id = 10; id < 60; ++id) EXPECT_EQ(KeysIn(store, id), 5001u);
  EXPECT_LT(store.Statistic("scan_reads"), scanned + 50);
}

// The removals of one key in all clones may be more than fit into a batch.
TEST_F(ExpiryInClonesTest, ALargeKeyGoesFromManyClones) {
  const std::string large(1u << 20, 'k');
  Expire(0, large, ManualClock::kStart + 10);
  Expire(0, "small", ManualClock::kStart + 10);
  for (NamespaceId id = 10; id < 50; ++id) ASSERT_TRUE(Clone(store_, 0, id).ok());
  clock_.Advance(1000);
  for (NamespaceId id = 10; id < 50; ++id) EXPECT_EQ(KeysIn(store_, id), 0u) << id;
  EXPECT_EQ(KeysIn(store_, 0), 0u);
  EXPECT_EQ(store_.Statistic("expired_keys"), 41u * 2);
}

TEST(ClonesTest, AQuotaCountsWhatIsShared) {
  TestStore store;
  for (const std::string key : {"a", "b"}) ASSERT_TRUE(Put(store, 0, key, "value").ok());
  WriteBatch batch;
  batch.CloneNamespace(0, {.id = kClone, .options = {.max_keys = 3}});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(Put(store, kClone, "a", "other").ok());
  ASSERT_TRUE(Put(store, kClone, "c", "third").ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, kClone, "d", "fourth")));
  ASSERT_TRUE(Delete(store, kClone, "b").ok());
  EXPECT_TRUE(Put(store, kClone, "d", "fourth").ok());
  EXPECT_TRUE(Put(store, 0, "d", "no quota here").ok());
  EXPECT_TRUE(IsNamespaceFull(Put(store, kClone, "e", "fifth")));
}

}  // namespace
}  // namespace varve
