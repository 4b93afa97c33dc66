// Replication: a follower commits what its primary has, with the same versions.
#include "varve/replication.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/eager_picker.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/rounds.h"
#include "unit-tests/testing/test_store.h"
#include "varve/checkpoint.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::TempDir;

constexpr uint64_t kRetained = uint64_t{1} << 30;

EngineOptions ReplicatedOptions(const Clock* clock) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 32u << 10;
  options.log_file_size = 64u << 10;
  options.value_separation_size = 1024;
  options.history.bytes = 1u << 20;
  options.compaction_picker = std::make_shared<testing::EagerPicker>();
  options.clock = clock;
  return options;
}

class ReplicationTest : public ::testing::Test {
 protected:
  ReplicationTest() {
    Open(&primary_, "primary");
    EXPECT_TRUE(ReplicationOf(primary_.get())->RetainForFollowers(kRetained).ok());
    Copy("primary", primary_.get(), "follower");
    Open(&follower_, "follower");
    Follow(follower_.get());
  }

  void Open(std::unique_ptr<StorageEngine>* store, const std::string& name) {
    store->reset();
    EngineOptions options = ReplicatedOptions(&clock_);
    options.follows = name != "primary";
    options.changes.bytes = retained_;
    auto opened = StorageEngine::Open(directory_.File(name), options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    *store = *std::move(opened);
  }

  static void Follow(StorageEngine* store) {
    ReplicationOf(store)->SetFollowing(true);
    ASSERT_TRUE(ReplicationOf(store)->RetainForFollowers(kRetained).ok());
  }

  void Copy(const std::string& /*from*/, StorageEngine* store, const std::string& to) {
    const absl::StatusOr<Checkpoint> made = CreateCheckpoint(store, directory_.File(to));
    ASSERT_TRUE(made.ok()) << made.status();
  }

  // Has the follower take what the primary has.
  static absl::Status CatchUp(StorageEngine* primary, StorageEngine* follower,
                              size_t most_bytes = 20'000) {
    EXPECT_TRUE(primary->Sync().ok());
    ReplicatedStore* const to = ReplicationOf(follower);
    auto feed = ReplicationOf(primary)->NewReplicaFeed(to->Identity().newest);
    if (!feed.ok()) return feed.status();
    for (;;) {
      absl::StatusOr<std::string> blocks = (*feed)->Next(most_bytes);
      if (!blocks.ok()) return blocks.status();
      if (blocks->empty()) return absl::OkStatus();
      if (absl::Status applied = to->ApplyReplicated(*blocks); !applied.ok()) return applied;
    }
  }

  // Everything that readers of the store see, with versions, expiries and metadata.
  static std::string Shown(StorageEngine* store) {
    std::string shown;
    const auto list = store->Namespaces();
    EXPECT_TRUE(list.ok());
    for (const NamespaceDescription& space : list->namespaces) {
      shown += fmt::format("[{} '{}' {} {} {}]\n", space.id, space.name, space.options.max_keys,
                           space.options.max_bytes, space.options.default_expiry_ms);
      const auto keys = store->NewIterator({.space = space.id}, {}, {}, nullptr);
      for (keys->SeekToFirst(); keys->Valid(); keys->Next()) {
        std::string value;
        const auto read = store->Get({.space = space.id, .with_metadata = true},
                                     std::string(keys->key()), &value);
        EXPECT_TRUE(read.ok() && read->found);
        shown += fmt::format("{}={:.20}#{} at {} until {} with {}\n", std::string(keys->key()),
                             value, value.size(), read->version, read->expiry_ms,
                             read->metadata ? *read->metadata : "");
      }
      EXPECT_TRUE(keys->status().ok()) << keys->status();
    }
    for (const FeedPlace& feed : store->Feeds())
      shown += fmt::format("feed {} at {}\n", feed.name, feed.position);
    return shown;
  }

  // The sweep of expired keys, and readers who find one, write to the primary, too: the stores are
  // compared at a version that both have before and after.
  void ExpectSame() {
    SequenceNumber before = kNoSequence;
    std::string primary, follower;
    do {
      before = ReplicationOf(primary_.get())->Identity().newest;
      const absl::Status caught_up = CatchUp(primary_.get(), follower_.get());
      ASSERT_TRUE(caught_up.ok()) << caught_up;
      primary = Shown(primary_.get());
      follower = Shown(follower_.get());
    } while (ReplicationOf(primary_.get())->Identity().newest != before);
    EXPECT_EQ(ReplicationOf(follower_.get())->Identity().newest, before);
    EXPECT_EQ(primary, follower);
  }

  TempDir directory_;
  testing::ManualClock clock_;
  uint64_t retained_ = kRetained;
  std::unique_ptr<StorageEngine> primary_, follower_;
};

std::string SomeKey(std::mt19937* random) { return fmt::format("k{:03}", (*random)() % 200); }

// Adds some random changes of keys.
void ChangeKeys(WriteBatch* batch, std::mt19937* random, uint64_t now_ms) {
  for (size_t i = (*random)() % 4 + 1; i > 0; --i) {
    const std::string key = SomeKey(random);
    const uint64_t kind = (*random)() % 10;
    if (kind < 6) {
      batch->Put(key, std::string((*random)() % 50 == 0 ? 3000 : (*random)() % 60, 'v'));
    } else if (kind == 6) {
      batch->Put(key, "x", {.expiry_ms = now_ms + (*random)() % 2000, .metadata = "m"});
    } else if (kind == 7) {
      batch->Put(key, "y", {.expiry_ms = kNoExpiry, .cause = WriteCause::kExpiryChange});
    } else {
      batch->Delete(key);
    }
  }
}

// One random change of the primary.
void ChangeSomething(StorageEngine* store, std::mt19937* random, uint64_t now_ms) {
  const auto key = [&] { return SomeKey(random); };
  const auto list = store->Namespaces();
  ASSERT_TRUE(list.ok());
  const NamespaceDescription space = list->namespaces[(*random)() % list->namespaces.size()];
  WriteBatch batch;
  batch.UseNamespace(space.id);
  switch ((*random)() % 24) {
    case 0:
      batch.DeleteRange(key(), key());
      break;
    case 1:
      batch.ClearNamespace(space.id);
      batch.Put(key(), "after");
      break;
    case 2:
      batch.CreateNamespace(
          {.id = list->next_id, .name = fmt::format("n{}", list->next_id), .options = {}});
      batch.Put(key(), "first", list->next_id);
      break;
    case 3:
      batch.CloneNamespace(space.id,
                           {.id = list->next_id, .name = fmt::format("c{}", list->next_id)});
      break;
    case 4:
      if (list->namespaces.size() < 4 || space.id == kDefaultNamespace) return;
      batch.DropNamespace(space.id);
      break;
    case 5:
      batch.SwapNamespaces(kDefaultNamespace, space.id);
      break;
    case 6:
      if (space.name.empty()) return;
      batch.AlterNamespace({.id = space.id,
                            .name = fmt::format("r{}-{}", space.id, (*random)() % 100),
                            .options = {.max_keys = 1000 + (*random)() % 1000}});
      break;
    case 7:
      (void)store->CreateFeed(
          {.name = fmt::format("f{}", (*random)() % 5), .position = kMaxSequence});
      return;
    case 8:
      (void)store->DropFeed(fmt::format("f{}", (*random)() % 5));
      return;
    case 9: {
      batch.CloneNamespaceAt(space.id, ReplicationOf(store)->Identity().newest - 1,
                             {.id = list->next_id, .name = fmt::format("p{}", list->next_id)});
      (void)store->Write({}, &batch);
      return;
    }
    default:
      ChangeKeys(&batch, random, now_ms);
  }
  if (batch.empty()) return;
  const auto written = store->Write({}, &batch);
  ASSERT_TRUE(written.ok() || absl::IsResourceExhausted(written.status())) << written.status();
}

TEST_F(ReplicationTest, AFollowerHasWhatThePrimaryHas) {
  std::mt19937 random(20261126);
  for (int round = 0; round < testing::Rounds(40); ++round) {
    for (int i = 0; i < 50; ++i) ChangeSomething(primary_.get(), &random, primary_->NowMillis());
    clock_.Advance(100);
    const absl::Status caught_up = CatchUp(primary_.get(), follower_.get());
    ASSERT_TRUE(caught_up.ok()) << caught_up;
    if (round % 10 == 9) Open(&primary_, "primary");
    if (round % 7 == 6) {
      Open(&follower_, "follower");
      Follow(follower_.get());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame()) << "round " << round;
    if (HasFailure()) return;
  }
}

TEST_F(ReplicationTest, AFollowerHasFollowers) {
  Copy("follower", follower_.get(), "second");
  std::unique_ptr<StorageEngine> second;
  Open(&second, "second");
  Follow(second.get());
  std::mt19937 random(7);
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 100; ++i) ChangeSomething(primary_.get(), &random, primary_->NowMillis());
    ASSERT_TRUE(CatchUp(primary_.get(), follower_.get()).ok());
    ASSERT_TRUE(CatchUp(follower_.get(), second.get()).ok());
    EXPECT_EQ(Shown(primary_.get()), Shown(second.get()));
  }
}

TEST_F(ReplicationTest, AFollowerRefusesWritesUntilItIsPromoted) {
  ASSERT_TRUE(primary_->Put("a", "1").ok());
  ASSERT_TRUE(CatchUp(primary_.get(), follower_.get()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(follower_->Put("b", "2")));
  ReplicatedStore* const promoted = ReplicationOf(follower_.get());
  promoted->SetFollowing(false);
  ASSERT_TRUE(promoted->SetHistoryId(4711).ok());
  ASSERT_TRUE(follower_->Put("b", "2").ok());
  Open(&follower_, "follower");
  EXPECT_EQ(ReplicationOf(follower_.get())->Identity().history_id, 4711u);
  std::string value;
  ASSERT_TRUE(follower_->Get({}, "b", &value).ok());
  EXPECT_EQ(value, "2");
}

TEST_F(ReplicationTest, WhatHasExpiredIsHiddenAndThePrimaryRemovesIt) {
  WriteBatch batch;
  batch.Put("a", "1", {.expiry_ms = primary_->NowMillis() + 10});
  ASSERT_TRUE(primary_->Write({}, &batch).ok());
  ASSERT_TRUE(CatchUp(primary_.get(), follower_.get()).ok());
  clock_.Advance(20);
  const SequenceNumber newest = ReplicationOf(follower_.get())->Identity().newest;
  std::string value;
  const auto read = follower_->Get({}, "a", &value);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->found);
  EXPECT_EQ(ReplicationOf(follower_.get())->Identity().newest, newest);
}

TEST_F(ReplicationTest, NothingIsDurableBehindTheBound) {
  EngineOptions options = ReplicatedOptions(&clock_);
  options.sync = Durability::kAlways;
  auto opened = StorageEngine::Open(directory_.File("bounded"), options);
  ASSERT_TRUE(opened.ok());
  StorageEngine& store = **opened;
  ASSERT_TRUE(store.Put("a", "1").ok());
  const SequenceNumber first = ReplicationOf(&store)->Identity().newest;
  ReplicationOf(&store)->BoundDurable(first);
  WriteBatch batch;
  batch.Put("b", "2");
  const auto submitted = store.Submit({}, &batch);
  ASSERT_TRUE(submitted.ok());
  ASSERT_TRUE(store.Sync().ok());
  EXPECT_EQ(store.durable_sequence(), first);
  ReadOptions reads;
  reads.wait_until_durable = false;
  std::string value;
  auto read = store.Get(reads, "b", &value);
  ASSERT_TRUE(read.ok() && read->found);
  EXPECT_EQ(read->durable_after, submitted->sequence);
  ASSERT_TRUE(store.Flush().ok());
  read = store.Get(reads, "b", &value);
  ASSERT_TRUE(read.ok() && read->found);
  EXPECT_EQ(read->durable_after, submitted->sequence) << "in a segment";
  ReplicationOf(&store)->BoundDurable(kMaxSequence);
  read = store.Get(reads, "b", &value);
  ASSERT_TRUE(read.ok() && read->found);
  EXPECT_EQ(read->durable_after, kNoSequence);
}

// What expires is the primary's to remove. A follower that removed it between its opening and
// SetFollowing() would give the primary's next version to something of its own.
TEST_F(ReplicationTest, AFollowerThatIsOpenedWritesNothingOfItsOwn) {
  for (int i = 0; i < 100; ++i) {
    WriteBatch batch;
    batch.Put(fmt::format("k{}", i), "v", {.expiry_ms = primary_->NowMillis() + 1000});
    ASSERT_TRUE(primary_->Write({}, &batch).ok());
  }
  ASSERT_TRUE(CatchUp(primary_.get(), follower_.get()).ok());
  const SequenceNumber newest = ReplicationOf(follower_.get())->Identity().newest;
  clock_.Advance(60'000);
  for (int i = 0; i < 20; ++i) {
    Open(&follower_, "follower");
    std::string value;
    EXPECT_FALSE(follower_->Get({}, "k1", &value)->found);
    ASSERT_EQ(ReplicationOf(follower_.get())->Identity().newest, newest);
  }
  ReplicationOf(follower_.get())->SetFollowing(false);
  EXPECT_TRUE(testing::Eventually([&] {
    return ReplicationOf(follower_.get())->Identity().newest > newest;
  })) << "a primary removes it";
}

TEST_F(ReplicationTest, WhatDoesNotFollowIsRefused) {
  ASSERT_TRUE(primary_->Put("a", "1").ok());
  ASSERT_TRUE(primary_->Sync().ok());
  ReplicatedStore* const to = ReplicationOf(follower_.get());
  auto feed = ReplicationOf(primary_.get())->NewReplicaFeed(to->Identity().newest);
  ASSERT_TRUE(feed.ok());
  std::string blocks = (*feed)->Next(1).value();
  std::string damaged = blocks;
  damaged.back() ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(to->ApplyReplicated(damaged)));
  EXPECT_TRUE(absl::IsDataLoss(to->ApplyReplicated(blocks.substr(0, blocks.size() - 1))));
  ASSERT_TRUE(to->ApplyReplicated(blocks).ok());
  EXPECT_TRUE(absl::IsOutOfRange(to->ApplyReplicated(blocks)));
  EXPECT_TRUE(
      absl::IsOutOfRange(ReplicationOf(primary_.get())->NewReplicaFeed(kMaxSequence - 1).status()));
}

// A follower whose disk fails at some call goes on from where it was, once it is opened anew.
TEST_F(ReplicationTest, AFollowerWhoseCallsFailGoesOnFromWhereItWas) {
  std::mt19937 random(4);
  for (int round = 0; round < testing::Rounds(40); ++round) {
    for (int i = 0; i < 40; ++i) ChangeSomething(primary_.get(), &random, primary_->NowMillis());
    follower_.reset();
    testing::FaultFileSystem faulty;
    EngineOptions options = ReplicatedOptions(&clock_);
    options.changes.bytes = kRetained;
    options.file_system = &faulty;
    options.follows = true;
    auto opened = StorageEngine::Open(directory_.File("follower"), options);
    ASSERT_TRUE(opened.ok()) << opened.status();
    ReplicationOf(opened->get())->SetFollowing(true);
    faulty.FailBehind(random() % 60);
    (void)CatchUp(primary_.get(), opened->get(), /*most_bytes=*/2'000);
    opened->reset();
    Open(&follower_, "follower");
    Follow(follower_.get());
    ASSERT_NO_FATAL_FAILURE(ExpectSame()) << "round " << round;
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace varve
