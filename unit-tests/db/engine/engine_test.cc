// What the engine promises through its public header, one behaviour a test.
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "absl/synchronization/notification.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

using testing::TestStore;

TEST(EngineTest, MissingEmptyAndDeletedAreToldApart) {
  TestStore store;
  ASSERT_TRUE(store->Put("empty", "").ok());
  ASSERT_TRUE(store->Put("deleted", "x").ok());
  ASSERT_TRUE(store->Delete("deleted").ok());
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(store.Get("empty"), "");
    EXPECT_EQ(store.Get("deleted"), "(missing)");
    EXPECT_EQ(store.Get("never"), "(missing)");
    EXPECT_EQ(store.Scan(), "empty= ");
    if (round == 0) ASSERT_TRUE(store->Flush().ok());
    if (round == 1) store.Reopen();
  }
}

TEST(EngineTest, KeysAndValuesAreArbitraryBytes) {
  TestStore store;
  std::vector<std::string> keys = {"",
                                   "0",
                                   "-1",
                                   "/a",
                                   "tab\tnewline\nreturn\rcomma,",
                                   std::string("\0", 1),
                                   std::string("a\0b", 3),
                                   "\xff\xff\xff\xff",
                                   std::string(65536, 'k'),
                                   "quote\"'\\"};
  for (unsigned char byte = 0; byte < 255; ++byte) keys.emplace_back(1, static_cast<char>(byte));
  for (const std::string& key : keys) ASSERT_TRUE(store->Put(key, "value of " + key).ok());
  for (int round = 0; round < 3; ++round) {
    for (const std::string& key : keys) ASSERT_EQ(store.Get(key), "value of " + key);
    std::set<std::string> sorted(keys.begin(), keys.end());
    auto iterator = store->NewIterator({}, {}, {}, nullptr);
    iterator->SeekToFirst();
    for (const std::string& key : sorted) {
      ASSERT_TRUE(iterator->Valid());
      ASSERT_EQ(iterator->key(), key);
      iterator->Next();
    }
    EXPECT_FALSE(iterator->Valid());
    iterator.reset();  // before its store goes
    if (round == 0) ASSERT_TRUE(store->Compact({}, {}).ok());
    if (round == 1) store.Reopen();
  }
}

TEST(EngineTest, AValueMayEqualAnythingInside) {
  TestStore store;
  const std::string values[] = {
      std::string("\x02", 1), std::string("\0\0\0\0", 4), "VARVELOG", "TOMBSTONE",
      "__deleted__",          std::string(4096, '\0')};
  for (const std::string& value : values) ASSERT_TRUE(store->Put("key of " + value, value).ok());
  ASSERT_TRUE(store->Flush().ok());
  store.Reopen();
  for (const std::string& value : values) EXPECT_EQ(store.Get("key of " + value), value);
}

TEST(EngineTest, ALargeValueSurvives) {
  TestStore store;
  std::string value(16 << 20, '\0');
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 2654435761u >> 13);
  ASSERT_TRUE(store->Put("large", value).ok());
  ASSERT_TRUE(store->Put("small", "s").ok());
  EXPECT_EQ(store.Get("large"), value);
  store.Reopen();
  EXPECT_EQ(store.Get("large"), value);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Get("large"), value);
  EXPECT_EQ(store.Get("small"), "s");
}

TEST(EngineTest, LimitsAreRefusedAndNothingIsLost) {
  TestStore store;
  EXPECT_TRUE(absl::IsInvalidArgument(store->Put(std::string(kMaxKeySize + 1, 'k'), "v")));
  EXPECT_TRUE(store->Put(std::string(kMaxKeySize, 'k'), "v").ok());
  WriteBatch batch;
  batch.Put("good", "v");
  batch.Put(std::string(kMaxKeySize + 1, 'k'), "v");
  EXPECT_TRUE(absl::IsInvalidArgument(store->Write({}, &batch).status()));
  EXPECT_EQ(store.Get("good"), "(missing)");
  EXPECT_TRUE(absl::IsInvalidArgument(store->Put("k", std::string(kMaxValueSize + 1, 'v'))));
  EXPECT_TRUE(absl::IsInvalidArgument(store->DeleteRange("a", std::string(kMaxKeySize + 2, 'z'))));
}

TEST(EngineTest, DeletesOfKeysInOlderSegmentsHold) {
  TestStore store;
  ASSERT_TRUE(store->Put("a", "1").ok());
  ASSERT_TRUE(store->Put("b", "1").ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Delete("a").ok());
  EXPECT_EQ(store.Get("a"), "(missing)");
  store.Reopen();
  EXPECT_EQ(store.Get("a"), "(missing)");
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(store.Get("a"), "(missing)");
  ASSERT_TRUE(store->Compact({}, {}).ok());
  store.Reopen();
  EXPECT_EQ(store.Get("a"), "(missing)");
  EXPECT_EQ(store.Scan(), "b=1 ");
  EXPECT_EQ(store.Statistic("segment_entries"), 1u) << "the tombstone has nothing left to hide";
}

TEST(EngineTest, OverwritesAfterCompactionHold) {
  TestStore store;
  ASSERT_TRUE(store->Put("a", "old").ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  ASSERT_TRUE(store->Put("a", "new").ok());
  store.Reopen();
  EXPECT_EQ(store.Get("a"), "new");
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Get("a"), "new");
  EXPECT_EQ(store.Statistic("segment_entries"), 1u);
}

TEST(EngineTest, RangesAreDeletedInOneStepAndMayBeRefilled) {
  TestStore store;
  for (char c = 'a'; c <= 'f'; ++c) ASSERT_TRUE(store->Put(std::string(1, c), "1").ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Put("c", "2").ok());
  const auto before = store->GetSnapshot();
  ASSERT_TRUE(store->DeleteRange("b", "e").ok());
  ASSERT_TRUE(store->Put("d", "3").ok());
  for (int round = 0; round < 4; ++round) {
    EXPECT_EQ(store.Scan(), "a=1 d=3 e=1 f=1 ");
    EXPECT_EQ(store.Scan({}, {}, /*reverse=*/true), "f=1 e=1 d=3 a=1 ");
    EXPECT_EQ(store.Get("b"), "(missing)");
    EXPECT_EQ(store.Get("d"), "3");
    if (round < 3) EXPECT_EQ(store.Scan({}, {}, false, before.get()), "a=1 b=1 c=2 d=1 e=1 f=1 ");
    if (round == 0) ASSERT_TRUE(store->Flush().ok());
    if (round == 1) ASSERT_TRUE(store->Compact({}, {}).ok());
    if (round == 2) const_cast<std::shared_ptr<const Snapshot>&>(before).reset(), store.Reopen();
  }
}

TEST(EngineTest, ClearEmptiesAtOnceAndForGood) {
  TestStore store;
  for (int i = 0; i < 500; ++i)
    ASSERT_TRUE(store->Put("key" + std::to_string(i), std::string(100, 'v')).ok());
  ASSERT_TRUE(store->Flush().ok());
  const auto before = store->GetSnapshot();
  WriteBatch batch;
  batch.Put("in the same batch, before", "x");
  batch.ClearNamespace();
  batch.Put("after", "y");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_EQ(store.Scan(), "after=y ");
  EXPECT_EQ(store.Get("key7"), "(missing)");
  EXPECT_EQ(store.Get("key7", before.get()), std::string(100, 'v'));
  EXPECT_EQ(store->Count({.snapshot = before.get()}, {}, {})->keys, 500u);
  const_cast<std::shared_ptr<const Snapshot>&>(before).reset();
  store.Reopen();
  EXPECT_EQ(store.Scan(), "after=y ");
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Scan(), "after=y ");
}

TEST(EngineTest, SnapshotsKeepWhatTheySaw) {
  TestStore store;
  std::vector<std::shared_ptr<const Snapshot>> snapshots;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store->Put("counter", std::to_string(i)).ok());
    if (i % 5 == 4) ASSERT_TRUE(store->Delete("counter").ok());
    snapshots.push_back(store->GetSnapshot());
    if (i % 7 == 0) ASSERT_TRUE(store->Flush().ok());
  }
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(store.Get("counter", snapshots[i].get()),
                i % 5 == 4 ? "(missing)" : std::to_string(i));
      EXPECT_EQ(store.Scan({}, {}, i % 2 == 0, snapshots[i].get()),
                i % 5 == 4 ? "" : "counter=" + std::to_string(i) + " ");
    }
    ASSERT_TRUE(store->Compact({}, {}).ok());
  }
  snapshots.clear();
}

TEST(EngineTest, IteratorsSeekBothWaysWithinBounds) {
  TestStore store;
  for (const char* key : {"a", "c", "e", "g"}) ASSERT_TRUE(store->Put(key, "v").ok());
  ASSERT_TRUE(store->Flush().ok());
  for (const char* key : {"b", "d", "f"}) ASSERT_TRUE(store->Put(key, "v").ok());
  const auto iterator = store->NewIterator({}, "b", "g", nullptr);
  iterator->Seek("a");
  EXPECT_EQ(iterator->key(), "b");
  iterator->Prev();
  EXPECT_FALSE(iterator->Valid());
  iterator->SeekForPrev("z");
  EXPECT_EQ(iterator->key(), "f");
  iterator->Next();
  EXPECT_FALSE(iterator->Valid());
  iterator->Seek("d");
  iterator->Prev();
  EXPECT_EQ(iterator->key(), "c");
  iterator->Next();
  iterator->Next();
  EXPECT_EQ(iterator->key(), "e");
  iterator->SeekForPrev("dd");
  EXPECT_EQ(iterator->key(), "d");
  iterator->SeekForPrev("a");
  EXPECT_FALSE(iterator->Valid());
  ASSERT_TRUE(store->Put("bb", "late").ok());
  iterator->SeekToFirst();
  iterator->Next();
  EXPECT_EQ(iterator->key(), "c") << "an iterator doesn't see what was written after it was made";
}

TEST(EngineTest, ConditionsDecideWhetherABatchIsWritten) {
  TestStore store;
  std::string value;
  const absl::StatusOr<ReadResult> read = store->Get({}, "k", &value);
  WriteBatch batch;
  batch.RequireUnchanged("k", read->read_sequence);
  batch.Put("k", "first");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  for (int round = 0; round < 2; ++round) {
    batch.RequireUnchanged("k", read->read_sequence);
    batch.Put("k", "second");
    batch.Put("other", "x");
    EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
    batch.Clear();
    EXPECT_EQ(store.Get("k"), "first");
    EXPECT_EQ(store.Get("other"), "(missing)");
    ASSERT_TRUE(store->Flush().ok());  // now the newer write stands in a segment
  }
  const absl::StatusOr<ReadResult> again = store->Get({}, "k", &value);
  batch.RequireUnchanged("k", again->read_sequence);
  batch.RequireUnchanged("missing", again->read_sequence);
  batch.Put("k", "second");
  EXPECT_TRUE(store->Write({}, &batch).ok());
  EXPECT_EQ(store.Get("k"), "second");
}

TEST(EngineTest, DeletedRangesAndClearsCountAsChanges) {
  TestStore store;
  ASSERT_TRUE(store->Put("k", "v").ok());
  std::string value;
  const SequenceNumber read = store->Get({}, "k", &value)->read_sequence;
  ASSERT_TRUE(store->DeleteRange("a", "z").ok());
  WriteBatch batch;
  batch.RequireUnchanged("k", read);
  batch.Put("k", "w");
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
  const SequenceNumber later = store->Get({}, "k", &value)->read_sequence;
  WriteBatch clear;
  clear.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &clear).ok());
  batch.Clear();
  batch.RequireUnchanged("k", later);
  batch.Put("k", "w");
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
}

TEST(EngineTest, ARefusedBatchCanBeSubmittedAgain) {
  TestStore store;
  ASSERT_TRUE(store->Put("k", "v").ok());
  WriteBatch clear;
  clear.ClearNamespace();
  // The namespace's id and its generation differ from now on.
  ASSERT_TRUE(store->Write({}, &clear).ok());
  WriteBatch batch;
  batch.RequireUnchanged("k", 1);
  batch.Put("k", "w");
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
  EXPECT_EQ(store.Scan(), "");
}

TEST(EngineTest, UpdatesOfOneKeyFromManyThreadsAllCount) {
  TestStore store;
  constexpr int kThreads = 4, kIncrements = 300;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kIncrements; ++i) {
        const std::string_view key = "counter";
        const auto updated = store->Update(
            {.sync = Durability::kNone, .override_sync = true}, {&key, 1}, [&](WriteBatch* batch) {
              std::string value;
              const absl::StatusOr<ReadResult> read =
                  store->Get({.wait_until_durable = false}, key, &value);
              if (!read.ok()) return read.status();
              batch->RequireUnchanged(key, read->read_sequence);
              batch->Put(key, std::to_string((read->found ? std::stoi(value) : 0) + 1));
              return absl::OkStatus();
            });
        ASSERT_TRUE(updated.ok()) << updated.status();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.Get("counter"), std::to_string(kThreads * kIncrements));
}

TEST(EngineTest, AWriteWithoutSyncHasTheLogSyncWhatOthersHaveSubmitted) {
  TestStore store;
  WriteBatch synced;
  synced.Put("synced", "v");
  const absl::StatusOr<CommitResult> submitted =
      store->Submit({.sync = Durability::kAlways, .override_sync = true}, &synced);
  ASSERT_TRUE(submitted.ok()) << submitted.status();
  WriteBatch unsynced;
  unsynced.Put("unsynced", "v");
  ASSERT_TRUE(store->Write({.sync = Durability::kNone, .override_sync = true}, &unsynced).ok());
  EXPECT_TRUE(
      testing::Eventually([&] { return store->durable_sequence() >= submitted->durable_after; }));
}

TEST(EngineTest, ABatchOfConditionsAloneOnlyTellsWhetherTheyAreMet) {
  TestStore store;
  ASSERT_TRUE(store->Put("key", "v").ok());
  std::string value;
  const SequenceNumber read = store->Get({}, "key", &value)->read_sequence;
  for (const bool is_met : {true, false}) {
    WriteBatch batch;
    batch.RequireUnchanged("key", read);
    const WriteOptions unsynced{.sync = Durability::kNone, .override_sync = true};
    EXPECT_EQ(store->Write(unsynced, &batch).ok(), is_met);
    ASSERT_TRUE(store->Put("key", "w").ok());
  }
}

TEST(EngineTest, AsynchronousWritesReportWhenDurable) {
  TestStore store;
  constexpr int kWrites = 500;
  std::atomic<int> done{0};
  absl::Notification all;
  for (int i = 0; i < kWrites; ++i) {
    WriteBatch batch;
    batch.Put("key" + std::to_string(i), "v");
    store->WriteAsync({}, &batch, [&](absl::StatusOr<CommitResult> result) {
      EXPECT_TRUE(result.ok()) << result.status();
      if (++done == kWrites) all.Notify();
    });
  }
  all.WaitForNotification();
  EXPECT_GE(store->durable_sequence(), static_cast<SequenceNumber>(kWrites));
  EXPECT_EQ(store->Count({}, {}, {})->keys, static_cast<uint64_t>(kWrites));
}

TEST(EngineTest, MultiGetAnswersEachKeyAtOneSnapshot) {
  TestStore store;
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) {
    keys.push_back("key" + std::to_string(i));
    if (i % 3 != 0) ASSERT_TRUE(store->Put(keys.back(), "value" + std::to_string(i)).ok());
    if (i == 150) ASSERT_TRUE(store->Flush().ok());
  }
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<MultiGetResult> results(keys.size());
  ASSERT_TRUE(store->MultiGet({}, views, absl::MakeSpan(results)).ok());
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(results[i].status.ok());
    ASSERT_EQ(results[i].result.found, i % 3 != 0);
    if (results[i].result.found) ASSERT_EQ(results[i].value, "value" + std::to_string(i));
  }
}

TEST(EngineTest, MultiGetStopsWhenTheValuesHaveReachedTheirBound) {
  TestStore store;
  for (const char* key : {"a", "b", "c", "d"})
    ASSERT_TRUE(store->Put(key, std::string(100, *key)).ok());
  ASSERT_TRUE(store->Flush().ok());
  ASSERT_TRUE(store->Put("b", "short").ok());
  const std::vector<std::string_view> keys = {"missing", "a", "b", "c", "d"};
  const auto read = [&](size_t max_bytes) {
    std::vector<MultiGetResult> results(keys.size());
    EXPECT_TRUE(store->MultiGet({.max_bytes = max_bytes}, keys, absl::MakeSpan(results)).ok());
    std::string text;
    for (const MultiGetResult& result : results) {
      EXPECT_TRUE(result.status.ok()) << result.status;
      if (!result.read) EXPECT_TRUE(result.value.empty());
      text += !result.read ? "-" : result.result.found ? result.value.substr(0, 1) : "0";
    }
    return text;
  };
  EXPECT_EQ(read(SIZE_MAX), "0ascd");
  EXPECT_EQ(read(205), "0asc-") << "the value that reaches the bound is whole";
  EXPECT_EQ(read(206), "0ascd");
  EXPECT_EQ(read(100), "0a---");
  EXPECT_EQ(read(101), "0as--");
  EXPECT_EQ(read(1), "0a---") << "what is missing counts nothing, and something is always read";
}

TEST(EngineTest, OpeningReadsNoSegment) {
  // Nothing is merged, whatever size of write buffer the environment asks for: a merge reads, and
  // begins right behind the opening.
  EngineOptions options = testing::TestEngineOptions();
  options.write_buffer_size = EngineOptions().write_buffer_size;
  options.runs_per_level = 1000;
  TestStore store(options);
  for (int run = 0; run < 3; ++run) {
    for (int i = 0; i < 1000; ++i) {
      WriteBatch batch;
      batch.Put("key" + std::to_string(i) + "of" + std::to_string(run), std::string(100, 'v'));
      ASSERT_TRUE(store->Write({.sync = Durability::kNone, .override_sync = true}, &batch).ok());
    }
    ASSERT_TRUE(store->Flush().ok());
  }
  store.Reopen();
  EXPECT_EQ(store.Statistic("record_reads") + store.Statistic("table_page_reads") +
                store.Statistic("scan_reads") + store.Statistic("offset_table_loads"),
            0u);
  EXPECT_EQ(store.Get("key7of1"), std::string(100, 'v'));
  EXPECT_GT(store.Statistic("record_reads"), 0u);
}

TEST(EngineTest, DeletingARangeLogsTheSameForAnyNumberOfKeys) {
  testing::ManualClock clock;  // once a second the log gets a mark of the time, too
  EngineOptions options = testing::TestEngineOptions();
  options.clock = &clock;
  TestStore store(options);
  WriteBatch batch;
  for (int i = 0; i < 10000; ++i) batch.Put("key" + std::to_string(i), "v");
  ASSERT_TRUE(store->Write({}, &batch).ok());
  const uint64_t before = store.Statistic("log_bytes_appended");
  ASSERT_TRUE(store->DeleteRange("key", "kez").ok());
  batch.ClearNamespace();
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_LT(store.Statistic("log_bytes_appended") - before, 100u);
  EXPECT_EQ(store.Scan(), "");
}

TEST(EngineTest, OneStoreADirectory) {
  TestStore store;
  const auto second = StorageEngine::Open(store.directory.path(), {});
  EXPECT_TRUE(absl::IsFailedPrecondition(second.status())) << second.status();
}

TEST(EngineTest, AClosedStoreRefuses) {
  TestStore store;
  ASSERT_TRUE(store->Put("a", "1").ok());
  ASSERT_TRUE(store->Close().ok());
  EXPECT_TRUE(absl::IsUnavailable(store->Put("b", "1")));
  EXPECT_TRUE(store->Close().ok());
}

TEST(EngineTest, OpenNeedsAnExistingStoreIfAsked) {
  testing::TempDir directory;
  EngineOptions options;
  options.create_if_missing = false;
  EXPECT_TRUE(absl::IsNotFound(StorageEngine::Open(directory.path(), options).status()));
}

}  // namespace
}  // namespace varve
