// Many threads on one store: nobody misses what is there, nobody sees what can't be. Meant for
// ThreadSanitizer too.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"

namespace varve {
namespace {

using testing::TestStore;

std::string KeyOfReaders(uint64_t i) { return fmt::format("key{:05}", i); }

EngineOptions SmallOptions() {
  EngineOptions options = testing::TestEngineOptions();
  options.write_buffer_size = 64 << 10;
  options.segment_size = 48 << 10;
  options.runs_per_level = 2;
  options.max_background_jobs = 4;
  options.sync = Durability::kNone;
  return options;
}

// Every even key is always there, with a value that begins with its name; odd keys come and go.
// Nobody may miss an even one.
class ReadersTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kKeys = 400;

  ReadersTest() : store_(SmallOptions()) {
    for (uint64_t i = 0; i < kKeys; i += 2)
      EXPECT_TRUE(store_->Put(KeyOfReaders(i), KeyOfReaders(i) + "#0").ok());
  }

  void Start(std::function<void(uint64_t random)> work) {
    threads_.emplace_back([this, work = std::move(work), seed = threads_.size()] {
      for (std::mt19937_64 random(seed); !stop_;) work(random());
    });
  }
  void RunFor(absl::Duration duration) {
    absl::SleepFor(duration);
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  void StartWriters() {
    for (int t = 0; t < 2; ++t) {
      Start([this](uint64_t random) {
        const uint64_t i = random % kKeys;
        WriteBatch batch;
        if (i % 2 == 0) {
          batch.Put(KeyOfReaders(i), KeyOfReaders(i) + "#" + std::string(random >> 32 & 511, 'x'));
        } else if (random >> 20 & 1) {
          batch.Put(KeyOfReaders(i), KeyOfReaders(i) + "#odd");
        } else if (random >> 21 & 1) {
          batch.Delete(KeyOfReaders(i));
        } else {
          batch.DeleteRange(KeyOfReaders(i), KeyOfReaders(i + 1));
        }
        EXPECT_TRUE(store_->Write({}, &batch).ok());
      });
    }
    Start([this](uint64_t random) {
      EXPECT_TRUE((random % 8 == 0 ? store_->Compact({}, {}) : store_->Flush()).ok());
      absl::SleepFor(absl::Milliseconds(2));
    });
  }
  // Walks over the store and checks that no even key is missing and that keys are in order.
  void CheckWalk(Iterator* iterator, bool reverse) {
    uint64_t even = 0;
    std::string last;
    for (reverse ? iterator->SeekToLast() : iterator->SeekToFirst(); iterator->Valid();
         reverse ? iterator->Prev() : iterator->Next()) {
      const std::string key(iterator->key());
      if (!last.empty()) ASSERT_TRUE(reverse ? key < last : key > last) << key << " after " << last;
      ASSERT_EQ(iterator->value().substr(0, key.size()), key);
      even += (key.back() - '0') % 2 == 0;
      last = key;
    }
    ASSERT_TRUE(iterator->status().ok()) << iterator->status();
    ASSERT_EQ(even, kKeys / 2);
  }

  TestStore store_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(ReadersTest, NeverMissAKeyDuringFlushesAndMerges) {
  StartWriters();
  Start([this](uint64_t random) {
    std::string value;
    const std::string key = KeyOfReaders(random % kKeys & ~uint64_t{1});
    const absl::StatusOr<ReadResult> read = store_->Get({}, key, &value);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(read->found) << key;
    ASSERT_EQ(value.substr(0, key.size()), key);
  });
  Start([this](uint64_t) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kKeys; i += 2) keys.push_back(KeyOfReaders(i));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    std::vector<MultiGetResult> results(keys.size());
    ASSERT_TRUE(store_->MultiGet({}, views, absl::MakeSpan(results)).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_TRUE(results[i].status.ok() && results[i].result.found)
          << keys[i] << results[i].status;
      ASSERT_EQ(results[i].value.substr(0, keys[i].size()), keys[i]);
    }
  });
  Start([this](uint64_t random) {
    CheckWalk(store_->NewIterator({}, {}, {}, nullptr).get(), random % 2 == 0);
  });
  Start([this](uint64_t random) {
    const auto snapshot = store_->GetSnapshot();
    const std::string first =
        store_.Scan(KeyOfReaders(0), KeyOfReaders(40), random % 2 == 0, snapshot.get());
    std::this_thread::yield();
    ASSERT_EQ(store_.Scan(KeyOfReaders(0), KeyOfReaders(40), random % 2 == 0, snapshot.get()),
              first)
        << "a snapshot has changed";
    CheckWalk(store_->NewIterator({.snapshot = snapshot.get()}, {}, {}, nullptr).get(),
              random % 4 < 2);
  });
  EXPECT_TRUE(testing::Eventually([this] { return store_.Statistic("flushes") > 3; }));
  RunFor(absl::Seconds(3));
}

TEST_F(ReadersTest, SeeABatchWholeOrNotAtAll) {
  std::atomic<uint64_t> round{0};
  Start([&](uint64_t) {
    WriteBatch batch;
    const uint64_t mine = ++round;
    for (const char* key : {"x1", "x2", "x3"}) batch.Put(key, std::to_string(mine));
    ASSERT_TRUE(store_->Write({}, &batch).ok());
    if (mine % 50 == 0) ASSERT_TRUE(store_->Flush().ok());
  });
  const std::string_view keys[] = {"x1", "x2", "x3"};
  for (int t = 0; t < 2; ++t) {
    Start([&](uint64_t) {
      MultiGetResult results[3];
      ASSERT_TRUE(store_->MultiGet({}, keys, absl::MakeSpan(results)).ok());
      ASSERT_EQ(results[0].value, results[1].value);
      ASSERT_EQ(results[0].value, results[2].value);
    });
  }
  EXPECT_TRUE(testing::Eventually([&] { return round > 50; }));  // a flush, at least
  RunFor(absl::Seconds(1));
}

TEST(EngineConcurrencyTest, TheCountIsExactWhileWritersFlushesAndClearsGoOn) {
  EngineOptions options = SmallOptions();

  TestStore store(options);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      while (!stop) {
        WriteBatch batch;
        const uint64_t i = random() % 500 * 2 + t;
        if (random() % 3 != 0) {
          batch.Put(KeyOfReaders(i), std::string(100, 'v'));
        } else {
          batch.Delete(KeyOfReaders(i));
        }
        if (random() % 400 == 0) batch.DeleteRange(KeyOfReaders(i), KeyOfReaders(i + 40));
        if (random() % 2000 == 0) batch.ClearNamespace();
        ASSERT_TRUE(store->Write({}, &batch).ok());
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) ASSERT_LE(store->Count({}, {}, {}).value().keys, 1000u);
  });
  absl::SleepFor(absl::Seconds(2));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (int round = 0; round < 3; ++round) {
    uint64_t keys = 0;
    {
      const auto iterator = store->NewIterator({}, {}, {}, nullptr);
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++keys;
    }
    EXPECT_EQ(store->Count({}, {}, {}).value().keys, keys);
    if (round == 0) ASSERT_TRUE(store->Flush().ok());
    if (round == 1) store.Reopen();
  }
}

TEST(EngineConcurrencyTest, ALoneWriterIsItsOwnGroup) {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kAlways;
  TestStore store(options);
  ASSERT_TRUE(store->Put("first", "v").ok());
  const uint64_t groups = store.Statistic("log_groups"), syncs = store.Statistic("log_syncs");
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(store->Put(KeyOfReaders(i), "v").ok());
    ASSERT_GE(store->durable_sequence(), static_cast<SequenceNumber>(i + 2));
  }
  EXPECT_EQ(store.Statistic("log_groups") - groups, 100u);
  EXPECT_EQ(store.Statistic("log_syncs") - syncs, 100u);
}

// Syncs take a while, as those of a disk do, and not those of a file system in memory.
class SlowSyncs final : public testing::FaultFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, FaultFileSystem::OpenForWrite(path, create));
    return std::make_unique<SlowFile>(std::move(file));
  }

 private:
  class SlowFile final : public ForwardingFile {
   public:
    using ForwardingFile::ForwardingFile;
    absl::Status Sync() override {
      absl::SleepFor(absl::Milliseconds(1));
      return ForwardingFile::Sync();
    }
  };
};

TEST(EngineConcurrencyTest, ManyWritersShareTheirSyncs) {
  SlowSyncs files;
  EngineOptions options = testing::TestEngineOptions();
  options.file_system = &files;
  options.sync = Durability::kAlways;
  TestStore store(options);
  const uint64_t syncs = store.Statistic("log_syncs");
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) ASSERT_TRUE(store->Put(KeyOfReaders(t * 1000 + i), "v").ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LT(store.Statistic("log_syncs") - syncs, 600u);
  EXPECT_EQ(store->Count({}, {}, {}).value().keys, 800u);
}

TEST(EngineConcurrencyTest, ConditionsHoldAmongConcurrentWriters) {
  TestStore store(SmallOptions());
  constexpr int kAccounts = 8, kStart = 1000;
  for (int i = 0; i < kAccounts; ++i)
    ASSERT_TRUE(store->Put(KeyOfReaders(i), std::to_string(kStart)).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 400; ++i) {
        const std::string from = KeyOfReaders(random() % kAccounts),
                          to = KeyOfReaders(random() % kAccounts);
        if (from == to) continue;
        const std::string_view keys[] = {from, to};
        const auto moved = store->Update({}, keys, [&](WriteBatch* batch) -> absl::Status {
          MultiGetResult results[2];
          if (absl::Status read =
                  store->MultiGet({.wait_until_durable = false}, keys, absl::MakeSpan(results));
              !read.ok())
            return read;
          for (int k = 0; k < 2; ++k)
            batch->RequireUnchanged(keys[k], results[k].result.read_sequence);
          batch->Put(from, std::to_string(std::stoi(results[0].value) - 1));
          batch->Put(to, std::to_string(std::stoi(results[1].value) + 1));
          return absl::OkStatus();
        });
        ASSERT_TRUE(moved.ok()) << moved.status();
        if (i % 100 == 99) ASSERT_TRUE(store->Flush().ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  int sum = 0;
  for (int i = 0; i < kAccounts; ++i) sum += std::stoi(store.Get(KeyOfReaders(i)));
  EXPECT_EQ(sum, kAccounts * kStart);
}

TEST(EngineConcurrencyTest, CloseWhileOthersWriteReadFlushAndCompact) {
  for (int round = 0; round < 4; ++round) {
    TestStore store(SmallOptions());
    std::atomic<uint64_t> acknowledged{0};
    std::vector<std::thread> threads;
    threads.emplace_back([&] {
      for (uint64_t i = 0; store->Put(KeyOfReaders(i), std::string(300, 'v')).ok(); ++i)
        acknowledged = i + 1;
    });
    threads.emplace_back([&] {
      while (store->Compact({}, {}).ok()) {
      }
    });
    threads.emplace_back([&] {
      WriteBatch batch;
      do {
        batch.Clear();
        batch.Put("other", "v");
        store->WriteAsync({}, &batch, [](const absl::StatusOr<CommitResult>&) {});
      } while (store->Put("more", "v").ok());
    });
    std::atomic<bool> stop{false};
    threads.emplace_back([&] {
      std::string value;
      while (!stop) store->Get({}, KeyOfReaders(1), &value).status().IgnoreError();
    });
    absl::SleepFor(absl::Milliseconds(100 + 40 * round));
    EXPECT_TRUE(testing::Eventually([&] { return acknowledged > 0; }));
    EXPECT_TRUE(store->Close().ok());
    stop = true;
    for (std::thread& thread : threads) thread.join();
    store.Reopen();
    EXPECT_EQ(store.Get(KeyOfReaders(acknowledged - 1)).size(), 300u) << "of " << acknowledged;
  }
}

// While a flush takes its time, each deleted range replaces the readers' state: the replaced ones
// must not pile up.
TEST(EngineConcurrencyTest, ReadersGoOnWhileRangesAreDeletedByTheThousand) {
  TestStore store(SmallOptions());
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const auto iterator = store->NewIterator({}, {}, {}, nullptr);
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      }
      ASSERT_TRUE(iterator->status().ok());
    }
  });
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(store->Put(KeyOfReaders(i), "v").ok());
    if (i % 2 == 0) ASSERT_TRUE(store->DeleteRange(KeyOfReaders(i), KeyOfReaders(i + 1)).ok());
  }
  stop = true;
  reader.join();
  EXPECT_EQ(store->Count({}, {}, {}).value().keys, 1500u);
}

}  // namespace
}  // namespace varve
