// What the engine's background does where it can't go on, and what it makes room for ahead.
#include <errno.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "util/base/status.h"
#include "util/os/forwarding_file.h"
#include "util/os/thread_setup.h"
#include "varve/compaction_filter.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::TestStore;

absl::Status ClearDefault(TestStore& store) {
  WriteBatch batch;
  batch.ClearNamespace();
  return store->Write({}, &batch).status();
}

// Holds up each write to a log file behind `limit`, until it is released.
class SlowGrowth final : public FaultFileSystem {
 public:
  explicit SlowGrowth(uint64_t limit) : limit_(limit) {}

  absl::StatusOr<std::unique_ptr<File>> OpenForWrite(const std::string& path,
                                                     bool create) override {
    VARVE_ASSIGN_OR_RETURN(std::unique_ptr<File> file, FaultFileSystem::OpenForWrite(path, create));
    return std::make_unique<SlowFile>(this, std::move(file));
  }

  absl::Notification reached, go;

 private:
  class SlowFile final : public ForwardingFile {
   public:
    SlowFile(SlowGrowth* owner, std::unique_ptr<File> file)
        : ForwardingFile(std::move(file)), owner_(owner) {}

    absl::Status Write(uint64_t offset, std::string_view data) override {
      if (offset >= owner_->limit_ && path().ends_with(".log")) {
        if (!owner_->has_reached_.exchange(true)) owner_->reached.Notify();
        owner_->go.WaitForNotification();
      }
      return ForwardingFile::Write(offset, data);
    }

   private:
    SlowGrowth* const owner_;
  };

  const uint64_t limit_;
  std::atomic<bool> has_reached_{false};
};

TEST(EngineLogRoomTest, OthersWriteWhileALargeRecordsRoomIsMade) {
  constexpr size_t kLogFile = 1 << 20;
  SlowGrowth file_system(kLogFile);
  EngineOptions options;
  options.log_file_size = kLogFile;
  options.file_system = &file_system;
  TestStore store(options);
  const std::string large(3 * kLogFile, 'v');
  auto large_put = std::async(std::launch::async, [&] { return store->Put("large", large); });
  file_system.reached.WaitForNotification();
  // So much that the file that grows comes into use meanwhile.
  auto others = std::async(std::launch::async, [&] {
    for (int i = 0; i < 30; ++i) {
      if (absl::Status status = store->Put(fmt::format("other{}", i), std::string(50'000, 'v'));
          !status.ok())
        return status;
    }
    return absl::OkStatus();
  });
  EXPECT_EQ(others.wait_for(std::chrono::minutes(2)), std::future_status::ready);
  EXPECT_EQ(store.Get("large"), "(missing)");
  file_system.go.Notify();
  const absl::Status other = others.get();
  EXPECT_TRUE(other.ok()) << other;
  const absl::Status put = large_put.get();
  ASSERT_TRUE(put.ok()) << put;
  store.Reopen();
  EXPECT_EQ(store.Get("large"), large);
  EXPECT_EQ(store.Get("other29").size(), 50'000u);
}

TEST(EngineLogRoomTest, ManyLargeRecordsAtOnceAllGetRoom) {
  EngineOptions options;
  options.log_file_size = 256 << 10;
  TestStore store(options);
  std::vector<std::future<absl::Status>> writers;
  for (int writer = 0; writer < 4; ++writer) {
    writers.push_back(std::async(std::launch::async, [&store, writer] {
      for (int i = 0; i < 10; ++i) {
        const std::string value((writer % 2 == 0 ? 700'000 : 3000) + i, 'v');
        if (absl::Status status = store->Put(fmt::format("{}.{}", writer, i), value); !status.ok())
          return status;
      }
      return absl::OkStatus();
    }));
  }
  for (auto& writer : writers) {
    const absl::Status status = writer.get();
    EXPECT_TRUE(status.ok()) << status;
  }
  store.Reopen();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(store.Get(fmt::format("2.{}", i)).size(), 700'000u + i);
    EXPECT_EQ(store.Get(fmt::format("3.{}", i)).size(), 3000u + i);
  }
}

class TroubledBackgroundTest : public ::testing::Test {
 protected:
  TroubledBackgroundTest() : store_(Options(&file_system_)) {}

  static EngineOptions Options(FaultFileSystem* file_system) {
    EngineOptions options;
    options.file_system = file_system;
    options.sync = Durability::kNone;
    options.block_cache_size = 0;
    return options;
  }
  // One run.
  void FlushSome(int from) {
    for (int i = from; i < from + 100; ++i)
      ASSERT_TRUE(store_->Put(fmt::format("key{:06}", i), "value").ok());
    const absl::Status flushed = store_->Flush();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }

  FaultFileSystem file_system_;
  TestStore store_;
};

// A damaged segment stopped all merges, and runs piled up.
//
// Merges leave a run alone that they can't read, and go on with the others.
TEST_F(TroubledBackgroundTest, ADamagedSegmentHoldsUpNoOtherMerge) {
  FlushSome(0);
  std::string damaged;
  for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
    if (entry.path().extension() == ".seg") damaged = entry.path().filename();
  }
  std::fstream file(store_.directory.File(damaged),
                    std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(100);
  file.put('\xff');
  file.close();
  for (int i = 1; i < 60; ++i) {
    FlushSome(i * 10);
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_TRUE(Eventually([&] { return store_.Statistic("compactions") >= 5; }));
  EXPECT_TRUE(Eventually([&] { return store_.Statistic("runs") <= 12; }))
      << store_.Statistic("runs");
  EXPECT_EQ(store_.Statistic("failed_compactions"), 1u);
  EXPECT_EQ(store_.Statistic("pressure_percent") / 51, 0u) << "writers are not slowed";
  size_t errors = 0;
  for (int i = 0; i < 690; ++i) {
    const std::string value = store_.Get(fmt::format("key{:06}", i));
    errors += value != "value";
    EXPECT_TRUE(value == "value" || value.find(damaged) != std::string::npos) << value;
  }
  EXPECT_LE(errors, 1u);
  EXPECT_TRUE(absl::IsDataLoss(store_->Compact({}, {}))) << "who asks is told";
}

TEST_F(TroubledBackgroundTest, AMergeThatFailsIsTriedAgainLessAndLess) {
  FlushSome(0);
  std::string damaged;
  for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
    if (entry.path().extension() == ".seg") damaged = entry.path().filename();
  }
  file_system_.Fail(FileOperation::kRead, 1, absl::ResourceExhaustedError("no memory"),
                    FaultFileSystem::kUnlimited, damaged);
  const absl::Time begin = absl::Now();
  for (int i = 1; i < 20; ++i) {  // each flush changes the tree
    FlushSome(i * 10);
    absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_TRUE(Eventually([&] { return store_.Statistic("failed_compactions") >= 2; }));
  const auto failed = static_cast<double>(store_.Statistic("failed_compactions"));
  EXPECT_LE(failed, 2 + absl::ToDoubleSeconds(absl::Now() - begin)) << "in so many seconds";
  EXPECT_EQ(store_.Get("key000150"), "value");
  // A request is served at once; what needs no reading is removed at once.
  EXPECT_TRUE(absl::IsResourceExhausted(store_->Compact({}, {})));
  ASSERT_TRUE(ClearDefault(store_).ok());
  ASSERT_TRUE(store_->Sync().ok());
  EXPECT_TRUE(Eventually([&] { return store_.Statistic("segments") == 0; }));
}

TEST_F(TroubledBackgroundTest, WithoutDescriptorsFlushesAndMergesFailClearlyAndRecover) {
  for (int i = 0; i < 3; ++i) FlushSome(i * 10);
  const absl::Status no_descriptors = IoError(EMFILE, "open", "a file");
  ASSERT_TRUE(absl::IsResourceExhausted(no_descriptors)) << no_descriptors;
  // At the first file that is made, and at each of the next: the new segment, the manifest, its
  // copy, what the merge makes; and when segments are opened for reading.
  for (const auto& [operation, nth] : {std::pair{FileOperation::kCreate, 1},
                                       {FileOperation::kCreate, 2},
                                       {FileOperation::kCreate, 3},
                                       {FileOperation::kCreate, 4},
                                       {FileOperation::kOpen, 1},
                                       {FileOperation::kOpen, 2}}) {
    const std::string value =
        fmt::format("{} {}", operation == FileOperation::kCreate ? "made" : "opened", nth);
    SCOPED_TRACE(value);
    ASSERT_TRUE(store_->Put("key", value).ok());
    file_system_.Fail(operation, nth, no_descriptors);
    const absl::Status flushed = store_->Flush();
    EXPECT_TRUE(flushed.ok() || absl::IsResourceExhausted(flushed)) << flushed;
    EXPECT_FALSE(nth == 1 && flushed.ok());
    const absl::Status compacted = store_->Compact({}, {});
    EXPECT_TRUE(absl::IsResourceExhausted(compacted)) << compacted;
    EXPECT_EQ(store_.Get("key"), value);
    EXPECT_EQ(store_.Get("key000005"), "value");
    EXPECT_TRUE(store_->log_status().ok());
    file_system_.ClearFaults();
    EXPECT_TRUE(Eventually([&] { return store_->Flush().ok() && store_->Compact({}, {}).ok(); }));
  }
  store_.Reopen();
  EXPECT_EQ(store_.Get("key"), "opened 2");
  EXPECT_EQ(store_.Scan("key000005", "key000006"), "key000005=value ");
}

TEST(EngineBurstTest, MergesThatCanWaitAreBegunOnceTheBurstIsOver) {
  TestStore store{EngineOptions()};
  auto last_flush = std::chrono::steady_clock::now();
  for (int i = 1; i <= store.options.runs_per_level; ++i) {
    ASSERT_TRUE(store->Put("key", fmt::format("value{}", i)).ok());
    last_flush = std::chrono::steady_clock::now();
    ASSERT_TRUE(store->Flush().ok());
  }
  EXPECT_TRUE(Eventually([&] { return store.Statistic("compactions") == 1; }))
      << "though nothing more was written";
  EXPECT_GE(std::chrono::steady_clock::now() - last_flush, std::chrono::seconds(1));
  EXPECT_EQ(store.Get("key"), "value4");
}

// Counts records by the policy of the thread that merges or flushes them.
class PolicyFilter final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord&) const override {
    (sched_getscheduler(0) == SCHED_IDLE ? idle : others)++;
    return false;
  }
  mutable std::atomic<uint64_t> idle{0}, others{0};
};

TEST(EngineUpkeepTest, AMergeWithoutHurryWorksInWhatTimeOthersLeave) {
  bool may_yield = false;
  std::thread([&] { may_yield = YieldToEveryone(); }).join();
  if (!may_yield || !std::filesystem::exists("/proc/thread-self/schedstat"))
    GTEST_SKIP() << "takes CAP_SYS_NICE";
  const auto filter = std::make_shared<PolicyFilter>();
  // No merge is urgent: three runs are no debt, whatever size of write buffer the environment asks
  // for.
  EngineOptions options = testing::TestEngineOptions();
  options.write_buffer_size = EngineOptions().write_buffer_size;
  options.runs_per_level = 1000;
  options.sync = Durability::kNone;
  options.compaction_filter = filter;
  TestStore store(options);
  for (int run = 0; run < 3; ++run) {
    for (int i = 0; i < 5000; ++i)
      ASSERT_TRUE(store->Put(fmt::format("key{:06}", i * 3 + run), "value").ok());
    ASSERT_TRUE(store->Flush().ok());
  }
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_GT(filter->idle, 0u);
  const uint64_t others = filter->others;
  ASSERT_TRUE(store->Put("key", "value").ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_GT(filter->others, others);
}

// Garbage that no collection can reach made every merge as urgent as a collection of it.
class UncollectableGarbageTest : public ::testing::Test {
 protected:
  static constexpr int kKeys = 200;

  UncollectableGarbageTest() {
    store_.options.write_buffer_size = store_.options.log_file_size = 256 << 10;
    store_.options.sync = Durability::kNone;
    store_.options.compaction_filter = filter_;
    store_.Reopen();
  }

  // Half of the bytes in value files become garbage, and each of the files has a damaged value that
  // was read.
  void MakeGarbage() {
    WriteBatch batch;
    for (int i = 0; i < kKeys; ++i) {
      batch.Put(fmt::format("large{:03}", i), std::string(4096, 'v'));
      if (batch.size() == 8) ASSERT_TRUE(store_->Write({}, &batch).ok());
    }
    ASSERT_TRUE(store_->Flush().ok());
    store_.Close();
    int damaged = 0;
    for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
      if (entry.path().extension() != ".val") continue;
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(20000);
      file.put('#');
      ++damaged;
    }
    ASSERT_GT(damaged, 1);
    store_.Open();
    for (int i = 0; i < kKeys; ++i)
      damaged -= store_.Get(fmt::format("large{:03}", i)).size() == 4096 ? 0 : 1;
    ASSERT_EQ(damaged, 0);
    // The last values may still lie in the log.
    for (int i = 0; i < kKeys * 3 / 4; ++i) {
      if (i % 3 != 0) ASSERT_TRUE(store_->Put(fmt::format("large{:03}", i), "small").ok());
    }
    ASSERT_TRUE(store_->Flush().ok());
    const absl::Status merged = store_->Compact({}, {});
    ASSERT_TRUE(merged.ok()) << merged;
    ASSERT_GT(store_.Statistic("value_garbage_bytes") * 3, store_.Statistic("value_bytes"));
  }

  const std::shared_ptr<PolicyFilter> filter_ = std::make_shared<PolicyFilter>();
  TestStore store_{EngineOptions()};
};

TEST_F(UncollectableGarbageTest, AMergeBesideItYields) {
  bool may_yield = false;
  std::thread([&] { may_yield = YieldToEveryone(); }).join();
  if (!may_yield || !std::filesystem::exists("/proc/thread-self/schedstat"))
    GTEST_SKIP() << "takes CAP_SYS_NICE";
  ASSERT_NO_FATAL_FAILURE(MakeGarbage());
  filter_->idle = 0;
  for (int run = 0; run < store_.options.runs_per_level; ++run) {
    for (int i = 0; i < 2000; ++i)
      ASSERT_TRUE(store_->Put(fmt::format("key{:06}", i * 4 + run), "value").ok());
    ASSERT_TRUE(store_->Flush().ok());
  }
  EXPECT_TRUE(Eventually([&] { return store_.Statistic("compactions_full_level") > 0; }));
  EXPECT_GT(filter_->idle, 0u);
}

TEST(EngineGenerationsTest, WhatWasEmptiedIsForgottenOnceNobodyCanSeeIt) {
  TestStore store;
  ASSERT_TRUE(store->Put("first", "1").ok());
  auto snapshot = store->GetSnapshot();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store->Put("key", fmt::format("{}", i)).ok());
    ASSERT_TRUE(ClearDefault(store).ok());
  }
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(store.Statistic("retired_generations"), 20u) << "the snapshot may ask for them";
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Scan({}, {}, false, snapshot.get()), "first=1 ");
  snapshot.reset();
  ASSERT_TRUE(store->Put("last", "1").ok());
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(store.Statistic("retired_generations"), 0u);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_TRUE(Eventually([&] { return store.Statistic("segment_entries") == 1; }))
      << "only what can be seen is left";
  EXPECT_EQ(store.Scan(), "last=1 ");
  store.Reopen();
  EXPECT_EQ(store.Scan(), "last=1 ");
}

TEST(EngineGenerationsTest, EmptyingForEverTakesNoMemory) {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  TestStore store(options);
  for (int i = 0; i < 10000; ++i) ASSERT_TRUE(ClearDefault(store).ok());
  EXPECT_TRUE(Eventually([&] { return store.Statistic("retired_generations") < 2000; }))
      << store.Statistic("retired_generations");
  EXPECT_EQ(store.Scan(), "");
  EXPECT_EQ(store.Statistic("segments"), 0u);
}

}  // namespace
}  // namespace varve
