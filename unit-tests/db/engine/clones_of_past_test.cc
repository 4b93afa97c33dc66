// Clones of namespaces as they were at an older version: what they hold, what keeps it, and how
// they count, across flushes, merges, restarts and the end of the history that they came from.
// clones_model_test.cc has all of it at random.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;

constexpr NamespaceId kBranch = 7;

class ClonesOfPastTest : public ::testing::Test {
 protected:
  ClonesOfPastTest() { Open({.time_ms = 60'000}); }

  void Open(const HistoryLimits& limits) {
    EngineOptions options = testing::TestEngineOptions();
    options.sync = Durability::kNone;
    options.runs_per_level = 2;
    options.history = limits;
    options.clock = &clock_;
    store_ = std::make_unique<TestStore>(options);
  }
  absl::StatusOr<CommitResult> TryChange(const std::function<void(WriteBatch*)>& fill) {
    WriteBatch batch;
    fill(&batch);
    return (*store_)->Write({}, &batch);
  }
  // Returns the version.
  SequenceNumber Change(const std::function<void(WriteBatch*)>& fill) {
    const absl::StatusOr<CommitResult> committed = TryChange(fill);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return committed.ok() ? committed->sequence : kNoSequence;
  }
  SequenceNumber Put(std::string_view key, std::string_view value, NamespaceId space = 0,
                     uint64_t expiry_ms = kNoExpiry) {
    return Change([&](WriteBatch* batch) { batch->Put(key, value, space, expiry_ms); });
  }
  absl::Status Clone(NamespaceId source, SequenceNumber version, NamespaceId id = kBranch) {
    return TryChange(
               [&](WriteBatch* batch) { batch->CloneNamespaceAt(source, version, {.id = id}); })
        .status();
  }
  std::string Scan(NamespaceId space, const Snapshot* snapshot = nullptr) {
    std::string text;
    const auto iterator =
        (*store_)->NewIterator({.snapshot = snapshot, .space = space}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
    return iterator->status().ok() ? text : iterator->status().ToString();
  }
  std::string Get(NamespaceId space, std::string_view key) {
    std::string value;
    const absl::StatusOr<ReadResult> read = (*store_)->Get({.space = space}, key, &value);
    if (!read.ok()) return read.status().ToString();
    return read->found ? value : "(missing)";
  }
  uint64_t Count(NamespaceId space) {
    const absl::StatusOr<CountResult> count = (*store_)->Count({.space = space}, {}, {});
    EXPECT_TRUE(count.ok()) << count.status();
    return count.ok() ? count->keys : 0;
  }
  // Time goes by, until nothing of the history is left but what clones hold.
  void ForgetHistory() {
    clock_.Advance(120'000);
    Put("mark", "m");
    ASSERT_TRUE(testing::Eventually([&] {
      EXPECT_TRUE((*store_)->Flush().ok());
      EXPECT_TRUE((*store_)->Compact({}, {}).ok());
      return *(*store_)->FirstVersion(0) > forgotten_;
    }));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE((*store_)->Compact({}, {}).ok());
    Change([](WriteBatch* batch) { batch->Delete("mark"); });
  }

  ManualClock clock_;
  std::unique_ptr<TestStore> store_;
  SequenceNumber forgotten_ = kNoSequence;  // ForgetHistory() waits for a horizon above it
};

TEST_F(ClonesOfPastTest, ABranchHoldsWhatWasThereAndLeavesItsSourceAlone) {
  Put("a", "1");
  const SequenceNumber version = Put("b", "1");
  Put("a", "2");
  Put("c", "2");
  Change([](WriteBatch* batch) { batch->Delete("b"); });
  ASSERT_TRUE(Clone(0, version).ok());
  EXPECT_EQ(Count(kBranch), 2u);
  Put("b", "branch", kBranch);
  Put("d", "branch", kBranch);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Scan(kBranch), "a=1 b=branch d=branch ");
    EXPECT_EQ(Scan(0), "a=2 c=2 ");
    EXPECT_EQ(Get(kBranch, "a"), "1");
    EXPECT_EQ(Count(kBranch), 3u);
    EXPECT_EQ(Count(0), 2u);
    if (i == 0) ASSERT_TRUE((*store_)->Compact({}, {}).ok());
    if (i == 1) store_->Reopen();
  }
}

TEST_F(ClonesOfPastTest, AnEmptiedNamespaceIsBackAndStaysWithoutItsHistory) {
  for (int i = 0; i < 100; ++i) Put(fmt::format("key{:02}", i), "value");
  forgotten_ = Put("last", "value");
  Change([](WriteBatch* batch) { batch->ClearNamespace(0); });
  ASSERT_TRUE((*store_)->Flush().ok());
  ASSERT_TRUE(Clone(0, forgotten_).ok());
  EXPECT_EQ(Count(0), 0u);
  for (const bool crashed : {false, true}) {
    EXPECT_EQ(Count(kBranch), 101u);
    EXPECT_EQ(Get(kBranch, "key42"), "value");
    if (!crashed) ForgetHistory();
    ASSERT_TRUE((*store_)->Push().ok());
    store_->Open();
  }
  EXPECT_TRUE(FirstOfTrimmed(Clone(0, forgotten_, 8)).has_value());
}

// The clone stands on a generation that is a clone itself and that nothing else keeps: the manifest
// has forgotten it, so the log has to tell of it.
TEST_F(ClonesOfPastTest, TheLogAloneKeepsTheForksOfAForgottenClone) {
  Put("a", "source");
  Change([](WriteBatch* batch) { batch->CloneNamespace(0, {.id = 5}); });
  forgotten_ = Put("b", "clone", 5);
  Change([](WriteBatch* batch) { batch->DropNamespace(5); });
  ASSERT_TRUE((*store_)->Flush().ok());
  ASSERT_TRUE(Clone(5, forgotten_).ok());
  EXPECT_EQ(Scan(kBranch), "a=source b=clone ");
  ForgetHistory();
  EXPECT_EQ(Scan(kBranch), "a=source b=clone ");
  EXPECT_EQ(Count(kBranch), 2u);
  store_->Reopen();
  EXPECT_EQ(Scan(kBranch), "a=source b=clone ");
  Change([](WriteBatch* batch) { batch->DropNamespace(kBranch); });
  EXPECT_TRUE(IsNoSuchNamespace((*store_)->Count({.space = kBranch}, {}, {}).status()));
}

TEST_F(ClonesOfPastTest, WhatCannotBeClonedIsRefusedAndLeavesTheBatch) {
  const SequenceNumber version = Put("a", "1");
  const SequenceNumber newest = Put("a", "2");
  EXPECT_TRUE(absl::IsOutOfRange(Clone(0, newest + 10)));
  EXPECT_FALSE(FirstOfTrimmed(Clone(0, newest + 10)).has_value());
  EXPECT_TRUE(IsNoSuchNamespace(Clone(77, newest)));
  EXPECT_TRUE(absl::IsAlreadyExists(Clone(0, version, 0)));
  WriteBatch batch;
  batch.CloneNamespaceAt(0, version, {.id = 0});
  EXPECT_TRUE(absl::IsAlreadyExists((*store_)->Write({}, &batch).status()));
  EXPECT_EQ(batch.size(), 1u);
  batch.Put("b", "1");
  EXPECT_TRUE(absl::IsInvalidArgument((*store_)->Write({}, &batch).status()));
  Open({});
  const SequenceNumber old = Put("a", "1");
  Put("a", "2");
  EXPECT_EQ(FirstOfTrimmed(Clone(0, old)), *(*store_)->FirstVersion(0));
  EXPECT_TRUE(Clone(0, *(*store_)->FirstVersion(0)).ok()) << "the present is there";
  EXPECT_EQ(Scan(kBranch), "a=2 ");
}

TEST_F(ClonesOfPastTest, WhatHasExpiredByNowIsNotInItAndIsNotCounted) {
  const uint64_t now = clock_.WallMillis();
  Put("forever", "1");
  Put("gone", "1", 0, now + 1'000);
  Put("overwritten", "1", 0, now + 1'000);
  Put("later", "1", 0, now + 30'000);
  const SequenceNumber version = Put("made permanent", "1", 0, now + 30'000);
  Put("made permanent", "1");
  clock_.Advance(10'000);
  EXPECT_EQ(Count(0), 3u) << "the sweeper has removed the others";
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  ASSERT_TRUE(Clone(0, version).ok());
  Put("overwritten", "2", kBranch);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Scan(kBranch), "forever=1 later=1 made permanent=1 overwritten=2 ");
    EXPECT_EQ(Get(kBranch, "gone"), "(missing)");
    EXPECT_EQ(Count(kBranch), 4u);
    if (i == 0) ASSERT_TRUE((*store_)->Compact({}, {}, kBranch).ok());
    if (i == 1) store_->Reopen();
  }
  clock_.Advance(30'000);
  EXPECT_EQ(Scan(kBranch), "forever=1 overwritten=2 ");
  EXPECT_EQ(Count(kBranch), 2u);
  EXPECT_EQ(Count(0), 2u) << "there it was made permanent";
}

// The sweeper has removed the index's entry, so nobody would ever remove the key from the clone.
TEST_F(ClonesOfPastTest, WhatTheSweeperRemovedStaysAwayThoughTheClockIsSetBack) {
  const uint64_t now = clock_.WallMillis();
  Put("forever", "1");
  const SequenceNumber version = Put("swept", "1", 0, now + 1'000);
  clock_.Advance(10'000);
  EXPECT_EQ(Count(0), 1u);
  clock_.SetWall(now);
  store_->Reopen();
  ASSERT_TRUE(Clone(0, version).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Scan(kBranch), "forever=1 ");
    EXPECT_EQ(Count(kBranch), 1u);
    clock_.Advance(7'200'000);
  }
}

// One entry of the index stands for several records whose instants are close.
TEST_F(ClonesOfPastTest, AKeyExpiresThoughItsNewerRecordExpiredFirst) {
  const uint64_t now = clock_.WallMillis();
  const SequenceNumber version = Put("key", "old", 0, now + 32'300);
  Put("key", "new", 0, now + 32'100);
  clock_.Advance(32'200);
  EXPECT_EQ(Count(0), 0u);
  ASSERT_TRUE(Clone(0, version).ok());
  EXPECT_EQ(Count(kBranch), 1u);
  clock_.Advance(200);
  EXPECT_EQ(Count(kBranch), 0u);
}

TEST_F(ClonesOfPastTest, ABranchHasAHistoryAndBranchesOfItsOwn) {
  const SequenceNumber version = Put("a", "1");
  Put("a", "2");
  ASSERT_TRUE(Clone(0, version).ok());
  const SequenceNumber branched = Put("b", "1", kBranch);
  Put("b", "2", kBranch);
  ASSERT_TRUE(Clone(kBranch, branched, 8).ok());
  Put("a", "3", 8);
  ASSERT_TRUE((*store_)->Compact({}, {}).ok());
  EXPECT_EQ(Scan(8), "a=3 b=1 ");
  EXPECT_EQ(Count(8), 2u);
  EXPECT_EQ(Scan(kBranch, (*store_)->SnapshotAt(kBranch, branched)->get()), "a=1 b=1 ");
  EXPECT_TRUE(FirstOfTrimmed((*store_)->SnapshotAt(kBranch, version).status()).has_value() ||
              IsNoSuchNamespace((*store_)->SnapshotAt(kBranch, version).status()));
}

TEST_F(ClonesOfPastTest, ADroppedNamespaceComesBackUnderItsId) {
  const NamespaceId id = (*store_)->Namespaces()->next_id;
  const NamespaceDescription space{.id = id, .name = "named", .options = {.max_keys = 10}};
  Change([&](WriteBatch* batch) { batch->CreateNamespace(space); });
  const SequenceNumber first = Put("a", "1", id);
  Put("a", "2", id);
  const SequenceNumber dropped = Change([&](WriteBatch* batch) { batch->DropNamespace(id); });
  const auto all = (*store_)->DroppedNamespaces();
  ASSERT_TRUE(all.ok() && all->size() == 1) << all.status();
  EXPECT_EQ(all->front().space, space);
  EXPECT_EQ(all->front().dropped_at, dropped);
  store_->Reopen();
  ASSERT_EQ((*store_)->DroppedNamespaces()->size(), 1u);
  const SequenceNumber back =
      Change([&](WriteBatch* batch) { batch->CloneNamespaceAt(id, dropped - 1, space); });
  for (const bool reopened : {false, true}) {
    if (reopened) store_->Reopen();
    ASSERT_NE((*store_)->Namespaces()->Find("named"), nullptr);
    EXPECT_EQ(*(*store_)->Namespaces()->Find("named"), space);
    EXPECT_GT((*store_)->Namespaces()->next_id, id);
    EXPECT_EQ(Scan(id), "a=2 ");
    EXPECT_EQ(Scan(id, (*store_)->SnapshotAt(id, first)->get()), "a=1 ");
    EXPECT_EQ(Scan(id, (*store_)->SnapshotAt(id, back)->get()), "a=2 ");
    EXPECT_TRUE(IsNoSuchNamespace((*store_)->SnapshotAt(id, dropped).status()));
  }
}

}  // namespace
}  // namespace varve
