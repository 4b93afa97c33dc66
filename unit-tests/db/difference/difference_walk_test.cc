// The keys in which two states differ: against a comparison of all keys, at random, and what that
// costs.
#include "db/difference/difference_walk.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/iterators/store_iterator.h"
#include "fmt/format.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;

constexpr HistoryLimits kADay{.time_ms = 86'400'000};

EngineOptions Keeping(const Clock* clock) {
  EngineOptions options = testing::TestEngineOptions();
  options.clock = clock;
  options.sync = Durability::kNone;
  options.segment_size = 32u << 10;
  options.runs_per_level = 2;
  options.history = kADay;
  return options;
}

class DifferenceTest : public ::testing::Test {
 protected:
  using Contents = std::map<std::string, std::string>;

  ComparedState Now(NamespaceId space) { return {store_->GetSnapshot(), space}; }
  ComparedState At(NamespaceId space, SequenceNumber version) {
    const auto snapshot = store_->SnapshotAt(space, version);
    EXPECT_TRUE(snapshot.ok()) << snapshot.status();
    return {*snapshot, space};
  }
  // Looks at `most_steps` at once, with a new iterator each time that one came further if `anew`.
  std::vector<std::string> Differ(const ComparedState& a, const ComparedState& b,
                                  std::string_view lower = {}, std::string_view upper = {},
                                  size_t most_steps = SIZE_MAX, bool anew = false) {
    std::vector<std::string> keys;
    std::string from(lower);
    for (bool at_end = false; !at_end;) {
      auto iterator = store_->NewDifferenceIterator(a, b, from, upper);
      EXPECT_TRUE(iterator.ok()) << iterator.status();
      if (!iterator.ok()) return keys;
      do {
        if ((*iterator)->Next(most_steps)) keys.emplace_back((*iterator)->key());
      } while (!(*iterator)->AtEnd() && !(anew && (*iterator)->position() > from));
      EXPECT_TRUE((*iterator)->status().ok()) << (*iterator)->status();
      at_end = (*iterator)->AtEnd();
      from = (*iterator)->position();
    }
    return keys;
  }
  Contents Read(const ComparedState& state, std::string_view lower, std::string_view upper) {
    Contents contents;
    const auto iterator = store_->NewIterator(
        {.snapshot = state.snapshot.get(), .space = state.space}, lower, upper, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      contents.emplace(iterator->key(), fmt::format("{} {} {}", iterator->expiry_ms(),
                                                    iterator->value(), iterator->metadata()));
    }
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return contents;
  }
  // The slow way.
  std::vector<std::string> Compare(const ComparedState& a, const ComparedState& b,
                                   std::string_view lower, std::string_view upper) {
    const Contents in_a = Read(a, lower, upper), in_b = Read(b, lower, upper);
    std::set<std::string> keys;
    for (const auto& [key, value] : in_a) {
      const auto other = in_b.find(key);
      if (other == in_b.end() || other->second != value) keys.insert(key);
    }
    for (const auto& [key, value] : in_b) {
      if (!in_a.contains(key)) keys.insert(key);
    }
    return {keys.begin(), keys.end()};
  }
  SequenceNumber Write(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> written = store_->Write({}, batch);
    EXPECT_TRUE(written.ok()) << written.status();
    return written.ok() ? written->sequence : kNoSequence;
  }

  ManualClock clock_;
  TestStore store_{Keeping(&clock_)};
};

class DifferenceModelTest : public DifferenceTest, public ::testing::WithParamInterface<uint64_t> {
 protected:
  std::string Key() { return fmt::format("key{:02}", random_() % 60); }
  NamespaceId Any() { return spaces_[random_() % spaces_.size()]; }

  void WriteSomething() {
    WriteBatch batch;
    const NamespaceId space = Any();
    const uint64_t dice = random_() % 100;
    if (dice < 55) {
      const uint64_t now = clock_.WallMillis();
      const uint64_t expiry = random_() % 3 == 0 ? now + 1 + random_() % 4'000 : kNoExpiry;
      batch.Put(Key(), std::string(1 + random_() % 3, 'v'),
                {.expiry_ms = expiry, .metadata = random_() % 3 == 0 ? "m" : ""}, space);
    } else if (dice < 70) {
      batch.Delete(Key(), space);
    } else if (dice < 76) {
      const std::string begin = Key();
      batch.DeleteRange(begin, dice == 75 ? std::string() : begin + "9", space);
    } else if (dice < 78) {
      batch.ClearNamespace(space);
    } else if (dice < 80) {
      batch.SwapNamespaces(space, Any());
    } else if (dice < 90 && spaces_.size() < 6) {
      const auto id = static_cast<NamespaceId>(spaces_.size());
      const auto& [version, of] = versions_.empty() ? std::pair<SequenceNumber, NamespaceId>()
                                                    : versions_[random_() % versions_.size()];
      if (dice < 85 && version != kNoSequence) {
        batch.CloneNamespaceAt(of, version, {.id = id});
      } else {
        batch.CloneNamespace(space, {.id = id});
      }
      spaces_.push_back(id);
    } else {
      clock_.Advance(random_() % 1'500);
    }
    if (!batch.empty()) versions_.emplace_back(Write(&batch), space);
  }
  ComparedState Some() {
    if (random_() % 2 == 0 || versions_.empty()) return Now(Any());
    const auto& [version, space] = versions_[random_() % versions_.size()];
    return At(space, version);
  }
  void Check() {
    const ComparedState a = Some();
    ComparedState b = Some();
    if (random_() % 3 == 0) b = {a.snapshot, a.space};
    const std::string lower = random_() % 2 == 0 ? "" : Key();
    const std::string upper = random_() % 2 == 0 ? "" : lower + "z";
    const auto wanted = Compare(a, b, lower, upper);
    ASSERT_EQ(Differ(a, b, lower, upper), wanted)
        << a.space << " at " << a.snapshot->sequence() << ", " << b.space << " at "
        << b.snapshot->sequence() << " in [" << lower << ", " << upper << ")";
    ASSERT_EQ(Differ(a, b, lower, upper, 1 + random_() % 5, random_() % 2 == 0), wanted);
    if (!wanted.empty()) ++differed_;
  }

  std::mt19937_64 random_{GetParam()};
  std::vector<NamespaceId> spaces_ = {0};
  std::vector<std::pair<SequenceNumber, NamespaceId>> versions_;
  int differed_ = 0;
};

TEST_P(DifferenceModelTest, IsWhatAComparisonOfAllKeysFinds) {
  for (int step = 0; step < 500; ++step) {
    SCOPED_TRACE(fmt::format("step {}", step));
    const uint64_t dice = random_() % 100;
    if (dice < 75) {
      WriteSomething();
    } else if (dice < 77) {
      ASSERT_TRUE(store_->Flush().ok());
    } else if (dice < 78) {
      ASSERT_TRUE(store_->Compact({}, {}, Any()).ok());
    } else if (dice < 79) {
      store_.Reopen();
    } else if (dice < 80) {
      EXPECT_TRUE(store_->Count({.space = Any()}, {}, {}).ok()) << "which sweeps";
    } else {
      ASSERT_NO_FATAL_FAILURE(Check());
    }
  }
  EXPECT_GT(differed_, 10);
}

INSTANTIATE_TEST_SUITE_P(Seeds, DifferenceModelTest, ::testing::Range<uint64_t>(1, 9));

TEST_F(DifferenceTest, OfACloneAndItsSourceItCostsWhatWasWrittenSince) {
  WriteBatch batch;
  for (int i = 0; i < 20'000; ++i) batch.Put(fmt::format("key{:05}", i), std::string(50, 'v'));
  const SequenceNumber version = Write(&batch);
  ASSERT_TRUE(store_->Flush().ok());
  ASSERT_TRUE(store_->Compact({}, {}).ok());
  batch.Clear();
  batch.CloneNamespace(0, {.id = 1});
  Write(&batch);
  for (int i = 0; i < 10; ++i) {
    batch.Clear();
    batch.Put(fmt::format("key{:05}", 1'000 * i), "other", i % 2 == 0 ? 0 : 1);
    Write(&batch);
  }
  const auto steps_of = [&](const ComparedState& a, const ComparedState& b, size_t differ) {
    auto iterator = store_->NewDifferenceIterator(a, b, {}, {});
    EXPECT_TRUE(iterator.ok()) << iterator.status();
    size_t steps = 0, found = 0;
    for (; iterator.ok() && !(*iterator)->AtEnd(); ++steps) found += (*iterator)->Next(1) ? 1 : 0;
    EXPECT_EQ(found, differ);
    return steps;
  };
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_TRUE(store_->Flush().ok());
    EXPECT_LT(steps_of(Now(0), Now(1), 10), 100u);
    EXPECT_LT(steps_of(Now(0), At(0, version), 5), 100u);
    EXPECT_LT(steps_of(At(0, version), Now(1), 5), 100u);
  }
  batch.Clear();
  batch.CreateNamespace({.id = 2});
  Write(&batch);
  EXPECT_GT(steps_of(Now(0), Now(2), 20'000), 20'000u) << "strangers are walked side by side";
}

TEST_F(DifferenceTest, ASnapshotShowsOnlyItsNamespaces) {
  WriteBatch batch;
  batch.Put("key", "value");
  const SequenceNumber version = Write(&batch);
  const ComparedState past = At(0, version);
  const auto iterator = store_->NewDifferenceIterator(past, {past.snapshot, 3}, {}, {});
  EXPECT_TRUE(IsNoSuchNamespace(iterator.status())) << iterator.status();
}

TEST(DifferenceWalkTest, DamageBehindTheLastKeyIsTold) {
  for (const bool of_a : {true, false}) {
    const auto open = [](bool is_damaged) {
      return [is_damaged](bool /*with_values*/) {
        return NewErrorIterator(is_damaged ? absl::DataLossError("damaged") : absl::OkStatus());
      };
    };
    DifferenceWalk::Candidates candidates;
    candidates.ranges.push_back({});
    DifferenceWalk walk(open(of_a), open(!of_a), std::move(candidates), "");
    EXPECT_FALSE(walk.Next(SIZE_MAX));
    EXPECT_TRUE(walk.AtEnd());
    EXPECT_TRUE(absl::IsDataLoss(walk.status())) << walk.status();
  }
}

}  // namespace
}  // namespace varve
