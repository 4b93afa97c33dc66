#include "db/hbase/hbase_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/tables_in_memory.h"
#include "varve/namespace_status.h"
#include "varve/store_status.h"
#include "varve/transaction.h"

namespace varve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNever{24 * 3'600'000};

class HbaseStoreTest : public ::testing::Test {
 protected:
  HbaseStoreOptions Options() {
    HbaseStoreOptions options;
    options.clock = &clock_;
    options.beat = kNever;
    options.deadline = milliseconds(2'000);
    options.guessed_rows = 4'096;
    return options;
  }
  absl::StatusOr<std::unique_ptr<HbaseStore>> TryOpen(const HbaseStoreOptions& options) {
    return HbaseStore::Open(std::make_unique<testing::ClientInMemory>(&tables_), options);
  }
  std::unique_ptr<HbaseStore> Open(const HbaseStoreOptions& options) {
    absl::StatusOr<std::unique_ptr<HbaseStore>> opened = TryOpen(options);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *std::move(opened);
  }
  std::unique_ptr<HbaseStore> Open() { return Open(Options()); }

  static absl::Status Put(Store& store, std::string_view key, std::string_view value,
                          NamespaceId space = kDefaultNamespace, uint64_t expiry_ms = kNoExpiry) {
    WriteBatch batch;
    batch.Put(key, value, space, expiry_ms);
    return store.Write({}, &batch).status();
  }
  static absl::Status Delete(Store& store, std::string_view key) {
    WriteBatch batch;
    batch.Delete(key);
    return store.Write({}, &batch).status();
  }
  static ReadResult Read(Store& store, std::string_view key, std::string* value) {
    const absl::StatusOr<ReadResult> read = store.Get({}, key, value);
    EXPECT_TRUE(read.ok()) << read.status();
    return read.value_or(ReadResult());
  }
  static std::string Get(Store& store, std::string_view key) {
    std::string value;
    return Read(store, key, &value).found ? value : "(missing)";
  }
  static SequenceNumber VersionOf(Store& store, std::string_view key) {
    std::string value;
    return Read(store, key, &value).version;
  }
  static absl::Status Create(Store& store, const NamespaceDescription& space) {
    WriteBatch batch;
    batch.CreateNamespace(space);
    return store.Write({}, &batch).status();
  }
  // The rows of a table, those of the store itself left out.
  size_t RowsOf(const std::string& table) {
    const std::lock_guard lock(tables_.mutex);
    const std::string behind = RowPrefix(kSystemGeneration + 1, 0xff);
    size_t rows = 0;
    for (const auto& [row, value] : tables_.tables[table]) rows += row >= behind ? 1 : 0;
    return rows;
  }
  void Fail(absl::Status failure) {
    const std::lock_guard lock(tables_.mutex);
    tables_.failure = std::move(failure);
  }
  static absl::Status Step(HbaseStore& store) {
    return store.remover().Step([] { return false; });
  }

  // Lets so much time pass that the next step removes what is gone now.
  void Age(HbaseStore& store) {
    clock_.Advance(4'000'000);
    ASSERT_TRUE(store.roster().Beat().ok());
    ASSERT_TRUE(Step(store).ok());
    clock_.Advance(700'000);
    ASSERT_TRUE(store.roster().Beat().ok());
  }

  testing::TablesInMemory tables_;
  testing::ManualClock clock_;
};

// --- Opening -------------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, WhatWasWrittenIsThereForTheNextServer) {
  {
    const std::unique_ptr<HbaseStore> store = Open();
    ASSERT_TRUE(Put(*store, "k", "v").ok());
    ASSERT_TRUE(Create(*store, {.id = kFirstNamedNamespace, .name = "orders"}).ok());
  }
  const std::unique_ptr<HbaseStore> store = Open();
  EXPECT_EQ(Get(*store, "k"), "v");
  EXPECT_TRUE(store->HasNamespace(kFirstNamedNamespace));
}

TEST_F(HbaseStoreTest, AMissingTableIsMadeUnlessThatIsForbidden) {
  HbaseStoreOptions options = Options();
  options.may_create = false;
  EXPECT_TRUE(absl::IsNotFound(TryOpen(options).status()));
  Open();
  EXPECT_TRUE(TryOpen(options).ok());
}

TEST_F(HbaseStoreTest, AForeignTableIsRefusedAndLeftAlone) {
  tables_.tables["varve"]["user1"] = "somebody else's";
  const absl::Status refused = TryOpen(Options()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("was not made by varve"), absl::string_view::npos) << refused;
  EXPECT_EQ(tables_.tables["varve"].size(), 1u);
}

TEST_F(HbaseStoreTest, TwoServersMayStartAtTheSameMoment) {
  std::unique_ptr<HbaseStore> other;
  tables_.before_scan = [&] { other = Open(); };
  const absl::StatusOr<std::unique_ptr<HbaseStore>> store = TryOpen(Options());
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(Put(*other, "k", "v").ok());
  EXPECT_EQ(Get(**store, "k"), "v");
}

TEST_F(HbaseStoreTest, ATableOfAnotherFormatIsRefused) {
  Open();
  std::string& cell = tables_.tables["varve"][RowPrefix(kSystemGeneration, 0xff) + "format"];
  cell[cell.find("varve over hbase") + std::string_view("varve over hbase").size()] = 9;
  const absl::Status refused = TryOpen(Options()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("has format 9"), absl::string_view::npos) << refused;
}

TEST_F(HbaseStoreTest, ATableOfGroupsOfAnotherStoreIsRefusedSoThatOldKeysStayAway) {
  const NamespaceDescription space = {.id = 3, .options = {.grouping = KeyGrouping::Together()}};
  {
    const std::unique_ptr<HbaseStore> store = Open();
    ASSERT_TRUE(Create(*store, space).ok());
    ASSERT_TRUE(Put(*store, "old", "v", 3).ok());
    WriteBatch batch;
    batch.DropNamespace(3);
    ASSERT_TRUE(store->Write({}, &batch).ok());
    EXPECT_TRUE(Create(*store, space).ok());  // the table is this store's own
  }
  const testing::TablesInMemory::Rows main = tables_.tables["varve"];
  tables_.tables.erase("varve");
  tables_.timestamps.clear();
  {
    const std::unique_ptr<HbaseStore> store = Open();
    const absl::Status refused = Create(*store, space);
    EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
    EXPECT_NE(refused.message().find("varve-together holds keys of store"), absl::string_view::npos)
        << refused;
    EXPECT_FALSE(store->HasNamespace(3));
    tables_.tables.erase("varve-together");
    EXPECT_TRUE(Create(*store, space).ok());
  }
  // A table of groups is the main one of no store.
  HbaseStoreOptions options = Options();
  options.table = "varve-together";
  const absl::Status no_main = TryOpen(options).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(no_main)) << no_main;
  // Nor does a server start over the tables of two stores.
  tables_.tables["varve"] = main;
  const absl::Status refused = TryOpen(Options()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
}

TEST_F(HbaseStoreTest, ATableOfGroupsWithRowsThatNobodyAnswersForIsRefused) {
  tables_.tables["varve-group-3a"]["user1"] = "somebody else's";
  const std::unique_ptr<HbaseStore> store = Open();
  const absl::Status refused =
      Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::By(':')}});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(tables_.tables["varve-group-3a"].size(), 1u);
}

TEST_F(HbaseStoreTest, ANameThatIsNoneOfATableIsRefused) {
  for (const char* name : {"", "-x", ".x", "a b", "a/b", "ü"}) {
    HbaseStoreOptions options = Options();
    options.table = name;
    EXPECT_TRUE(absl::IsInvalidArgument(TryOpen(options).status())) << name;
  }
}

TEST_F(HbaseStoreTest, AnAbsentClusterIsToldOfAtOpening) {
  Fail(absl::UnavailableError("no answer"));
  EXPECT_TRUE(absl::IsUnavailable(TryOpen(Options()).status()));
}

// --- Abilities -----------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, ItProvidesWhatARegionDoes) {
  const std::unique_ptr<HbaseStore> store = Open();
  const StoreCapabilities capabilities = store->capabilities();
  EXPECT_EQ(capabilities.atomicity, StoreCapabilities::Atomicity::kWithinGroup);
  EXPECT_FALSE(capabilities.snapshots);
  EXPECT_FALSE(capabilities.constant_time_clone);
  EXPECT_FALSE(capabilities.constant_time_range_delete);
  EXPECT_FALSE(capabilities.exact_counts);
  EXPECT_FALSE(capabilities.size_estimates);
  EXPECT_FALSE(capabilities.quotas);
  EXPECT_FALSE(capabilities.swaps);
  EXPECT_FALSE(capabilities.history);
  EXPECT_TRUE(capabilities.remote);
}

TEST_F(HbaseStoreTest, WhatItDoesNotProvideFails) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "v").ok());
  ASSERT_TRUE(Create(*store, {.id = 3}).ok());
  const auto write = [&](const std::function<void(WriteBatch*)>& fill) {
    WriteBatch batch;
    fill(&batch);
    return store->Write({}, &batch).status();
  };
  const std::shared_ptr<const Snapshot> snapshot = store->GetSnapshot();
  std::string value;
  for (const absl::Status& status :
       {store->Get({.snapshot = snapshot.get()}, "k", &value).status(),
        write([](WriteBatch* batch) {
          batch->CloneNamespace(kDefaultNamespace, {.id = kFirstNamedNamespace, .name = "copy"});
        }),
        write([](WriteBatch* batch) { batch->DeleteRange("a", "z"); }),
        write([](WriteBatch* batch) { batch->SwapNamespaces(kDefaultNamespace, 3); }),
        write([](WriteBatch* batch) {
          batch->CreateNamespace({.id = 4, .options = {.max_keys = 1}});
        }),
        store->FirstVersion(kDefaultNamespace).status(), store->GetChangePositions().status(),
        store->WatchRange(kDefaultNamespace, "a", "z").status()}) {
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  }
  EXPECT_EQ(Get(*store, "k"), "v");
  EXPECT_EQ(store->EstimateSize(kDefaultNamespace, "", "").keys, 0u);
}

// --- Limits --------------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, KeysAndValuesBeyondTheLimitsAreRefused) {
  HbaseStoreOptions options = Options();
  options.max_value_size = 1000;
  const std::unique_ptr<HbaseStore> store = Open(options);
  const std::string longest(kMaxHbaseKeySize, 'k');
  EXPECT_TRUE(Put(*store, longest, std::string(1000, 'v')).ok());
  EXPECT_EQ(Get(*store, longest), std::string(1000, 'v'));
  EXPECT_TRUE(absl::IsInvalidArgument(Put(*store, longest + 'k', "v")));
  EXPECT_EQ(Get(*store, longest + 'k'), "(missing)");
  EXPECT_TRUE(absl::IsInvalidArgument(Put(*store, "k", std::string(1001, 'v'))));
  EXPECT_EQ(Get(*store, "k"), "(missing)");
}

TEST_F(HbaseStoreTest, ACommitThatIsTooLargeForARegionsServerIsRefused) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::Together()}}).ok());
  WriteBatch batch;
  batch.UseNamespace(3);
  const std::string value(1u << 20, 'v');
  for (int i = 0; i < 17; ++i) batch.Put(std::to_string(i), value);
  EXPECT_TRUE(absl::IsInvalidArgument(store->Write({}, &batch).status()));
  EXPECT_EQ(RowsOf("varve-together"), 0u);
  EXPECT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  EXPECT_EQ(RowsOf("varve-together"), 17u);
}

TEST_F(HbaseStoreTest, ManyLargeValuesAreNotReadAgainAndAgain) {
  const std::unique_ptr<HbaseStore> store = Open();
  const std::string value(600'000, 'v');
  std::vector<std::string> keys;
  for (int i = 0; i < 64; ++i) {
    keys.push_back(std::to_string(i));
    ASSERT_TRUE(Put(*store, keys.back(), value).ok());
  }
  tables_.read_bytes = 0;
  std::vector<std::string_view> left(keys.begin(), keys.end());
  while (!left.empty()) {
    std::vector<MultiGetResult> results(left.size());
    ASSERT_TRUE(store->MultiGet({.max_bytes = 1u << 20}, left, absl::MakeSpan(results)).ok());
    ASSERT_TRUE(results.front().read);
    std::vector<std::string_view> unread;
    for (size_t i = 0; i < left.size(); ++i) {
      if (!results[i].read) unread.push_back(left[i]);
    }
    left = unread;
  }
  EXPECT_LT(tables_.read_bytes, 2 * keys.size() * value.size());
  // Small values are soon read by as many at a time as before.
  for (const std::string& key : keys) ASSERT_TRUE(Put(*store, key, "v").ok());
  std::vector<MultiGetResult> results(keys.size());
  const std::vector<std::string_view> all(keys.begin(), keys.end());
  for (int i = 0; i < 20; ++i) {
    tables_.reads = 0;
    ASSERT_TRUE(store->MultiGet({.max_bytes = 1u << 20}, all, absl::MakeSpan(results)).ok());
  }
  EXPECT_EQ(tables_.reads, 1);
}

// --- Groups --------------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, ABatchIsWrittenWithinOneGroupAlone) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::By(':')}}).ok());
  WriteBatch batch;
  batch.UseNamespace(3);
  batch.Put("user1:a", "1");
  batch.Put("user1:b", "1");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_EQ(RowsOf("varve-group-3a"), 2u);
  batch.UseNamespace(3);
  batch.Put("user1:c", "1");
  batch.Put("user2:a", "1");
  EXPECT_TRUE(IsCrossGroup(store->Write({}, &batch).status()));
  batch.Clear();
  batch.Put("a", "1");
  batch.Put("b", "1");
  EXPECT_TRUE(IsCrossGroup(store->Write({}, &batch).status()));
  EXPECT_EQ(RowsOf("varve"), 0u);
  ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  EXPECT_EQ(RowsOf("varve"), 2u);
}

TEST_F(HbaseStoreTest, ADelimiterThatHbaseDoesNotKnowIsRefusedBeforeATableIsMade) {
  const std::unique_ptr<HbaseStore> store = Open();
  const auto create = [&](NamespaceId id, char delimiter) {
    return Create(*store, {.id = id, .options = {.grouping = KeyGrouping::By(delimiter)}});
  };
  for (const char delimiter : {'\x80', '\xff'}) {
    const absl::Status refused = create(3, delimiter);
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
  }
  EXPECT_EQ(tables_.tables.size(), 1u);
  ASSERT_TRUE(create(3, '\0').ok());
  ASSERT_TRUE(create(4, '\x7f').ok());
  WriteBatch batch;
  batch.UseNamespace(3);
  batch.Put(std::string_view("user1\0a", 7), "1");
  batch.Put(std::string_view("user1\0b", 7), "1");
  EXPECT_TRUE(store->Write({}, &batch).ok());
  std::string value;
  const auto read = store->Get({.space = 3}, std::string_view("user1\0b", 7), &value);
  EXPECT_TRUE(read.ok() && read->found) << read.status();
}

TEST_F(HbaseStoreTest, AConditionBelongsToItsGroup) {
  const std::unique_ptr<HbaseStore> store = Open();
  std::string value;
  WriteBatch batch;
  batch.RequireUnchanged("a", Read(*store, "a", &value));
  batch.Put("b", "1");
  EXPECT_TRUE(IsCrossGroup(store->Write({}, &batch).status()));
}

TEST_F(HbaseStoreTest, WhatIsNoSingleCommitIsRefused) {
  const std::unique_ptr<HbaseStore> store = Open();
  WriteBatch batch;
  batch.CreateNamespace({.id = 5});
  batch.Put("k", "v", 5);
  EXPECT_FALSE(store->Write({}, &batch).ok());
  EXPECT_FALSE(store->HasNamespace(5));
  batch.Clear();
  batch.DeleteRange("a", "b");
  batch.Put("k", "v");
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Write({}, &batch).status()));
  EXPECT_EQ(Get(*store, "k"), "(missing)");
}

// --- Versions ------------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, VersionsOfAKeyAscendThoughTheClocksOfServersDiffer) {
  testing::ManualClock behind;
  behind.SetWall(testing::ManualClock::kStart - 1'000'000);
  HbaseStoreOptions options = Options();
  options.clock = &behind;
  const std::unique_ptr<HbaseStore> a = Open();
  const std::unique_ptr<HbaseStore> b = Open(options);
  SequenceNumber before = kNoSequence;
  for (int i = 0; i < 6; ++i) {
    Store& writer = i % 2 == 0 ? *a : *b;
    ASSERT_TRUE((i == 3 ? Delete(writer, "k") : Put(writer, "k", std::to_string(i))).ok());
    if (i == 3) continue;
    const SequenceNumber version = VersionOf(*a, "k");
    EXPECT_GT(version, before) << i;
    EXPECT_EQ(VersionOf(*b, "k"), version);
    before = version;
  }
}

TEST_F(HbaseStoreTest, AWriteThatOthersOvertakeIsTriedAgain) {
  const std::unique_ptr<HbaseStore> store = Open();
  const std::unique_ptr<HbaseStore> other = Open();
  tables_.before_commit = [&] { EXPECT_TRUE(Put(*other, "k", "first").ok()); };
  ASSERT_TRUE(Put(*store, "k", "second").ok());
  EXPECT_EQ(Get(*store, "k"), "second");

  std::string value;
  const ReadResult read = Read(*store, "k", &value);
  tables_.before_commit = [&] { EXPECT_TRUE(Put(*other, "k", "third").ok()); };
  WriteBatch batch;
  batch.RequireUnchanged("k", read);
  batch.Put("k", "fourth");
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
  EXPECT_EQ(Get(*store, "k"), "third");
}

TEST_F(HbaseStoreTest, AGroupIsTriedAgainUnlessAConditionOfTheCallersFailed) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::Together()}}).ok());
  const std::unique_ptr<HbaseStore> other = Open();
  ASSERT_TRUE(other->HasNamespace(3));
  ASSERT_TRUE(Put(*store, "a", "1", 3).ok());
  std::string value;
  const absl::StatusOr<ReadResult> read = store->Get({.space = 3}, "a", &value);
  ASSERT_TRUE(read.ok());
  const auto write = [&](std::string_view overtaken) {
    tables_.before_commit = [&, overtaken] { EXPECT_TRUE(Put(*other, overtaken, "0", 3).ok()); };
    WriteBatch batch;
    batch.UseNamespace(3);
    batch.RequireUnchanged("a", *read);
    batch.Put("b", "2");
    return store->Write({}, &batch).status();
  };
  EXPECT_TRUE(write("b").ok());
  ASSERT_TRUE(store->Get({.space = 3}, "b", &value).ok());
  EXPECT_EQ(value, "2");
  EXPECT_TRUE(absl::IsAborted(write("a")));
}

TEST_F(HbaseStoreTest, ATransactionReadsKeysOfWhichSomethingIsLeft) {
  const std::unique_ptr<HbaseStore> store = Open();
  constexpr NamespaceId kTogether = kFirstNamedNamespace;
  ASSERT_EQ(Create(*store, {.id = kTogether,
                            .name = "together",
                            .options = {.grouping = KeyGrouping::Together()}}),
            absl::OkStatus());
  const auto remove = [&](std::string_view key) {
    WriteBatch batch;
    batch.Delete(key, kTogether);
    return store->Write({}, &batch).status();
  };
  ASSERT_EQ(Put(*store, "deleted", "v", kTogether), absl::OkStatus());
  ASSERT_EQ(remove("deleted"), absl::OkStatus());
  ASSERT_EQ(Put(*store, "expired", "v", kTogether, /*expiry_ms=*/1), absl::OkStatus());
  const auto read_all = [&](Transaction* transaction) {
    std::string value;
    for (const std::string_view key : {"deleted", "expired", "never"})
      EXPECT_FALSE(transaction->Get({.space = kTogether}, key, &value)->found) << key;
    transaction->Put("result", "v", kTogether);
  };
  {
    Transaction transaction(store.get());
    read_all(&transaction);
    EXPECT_EQ(transaction.Commit().status(), absl::OkStatus());
  }
  // One that was put and deleted again meanwhile was written.
  for (const std::string_view key : {"deleted", "expired", "never"}) {
    Transaction transaction(store.get());
    read_all(&transaction);
    ASSERT_EQ(Put(*store, key, "v", kTogether), absl::OkStatus());
    ASSERT_EQ(remove(key), absl::OkStatus());
    EXPECT_TRUE(absl::IsAborted(transaction.Commit().status())) << key;
  }
}

TEST_F(HbaseStoreTest, ADeleteOfAMissingKeyWritesNothing) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Delete(*store, "k").ok());
  EXPECT_EQ(RowsOf("varve"), 0u);
}

TEST_F(HbaseStoreTest, ADeleteThatAnotherOneOvertakesHasNothingToDo) {
  const std::unique_ptr<HbaseStore> store = Open();
  const std::unique_ptr<HbaseStore> other = Open();
  ASSERT_TRUE(Put(*store, "k", "v").ok());
  tables_.before_commit = [&] { EXPECT_TRUE(Delete(*other, "k").ok()); };
  WriteBatch batch;
  batch.Delete("k");
  const absl::Status deleted = store->Write({.independent_keys = true}, &batch).status();
  EXPECT_TRUE(deleted.ok()) << deleted;
  EXPECT_EQ(Get(*store, "k"), "(missing)");
}

// --- Guessed versions ----------------------------------------------------------------------------

TEST_F(HbaseStoreTest, ARowThatIsKnownIsWrittenWithoutARead) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "1").ok());
  const int reads = tables_.reads;
  ASSERT_TRUE(Put(*store, "k", "2").ok());
  ASSERT_TRUE(Put(*store, "k", "3").ok());
  EXPECT_EQ(tables_.reads, reads);
  ASSERT_TRUE(Delete(*store, "k").ok());  // has to know whether there is anything
  EXPECT_GT(tables_.reads, reads);
  EXPECT_EQ(Get(*store, "k"), "(missing)");
  const int reads_of_deleted = tables_.reads;
  ASSERT_TRUE(Put(*store, "k", "4").ok());
  EXPECT_EQ(tables_.reads, reads_of_deleted);
  EXPECT_EQ(Get(*store, "k"), "4");
}

TEST_F(HbaseStoreTest, WhatWasReadNeedNotBeReadForAWrite) {
  const std::unique_ptr<HbaseStore> writer = Open();
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*writer, "k", "1").ok());
  EXPECT_EQ(Get(*store, "k"), "1");
  EXPECT_EQ(Get(*store, "missing"), "(missing)");
  std::vector<MultiGetResult> results(2);
  ASSERT_TRUE(store->MultiGet({}, {"k2", "k3"}, absl::MakeSpan(results)).ok());
  const int reads = tables_.reads;
  for (const char* key : {"k", "missing", "k2", "k3"}) ASSERT_TRUE(Put(*store, key, "2").ok());
  EXPECT_EQ(tables_.reads, reads);
}

TEST_F(HbaseStoreTest, NewRowsAreWrittenWithoutAReadOnceMostUnknownRowsWereNew) {
  const std::unique_ptr<HbaseStore> store = Open();
  for (int i = 0; i < 600; ++i) ASSERT_TRUE(Put(*store, "new" + std::to_string(i), "v").ok());
  const int reads = tables_.reads;
  EXPECT_LT(reads, 200);
  WriteBatch batch;
  for (int i = 600; i < 632; ++i) batch.Put("new" + std::to_string(i), "v");
  ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  EXPECT_EQ(tables_.reads, reads);
  EXPECT_EQ(RowsOf("varve"), 632u);
}

TEST_F(HbaseStoreTest, AWrongGuessIsCorrectedAndVersionsAscend) {
  const std::unique_ptr<HbaseStore> a = Open();
  const std::unique_ptr<HbaseStore> b = Open();
  SequenceNumber before = kNoSequence;
  for (int i = 0; i < 20; ++i) {
    Store& writer = i % 3 == 0 ? *b : *a;
    ASSERT_TRUE(Put(writer, "k", std::to_string(i)).ok());
    EXPECT_EQ(Get(*Open(), "k"), std::to_string(i));
    EXPECT_GT(VersionOf(*Open(), "k"), before);
    before = VersionOf(*Open(), "k");
  }
  const auto figures = a->Statistics();
  const auto wrong = std::find_if(figures.begin(), figures.end(), [](const auto& figure) {
    return figure.first == "hbase_wrong_guesses";
  });
  ASSERT_NE(wrong, figures.end());
  EXPECT_GT(wrong->second, 0u);
}

TEST_F(HbaseStoreTest, AGroupOfGuessesSucceedsOrIsReadAsAWhole) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::Together()}}).ok());
  const std::unique_ptr<HbaseStore> other = Open();
  const auto write = [&](std::string_view value) {
    WriteBatch batch;
    batch.UseNamespace(3);
    for (const char* key : {"a", "b", "c"}) batch.Put(key, value);
    return store->Write({}, &batch).status();
  };
  const auto values = [&] {
    std::string all, value;
    for (const char* key : {"a", "b", "c"}) {
      EXPECT_TRUE(other->Get({.space = 3}, key, &value).ok());
      all += value;
    }
    return all;
  };
  ASSERT_TRUE(write("1").ok());
  const int reads = tables_.reads;
  ASSERT_TRUE(write("2").ok());
  EXPECT_EQ(tables_.reads, reads);
  EXPECT_EQ(values(), "222");
  ASSERT_TRUE(Put(*other, "b", "0", 3).ok());
  ASSERT_TRUE(write("3").ok());
  EXPECT_EQ(values(), "333");
}

TEST_F(HbaseStoreTest, PutsOfAKeyWaitForAnEarlierOneAndTheLastOfThemIsWritten) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "0").ok());
  std::vector<absl::Status> answers(4, absl::UnknownError("not answered"));
  const auto write = [&](size_t index, const std::string& key) {
    WriteBatch batch;
    batch.Put(key, std::to_string(index));
    store->WriteAsync({}, &batch, [&answers, index](const absl::StatusOr<CommitResult>& committed) {
      answers[index] = committed.status();
    });
  };
  const int commits = tables_.commits;
  tables_.before_commit = [&] {
    write(1, "k");
    write(2, "other");
    ASSERT_TRUE(store->Push().ok());
    write(3, "k");
    ASSERT_TRUE(store->Push().ok());
    EXPECT_TRUE(answers[2].ok()) << answers[2];
    EXPECT_TRUE(absl::IsUnknown(answers[1]) && absl::IsUnknown(answers[3]));
  };
  write(0, "k");
  ASSERT_TRUE(store->Push().ok());
  for (const absl::Status& answer : answers) EXPECT_TRUE(answer.ok()) << answer;
  EXPECT_EQ(Get(*store, "k"), "3");
  EXPECT_EQ(tables_.commits, commits + 3);
}

TEST_F(HbaseStoreTest, WritesOfSeveralRegionsAreAnsweredEachOnItsOwn) {
  const std::unique_ptr<HbaseStore> store = Open();
  const std::string prefix = RowPrefix(1, 0xff);
  tables_.borders = {prefix + "h", prefix + "p"};
  std::vector<std::string> keys = {"a", "z", "i", "b", "y", "j", "a"};
  std::vector<SequenceNumber> versions(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    WriteBatch batch;
    batch.Put(keys[i], std::to_string(i));
    store->WriteAsync({}, &batch, [&versions, i](const absl::StatusOr<CommitResult>& committed) {
      ASSERT_TRUE(committed.ok()) << committed.status();
      versions[i] = committed->sequence;
    });
  }
  ASSERT_TRUE(store->Push().ok());
  for (size_t i = 1; i < keys.size(); ++i) {
    EXPECT_EQ(VersionOf(*store, keys[i]), versions[i]) << keys[i];
    EXPECT_EQ(Get(*store, keys[i]), std::to_string(i));
  }
  EXPECT_EQ(versions.front(), versions.back());  // of two puts of a key the last one alone was sent
}

TEST_F(HbaseStoreTest, KeysOfARegionThatIsAwayTakeNoOthersWithThem) {
  constexpr size_t kKeys = 1'000, kMostAtATime = 256;
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "a1", "v").ok());
  {
    const std::lock_guard lock(tables_.mutex);
    tables_.borders = {RowPrefix(1, 0xff) + "m"};
    tables_.dead_regions = {1};
  }
  std::vector<std::string> keys;
  for (size_t i = 0; i < kKeys; ++i) keys.push_back((i % 2 == 0 ? "z" : "a") + std::to_string(i));
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<MultiGetResult> results(kKeys);
  ASSERT_TRUE(store->MultiGet({}, views, absl::MakeSpan(results)).ok());
  for (size_t i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(results[i].read) << keys[i];
    ASSERT_EQ(IsStoreUnavailable(results[i].status), i % 2 == 0) << results[i].status;
    ASSERT_TRUE(i % 2 == 0 || results[i].status.ok()) << results[i].status;
  }
  EXPECT_EQ(results[1].value, "v");
  const std::lock_guard lock(tables_.mutex);
  EXPECT_LE(tables_.asked_in_vain, kMostAtATime / 2) << "those behind were not waited for";
}

// --- Asynchronous writes -------------------------------------------------------------------------

TEST_F(HbaseStoreTest, WritesOfSingleKeysWaitForAPushAndEachHasItsOwnAnswer) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "a", "old").ok());
  std::string value;
  ReadResult stale = Read(*store, "a", &value);
  ASSERT_TRUE(Put(*store, "a", "new").ok());
  std::vector<absl::Status> answers(4, absl::UnknownError("not answered"));
  const auto write = [&](size_t index, WriteBatch* batch) {
    store->WriteAsync({}, batch, [&answers, index](absl::StatusOr<CommitResult> committed) {
      answers[index] = committed.status();
    });
  };
  WriteBatch batch;
  batch.RequireUnchanged("a", stale);
  batch.Put("a", "never");
  write(0, &batch);
  batch.Put("b", "1");
  write(1, &batch);
  batch.Put("b", "2");
  write(2, &batch);
  batch.Put("c", "1");
  write(3, &batch);
  EXPECT_EQ(RowsOf("varve"), 1u);
  ASSERT_TRUE(store->Push().ok());
  EXPECT_TRUE(absl::IsAborted(answers[0])) << answers[0];
  for (const size_t index : {1u, 2u, 3u}) EXPECT_TRUE(answers[index].ok()) << answers[index];
  EXPECT_EQ(Get(*store, "a"), "new");
  EXPECT_EQ(Get(*store, "b"), "2");
  EXPECT_EQ(RowsOf("varve"), 3u);
}

TEST_F(HbaseStoreTest, AClusterThatDoesNotAnswerIsToldOfAsUnavailable) {
  const std::unique_ptr<HbaseStore> store = Open();
  Fail(absl::UnavailableError("no answer within 2000 ms"));
  EXPECT_TRUE(IsStoreUnavailable(Put(*store, "k", "v")));
  std::string value;
  EXPECT_TRUE(IsStoreUnavailable(store->Get({}, "k", &value).status()));
  EXPECT_TRUE(IsStoreUnavailable(store->Count({}, {}, {}).status()));
  const std::unique_ptr<Iterator> iterator = store->NewIterator({}, {}, {}, nullptr);
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(IsStoreUnavailable(iterator->status()));
}

TEST_F(HbaseStoreTest, AWriteWhoseRowsCannotBeReadTellsThatNothingWasWritten) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::Together()}}).ok());
  const std::unique_ptr<HbaseStore> other = Open();
  const auto write = [&](std::string_view first, std::string_view second,
                         const WriteOptions& options) {
    WriteBatch batch;
    batch.UseNamespace(3);
    batch.Put(first, "v");
    batch.Put(second, "v");
    return store->Write(options, &batch).status();
  };
  ASSERT_TRUE(write("a", "b", {}).ok());
  ASSERT_TRUE(Put(*other, "a", "w", 3).ok());  // so that what the store guesses is wrong
  tables_.read_failure = absl::UnavailableError("no answer");
  for (const absl::Status& status :
       {write("a", "b", {}), write("c", "d", {}), write("c", "d", {.independent_keys = true})}) {
    EXPECT_TRUE(IsStoreUnavailable(status)) << status;
    EXPECT_EQ(status.message(), "no answer; nothing was written");
  }
  tables_.read_failure = absl::OkStatus();
  EXPECT_EQ(RowsOf("varve-together"), 2u);
}

// --- Several servers -----------------------------------------------------------------------------

TEST_F(HbaseStoreTest, AChangeOfNamespacesIsKnownEverywhereOnceItIsAnswered) {
  HbaseStoreOptions options = Options();
  options.deadline = milliseconds(120'000);  // however late the other one gets a processor
  const std::unique_ptr<HbaseStore> a = Open(options);
  options.beat = milliseconds(1);
  const std::unique_ptr<HbaseStore> b = Open(options);
  ASSERT_TRUE(Create(*a, {.id = 5, .options = {.default_expiry_ms = 1000}}).ok());
  EXPECT_TRUE(b->HasNamespace(5));
  EXPECT_GT(b->UsualExpiry(5), b->NowMillis());
  ASSERT_TRUE(Put(*b, "k", "v", 5).ok());
  WriteBatch batch;
  batch.ClearNamespace(5);
  ASSERT_TRUE(a->Write({}, &batch).ok());
  std::string value;
  const absl::StatusOr<ReadResult> read = b->Get({.space = 5}, "k", &value);
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->found);
}

TEST_F(HbaseStoreTest, AServerThatDoesNotConfirmIsNamed) {
  HbaseStoreOptions options = Options();
  options.deadline = milliseconds(50);
  const std::unique_ptr<HbaseStore> silent = Open();
  const std::unique_ptr<HbaseStore> store = Open(options);
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  const absl::Status cleared = store->Write({}, &batch).status();
  EXPECT_TRUE(IsStoreUnavailable(cleared)) << cleared;
  EXPECT_NE(cleared.message().find("has not confirmed"), absl::string_view::npos) << cleared;
}

TEST_F(HbaseStoreTest, AChangeOfNamespacesKeepsToTheDeadlineOfItsCommand) {
  const std::unique_ptr<HbaseStore> store = Open();
  WriteBatch batch;
  for (const bool creates : {true, false}) {
    const auto deadline = std::chrono::steady_clock::now() + Options().deadline / 2;
    if (creates) {
      batch.CreateNamespace({.id = 3, .options = {.grouping = KeyGrouping::Together()}});
    } else {
      batch.ClearNamespace(3);
    }
    tables_.latest = {};
    ASSERT_TRUE(store->Write({.deadline = deadline}, &batch).ok());
    EXPECT_EQ(tables_.latest, deadline);
  }
}

TEST_F(HbaseStoreTest, ANewNamespaceIsThereThoughAServerIsSilent) {
  HbaseStoreOptions options = Options();
  options.deadline = milliseconds(50);
  const std::unique_ptr<HbaseStore> silent = Open();
  const std::unique_ptr<HbaseStore> store = Open(options);
  const absl::Status created = Create(*store, {.id = 5});
  EXPECT_TRUE(created.ok()) << created;
  EXPECT_TRUE(Put(*store, "k", "v", 5).ok());
  EXPECT_FALSE(silent->HasNamespace(5));
}

TEST_F(HbaseStoreTest, WhatAServerCouldNotShowItShowsWithItsNextBeat) {
  HbaseStoreOptions options = Options();
  options.deadline = milliseconds(50);
  const std::unique_ptr<HbaseStore> other = Open();
  const std::unique_ptr<HbaseStore> store = Open(options);
  WriteBatch batch;
  batch.CreateNamespace({.id = 5});
  const absl::StatusOr<CommitResult> created = store->Write({}, &batch);
  ASSERT_TRUE(created.ok()) << created.status();
  tables_.before_commit = [&] { Fail(absl::UnavailableError("no answer")); };
  EXPECT_TRUE(absl::IsUnavailable(other->roster().Beat()));
  Fail(absl::OkStatus());
  ASSERT_TRUE(other->HasNamespace(5)) << "it has looked before it was to show it";
  ASSERT_TRUE(other->roster().Beat().ok());
  const absl::StatusOr<bool> have_seen =
      store->roster().HaveAllSeen({.catalog = created->sequence});
  EXPECT_TRUE(have_seen.ok() && *have_seen) << have_seen.status();
}

TEST_F(HbaseStoreTest, EveryServerSeesByItselfThatAnotherOneIsDead) {
  const std::unique_ptr<HbaseStore> dead = Open();
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Step(*dead).ok());  // it was the remover, too
  clock_.Advance(30'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  clock_.Advance(100'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  const absl::Status cleared = store->Write({}, &batch).status();
  EXPECT_TRUE(cleared.ok()) << cleared;
  EXPECT_TRUE(IsStoreUnavailable(Put(*dead, "k", "v")));
  ASSERT_TRUE(Step(*store).ok());
  clock_.Advance(100'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_TRUE(store->remover().is_elected());
}

TEST_F(HbaseStoreTest, AServerThatIsDeadHoldsNobodyUpForEver) {
  const std::unique_ptr<HbaseStore> dead = Open();
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Step(*store).ok());
  clock_.Advance(100'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_TRUE(Create(*store, {.id = 5}).ok());
  // It works with nothing any more that it knew, until it has looked again.
  EXPECT_TRUE(IsStoreUnavailable(Put(*dead, "k", "v")));
  ASSERT_TRUE(dead->roster().Beat().ok());
  EXPECT_TRUE(dead->HasNamespace(5));
  EXPECT_TRUE(Put(*dead, "k", "v").ok());
}

TEST_F(HbaseStoreTest, NamespacesAreTrustedForAWhileOnly) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "v").ok());
  clock_.Advance(70'000);
  EXPECT_EQ(Get(*store, "k"), "v");
  clock_.Advance(6'000);
  EXPECT_TRUE(store->HasNamespace(kDefaultNamespace));
  EXPECT_TRUE(IsStoreUnavailable(Put(*store, "k", "w")));
  ASSERT_TRUE(store->roster().Beat().ok());
  EXPECT_TRUE(Put(*store, "k", "w").ok());
}

// --- The remover ---------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, WhatIsGoneForAnHourGoesAndNoVersionComesBack) {
  const std::unique_ptr<HbaseStore> store = Open();
  std::vector<std::string> expired;
  store->SetExpiryListener(
      [&](NamespaceId, std::string_view key, SequenceNumber) { expired.emplace_back(key); });
  ASSERT_TRUE(Put(*store, "deleted", "v").ok());
  ASSERT_TRUE(Put(*store, "expired", "v", kDefaultNamespace, clock_.WallMillis() + 10).ok());
  ASSERT_TRUE(Put(*store, "there", "v").ok());
  ASSERT_TRUE(Delete(*store, "deleted").ok());
  const SequenceNumber before = VersionOf(*store, "there");
  const auto sweep = [&] {
    clock_.Advance(700'000);
    ASSERT_TRUE(store->roster().Beat().ok());
    const absl::Status step = Step(*store);
    ASSERT_TRUE(step.ok()) << step;
  };
  for (int i = 0; i < 5; ++i) sweep();
  EXPECT_EQ(RowsOf("varve"), 3u);
  sweep();  // raises the floor
  EXPECT_EQ(RowsOf("varve"), 3u);
  sweep();
  EXPECT_EQ(RowsOf("varve"), 1u);
  EXPECT_EQ(expired, std::vector<std::string>{"expired"});
  EXPECT_EQ(Get(*store, "there"), "v");

  testing::ManualClock behind;
  HbaseStoreOptions options = Options();
  options.clock = &behind;
  const std::unique_ptr<HbaseStore> late = Open(options);
  ASSERT_TRUE(Put(*late, "deleted", "again").ok());
  EXPECT_GT(VersionOf(*late, "deleted"), before);
}

TEST_F(HbaseStoreTest, ARowThatIsGoneIsWrittenAgainThoughItsOldVersionIsGuessed) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "v").ok());
  ASSERT_TRUE(Put(*store, "expired", "v", kDefaultNamespace, clock_.WallMillis() + 10).ok());
  const SequenceNumber before = VersionOf(*store, "k");
  ASSERT_TRUE(Delete(*store, "k").ok());
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(4'000'000);
    ASSERT_TRUE(store->roster().Beat().ok());
    ASSERT_TRUE(Step(*store).ok());
  }
  ASSERT_EQ(RowsOf("varve"), 0u);
  ASSERT_TRUE(Put(*store, "k", "w").ok());
  ASSERT_TRUE(Put(*store, "expired", "w").ok());
  EXPECT_GT(VersionOf(*store, "k"), before);
  EXPECT_EQ(Get(*store, "k"), "w");
  EXPECT_EQ(Get(*store, "expired"), "w");
}

TEST_F(HbaseStoreTest, ARowThatIsWrittenAgainStays) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "v").ok());
  ASSERT_TRUE(Delete(*store, "k").ok());
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(4'000'000);
    ASSERT_TRUE(store->roster().Beat().ok());
    if (i == 1) tables_.before_delete = [&] { EXPECT_TRUE(Put(*store, "k", "w").ok()); };
    ASSERT_TRUE(Step(*store).ok());
  }
  EXPECT_EQ(Get(*store, "k"), "w");
}

TEST_F(HbaseStoreTest, ASweepIsToldOfNoRowsButThoseThatGo) {
  const std::unique_ptr<HbaseStore> store = Open();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(Put(*store, std::to_string(i), "v").ok());
  const uint64_t now = clock_.WallMillis();
  ASSERT_TRUE(Put(*store, "soon", "v", kDefaultNamespace, now + 10'000'000).ok());
  ASSERT_TRUE(Put(*store, "expired", "v", kDefaultNamespace, now + 10).ok());
  ASSERT_TRUE(Delete(*store, "7").ok());
  Age(*store);
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(tables_.swept, 2u);
  EXPECT_EQ(RowsOf("varve"), 300u);
}

TEST_F(HbaseStoreTest, ASweepGoesOnWhereItWasEnded) {
  const std::unique_ptr<HbaseStore> store = Open();
  for (int i = 0; i < 700; ++i) {
    ASSERT_TRUE(Put(*store, std::to_string(i), "v").ok());
    ASSERT_TRUE(Delete(*store, std::to_string(i)).ok());
  }
  Age(*store);
  ASSERT_TRUE(store->remover().Step([] { return true; }).ok());
  EXPECT_EQ(RowsOf("varve"), 200u);
  // No new sweep is due yet.
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 0u);
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(tables_.swept, 700u);
}

TEST_F(HbaseStoreTest, ASweepLeavesOutARegionThatDoesNotAnswer) {
  const std::unique_ptr<HbaseStore> store = Open();
  for (const char* key : {"a", "m", "z"}) {
    ASSERT_TRUE(Put(*store, key, "v").ok());
    ASSERT_TRUE(Delete(*store, key).ok());
  }
  Age(*store);
  const std::string prefix = RowPrefix(1, 0xff);
  tables_.silent.emplace(prefix + "g", prefix + "t");
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 1u);
  tables_.silent.reset();
  clock_.Advance(700'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 0u);
}

TEST_F(HbaseStoreTest, ARetiredPlaceIsForgottenOnlyOnceAllOfItsRegionsAreEmpty) {
  const std::unique_ptr<HbaseStore> store = Open();
  for (const char* key : {"a", "m", "z"}) ASSERT_TRUE(Put(*store, key, "v").ok());
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  ASSERT_TRUE(Step(*store).ok());
  clock_.Advance(60'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  const std::string prefix = RowPrefix(1, 0xff);
  tables_.silent.emplace(prefix + "g", prefix + "t");
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 1u);
  tables_.silent.reset();
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 0u);
}

TEST_F(HbaseStoreTest, TheRowsOfAnEmptiedNamespaceGo) {
  const std::unique_ptr<HbaseStore> store = Open();
  for (int i = 0; i < 700; ++i) ASSERT_TRUE(Put(*store, std::to_string(i), "v").ok());
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_EQ(Get(*store, "1"), "(missing)");
  ASSERT_TRUE(Put(*store, "new", "v").ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 701u);
  clock_.Advance(60'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 1u);
  EXPECT_EQ(Get(*store, "new"), "v");
}

// A server that does not know of the change yet begins a write there. It learns of the change, and
// the remover takes a step, before that write comes.
TEST_F(HbaseStoreTest, AWriteThatComesLateToARetiredPlaceLeavesNoRow) {
  HbaseStoreOptions options = Options();
  options.deadline = milliseconds(50);
  const std::unique_ptr<HbaseStore> late = Open();
  const std::unique_ptr<HbaseStore> store = Open(options);
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  ASSERT_TRUE(IsStoreUnavailable(store->Write({}, &batch).status()));  // but it was done
  ASSERT_TRUE(Step(*store).ok());
  clock_.Advance(60'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  tables_.before_commit = [&] {
    EXPECT_TRUE(late->roster().Beat().ok());
    EXPECT_TRUE(Step(*store).ok());
  };
  ASSERT_TRUE(Put(*late, "k", "v").ok());
  EXPECT_EQ(Get(*late, "k"), "(missing)");
  EXPECT_EQ(RowsOf("varve"), 1u);
  clock_.Advance(60'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve"), 0u);
}

TEST_F(HbaseStoreTest, ARetiredPlaceThatCannotBeReadKeepsNoOtherFromBeingRemoved) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::Together()}}).ok());
  ASSERT_TRUE(Put(*store, "k", "v", 3).ok());
  WriteBatch batch;
  batch.DropNamespace(3);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  const auto remove_default = [&] {
    ASSERT_TRUE(Put(*store, "k", "v").ok());
    batch.ClearNamespace(kDefaultNamespace);
    ASSERT_TRUE(store->Write({}, &batch).ok());
    ASSERT_EQ(RowsOf("varve"), 1u);
    Step(*store).IgnoreError();
    clock_.Advance(60'000);
    ASSERT_TRUE(store->roster().Beat().ok());
  };
  tables_.scan_failures["varve-together"] = absl::InternalError("no such filter");
  remove_default();
  EXPECT_TRUE(absl::IsInternal(Step(*store)));
  EXPECT_EQ(RowsOf("varve"), 0u);
  // Where somebody has dropped a table, nothing of the place is left.
  tables_.scan_failures["varve-together"] = absl::NotFoundError("no such table");
  remove_default();
  const absl::Status removed = Step(*store);
  EXPECT_TRUE(removed.ok()) << removed;
  EXPECT_EQ(RowsOf("varve"), 0u);
  tables_.scan_failures.clear();
  clock_.Advance(60'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve-together"), 1u) << "the place was forgotten";
}

TEST_F(HbaseStoreTest, ANamespaceThatCannotBeReadKeepsNoOtherFromBeingSwept) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Create(*store, {.id = 3, .options = {.grouping = KeyGrouping::Together()}}).ok());
  ASSERT_TRUE(Create(*store, {.id = 4, .options = {.grouping = KeyGrouping::By(':')}}).ok());
  for (const NamespaceId space : {3u, 4u})
    ASSERT_TRUE(Put(*store, "k", "v", space, clock_.WallMillis() + 10).ok());
  Age(*store);
  tables_.scan_failures["varve-together"] = absl::InternalError("no such filter");
  EXPECT_TRUE(absl::IsInternal(Step(*store)));
  EXPECT_EQ(RowsOf("varve-together"), 1u);
  EXPECT_EQ(RowsOf("varve-group-3a"), 0u);
  tables_.scan_failures.clear();
  clock_.Advance(700'000);
  ASSERT_TRUE(store->roster().Beat().ok());
  ASSERT_TRUE(Step(*store).ok());
  EXPECT_EQ(RowsOf("varve-together"), 0u);
}

TEST_F(HbaseStoreTest, OneServerIsElectedAndAnotherTakesOverOnceItIsDead) {
  const std::unique_ptr<HbaseStore> a = Open();
  const std::unique_ptr<HbaseStore> b = Open();
  ASSERT_TRUE(Step(*a).ok());
  ASSERT_TRUE(Step(*b).ok());
  EXPECT_TRUE(a->remover().is_elected());
  EXPECT_FALSE(b->remover().is_elected());
  clock_.Advance(60'000);
  ASSERT_TRUE(Step(*a).ok());
  ASSERT_TRUE(Step(*b).ok());
  EXPECT_FALSE(b->remover().is_elected());
  clock_.Advance(91'000);
  ASSERT_TRUE(b->roster().Beat().ok());
  ASSERT_TRUE(Step(*b).ok());
  EXPECT_TRUE(b->remover().is_elected());
}

TEST_F(HbaseStoreTest, APlaceThatAnotherServerRemovedIsForgotten) {
  const std::unique_ptr<HbaseStore> a = Open();
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  ASSERT_TRUE(a->Write({}, &batch).ok());
  ASSERT_TRUE(Step(*a).ok());
  EXPECT_EQ(a->remover().remembered_places(), 1u);
  const std::unique_ptr<HbaseStore> b = Open();
  ASSERT_TRUE(Step(*b).ok());
  clock_.Advance(91'000);  // a is dead
  ASSERT_TRUE(b->roster().Beat().ok());
  ASSERT_TRUE(Step(*b).ok());
  ASSERT_TRUE(b->remover().is_elected());
  clock_.Advance(60'000);
  ASSERT_TRUE(b->roster().Beat().ok());
  ASSERT_TRUE(Step(*b).ok());
  ASSERT_TRUE(a->roster().Beat().ok());
  ASSERT_TRUE(Step(*a).ok());
  EXPECT_FALSE(a->remover().is_elected());
  EXPECT_EQ(a->remover().remembered_places(), 0u);
}

// --- Ranges --------------------------------------------------------------------------------------

TEST_F(HbaseStoreTest, ALongRangeIsWalkedInBothDirections) {
  const std::unique_ptr<HbaseStore> store = Open();
  WriteBatch batch;
  for (int i = 1000; i < 6000; ++i) batch.Put(std::to_string(i), "v");
  ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  for (int i = 2000; i < 4000; ++i) batch.Delete(std::to_string(i));
  ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  const std::unique_ptr<Iterator> iterator = store->NewIterator({}, {}, {}, nullptr);
  std::vector<std::string> up, down;
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    up.emplace_back(iterator->key());
  for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev())
    down.emplace_back(iterator->key());
  EXPECT_EQ(up.size(), 3000u);
  EXPECT_TRUE(std::is_sorted(up.begin(), up.end()));
  std::reverse(down.begin(), down.end());
  EXPECT_EQ(up, down);
  iterator->Seek("2000");
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "4000");
  iterator->Prev();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "1999");
  iterator->Next();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "4000");
}

// As the front of a queue does that many have taken from.
TEST_F(HbaseStoreTest, RowsThatAreGoneArePassedOverInLargeSteps) {
  const std::unique_ptr<HbaseStore> store = Open();
  constexpr int kGone = 100'000;
  for (int first = 0; first < kGone; first += kGone / 10) {
    WriteBatch batch;
    for (int i = first; i < first + kGone / 10; ++i) batch.Put(std::to_string(1'000'000 + i), "v");
    ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
    for (int i = first; i < first + kGone / 10; ++i) batch.Delete(std::to_string(1'000'000 + i));
    ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  }
  ASSERT_TRUE(Put(*store, "2", "v").ok());
  const auto read = [&store](const ReadOptions& options, StoreReads::RangeRequest range) {
    std::promise<absl::StatusOr<RangeSlice>> answer;
    store->ReadRangeAsync(options, std::move(range), [&answer](absl::StatusOr<RangeSlice> slice) {
      answer.set_value(std::move(slice));
    });
    return answer.get_future().get();
  };
  tables_.scans = 0;
  const absl::StatusOr<RangeSlice> whole = read({}, {.max_entries = 1});
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->entries.size(), 1u);
  EXPECT_EQ(whole->entries.front().key, "2");
  EXPECT_FALSE(whole->more);
  EXPECT_LT(tables_.scans, 50u);
  // Who has a deadline for all of it may do something else instead.
  tables_.scans = 0;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
  const absl::StatusOr<RangeSlice> part = read({.deadline = deadline}, {.max_entries = 1});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_TRUE(part->entries.empty());
  EXPECT_TRUE(part->more);
  EXPECT_LT(tables_.scans, 33u);
}

TEST_F(HbaseStoreTest, AnIteratorAsksAtFirstForAsManyEntriesAsAreExpected) {
  const std::unique_ptr<HbaseStore> store = Open();
  WriteBatch batch;
  for (int i = 100; i < 400; ++i) batch.Put(std::to_string(i), "v");
  ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  const std::unique_ptr<Iterator> iterator =
      store->NewIterator({.expected_entries = 5}, {}, {}, nullptr);
  iterator->SeekToFirst();
  EXPECT_EQ(tables_.scanned, 6u);  // one more tells whether there are more
  size_t entries = 0;
  for (; iterator->Valid(); iterator->Next()) ++entries;
  EXPECT_EQ(entries, 300u);
}

TEST_F(HbaseStoreTest, ACountEndsOnceTheStoreIsToldThatItWillBeClosed) {
  const std::unique_ptr<HbaseStore> store = Open();
  WriteBatch batch;
  for (int i = 1000; i < 9999; ++i) batch.Put(std::to_string(i), "v");
  ASSERT_TRUE(store->Write({.independent_keys = true}, &batch).ok());
  const absl::StatusOr<CountResult> all = store->Count({}, {}, {});
  ASSERT_TRUE(all.ok()) << all.status();
  EXPECT_EQ(all->keys, 8'999u);
  // The first of the steps is under way.
  tables_.before_scan = [&] { store->BeginClose(); };
  const absl::Status ended = store->Count({}, {}, {}).status();
  EXPECT_TRUE(IsStoreUnavailable(ended)) << ended;
  EXPECT_EQ(ended.message(), "the store is being closed");
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Count({}, {}, {}).status()));
  EXPECT_TRUE(store->Close().ok());
}

TEST_F(HbaseStoreTest, AWriteThatWasGivenIsFinishedThoughTheStoreWillBeClosed) {
  {
    const std::unique_ptr<HbaseStore> store = Open();
    WriteBatch batch;
    batch.Put("k", "v");
    std::promise<absl::Status> answer;
    store->WriteAsync({}, &batch, [&](const absl::StatusOr<CommitResult>& committed) {
      answer.set_value(committed.status());
    });
    store->BeginClose();
    EXPECT_TRUE(absl::IsFailedPrecondition(Put(*store, "l", "v")));
    store->Push().IgnoreError();
    const absl::Status written = answer.get_future().get();
    EXPECT_TRUE(written.ok()) << written;
  }
  const std::unique_ptr<HbaseStore> store = Open();
  EXPECT_EQ(Get(*store, "k"), "v");
  EXPECT_EQ(Get(*store, "l"), "(missing)");
}

TEST_F(HbaseStoreTest, ARowThatNoVarveWroteIsReportedAsDamage) {
  const std::unique_ptr<HbaseStore> store = Open();
  ASSERT_TRUE(Put(*store, "k", "v").ok());
  for (auto& [row, value] : tables_.tables["varve"]) {
    if (row.ends_with("k")) value = "rubbish";
  }
  std::string value;
  EXPECT_TRUE(absl::IsDataLoss(store->Get({}, "k", &value).status()));
  EXPECT_TRUE(absl::IsDataLoss(Put(*store, "k", "v")));
  EXPECT_TRUE(absl::IsDataLoss(store->Count({}, {}, {}).status()));
}

}  // namespace
}  // namespace varve
