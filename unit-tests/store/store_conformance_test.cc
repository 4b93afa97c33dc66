#include "unit-tests/store/store_conformance.h"

#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "varve/namespace_status.h"
#include "varve/transaction.h"

namespace varve {

void StoreConformanceTest::SetUp() {
  under_test_ = GetParam().make();
  if (under_test_ == nullptr) GTEST_SKIP() << "there is nothing to open this store with";
  const absl::Status created =
      Create({.id = kTogether, .options = {.grouping = KeyGrouping::Together()}});
  ASSERT_TRUE(created.ok()) << created;
}

absl::Status StoreConformanceTest::Create(const NamespaceDescription& space) {
  WriteBatch batch;
  batch.CreateNamespace(space);
  return store().Write({}, &batch).status();
}

void StoreConformanceTest::Put(std::string_view key, std::string_view value, NamespaceId space) {
  WriteBatch batch;
  batch.Put(key, value, space);
  const absl::StatusOr<CommitResult> written = store().Write({}, &batch);
  ASSERT_TRUE(written.ok()) << written.status();
}

void StoreConformanceTest::Delete(std::string_view key) {
  WriteBatch batch;
  batch.Delete(key);
  ASSERT_TRUE(store().Write({}, &batch).ok());
}

std::string StoreConformanceTest::Get(std::string_view key, NamespaceId space) {
  std::string value;
  const absl::StatusOr<ReadResult> read = store().Get({.space = space}, key, &value);
  if (!read.ok()) return read.status().ToString();
  return read->found ? value : "(missing)";
}

ReadResult StoreConformanceTest::Read(std::string_view key, NamespaceId space) {
  std::string value;
  const absl::StatusOr<ReadResult> read = store().Get({.space = space}, key, &value);
  EXPECT_TRUE(read.ok()) << read.status();
  return read.ok() ? *read : ReadResult();
}

std::string StoreConformanceTest::Scan(std::string_view lower, std::string_view upper,
                                       bool descending, NamespaceId space) {
  std::string text;
  const auto iterator = store().NewIterator({.space = space}, lower, upper, nullptr);
  for (descending ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
       descending ? iterator->Prev() : iterator->Next()) {
    text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
  }
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  return text;
}

std::string StoreConformanceTest::ScanInSlices(StoreReads::RangeRequest range) {
  std::string text;
  for (bool more = true; more;) {
    std::promise<absl::StatusOr<RangeSlice>> answer;
    store().ReadRangeAsync(
        {}, range, [&](absl::StatusOr<RangeSlice> slice) { answer.set_value(std::move(slice)); });
    const absl::StatusOr<RangeSlice> slice = answer.get_future().get();
    EXPECT_TRUE(slice.ok()) << slice.status();
    if (!slice.ok()) break;
    EXPECT_LE(slice->entries.size(), range.max_entries);
    for (const RangeEntry& entry : slice->entries) {
      EXPECT_EQ(entry.value_size, entry.value.size());
      text.append(entry.key).append("=").append(entry.value).append(" ");
    }
    more = slice->more;
    if (!more) break;
    const std::string& last = slice->entries.back().key;
    range.descending ? range.upper = last : range.lower = last + '\0';
  }
  return text;
}

namespace {

// --- Reads ---------------------------------------------------------------------------------------

TEST_P(StoreConformanceTest, ReadsWhatWasWrittenInTheOrderOfBytes) {
  Put("b", "2");
  Put("a", "1");
  Put(std::string("a\0x", 3), "zero");
  Put("\xff", "last");
  Put("", "first");
  EXPECT_EQ(Get(""), "first");
  EXPECT_EQ(Get("a"), "1");
  EXPECT_EQ(Get("c"), "(missing)");
  const std::string ascending = std::string("=first a=1 a\0x=zero b=2 \xff=last ", 31);
  EXPECT_EQ(Scan(), ascending);
  EXPECT_EQ(Scan({}, {}, /*descending=*/true),
            std::string("\xff=last b=2 a\0x=zero a=1 =first ", 31));
  EXPECT_EQ(Scan("a", "b"), std::string("a=1 a\0x=zero ", 13));
  EXPECT_EQ(Scan("b", "a"), "");
}

TEST_P(StoreConformanceTest, IteratorsSeekToTheNearestKeyWithinTheirBounds) {
  for (const char* key : {"a", "c", "e", "g"}) Put(key, key);
  const auto iterator = store().NewIterator({}, "b", "g", nullptr);
  iterator->Seek("d");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "e");
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekForPrev("d");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "c");
  EXPECT_EQ(iterator->value(), "c");
  EXPECT_NE(iterator->version(), kNoSequence);
  iterator->Prev();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().ok());
}

TEST_P(StoreConformanceTest, AnIteratorShowsNothingThatIsWrittenLater) {
  Put("a", "1");
  Put("b", "1");
  const auto iterator = store().NewIterator({}, {}, {}, nullptr);
  iterator->SeekToFirst();
  Put("b", "2");
  Put("c", "2");
  ASSERT_TRUE(iterator->Valid());
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->value(), "1");
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
}

TEST_P(StoreConformanceTest, ManyKeysAreReadTogetherUpToABoundOnTheirValues) {
  Put("a", "12345");
  Put("c", "12345");
  const std::string_view keys[] = {"a", "b", "c"};
  std::vector<MultiGetResult> results(3);
  ASSERT_TRUE(store().MultiGet({}, keys, absl::MakeSpan(results)).ok());
  EXPECT_EQ(results[0].value, "12345");
  EXPECT_FALSE(results[1].result.found);
  EXPECT_EQ(results[2].value, "12345");
  ASSERT_TRUE(store().MultiGet({.max_bytes = 5}, keys, absl::MakeSpan(results)).ok());
  EXPECT_TRUE(results[0].read);
  EXPECT_FALSE(results[1].read);
}

TEST_P(StoreConformanceTest, ValuesAreLeftOutOnRequest) {
  Put("k", "12345");
  std::string value = "as before";
  absl::StatusOr<ReadResult> read = store().Get({.without_value = true}, "k", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->found);
  EXPECT_EQ(read->value_size, 5u);
  EXPECT_EQ(value, "as before");
  read = store().Get({.max_value_bytes = 4}, "k", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->too_large);
}

TEST_P(StoreConformanceTest, MetadataIsReadOnRequest) {
  const std::string bytes("\0meta\xff", 6);
  WriteBatch batch;
  batch.Put("k", "12345", {.metadata = bytes});
  batch.Put("plain", "1");
  ASSERT_TRUE(store().Write({.independent_keys = true}, &batch).ok());
  std::string value;
  absl::StatusOr<ReadResult> read = store().Get({.with_metadata = true}, "k", &value);
  ASSERT_TRUE(read.ok() && read->metadata != nullptr);
  EXPECT_EQ(*read->metadata, bytes);
  EXPECT_EQ(value, "12345");
  read = store().Get({.without_value = true, .with_metadata = true}, "k", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->MetadataView(), bytes);
  EXPECT_EQ(Read("k").metadata, nullptr);
  read = store().Get({.with_metadata = true}, "plain", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->metadata, nullptr);

  const std::string_view keys[] = {"k", "none", "plain"};
  std::vector<MultiGetResult> results(3);
  ASSERT_TRUE(store().MultiGet({.with_metadata = true}, keys, absl::MakeSpan(results)).ok());
  EXPECT_EQ(results[0].result.MetadataView(), bytes);
  EXPECT_EQ(results[1].result.metadata, nullptr);
  EXPECT_EQ(results[2].result.metadata, nullptr);

  const auto iterator = store().NewIterator({}, {}, {}, nullptr);
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->metadata(), bytes);
  iterator->SeekToLast();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->metadata(), "");
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->metadata(), bytes);

  std::promise<absl::StatusOr<RangeSlice>> answer;
  store().ReadRangeAsync({.with_metadata = true}, {}, [&](absl::StatusOr<RangeSlice> slice) {
    answer.set_value(std::move(slice));
  });
  const absl::StatusOr<RangeSlice> slice = answer.get_future().get();
  ASSERT_TRUE(slice.ok() && slice->entries.size() == 2);
  EXPECT_EQ(slice->entries[0].metadata, bytes);
  EXPECT_EQ(slice->entries[1].metadata, "");

  Put("k", "1");  // replaces the metadata, too
  read = store().Get({.with_metadata = true}, "k", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->metadata, nullptr);
}

TEST_P(StoreConformanceTest, ARangeIsReadFromAVersionOn) {
  Put("a", "1");
  Put("b", "1");
  Put("c", "1");
  const SequenceNumber since = Read("c").version;
  Put("b", "2");
  Put("d", "2");
  Delete("d");
  Put("e", "2");
  const auto iterator = store().NewIterator({.newer_than = since}, {}, {}, nullptr);
  std::string forward, backward;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    forward.append(iterator->key()).append("=").append(iterator->value()).append(" ");
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev())
    backward.append(iterator->key()).append("=").append(iterator->value()).append(" ");
  EXPECT_EQ(forward, "b=2 e=2 ");
  EXPECT_EQ(backward, "e=2 b=2 ");
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
}

TEST_P(StoreConformanceTest, WhatHasExpiredIsNotSeen) {
  const uint64_t now = store().NowMillis();
  EXPECT_GT(now, 0u);
  WriteBatch batch;
  batch.Put("gone", "v", kDefaultNamespace, 1);
  batch.Put("there", "v", kDefaultNamespace, now + 3600 * 1000);
  ASSERT_TRUE(store().Write({.independent_keys = true}, &batch).ok());
  EXPECT_FALSE(Read("gone").found);
  EXPECT_EQ(Read("there").expiry_ms, now + 3600 * 1000);
  EXPECT_EQ(Scan(), "there=v ");
  const absl::StatusOr<CountResult> count = store().Count({}, {}, {});
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(count->keys, 1u);
}

TEST_P(StoreConformanceTest, CountsKeysAndBytes) {
  for (int i = 0; i < 100; ++i) Put("key" + std::to_string(100 + i), "value");
  Delete("key100");
  const absl::StatusOr<CountResult> all = store().Count({}, {}, {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->keys, 99u);
  EXPECT_EQ(all->bytes, 99u * 11);
  const absl::StatusOr<CountResult> some = store().Count({}, "key110", "key120");
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->keys, 10u);
}

TEST_P(StoreConformanceTest, ExplainsARead) {
  Put("k", "v");
  const absl::StatusOr<ExplainedRead> read = store().ExplainGet({}, "k");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->result.found);
  EXPECT_EQ(read->value_bytes, 1u);
}

TEST_P(StoreConformanceTest, ASnapshotKeepsWhatItSawOrIsRefused) {
  Put("k", "1");
  const std::shared_ptr<const Snapshot> snapshot = store().GetSnapshot();
  ASSERT_NE(snapshot, nullptr);
  Put("k", "2");
  std::string value;
  const absl::StatusOr<ReadResult> read = store().Get({.snapshot = snapshot.get()}, "k", &value);
  if (!store().capabilities().snapshots) {
    EXPECT_TRUE(absl::IsFailedPrecondition(read.status())) << read.status();
    return;
  }
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(value, "1");
  EXPECT_TRUE(snapshot->HasNamespace(kDefaultNamespace));
  EXPECT_FALSE(snapshot->HasNamespace(12345));
}

// --- Writes --------------------------------------------------------------------------------------

TEST_P(StoreConformanceTest, ABatchIsWrittenWholeAndLaterOperationsWin) {
  Put("b", "old", kTogether);
  WriteBatch batch;
  batch.UseNamespace(kTogether);
  batch.Put("a", "1");
  batch.Delete("b");
  batch.Put("c", "1");
  batch.Put("c", "2");
  const absl::StatusOr<CommitResult> written = store().Write({}, &batch);
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_TRUE(batch.empty());
  EXPECT_EQ(Scan({}, {}, false, kTogether), "a=1 c=2 ");
}

TEST_P(StoreConformanceTest, ABatchOverTheLimitsIsRefusedWhole) {
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put(std::string(kMaxKeySize + 1, 'k'), "v");
  EXPECT_TRUE(absl::IsInvalidArgument(store().Write({}, &batch).status()));
  EXPECT_EQ(Scan(), "");
}

TEST_P(StoreConformanceTest, AConditionHoldsWhileTheVersionThatWasReadIsThere) {
  Put("k", "1", kTogether);
  const ReadResult read = Read("k", kTogether);
  WriteBatch batch;
  batch.UseNamespace(kTogether);
  batch.RequireUnchanged("k", read);
  batch.RequireUnchanged("missing", Read("missing", kTogether));
  batch.Put("k", "2");
  ASSERT_TRUE(store().Write({}, &batch).ok());
  batch.UseNamespace(kTogether);
  batch.RequireUnchanged("k", read);  // it was written since
  batch.Put("other", "v");
  EXPECT_TRUE(absl::IsAborted(store().Write({}, &batch).status()));
  EXPECT_EQ(Scan({}, {}, false, kTogether), "k=2 ");
}

TEST_P(StoreConformanceTest, AConditionOnAMissingKeyFailsOnceItIsPut) {
  const ReadResult missing = Read("k", kTogether);
  Put("k", "1", kTogether);
  WriteBatch batch;
  batch.UseNamespace(kTogether);
  batch.RequireNotPut("k", WriteBatch::ReadPoint(missing));
  batch.Put("other", "v");
  EXPECT_TRUE(absl::IsAborted(store().Write({}, &batch).status()));
  batch.Clear();
  batch.UseNamespace(kTogether);
  batch.RequireNotPut("other", WriteBatch::ReadPoint(Read("other", kTogether)));
  batch.Put("other", "v");
  EXPECT_TRUE(store().Write({}, &batch).ok());
}

TEST_P(StoreConformanceTest, ADeletedKeyIsMissingToConditionsAndIsWrittenAgain) {
  Put("k", "1");
  const ReadResult first = Read("k");
  Delete("k");
  const ReadResult deleted = Read("k");
  EXPECT_FALSE(deleted.found);
  WriteBatch batch;
  batch.RequireUnchanged("k", first);
  batch.Put("k", "2");
  EXPECT_TRUE(absl::IsAborted(store().Write({}, &batch).status()));
  batch.Clear();
  batch.RequireUnchanged("k", deleted);
  batch.Put("k", "2");
  ASSERT_TRUE(store().Write({}, &batch).ok());
  const ReadResult again = Read("k");
  EXPECT_TRUE(again.found);
  EXPECT_GT(again.version, first.version);
  batch.RequireUnchanged("k", deleted);
  batch.Put("k", "3");
  EXPECT_TRUE(absl::IsAborted(store().Write({}, &batch).status()));
}

TEST_P(StoreConformanceTest, AConditionOnARangeHoldsOrIsRefused) {
  Put("a", "1");
  const ReadResult read = Read("a");
  WriteBatch batch;
  batch.RequireRangeUnchanged("a", "c", read.read_sequence);
  batch.Put("z", "v");
  const absl::Status first = store().Write({}, &batch).status();
  if (!store().capabilities().snapshots) {
    EXPECT_TRUE(absl::IsFailedPrecondition(first)) << first;
    return;
  }
  ASSERT_TRUE(first.ok()) << first;
  Put("b", "2");
  batch.RequireRangeUnchanged("a", "c", read.read_sequence);
  batch.Put("z", "w");
  EXPECT_TRUE(absl::IsAborted(store().Write({}, &batch).status()));
}

TEST_P(StoreConformanceTest, ConcurrentUpdatesAreAllCounted) {
  Put("n", "0");
  const std::string_view key = "n";
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        const auto updated = store().Update({}, {&key, 1}, [&](WriteBatch* batch) -> absl::Status {
          std::string value;
          const absl::StatusOr<ReadResult> read = store().Get({}, key, &value);
          if (!read.ok()) return read.status();
          batch->RequireUnchanged(key, *read);
          batch->Put(key, std::to_string(std::stoi(value) + 1));
          return absl::OkStatus();
        });
        EXPECT_TRUE(updated.ok()) << updated.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Get("n"), "200");
}

TEST_P(StoreConformanceTest, AnUpdateEndsWithTheErrorOfItsDecision) {
  const std::string_view key = "k";
  const auto updated = store().Update(
      {}, {&key, 1}, [](WriteBatch*) { return absl::OutOfRangeError("not wanted"); });
  EXPECT_TRUE(absl::IsOutOfRange(updated.status()));
}

TEST_P(StoreConformanceTest, TheHolderOfTheExclusiveRightWrites) {
  const std::unique_ptr<ExclusiveWrite> right = store().BeginExclusiveWrite();
  ASSERT_NE(right, nullptr);
  WriteBatch batch;
  batch.Put("k", "v");
  EXPECT_TRUE(store().Write({.exclusive_write = right.get()}, &batch).ok());
  EXPECT_EQ(Get("k"), "v");
}

TEST_P(StoreConformanceTest, ARangeIsDeletedOrThatIsRefused) {
  for (const char* key : {"a", "b", "c", "d"}) Put(key, "v");
  WriteBatch batch;
  batch.DeleteRange("b", "d");
  const absl::Status deleted = store().Write({}, &batch).status();
  if (!store().capabilities().constant_time_range_delete) {
    EXPECT_TRUE(absl::IsFailedPrecondition(deleted)) << deleted;
    EXPECT_EQ(Scan(), "a=v b=v c=v d=v ");
    return;
  }
  ASSERT_TRUE(deleted.ok()) << deleted;
  EXPECT_EQ(Scan(), "a=v d=v ");
  batch.DeleteRange("b", "");
  ASSERT_TRUE(store().Write({}, &batch).ok());
  EXPECT_EQ(Scan(), "a=v ");
}

// --- Namespaces ----------------------------------------------------------------------------------

class OneNamespace {
 public:
  static constexpr NamespaceId kId = 7;
  explicit OneNamespace(Store& store, NamespaceDescription description = {.id = kId}) {
    WriteBatch batch;
    batch.CreateNamespace(description);
    const absl::StatusOr<CommitResult> created = store.Write({}, &batch);
    EXPECT_TRUE(created.ok()) << created.status();
  }
};

TEST_P(StoreConformanceTest, NamespacesAreApart) {
  EXPECT_TRUE(store().HasNamespace(kDefaultNamespace));
  EXPECT_FALSE(store().HasNamespace(OneNamespace::kId));
  std::string value;
  EXPECT_TRUE(IsNoSuchNamespace(store().Get({.space = OneNamespace::kId}, "k", &value).status()));
  const OneNamespace created(store());
  EXPECT_TRUE(store().HasNamespace(OneNamespace::kId));
  Put("k", "here");
  Put("k", "there", OneNamespace::kId);
  EXPECT_EQ(Get("k"), "here");
  EXPECT_EQ(Get("k", OneNamespace::kId), "there");
  WriteBatch batch;
  batch.ClearNamespace(OneNamespace::kId);
  ASSERT_TRUE(store().Write({}, &batch).ok());
  EXPECT_EQ(Get("k"), "here");
  EXPECT_EQ(Get("k", OneNamespace::kId), "(missing)");
}

TEST_P(StoreConformanceTest, NamespacesAreSwappedOrThatIsRefused) {
  const OneNamespace created(store());
  Put("k", "here");
  Put("k", "there", OneNamespace::kId);
  WriteBatch batch;
  batch.SwapNamespaces(kDefaultNamespace, OneNamespace::kId);
  const absl::Status swapped = store().Write({}, &batch).status();
  if (!store().capabilities().swaps) {
    EXPECT_TRUE(absl::IsFailedPrecondition(swapped)) << swapped;
    EXPECT_EQ(Get("k"), "here");
    return;
  }
  ASSERT_TRUE(swapped.ok()) << swapped;
  EXPECT_EQ(Get("k"), "there");
  EXPECT_EQ(Get("k", OneNamespace::kId), "here");
}

TEST_P(StoreConformanceTest, NamespacesAreNamedAlteredAndDropped) {
  const absl::StatusOr<NamespaceList> before = store().Namespaces();
  ASSERT_TRUE(before.ok());
  const NamespaceId id = before->next_id;
  EXPECT_GE(id, kFirstNamedNamespace);
  const OneNamespace created(store(), {.id = id, .name = "orders"});
  Put("k", "there", id);
  WriteBatch batch;
  batch.AlterNamespace({.id = id, .name = "bills"});
  ASSERT_TRUE(store().Write({}, &batch).ok());
  EXPECT_EQ(Get("k", id), "there");
  const absl::StatusOr<NamespaceList> now = store().Namespaces();
  ASSERT_TRUE(now.ok());
  EXPECT_EQ(now->Find("orders"), nullptr);
  ASSERT_NE(now->Find("bills"), nullptr);
  EXPECT_EQ(now->Find("bills")->id, id);
  batch.CreateNamespace({.id = id, .name = "again"});
  EXPECT_TRUE(absl::IsAlreadyExists(store().Write({}, &batch).status()));
  batch.Clear();
  batch.DropNamespace(id);
  ASSERT_TRUE(store().Write({}, &batch).ok());
  EXPECT_FALSE(store().HasNamespace(id));
}

TEST_P(StoreConformanceTest, ANamespaceGivesItsKeysAnExpiry) {
  EXPECT_EQ(store().UsualExpiry(kDefaultNamespace), kNoExpiry);
  const OneNamespace created(
      store(), {.id = OneNamespace::kId, .options = {.default_expiry_ms = 3600 * 1000}});
  EXPECT_GT(store().UsualExpiry(OneNamespace::kId), store().NowMillis());
}

TEST_P(StoreConformanceTest, ACloneSharesWhatItsSourceHeldOrIsRefused) {
  Put("k", "1");
  WriteBatch batch;
  batch.CloneNamespace(kDefaultNamespace, {.id = OneNamespace::kId});
  const absl::Status cloned = store().Write({}, &batch).status();
  if (!store().capabilities().constant_time_clone) {
    EXPECT_TRUE(absl::IsFailedPrecondition(cloned)) << cloned;
    EXPECT_FALSE(store().HasNamespace(OneNamespace::kId));
    return;
  }
  ASSERT_TRUE(cloned.ok()) << cloned;
  Put("k", "2");
  EXPECT_EQ(Get("k", OneNamespace::kId), "1");
}

// --- Groups of keys ------------------------------------------------------------------------------

TEST_P(StoreConformanceTest, KeysOfANamespaceWithoutGroupsGoTogetherByTheAbilityOfTheStore) {
  const bool any_keys = store().capabilities().atomicity == StoreCapabilities::Atomicity::kAnyKeys;
  EXPECT_EQ(store().GroupsOf(kDefaultNamespace).has_value(), !any_keys);
  WriteBatch batch;
  batch.Put("a", "1");
  batch.Put("b", "1");
  const absl::Status written = store().Write({}, &batch).status();
  EXPECT_EQ(IsCrossGroup(written), !any_keys) << written;
  EXPECT_EQ(Scan(), any_keys ? "a=1 b=1 " : "");
}

TEST_P(StoreConformanceTest, ADeclaredGroupIsWrittenWholeAndNothingBeyondIt) {
  const KeyGrouping grouping = KeyGrouping::By(':');
  ASSERT_TRUE(Create({.id = 10, .options = {.grouping = grouping}}).ok());
  EXPECT_EQ(store().GroupsOf(10), grouping);
  EXPECT_EQ(store().GroupsOf(kTogether), KeyGrouping::Together());
  WriteBatch batch;
  batch.UseNamespace(10);
  batch.RequireNotPut("user17:b", WriteBatch::ReadPoint(Read("user17:b", 10)));
  batch.Put("user17:a", "1");
  batch.Put("user17:b", "1");
  ASSERT_TRUE(store().Write({}, &batch).ok());
  const std::string before = "user17:a=1 user17:b=1 ";
  EXPECT_EQ(Scan({}, {}, false, 10), before);
  for (const char* other : {"user18:a", "user17", "user17;", ""}) {
    batch.Clear();
    batch.UseNamespace(10);
    batch.Put("user17:a", "2");
    batch.Put(other, "2");
    EXPECT_TRUE(IsCrossGroup(store().Write({}, &batch).status())) << other;
    batch.Clear();
    batch.UseNamespace(10);
    batch.RequireUnchanged(other, Read(other, 10));
    batch.Delete("user17:a");
    EXPECT_TRUE(IsCrossGroup(store().Write({}, &batch).status())) << other;
  }
  batch.Clear();
  batch.Put("user17:a", "2", 10);
  batch.Put("user17:a", "2", kTogether);
  const absl::Status two_namespaces = store().Write({}, &batch).status();
  EXPECT_TRUE(IsCrossGroup(two_namespaces)) << two_namespaces;
  EXPECT_TRUE(absl::IsFailedPrecondition(two_namespaces));
  EXPECT_EQ(Scan({}, {}, false, 10), before);
  EXPECT_EQ(Scan({}, {}, false, kTogether), "");
}

TEST_P(StoreConformanceTest, IndependentKeysOfSeveralGroupsAreWritten) {
  ASSERT_TRUE(Create({.id = 10, .options = {.grouping = KeyGrouping::By(':')}}).ok());
  WriteBatch batch;
  batch.Put("a:1", "1", 10);
  batch.Put("b:1", "1", 10);
  batch.Put("c", "1", kTogether);
  ASSERT_TRUE(store().Write({.independent_keys = true}, &batch).ok());
  EXPECT_EQ(Scan({}, {}, false, 10), "a:1=1 b:1=1 ");
  EXPECT_EQ(Get("c", kTogether), "1");
}

TEST_P(StoreConformanceTest, TheGroupsOfANamespaceNeverChange) {
  WriteBatch batch;
  batch.AlterNamespace({.id = kTogether});
  EXPECT_TRUE(absl::IsFailedPrecondition(store().Write({}, &batch).status()));
  batch.Clear();
  batch.AlterNamespace(
      {.id = kTogether,
       .options = {.default_expiry_ms = 3600 * 1000, .grouping = KeyGrouping::Together()}});
  EXPECT_TRUE(store().Write({}, &batch).ok());
  batch.SwapNamespaces(kDefaultNamespace, kTogether);
  EXPECT_TRUE(absl::IsFailedPrecondition(store().Write({}, &batch).status()));
  EXPECT_EQ(store().GroupsOf(kTogether), KeyGrouping::Together());
}

TEST_P(StoreConformanceTest, ATransactionOverOneGroupIsAtomicAndOverTwoIsRefused) {
  ASSERT_TRUE(Create({.id = 10, .options = {.grouping = KeyGrouping::By(':')}}).ok());
  Put("a:n", "1", 10);
  Put("b:n", "1", 10);
  const auto add = [this](const std::string& from, const std::string& to) {
    return RunTransaction(&store(), {},
                          [&](Transaction* transaction) -> absl::Status {
                            std::string value;
                            const auto read = transaction->Get({.space = 10}, from, &value);
                            if (!read.ok()) return read.status();
                            transaction->Put(to, value + "1", 10);
                            return absl::OkStatus();
                          })
        .status();
  };
  EXPECT_TRUE(add("a:n", "a:m").ok());
  EXPECT_TRUE(IsCrossGroup(add("a:n", "b:n")));
  EXPECT_EQ(Scan({}, {}, false, 10), "a:m=11 a:n=1 b:n=1 ");
  Transaction loser(&store());
  std::string value;
  ASSERT_TRUE(loser.Get({.space = 10}, "a:n", &value).ok());
  loser.Put("a:m", "lost", 10);
  Put("a:n", "2", 10);
  EXPECT_TRUE(absl::IsAborted(loser.Commit().status()));
  EXPECT_EQ(Get("a:m", 10), "11");
}

// --- Durability and upkeep -----------------------------------------------------------------------

TEST_P(StoreConformanceTest, WhatIsSubmittedIsVisibleAtOnceAndDurableOnceAskedFor) {
  WriteBatch batch;
  batch.Put("k", "v");
  const absl::StatusOr<CommitResult> submitted = store().Submit({}, &batch);
  ASSERT_TRUE(submitted.ok());
  std::string value;
  const absl::StatusOr<ReadResult> read = store().Get({.wait_until_durable = false}, "k", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(value, "v");
  EXPECT_GE(read->durable_after, submitted->durable_after);
  EXPECT_TRUE(store().Push().ok());
  EXPECT_TRUE(store().PushUnsynced().ok());
  EXPECT_TRUE(store().WaitUntilDurable(submitted->durable_after).ok());
  EXPECT_GE(store().durable_sequence(), submitted->durable_after);
  EXPECT_TRUE(store().Sync().ok());
  EXPECT_TRUE(store().log_status().ok());
}

TEST_P(StoreConformanceTest, AListenerHearsOfWhatBecameDurable) {
  std::promise<void> told;
  bool was_told = false;
  std::mutex mutex;
  const uint64_t token = store().AddDurabilityListener([&] {
    const std::lock_guard lock(mutex);
    if (!std::exchange(was_told, true)) told.set_value();
  });
  WriteBatch batch;
  batch.Put("k", "v");
  const absl::StatusOr<CommitResult> submitted = store().Submit({}, &batch);
  ASSERT_TRUE(submitted.ok());
  EXPECT_TRUE(store().Push().ok());
  if (submitted->durable_after != kNoSequence) told.get_future().wait();
  store().RemoveDurabilityListener(token);
}

TEST_P(StoreConformanceTest, UpkeepChangesNothingThatIsRead) {
  for (int i = 0; i < 100; ++i) Put("key" + std::to_string(100 + i), "value");
  const std::string before = Scan();
  const uint64_t changes = store().ChangeCount();
  EXPECT_TRUE(store().Flush().ok());
  EXPECT_TRUE(store().Compact("", "").ok());
  EXPECT_EQ(Scan(), before);
  EXPECT_EQ(store().ChangeCount(), changes);
  Put("one", "more");
  EXPECT_EQ(store().ChangeCount(), changes + 1);
  EXPECT_GE(store().pressure(), 0);
  EXPECT_FALSE(store().Statistics().empty());
}

TEST_P(StoreConformanceTest, AClosedStoreRefusesToWork) {
  Put("k", "v");
  ASSERT_TRUE(store().Close().ok());
  WriteBatch batch;
  batch.Put("k", "w");
  EXPECT_FALSE(store().Write({}, &batch).ok());
}

// --- Asynchronous forms --------------------------------------------------------------------------

TEST_P(StoreConformanceTest, AsynchronousReadsAnswerWhatTheOthersDo) {
  Put("a", "1");
  Put("b", "2");
  std::promise<std::pair<absl::StatusOr<ReadResult>, std::string>> got;
  store().GetAsync({}, "a", [&](absl::StatusOr<ReadResult> result, std::string value) {
    got.set_value({std::move(result), std::move(value)});
  });
  ASSERT_TRUE(store().Push().ok());
  const auto [result, value] = got.get_future().get();
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->found);
  EXPECT_EQ(value, "1");

  std::promise<std::vector<MultiGetResult>> got_many;
  store().MultiGetAsync({}, {"b", "c"},
                        [&](absl::Status status, std::vector<MultiGetResult> results) {
                          EXPECT_TRUE(status.ok()) << status;
                          got_many.set_value(std::move(results));
                        });
  const std::vector<MultiGetResult> results = got_many.get_future().get();
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].value, "2");
  EXPECT_FALSE(results[1].result.found);

  std::promise<absl::StatusOr<CountResult>> counted;
  store().CountAsync(
      {}, "", "", [&](absl::StatusOr<CountResult> count) { counted.set_value(std::move(count)); });
  const absl::StatusOr<CountResult> count = counted.get_future().get();
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count->keys, 2u);
}

TEST_P(StoreConformanceTest, AnAsynchronousErrorReachesTheCallback) {
  const ReadOptions nowhere{.space = 12345};
  std::promise<absl::Status> failed;
  store().GetAsync(nowhere, "k", [&](absl::StatusOr<ReadResult> result, std::string) {
    failed.set_value(result.status());
  });
  EXPECT_TRUE(IsNoSuchNamespace(failed.get_future().get()));
  std::promise<absl::Status> range_failed;
  store().ReadRangeAsync(nowhere, {}, [&](absl::StatusOr<RangeSlice> slice) {
    range_failed.set_value(slice.status());
  });
  EXPECT_TRUE(IsNoSuchNamespace(range_failed.get_future().get()));
}

TEST_P(StoreConformanceTest, AnAsynchronousWriteIsDoneWhenItsCallbackSaysSo) {
  WriteBatch batch;
  batch.Put("k", "v");
  std::promise<absl::StatusOr<CommitResult>> written;
  store().WriteAsync({}, &batch, [&](absl::StatusOr<CommitResult> committed) {
    written.set_value(std::move(committed));
  });
  EXPECT_TRUE(store().Push().ok());
  const absl::StatusOr<CommitResult> committed = written.get_future().get();
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_GE(store().durable_sequence(), committed->durable_after);
  EXPECT_EQ(Get("k"), "v");
}

TEST_P(StoreConformanceTest, ARangeReadInSlicesIsTheRange) {
  for (int i = 0; i < 25; ++i) Put("key" + std::to_string(10 + i), "value");
  for (const size_t entries : {1u, 3u, 25u, 1000u}) {
    EXPECT_EQ(ScanInSlices({.max_entries = entries}), Scan());
    EXPECT_EQ(ScanInSlices({.lower = "key12", .upper = "key30", .max_entries = entries}),
              Scan("key12", "key30"));
    EXPECT_EQ(ScanInSlices({.descending = true, .max_entries = entries}), Scan({}, {}, true));
  }
  EXPECT_EQ(ScanInSlices({.lower = "x"}), "");
}

TEST_P(StoreConformanceTest, ASliceEndsOnceItsEntriesAreLarge) {
  for (const char* key : {"a", "b", "c"}) Put(key, std::string(100, 'v'));
  std::promise<absl::StatusOr<RangeSlice>> answer;
  store().ReadRangeAsync({.max_bytes = 150}, {}, [&](absl::StatusOr<RangeSlice> slice) {
    answer.set_value(std::move(slice));
  });
  const absl::StatusOr<RangeSlice> slice = answer.get_future().get();
  ASSERT_TRUE(slice.ok()) << slice.status();
  EXPECT_EQ(slice->entries.size(), 2u);
  EXPECT_TRUE(slice->more);
}

}  // namespace
}  // namespace varve
