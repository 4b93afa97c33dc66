// Two writers, readers of snapshots and iterators, flushes, merges and the closing of the store, in
// orders that seeds decide: what a snapshot or an iterator shows is what was written up to one
// sequence and stays that, nothing that was acknowledged is lost, and nobody waits for ever (a
// deadlock ends the program and says so).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "unit-tests/crash/deterministic_threads.h"
#include "unit-tests/crash/workload.h"

namespace varve::testing {
namespace {

#ifdef VARVE_SANITIZED
constexpr uint64_t kInterleavings = 30;
#else
constexpr uint64_t kInterleavings = 300;
#endif

using KeysSeen = std::map<std::string, std::string>;

class Interleaving {
 public:
  explicit Interleaving(uint64_t seed)
      : seed_(seed),
        threads_(seed, 1 + seed % 5),
        file_system_(EmptyDisk(), &DeterministicThreads::MaySwitch) {}

  void Run() {
    Open();
    if (::testing::Test::HasFailure()) return;
    std::vector<std::thread> threads;
    threads.emplace_back([this] { Write(1); });
    threads.emplace_back([this] { Write(2); });
    threads.emplace_back([this] { ReadSnapshots(); });
    threads.emplace_back([this] { Iterate(); });
    threads.emplace_back([this] { Upkeep(); });
    if (seed_ % 2 == 0) threads.emplace_back([this] { CloseAmidst(); });
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(store_->Close().ok());
    CheckObservations();
    Open();
    if (::testing::Test::HasFailure()) return;
    const SequenceNumber last = StatisticOf(*store_, "sequence");
    EXPECT_GE(last, acknowledged_);
    EXPECT_TRUE(Walk(store_.get(), nullptr) == At(last));
    store_.reset();
  }

 private:
  using Change = std::function<void(KeysSeen*)>;
  struct Observation {
    SequenceNumber from, to;  // shows what was there at one of these
    KeysSeen shown;
  };

  void Open() {
    store_.reset();
    auto opened = StorageEngine::Open(kStoreDirectory, SmallOptions(seed_, &file_system_));
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  // Only the end of the store may come between.
  void ExpectOkOrClosed(const absl::Status& status) {
    EXPECT_TRUE(status.ok() || (seed_ % 2 == 0 && absl::IsUnavailable(status))) << status;
  }

  void Write(uint64_t writer) {
    std::mt19937_64 random(seed_ * 2 + writer);
    for (int i = 0; i < 60; ++i) {
      WriteBatch batch;
      std::vector<Change> changes;
      for (uint64_t left = 1 + random() % 4; left > 0; --left) {
        std::string key = fmt::format("key{:02}", random() % 40);
        const uint64_t dice = random() % 12;
        if (dice < 8) {
          std::string value = fmt::format("{}.{} {}", writer, i, std::string(random() % 600, 'v'));
          batch.Put(key, value);
          changes.push_back([key, value](KeysSeen* shown) { (*shown)[key] = value; });
        } else if (dice < 11) {
          batch.Delete(key);
          changes.push_back([key](KeysSeen* shown) { shown->erase(key); });
        } else {
          const std::string end = key + "~";
          const std::string begin = key.substr(0, 4);
          batch.DeleteRange(begin, end);
          changes.push_back([begin, end](KeysSeen* shown) {
            shown->erase(shown->lower_bound(begin), shown->lower_bound(end));
          });
        }
      }
      const auto mode = static_cast<Durability>(random() % 3);
      const absl::StatusOr<CommitResult> sent =
          store_->Submit({.sync = mode, .override_sync = true}, &batch);
      ExpectOkOrClosed(sent.status());
      if (!sent.ok()) return;
      {
        absl::MutexLock lock(&mutex_);
        history_[sent->sequence] = std::move(changes);
      }
      const absl::Status durable =
          random() % 2 == 0 ? store_->WaitUntilDurable(sent->sequence) : store_->Push();
      ExpectOkOrClosed(durable);
      if (durable.ok()) {
        absl::MutexLock lock(&mutex_);
        acknowledged_ = std::max(acknowledged_, sent->sequence);
      }
      if (random() % 4 == 0) absl::SleepFor(absl::Milliseconds(random() % 20));
    }
  }

  // Others go on between its steps.
  static KeysSeen WalkWith(Iterator* iterator, bool reverse) {
    KeysSeen shown;
    for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
         reverse ? iterator->Prev() : iterator->Next()) {
      EXPECT_TRUE(shown.emplace(iterator->key(), iterator->value()).second) << iterator->key();
      DeterministicThreads::MaySwitch();
    }
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return shown;
  }
  static KeysSeen Walk(StorageEngine* store, const Snapshot* snapshot) {
    ReadOptions options;
    options.snapshot = snapshot;
    options.wait_until_durable = false;
    const auto iterator = store->NewIterator(options, {}, {}, nullptr);
    return WalkWith(iterator.get(), false);
  }

  void ReadSnapshots() {
    std::mt19937_64 random(seed_ + 100);
    for (int i = 0; i < 8; ++i) {
      const std::shared_ptr<const Snapshot> snapshot = store_->GetSnapshot();
      const SequenceNumber at = snapshot->sequence();
      KeysSeen first = Walk(store_.get(), snapshot.get());
      absl::SleepFor(absl::Milliseconds(random() % 60));
      EXPECT_TRUE(Walk(store_.get(), snapshot.get()) == first)
          << "a snapshot at " << at << " has changed";
      std::string value;
      const std::string key = fmt::format("key{:02}", random() % 40);
      const absl::StatusOr<ReadResult> read =
          store_->Get({.snapshot = snapshot.get(), .wait_until_durable = false}, key, &value);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_EQ(read->found, first.contains(key));
      if (read->found) EXPECT_EQ(value, first[key]);
      Observe({at, at, std::move(first)});
    }
  }

  void Iterate() {
    std::mt19937_64 random(seed_ + 200);
    for (int i = 0; i < 8; ++i) {
      const SequenceNumber from = store_->GetSnapshot()->sequence();
      const auto iterator = store_->NewIterator({.wait_until_durable = false}, {}, {}, nullptr);
      const SequenceNumber to = store_->GetSnapshot()->sequence();
      KeysSeen first = WalkWith(iterator.get(), random() % 2 == 0);
      absl::SleepFor(absl::Milliseconds(random() % 60));
      EXPECT_TRUE(WalkWith(iterator.get(), random() % 2 == 0) == first)
          << "what an iterator shows has changed";
      Observe({from, to, std::move(first)});
    }
  }

  void Upkeep() {
    std::mt19937_64 random(seed_ + 300);
    for (int i = 0; i < 8; ++i) {
      absl::SleepFor(absl::Milliseconds(random() % 40));
      if (random() % 2 == 0) {
        ExpectOkOrClosed(store_->Flush());
      } else {
        const std::string lower = random() % 2 == 0 ? "" : fmt::format("key{:02}", random() % 40);
        ExpectOkOrClosed(store_->Compact(lower, {}));
      }
    }
  }

  void CloseAmidst() {
    std::mt19937_64 random(seed_ + 400);
    absl::SleepFor(absl::Milliseconds(random() % 300));
    const absl::Status closed = store_->Close();
    EXPECT_TRUE(closed.ok()) << closed;
  }

  void Observe(Observation observation) {
    absl::MutexLock lock(&mutex_);
    observations_.push_back(std::move(observation));
  }

  KeysSeen At(SequenceNumber sequence) {
    absl::MutexLock lock(&mutex_);
    KeysSeen shown;
    for (const auto& [last, changes] : history_) {
      if (last > sequence) break;
      for (const Change& change : changes) change(&shown);
    }
    return shown;
  }

  void CheckObservations() {
    for (const Observation& observation : observations_) {
      bool found = false;
      for (SequenceNumber at = observation.from; at <= observation.to && !found; ++at) {
        found = At(at) == observation.shown;
      }
      EXPECT_TRUE(found) << "what was read at " << observation.from << " to " << observation.to
                         << " was never there";
    }
  }

  const uint64_t seed_;
  const DeterministicThreads threads_;
  SimulatedFileSystem file_system_;
  std::unique_ptr<StorageEngine> store_;

  absl::Mutex mutex_;
  // By the last sequence of the batch.
  std::map<SequenceNumber, std::vector<Change>> history_ ABSL_GUARDED_BY(mutex_);
  SequenceNumber acknowledged_ = kNoSequence;
  std::vector<Observation> observations_;
};

TEST(InterleavingsTest, SnapshotsAndIteratorsStayAndNothingIsLost) {
  spdlog::set_level(spdlog::level::off);
  for (uint64_t seed = 0; seed < kInterleavings && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Interleaving(seed).Run();
  }
  spdlog::set_level(spdlog::level::info);
}

}  // namespace
}  // namespace varve::testing
