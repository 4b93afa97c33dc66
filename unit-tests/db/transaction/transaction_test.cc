#include "varve/transaction.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/test_store.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::TestStore;

void Set(Store* store, std::string_view key, std::string_view value,
         NamespaceId space = kDefaultNamespace) {
  WriteBatch batch;
  batch.Put(key, value, space);
  ASSERT_TRUE(store->Write({}, &batch).ok());
}

std::string Read(Transaction* transaction, std::string_view key) {
  std::string value;
  const absl::StatusOr<ReadResult> read = transaction->Get({}, key, &value);
  if (!read.ok()) return read.status().ToString();
  return read->found ? value : "(missing)";
}

std::string Scan(Transaction* transaction, std::string_view lower = {}, std::string_view upper = {},
                 bool reverse = false) {
  std::string text;
  const auto iterator = transaction->NewIterator({}, lower, upper, nullptr);
  for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
       reverse ? iterator->Prev() : iterator->Next()) {
    text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
  }
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  return text;
}

uint64_t Count(Transaction* transaction, std::string_view lower = {}, std::string_view upper = {}) {
  const auto count = transaction->Count({}, lower, upper);
  EXPECT_TRUE(count.ok()) << count.status();
  return count.ok() ? count->keys : 0;
}

TEST(TransactionTest, ReadsItsSnapshotAndItsOwnWrites) {
  TestStore store;
  Set(&*store, "a", "1");
  Set(&*store, "b", "2");
  Set(&*store, "c", "3");
  Transaction transaction(&*store);
  Set(&*store, "a", "later");
  transaction.Put("bb", "own");
  transaction.Delete("c");
  EXPECT_EQ(Read(&transaction, "a"), "1");
  EXPECT_EQ(Read(&transaction, "bb"), "own");
  EXPECT_EQ(Read(&transaction, "c"), "(missing)");
  EXPECT_EQ(Scan(&transaction), "a=1 b=2 bb=own ");
  EXPECT_EQ(Scan(&transaction, "", "", true), "bb=own b=2 a=1 ");
  EXPECT_EQ(Scan(&transaction, "b", "bb"), "b=2 ");
  transaction.DeleteRange("b", "bc");
  transaction.Put("bb", "again");
  EXPECT_EQ(Scan(&transaction), "a=1 bb=again ");
  EXPECT_EQ(Scan(&transaction, "", "", true), "bb=again a=1 ");
  transaction.ClearNamespace();
  transaction.Put("z", "26");
  EXPECT_EQ(Scan(&transaction), "z=26 ");
  EXPECT_EQ(Count(&transaction), 1u);
  EXPECT_EQ(store.Scan(), "a=later b=2 c=3 ");
}

TEST(TransactionTest, CommitsAllOfItWhichARestartKeeps) {
  TestStore store;
  Set(&*store, "a", "1");
  Set(&*store, "m", "13");
  Transaction transaction(&*store);
  transaction.DeleteRange("l", "n");
  transaction.Put("mm", "13.5");
  transaction.Delete("a");
  transaction.Put("z", "26");
  ASSERT_TRUE(transaction.Commit().ok());
  EXPECT_EQ(store.Scan(), "mm=13.5 z=26 ");
  store.Reopen();
  EXPECT_EQ(store.Scan(), "mm=13.5 z=26 ");
  EXPECT_TRUE(absl::IsFailedPrecondition(transaction.Commit().status()));
}

TEST(TransactionTest, FailsWhenAKeyThatItReadWasWritten) {
  TestStore store;
  Set(&*store, "a", "1");
  for (const char* read : {"a", "missing"}) {
    Transaction transaction(&*store);
    Read(&transaction, read);
    transaction.Put("b", "2");
    Set(&*store, read, "other");
    EXPECT_TRUE(absl::IsAborted(transaction.Commit().status())) << read;
    EXPECT_EQ(store.Get("b"), "(missing)");
  }
  Transaction other(&*store);
  Read(&other, "a");
  other.Put("b", "2");
  Set(&*store, "c", "other");
  EXPECT_TRUE(other.Commit().ok());
}

TEST(TransactionTest, FailsWhenARangeThatItReadWasWritten) {
  TestStore store;
  for (const char* key : {"a", "c", "e"}) Set(&*store, key, "1");
  const auto outcome = [&](auto read, auto write) {
    Transaction transaction(&*store);
    read(&transaction);
    transaction.Put("x", "1");
    write();
    return transaction.Commit().status().code();
  };
  const auto scan = [](Transaction* transaction) { Scan(transaction, "b", "d"); };
  const auto first_alone = [](Transaction* transaction) {
    transaction->NewIterator({}, "", "", nullptr)->SeekToFirst();
  };
  const auto count = [](Transaction* transaction) { Count(transaction); };
  constexpr auto kOk = absl::StatusCode::kOk, kAborted = absl::StatusCode::kAborted;
  EXPECT_EQ(outcome(scan, [&] { Set(&*store, "bb", "phantom"); }), kAborted);
  EXPECT_EQ(outcome(scan, [&] { ASSERT_TRUE(store->Delete("c").ok()); }), kAborted);
  EXPECT_EQ(outcome(scan, [&] { ASSERT_TRUE(store->DeleteRange("ba", "bc").ok()); }), kAborted);
  // Nothing was there.
  EXPECT_EQ(outcome(scan, [&] { ASSERT_TRUE(store->DeleteRange("bz", "c").ok()); }), kOk);
  EXPECT_EQ(outcome(scan, [&] { ASSERT_TRUE(store->DeleteRange("d", "e").ok()); }), kOk);
  EXPECT_EQ(outcome(scan, [&] { Set(&*store, "d", "behind"); }), kOk);
  Set(&*store, "c", "again");
  EXPECT_EQ(outcome(scan,
                    [&] {
                      WriteBatch batch;
                      batch.ClearNamespace();
                      ASSERT_TRUE(store->Write({}, &batch).ok());
                    }),
            kAborted);
  for (const char* key : {"a", "c", "e"}) Set(&*store, key, "1");
  EXPECT_EQ(outcome(first_alone, [&] { Set(&*store, "c", "2"); }), kOk);
  EXPECT_EQ(outcome(first_alone, [&] { Set(&*store, "", "in front"); }), kAborted);
  EXPECT_EQ(outcome(count, [&] { Set(&*store, "new", "1"); }), kAborted);
  EXPECT_EQ(outcome(count, [] {}), kOk);
}

TEST(TransactionTest, WriteSkewIsRefused) {
  TestStore store;
  Set(&*store, "x", "1");
  Set(&*store, "y", "1");
  Transaction first(&*store), second(&*store);
  for (Transaction* each : {&first, &second}) {
    EXPECT_EQ(Read(each, "x"), "1");
    EXPECT_EQ(Read(each, "y"), "1");
  }
  first.Put("x", "0");
  second.Put("y", "0");
  EXPECT_TRUE(first.Commit().ok());
  EXPECT_TRUE(absl::IsAborted(second.Commit().status()));
}

TEST(TransactionTest, CommitsAcrossAFlushWhenNothingItReadHasChanged) {
  TestStore store;
  Set(&*store, "a", "1");
  Set(&*store, "b", "1");
  Transaction same(&*store), changed(&*store), ranged(&*store);
  for (Transaction* each : {&same, &changed}) Read(each, "a");
  Read(&same, "missing");
  Scan(&ranged, "", "b");
  for (Transaction* each : {&same, &changed, &ranged}) each->Put("c", "1");
  Set(&*store, "b", "2");
  ASSERT_TRUE(store->Flush().ok());
  Set(&*store, "b", "3");
  EXPECT_TRUE(same.Commit().ok());
  EXPECT_TRUE(ranged.Commit().ok());
  Set(&*store, "a", "2");
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_TRUE(absl::IsAborted(changed.Commit().status()));
}

TEST(TransactionTest, CountsWithItsOwnWrites) {
  TestStore store;
  for (const char* key : {"a", "b", "c"}) Set(&*store, key, "1");
  Transaction transaction(&*store);
  transaction.Put("a", "again");
  transaction.Put("d", "new");
  transaction.Delete("b");
  transaction.Delete("missing");
  EXPECT_EQ(Count(&transaction), 3u);
  EXPECT_EQ(Count(&transaction, "b", "d"), 1u);
  transaction.DeleteRange("c", "");
  EXPECT_EQ(Count(&transaction), 1u);
}

TEST(TransactionTest, MoreThanItsMemoryIsRefused) {
  TestStore store;
  Transaction transaction(&*store, {.write = {}, .max_bytes = 1000});
  transaction.Put("a", std::string(2000, 'x'));
  EXPECT_TRUE(absl::IsResourceExhausted(transaction.Commit().status()));
  EXPECT_EQ(store.Scan(), "");
}

TEST(TransactionTest, OneThatFoundNoRoomMayCommitOnceThereIsSome) {
  TestStore store;
  store->SetDataLimit(50);
  Transaction transaction(&*store);
  transaction.Put("key", std::string(100, 'v'));
  for (int i = 0; i < 2; ++i) {
    const absl::Status refused = transaction.Commit().status();
    EXPECT_TRUE(IsStoreFull(refused)) << refused;
  }
  store->SetDataLimit(1000);
  EXPECT_TRUE(transaction.Commit().ok());
  EXPECT_EQ(store.Get("key"), std::string(100, 'v'));
  EXPECT_TRUE(absl::IsFailedPrecondition(transaction.Commit().status()));
}

TEST(TransactionTest, AnIteratorThatIsLeftKeepsItFromCommitting) {
  TestStore store;
  Transaction transaction(&*store);
  auto iterator = transaction.NewIterator({}, "", "", nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(transaction.Commit().status()));
  iterator.reset();
  EXPECT_TRUE(transaction.Commit().ok());
}

TEST(TransactionTest, NothingCanBeDoneWithOneThatHasEnded) {
  TestStore store;
  Transaction transaction(&*store);
  transaction.Put("a", "1");
  ASSERT_TRUE(transaction.Commit().ok());
  std::string value;
  EXPECT_TRUE(absl::IsFailedPrecondition(transaction.Get({}, "a", &value).status()));
  const auto iterator = transaction.NewIterator({}, {}, {}, nullptr);
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(absl::IsFailedPrecondition(iterator->status()));
  EXPECT_FALSE(transaction.HasNamespace(kDefaultNamespace));
  EXPECT_TRUE(absl::IsFailedPrecondition(transaction.CreateNamespace({.id = 3})));
  EXPECT_TRUE(absl::IsFailedPrecondition(transaction.Commit().status()));
}

TEST(TransactionTest, IteratorTurnsAroundAndSeesWritesAsItMoves) {
  TestStore store;
  for (const char* key : {"a", "c", "e", "g"}) Set(&*store, key, "s");
  Transaction transaction(&*store);
  transaction.Put("d", "o");
  transaction.Delete("e");
  const auto iterator = transaction.NewIterator({}, "", "", nullptr);
  iterator->Seek("c");
  std::string way;
  const auto note = [&] {
    way += iterator->Valid() ? std::string(iterator->key()) : std::string("-");
  };
  note();
  iterator->Next(), note();
  iterator->Next(), note();
  iterator->Prev(), note();
  iterator->Prev(), note();
  transaction.Put("b", "o");
  iterator->Prev(), note();
  iterator->Next(), note();
  transaction.Delete("d");
  iterator->Next(), note();
  iterator->SeekForPrev("f"), note();
  iterator->Prev(), note();
  iterator->Prev(), note();
  iterator->Prev(), note();
  EXPECT_EQ(way, "cdgdcbcgcba-");
}

// Against a std::map with the same changes; the store below is changed at random, too.
TEST(TransactionTest, EqualsAModelUnderRandomOperations) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t bound) { return static_cast<uint32_t>(random() % bound); };
  const auto key = [&] {
    return std::string(1 + below(2), static_cast<char>('a' + below(6))) + std::to_string(below(3));
  };
  TestStore store;
  std::map<std::string, std::string> committed;
  for (int round = 0; round < 300; ++round) {
    Transaction transaction(&*store);
    std::map<std::string, std::string> model = committed;
    const auto forget = [&](const std::string& from, const std::string& to) {
      model.erase(model.lower_bound(from), to.empty() ? model.end() : model.lower_bound(to));
    };
    for (int step = 0; step < 12; ++step) {
      const std::string at = key(), other = std::max(at, key());
      const std::string value = std::to_string(random() % 1000);
      switch (below(8)) {
        case 0:
        case 1:
        case 2:
          transaction.Put(at, value);
          model[at] = value;
          break;
        case 3:
          transaction.Delete(at);
          model.erase(at);
          break;
        case 4: {
          const std::string end = below(8) == 0 ? "" : other;
          transaction.DeleteRange(at, end);
          if (end.empty() || at < end) forget(at, end);
          break;
        }
        case 5:
          if (below(10) == 0) {
            transaction.ClearNamespace();
            model.clear();
          }
          break;
        default:
          ASSERT_EQ(Read(&transaction, at), model.contains(at) ? model[at] : "(missing)");
      }
      std::string expected, backwards;
      const auto last = model.lower_bound(other);
      for (auto each = model.lower_bound(at); each != last; ++each) {
        expected += each->first + "=" + each->second + " ";
        backwards = each->first + "=" + each->second + " " + backwards;
      }
      if (at < other) {
        ASSERT_EQ(Scan(&transaction, at, other), expected);
        ASSERT_EQ(Scan(&transaction, at, other, true), backwards);
      }
      ASSERT_EQ(Count(&transaction), model.size());
    }
    if (below(3) == 0) continue;  // dropped
    if (below(4) == 0) {
      ASSERT_TRUE(store->Flush().ok());
    }
    ASSERT_TRUE(transaction.Commit().ok());
    committed = std::move(model);
    std::string expected;
    for (const auto& [each, value] : committed) expected += each + "=" + value + " ";
    ASSERT_EQ(store.Scan(), expected);
  }
}

// Money moves between accounts, some of which come and go; a reader of all of them always
// finds the same sum.
TEST(TransactionTest, TransfersSideBySideKeepTheSum) {
  TestStore store;
  constexpr int kAccounts = 12, kEach = 100, kThreads = 4, kTransfers = 100;
  for (int i = 0; i < kAccounts; ++i)
    Set(&*store, "account:" + std::to_string(i), std::to_string(kEach));
  std::atomic<int> wrong_sums{0}, failures{0};
  const auto sum = [](Transaction* transaction) {
    int total = 0;
    const auto iterator = transaction->NewIterator({}, "account:", "account;", nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      total += std::stoi(std::string(iterator->value()));
    return total;
  };
  const auto worker = [&](unsigned seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kTransfers; ++i) {
      const std::string from = "account:" + std::to_string(random() % kAccounts);
      const std::string to = "account:" + std::to_string(random() % kAccounts);
      const bool looks_at_all = random() % 8 == 0;
      const auto result =
          RunTransaction(&*store, {}, [&](Transaction* transaction) -> absl::Status {
            if (looks_at_all) {
              if (sum(transaction) != kAccounts * kEach) ++wrong_sums;
              transaction->Put("audit:" + std::to_string(seed), std::to_string(i));
              return absl::OkStatus();
            }
            const std::string have = Read(transaction, from);
            if (have == "(missing)" || from == to) return absl::OkStatus();
            const int amount = 1 + static_cast<int>(random() % 50);
            if (std::stoi(have) <= amount) {  // all of it: the account goes
              const std::string there = Read(transaction, to);
              transaction->Delete(from);
              transaction->Put(to, std::to_string((there == "(missing)" ? 0 : std::stoi(there)) +
                                                  std::stoi(have)));
              return absl::OkStatus();
            }
            const std::string there = Read(transaction, to);
            transaction->Put(from, std::to_string(std::stoi(have) - amount));
            transaction->Put(
                to, std::to_string((there == "(missing)" ? 0 : std::stoi(there)) + amount));
            return absl::OkStatus();
          });
      if (!result.ok()) ++failures;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(worker, i);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong_sums, 0);
  EXPECT_EQ(failures, 0);
  store.Reopen();
  Transaction last(&*store);
  EXPECT_EQ(sum(&last), kAccounts * kEach);
}

TEST(TransactionTest, RunTransactionWritesExclusivelyPastWritersThatAlwaysComeBetween) {
  TestStore store;
  Set(&*store, "counter", "0");
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) Set(&*store, "counter", std::to_string(i));
  });
  constexpr int kTriesTogether = 8;
  int runs = 0;
  const auto result = RunTransaction(&*store, {}, [&](Transaction* transaction) -> absl::Status {
    const bool is_exclusive = ++runs > kTriesTogether;
    const std::string before = Read(transaction, "counter");
    const auto has_changed = [&] { return store.Get("counter") != before; };
    // Somebody writes in between, unless he has to wait: then he would do so within this time.
    if (!is_exclusive) EXPECT_TRUE(testing::Eventually(has_changed)) << runs;
    for (int i = 0; is_exclusive && i < 100 && !has_changed(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    transaction->Put("seen", before);
    return absl::OkStatus();
  });
  stop = true;
  writer.join();
  EXPECT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(runs, kTriesTogether + 1);
}

TEST(TransactionTest, AnErrorOfTheBodyEndsIt) {
  TestStore store;
  const auto result = RunTransaction(&*store, {}, [&](Transaction* transaction) -> absl::Status {
    transaction->Put("a", "1");
    return absl::NotFoundError("no such account");
  });
  EXPECT_TRUE(absl::IsNotFound(result.status()));
  EXPECT_EQ(store.Scan(), "");
}

}  // namespace
}  // namespace varve
