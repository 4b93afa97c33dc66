// Reads where memory runs out (memory_fixture.h).
#include "unit-tests/memory/memory_fixture.h"
#include "unit-tests/testing/manual_clock.h"

namespace varve::testing {
namespace {

// Loading a table by a hand-held lock kept the lock when memory ran out.
//
// With what is in memory, and with nothing of the segments in memory yet.
TEST_F(MemoryTest, Get) {
  Fill();
  for (const bool cold : {false, true}) {
    for (const std::string key :
         {"key0001", "key0007", "key0105", "no such key in this store at all"}) {
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
      const auto explain = [&] {
        return Call([&] { return store_->ExplainGet({}, key).status(); });
      };
      FailEach(
          "explain", explain, [] {},
          [&](const std::string& when) { EXPECT_TRUE(explain().ok()) << when; });
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
      "multiget", get, [&] { store_.Reopen(); },
      [&](const std::string& when) { EXPECT_TRUE(get().ok()) << when; }, AllocationFaults::kForGood,
      /*all_up_to=*/16);
}

// The skip list remembered the newest key that it had taken, so a sort that memory cut short lost
// the keys that were to follow. It remembers what is left to do.
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
    // Keys arrive in the write buffer before each walk: what was sorted only in part is made up
    // for.
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

// abseil's hash tables free what they never had when their growth fails (`free(): invalid
// pointer`). The engine uses those of the standard library.
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
        "count", count, prepare,
        [&](const std::string& when) { EXPECT_TRUE(count().ok()) << when; }, /*times=*/20);
  }
}

// What could not be removed for lack of memory is not forgotten.
TEST_F(MemoryTest, CountOfWhatExpires) {
  static ManualClock clock;  // outlives the store
  store_.options.clock = &clock;
  store_.Reopen();
  Fill();
  const auto count = [&]() -> absl::Status {
    absl::StatusOr<CountResult> result = Call([&] { return store_->Count({}, {}, {}); });
    if (!result.ok()) return result.status();
    EXPECT_EQ(result->keys, content_.size());
    return absl::OkStatus();
  };
  const auto prepare = [&] {
    WriteBatch batch;
    for (int i = 0; i < 3; ++i) {
      batch.Put(fmt::format("session{}", i), "value", kDefaultNamespace,
                clock.WallMillis() + 10'000);
    }
    const absl::StatusOr<CommitResult> written = store_->Write({}, &batch);
    ASSERT_TRUE(written.ok()) << written.status();
    clock.Advance(10'000);
  };
  FailEach(
      "count", count, prepare, [&](const std::string& when) { EXPECT_TRUE(count().ok()) << when; },
      /*times=*/20);
}

// A snapshot that was counted but never handed out held old versions for good.
//
// A snapshot for which there was no memory is none: nothing can be read through it, and nothing is
// held for it.
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

}  // namespace
}  // namespace varve::testing
