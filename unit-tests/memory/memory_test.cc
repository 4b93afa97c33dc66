// The engine where memory runs out at any of its allocations: each call answers ResourceExhausted and changes nothing, or does all
// that it says; no thread ends, no lock stays held, and as soon as there is memory everything goes on.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "fmt/format.h"
#include "unit-tests/memory/allocation_faults.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::AllocationFaults;

EngineOptions SmallOptions() {
  EngineOptions options;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 64u << 10;
  options.block_cache_size = 1u << 20;
  options.offset_table_cache_size = 1u << 20;
  return options;
}

// What is tested: allocations in here fail.
template <typename Function>
auto Call(Function function) {
  const AllocationFaults::Scope scope(true);
  return function();
}

class MemoryTest : public ::testing::Test {
 protected:
  using Content = std::map<std::string, std::string>;

  static void SetUpTestSuite() { spdlog::set_level(spdlog::level::off); }

  // Some keys in segments, some in the write buffer, some deleted.
  void Fill() {
    store_->SetSync(Durability::kNone);
    for (int i = 0; i < 300; ++i) Put(fmt::format("key{:04}", i), std::string(200, static_cast<char>('a' + i % 26)));
    EXPECT_TRUE(store_->DeleteRange("key0100", "key0110").ok());
    content_.erase(content_.lower_bound("key0100"), content_.lower_bound("key0110"));
    EXPECT_TRUE(store_->Flush().ok());
    for (int i = 0; i < 40; ++i) Put(fmt::format("key{:04}", 7 * i), fmt::format("new{}", i));
    store_->SetSync(Durability::kAlways);
  }

  void Put(const std::string& key, const std::string& value) {
    const absl::Status status = store_->Put(key, value);
    ASSERT_TRUE(status.ok()) << status;
    content_[key] = value;
  }

  static Content ContentOf(StorageEngine& store) {
    Content content;
    const auto iterator = store.NewIterator({}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      content.emplace(iterator->key(), iterator->value());
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return content;
  }

  void ExpectContent(const std::string& when) {
    EXPECT_TRUE(ContentOf(*store_) == content_) << when;
    const absl::StatusOr<CountResult> count = store_->Count({}, {}, {});
    ASSERT_TRUE(count.ok()) << when << ": " << count.status();
    EXPECT_EQ(count->keys, content_.size()) << when;
  }

  // What a killed process would leave behind, opened.
  void ExpectContentAfterCrash(const std::string& when) {
    const testing::TempDir copy;
    std::filesystem::copy(store_.directory.path(), copy.File("store"));
    const auto opened = StorageEngine::Open(copy.File("store"), store_.options);
    ASSERT_TRUE(opened.ok()) << when << ": " << opened.status();
    EXPECT_TRUE(ContentOf(**opened) == content_) << when;
  }

  static void ExpectLackOfMemory(const absl::Status& status, const std::string& when) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << when << ": " << status;
    const std::string_view message(status.message().data(), status.message().size());
    EXPECT_TRUE(message.empty() || message.find("out of memory while ") != message.npos) << when << ": " << status;
  }

  // Runs `operation` with its n-th allocation failing alone, and with all from the n-th on, for every n until it needs fewer.
  // `prepare` runs before each, `check` after each.
  void FailEach(const std::string& name, const std::function<absl::Status()>& operation,
                const std::function<void()>& prepare, const std::function<void(const std::string&)>& check,
                uint64_t times = AllocationFaults::kForGood) {
    for (const uint64_t failures : {uint64_t{1}, times}) {
      for (uint64_t nth = 1;; ++nth) {
        const std::string when = fmt::format("{}, allocation {} of {} failing", name, nth, failures);
        prepare();
        absl::Status status;
        bool reached;
        {
          const AllocationFaults faults(nth, failures);
          status = operation();
          reached = faults.reached();
        }
        if (!status.ok()) ExpectLackOfMemory(status, when);
        if (!status.ok()) EXPECT_TRUE(reached) << when;
        check(when);
        if (!reached || HasFailure()) break;
        ASSERT_LT(nth, 5000u) << when;
      }
    }
  }

  // The same for operations that write: `operation` changes content_ when it was told that it was done.
  void FailEachWrite(const std::string& name, const std::function<absl::Status()>& operation) {
    FailEach(
        name, operation, [] {}, [this](const std::string& when) { ExpectContent(when); });
    ExpectContentAfterCrash(name);
    store_.Reopen();
    ExpectContent(name + ", reopened");
  }

  testing::TestStore store_{SmallOptions()};
  Content content_;
};

// --- Writes ----------------------------------------------------------------------------------------------------------------

TEST_F(MemoryTest, PutAndDelete) {
  Fill();
  int i = 0;
  std::string key, value;
  FailEachWrite("put", [&] {
    key = fmt::format("key{:04}", i++ % 300);
    value = fmt::format("value that doesn't fit into the string itself {}", i);
    absl::Status status = Call([&] { return store_->Put(key, value); });
    if (status.ok()) content_[key] = value;
    return status;
  });
  FailEachWrite("delete", [&] {
    key = content_.begin()->first;
    absl::Status status = Call([&] { return store_->Delete(key); });
    if (status.ok()) content_.erase(key);
    return status;
  });
}

// Of values that don't fit into what log and write buffer have at hand, and fill buffers on the way.
TEST_F(MemoryTest, PutOfLargeValues) {
  Fill();
  int i = 0;
  for (const size_t size : {9u << 10, 200u << 10}) {
    const std::string filling(size, 'x');
    FailEachWrite(fmt::format("put of {} bytes", size), [&] {
      const std::string key = fmt::format("large{:03}", i++ % 4);
      const std::string value = filling + std::to_string(i);
      absl::Status status = Call([&] { return store_->Put(key, value); });
      if (status.ok()) content_[key] = value;
      return status;
    });
  }
}

TEST_F(MemoryTest, DeleteRange) {
  Fill();
  int i = 0;
  FailEachWrite("delete of a range", [&] {
    const std::string begin = fmt::format("key{:04}-with-a-long-name", 3 * i);
    const std::string end = fmt::format("key{:04}-with-a-long-name", 3 * i + 2);
    ++i;
    absl::Status status = Call([&] { return store_->DeleteRange(begin, end); });
    if (status.ok()) content_.erase(content_.lower_bound(begin), content_.lower_bound(end));
    return status;
  });
}

// All of it or none of it.
TEST_F(MemoryTest, Batch) {
  Fill();
  int i = 0;
  FailEachWrite("batch", [&] {
    ++i;
    WriteBatch batch;
    Content next = content_;
    for (int k = 0; k < 30; ++k) {
      const std::string key = fmt::format("batch{:03}", k), value = fmt::format("{} of batch {} ------------", k, i);
      batch.Put(key, value);
      next[key] = value;
    }
    batch.Delete(fmt::format("key{:04}", i));
    next.erase(fmt::format("key{:04}", i));
    batch.DeleteRange("batch005", "batch010");
    next.erase(next.lower_bound("batch005"), next.lower_bound("batch010"));
    if (i % 10 == 0) {
      batch.ClearNamespace();
      next.clear();
    }
    batch.Put("a last key of the batch", std::to_string(i));
    next["a last key of the batch"] = std::to_string(i);
    absl::Status status = Call([&] { return store_->Write({}, &batch).status(); });
    if (status.ok()) content_.swap(next);
    return status;
  });
}

TEST_F(MemoryTest, Update) {
  Fill();
  const std::string key = "counter with a name of some length";
  const std::string_view keys[] = {key};
  int i = 0;
  FailEachWrite("update", [&] {
    const std::string next = fmt::format("{} --------------------------------", ++i);
    const std::string present = content_.contains(key) ? content_[key] : "";
    std::string value;
    absl::StatusOr<CommitResult> result = Call([&] {
      return store_->Update({}, keys, [&](WriteBatch* batch) -> absl::Status {
        absl::StatusOr<ReadResult> read = store_->Get({}, key, &value);
        if (!read.ok()) return read.status();
        EXPECT_TRUE((read->found ? value : "") == present);
        batch->RequireUnchanged(key, read->read_sequence);
        batch->Put(key, next);
        return absl::OkStatus();
      });
    });
    if (!result.ok()) return result.status();
    content_[key] = next;
    return Call([&] { return store_->WaitUntilDurable(result->sequence); });
  });
}

// Whoever waits for a write hears of it exactly once.
TEST_F(MemoryTest, WriteAsync) {
  Fill();
  int i = 0;
  FailEachWrite("asynchronous write", [&] {
    const std::string value = fmt::format("value {} -------------------------", ++i);
    WriteBatch batch;
    batch.Put("asynchronous", value);
    int calls = 0;
    absl::Status status;
    absl::Mutex mutex;
    const std::function<void(absl::StatusOr<CommitResult>)> done = [&](absl::StatusOr<CommitResult> result) {
      absl::MutexLock lock(&mutex);
      status = result.status();
      ++calls;
    };
    std::function<void(absl::StatusOr<CommitResult>)> given = done;
    Call([&] { store_->WriteAsync({}, &batch, std::move(given)); });
    const absl::Status synced = Call([&] { return store_->Sync(); });
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(
        +[](int* number) { return *number != 0; }, &calls));
    EXPECT_EQ(calls, 1);
    if (status.ok()) content_["asynchronous"] = value;
    return status.ok() ? synced : status;
  });
}

// --- Reads -----------------------------------------------------------------------------------------------------------------

// With what is in memory, and with nothing of the segments in memory yet.
TEST_F(MemoryTest, Get) {
  Fill();
  for (const bool cold : {false, true}) {
    for (const std::string key : {"key0001", "key0007", "key0105", "no such key in this store at all"}) {
      std::string value;
      const auto get = [&]() -> absl::Status {
        value.clear();
        absl::StatusOr<ReadResult> result = Call([&] { return store_->Get({}, key, &value); });
        if (!result.ok()) return result.status();
        EXPECT_EQ(result->found, content_.contains(key));
        if (result->found) EXPECT_EQ(value, content_[key]);
        return absl::OkStatus();
      };
      FailEach(
          "get", get,
          [&] {
            if (cold) store_.Reopen();
          },
          [&](const std::string& when) { EXPECT_TRUE(get().ok()) << when; });
      const auto explain = [&] { return Call([&] { return store_->ExplainGet({}, key).status(); }); };
      FailEach(
          "explain", explain, [] {}, [&](const std::string& when) { EXPECT_TRUE(explain().ok()) << when; });
    }
  }
}

TEST_F(MemoryTest, MultiGet) {
  Fill();
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(fmt::format("key{:04}", 13 * i));
  const std::vector<std::string_view> keys(names.begin(), names.end());
  const auto get = [&]() -> absl::Status {
    std::vector<MultiGetResult> results(keys.size());
    absl::Status status = Call([&] { return store_->MultiGet({}, keys, absl::MakeSpan(results)); });
    for (size_t i = 0; status.ok() && i < keys.size(); ++i) {
      if (!results[i].status.ok()) return results[i].status;
      EXPECT_EQ(results[i].result.found, content_.contains(names[i]));
      if (results[i].result.found) EXPECT_EQ(results[i].value, content_[names[i]]);
    }
    return status;
  };
  FailEach(
      "multiget", get, [&] { store_.Reopen(); }, [&](const std::string& when) { EXPECT_TRUE(get().ok()) << when; });
}

TEST_F(MemoryTest, Iterate) {
  Fill();
  for (const bool reverse : {false, true}) {
    size_t seen = 0;
    const auto walk = [&]() -> absl::Status {
      const AllocationFaults::Scope scope(true);
      const auto iterator = store_->NewIterator({}, {}, {}, nullptr);
      seen = 0;
      auto expected = content_.begin();
      auto expected_back = content_.rbegin();
      for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
           reverse ? iterator->Prev() : iterator->Next()) {
        const auto& [key, value] = reverse ? *expected_back++ : *expected++;
        EXPECT_TRUE(iterator->key() == key && iterator->value() == value);
        ++seen;
      }
      return iterator->status();
    };
    // Keys arrive in the write buffer before each walk: what was sorted only in part is made up for.
    int i = 0;
    const auto prepare = [&] {
      Put(fmt::format("key{:04}", 299 - i % 100), fmt::format("version {} ------------", i));
      Put(fmt::format("key{:04}", i++ % 100), "-");
    };
    const auto check = [&](const std::string& when) {
      EXPECT_TRUE(walk().ok()) << when;
      EXPECT_EQ(seen, content_.size()) << when;
    };
    FailEach("walk", walk, prepare, check, /*times=*/20);
  }
  // One that ran out of memory can be set anew.
  for (uint64_t nth = 1; nth < 40; ++nth) {
    const auto iterator = store_->NewIterator({.fill_cache = false}, {}, {}, nullptr);
    {
      const AllocationFaults faults(nth, AllocationFaults::kForGood);
      const AllocationFaults::Scope scope(true);
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) continue;
      for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) continue;
    }
    if (!iterator->status().ok()) ExpectLackOfMemory(iterator->status(), "walk");
    size_t seen = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++seen;
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    EXPECT_EQ(seen, content_.size());
  }
}

TEST_F(MemoryTest, Count) {
  Fill();
  int i = 0;
  for (const std::string lower : {"", "key0050"}) {
    const auto count = [&]() -> absl::Status {
      absl::StatusOr<CountResult> result = Call([&] { return store_->Count({}, lower, {}); });
      if (!result.ok()) return result.status();
      EXPECT_EQ(result->keys, std::distance(content_.lower_bound(lower), content_.end()));
      return absl::OkStatus();
    };
    const auto prepare = [&] {
      ++i;
      Put(fmt::format("count{:03}", i % 50), std::to_string(i));
      if (i % 8 == 0) {
        ASSERT_TRUE(store_->DeleteRange("count010", "count020").ok());
        content_.erase(content_.lower_bound("count010"), content_.lower_bound("count020"));
      }
      if (i % 16 == 0) ASSERT_TRUE(store_->Flush().ok());
    };
    FailEach(
        "count", count, prepare, [&](const std::string& when) { EXPECT_TRUE(count().ok()) << when; }, /*times=*/20);
  }
}

// A snapshot for which there was no memory is none: nothing can be read through it, and nothing is held for it.
TEST_F(MemoryTest, Snapshot) {
  Fill();
  std::string value;
  std::shared_ptr<const Snapshot> snapshot;
  const auto read = [&] {
    const AllocationFaults::Scope scope(true);
    snapshot = store_->GetSnapshot();
    return store_->Get({.snapshot = snapshot.get()}, "key0001", &value).status();
  };
  FailEach(
      "snapshot", read, [] {},
      [&](const std::string& when) {
        snapshot.reset();
        EXPECT_TRUE(read().ok()) << when;
        EXPECT_EQ(value, content_["key0001"]) << when;
        snapshot.reset();
      });
  // Old versions go when nothing holds them.
  ASSERT_TRUE(store_->Compact({}, {}).ok());
  EXPECT_EQ(store_.Statistic("segment_entries"), content_.size());
}

// --- Upkeep, opening, closing ----------------------------------------------------------------------------------------------

TEST_F(MemoryTest, FlushAndCompact) {
  Fill();
  const auto prepare = [&] { Put("flushed", std::to_string(content_.size())); };
  const auto check = [this](const std::string& when) { ExpectContent(when); };
  FailEach(
      "flush", [&] { return Call([&] { return store_->Flush(); }); }, prepare, check);
  FailEach(
      "merge", [&] { return Call([&] { return store_->Compact({}, {}); }); }, prepare, check);
  FailEach(
      "statistics",
      [&] {
        Call([&] { return store_->Statistics(); });
        return absl::OkStatus();
      },
      [] {}, check);
  store_.Reopen();
  ExpectContent("reopened");
}

TEST_F(MemoryTest, CloseAndOpen) {
  Fill();
  const std::string path = store_.directory.path();
  const testing::TempDir copies;
  std::unique_ptr<StorageEngine> store;
  const std::string copy = copies.File("store");
  const auto begin = [&] {
    store.reset();
    std::filesystem::remove_all(copy);
    std::filesystem::copy(path, copy);
  };
  const auto open = [&]() -> absl::Status {
    absl::StatusOr<std::unique_ptr<StorageEngine>> opened =
        Call([&] { return StorageEngine::Open(copy, store_.options); });
    if (!opened.ok()) return opened.status();
    store = *std::move(opened);
    return absl::OkStatus();
  };
  const auto check = [&](const std::string& when) {
    store.reset();
    ASSERT_TRUE(open().ok()) << when;
    EXPECT_TRUE(ContentOf(*store) == content_) << when;
  };
  FailEach("open", open, begin, check, /*times=*/20);
  const auto opened = [&] {
    store.reset();
    ASSERT_TRUE(open().ok());
  };
  FailEach(
      "close", [&] { return Call([&] { return store->Close(); }); }, opened, check);
}

// --- Background threads ----------------------------------------------------------------------------------------------------

class BackgroundMemoryTest : public MemoryTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(BackgroundMemoryTest, ThreadGoesOn) {
  Fill();
  // Which thread is tested with what keeps it busy; without syncs the others' work comes thicker.
  if (!std::string_view(GetParam()).starts_with("varve-log")) store_->SetSync(Durability::kNone);
  int round = 0;
  const std::string filling(4000, 'f');
  const auto work = [&] {
    ++round;
    for (int i = 0; i < 40; ++i) {
      const std::string key = fmt::format("key{:04}", (round * 7 + i) % 300),
                        value = fmt::format("{}{}", round, filling);
      absl::Status status = store_->Put(key, value);
      if (status.ok()) {
        content_[key] = value;
      } else {
        ExpectLackOfMemory(status, "put");
      }
    }
    if (absl::Status status = store_->DeleteRange("key0200", "key0203"); status.ok()) {
      content_.erase(content_.lower_bound("key0200"), content_.lower_bound("key0203"));
    }
    for (const absl::Status& status : {store_->Flush(), store_->Compact({}, {})}) {
      if (!status.ok()) ExpectLackOfMemory(status, "upkeep");
    }
  };
  for (const uint64_t failures : {uint64_t{1}, AllocationFaults::kForGood}) {
    for (uint64_t nth = 1; nth < 5000; nth += 1 + nth / 8) {
      const std::string when = fmt::format("{}, allocation {} of {} failing", GetParam(), nth, failures);
      bool reached;
      {
        const AllocationFaults faults(GetParam(), nth, failures);
        work();
        reached = faults.reached();
      }
      // As soon as there is memory everything goes on by itself.
      absl::Status status = absl::UnknownError("");
      for (int tries = 0; tries < 100 && !status.ok(); ++tries) {
        status = store_->Put("again", std::to_string(nth));
        if (status.ok()) content_["again"] = std::to_string(nth);
        if (status.ok()) status = store_->Flush();
        if (status.ok()) status = store_->Compact({}, {});
        if (!status.ok()) absl::SleepFor(absl::Milliseconds(50));
      }
      ASSERT_TRUE(status.ok()) << when << ": " << status;
      ExpectContent(when);
      if (!reached || HasFailure()) break;
    }
  }
  ExpectContentAfterCrash(GetParam());
  store_.Reopen();
  ExpectContent("reopened");
}

INSTANTIATE_TEST_SUITE_P(Threads, BackgroundMemoryTest,
                         ::testing::Values("varve-flush", "varve-merge", "varve-log", "varve-log-files",
                                           "varve-remove"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace varve
