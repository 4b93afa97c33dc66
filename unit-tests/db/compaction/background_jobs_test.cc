// Merges in parts (EngineOptions::max_background_jobs), as users of a store see them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "db/compaction/compaction.h"
#include "db/segment/segment_caches.h"
#include "structure/job_threads.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "unit-tests/testing/vector_iterator.h"
#include "varve/compaction_filter.h"
#include "varve/compaction_picker.h"
#include "varve/store_survey.h"

namespace varve {
namespace {

using testing::FailingFileSystem;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::TestStore;

// Leaves every tree as it is, so that only requests merge.
class ContentPicker final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape&, const EngineOptions&, bool) const override {
    return std::nullopt;
  }
  double Debt(const TreeShape&, const EngineOptions&) const override { return 0; }
};

// Drops nothing, and tells a function of each record.
class Watcher final : public CompactionFilter {
 public:
  bool Drop(const FilteredRecord& record) const override {
    if (on) watch(record.key);
    return false;
  }
  std::atomic<bool> on{false};
  std::function<void(std::string_view key)> watch;
};

EngineOptions OptionsWithJobs(int jobs) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 256u << 10;
  options.segment_size = 64u << 10;
  options.value_separation_size = 0;
  options.max_background_jobs = jobs;
  options.compaction_picker = std::make_shared<ContentPicker>();
  return options;
}

std::string KeyOfJobs(uint64_t i) { return fmt::format("key{:06}", i); }

// Writes `count` keys from `first` on in one run.
void FlushKeys(TestStore* store, uint64_t first, uint64_t count, std::string_view value) {
  WriteBatch batch;
  for (uint64_t i = first; i < first + count; ++i)
    batch.Put(KeyOfJobs(i), std::string(value) + std::string(200, 'x'));
  const auto written = (*store)->Write({}, &batch);
  ASSERT_TRUE(written.ok()) << written.status();
  const absl::Status flushed = (*store)->Flush();
  ASSERT_TRUE(flushed.ok()) << flushed;
}

std::set<std::string> Segments(const TestStore& store) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path())) {
    if (entry.path().extension() == ".seg") names.insert(entry.path().filename());
  }
  return names;
}

// What readers find of random writes, before and behind a merge of everything.
struct Found {
  std::vector<std::string> before, behind;
  uint64_t parts = 0, merges = 0, records = 0;
};

Found MergeRandomWrites(uint64_t seed, int jobs) {
  Found found;
  TestStore store(OptionsWithJobs(jobs));
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<std::shared_ptr<const Snapshot>> snapshots;
  for (int run = 0; run < 6; ++run) {
    for (int i = 0; i < 1000; ++i) {
      WriteBatch batch;
      const uint64_t key = random() % 2000;
      const uint32_t kind = random() % 100;
      if (kind == 0) {
        // Some reach from the first key on, and so across cuts.
        batch.DeleteRange(KeyOfJobs(random() % 4 == 0 ? 0 : key), KeyOfJobs(key + 300));
      } else if (kind < 10) {
        batch.Delete(KeyOfJobs(key));
      } else {
        batch.Put(kind < 20 ? KeyOfJobs(777) : KeyOfJobs(key),  // one key has very many versions
                  fmt::format("{}.{}:{}", run, i, std::string(random() % 600, 'v')));
      }
      EXPECT_TRUE(store->Write({}, &batch).ok());
      if (random() % 400 == 0) snapshots.push_back(store->GetSnapshot());
    }
    EXPECT_TRUE(store->Flush().ok());
  }
  snapshots.push_back(nullptr);  // the present
  for (const auto& snapshot : snapshots)
    found.before.push_back(store.Scan({}, {}, false, snapshot.get()));
  const absl::Status merged = store->Compact({}, {});
  EXPECT_TRUE(merged.ok()) << merged;
  for (const auto& snapshot : snapshots)
    found.behind.push_back(store.Scan({}, {}, false, snapshot.get()));
  found.parts = store.Statistic("compaction_parts");
  found.merges = store.Statistic("compactions");
  found.records = store.Statistic("segment_entries");
  EXPECT_EQ(store.Statistic("runs"), 1u);
  snapshots.clear();
  store.Reopen();
  EXPECT_EQ(store.Scan(), found.behind.back());
  return found;
}

class MergesInPartsTest : public ::testing::TestWithParam<uint64_t> {};

TEST_P(MergesInPartsTest, GiveWhatAMergeOnOneThreadGives) {
  const Found alone = MergeRandomWrites(GetParam(), /*jobs=*/2);
  const Found parted = MergeRandomWrites(GetParam(), /*jobs=*/5);
  EXPECT_EQ(alone.parts, alone.merges);
  EXPECT_EQ(parted.merges, alone.merges);
  EXPECT_GE(parted.parts, parted.merges + 2) << "at least three parts";
  EXPECT_EQ(parted.before, alone.before);
  EXPECT_EQ(alone.behind, alone.before);
  EXPECT_EQ(parted.behind, alone.before);
  EXPECT_EQ(parted.records, alone.records) << "the same versions are kept";
}

INSTANTIATE_TEST_SUITE_P(Seeds, MergesInPartsTest, ::testing::Range<uint64_t>(1, 4));

TEST(BackgroundJobsTest, ALittleStoreIsNotCut) {
  EngineOptions options = OptionsWithJobs(8);
  options.segment_size = EngineOptions().segment_size;
  TestStore store(std::move(options));
  for (uint64_t run = 0; run < 3; ++run) FlushKeys(&store, run * 10, 2000, "v");
  ASSERT_TRUE(store->Compact({}, {}).ok());
  EXPECT_EQ(store.Statistic("compactions"), 1u);
  EXPECT_EQ(store.Statistic("compaction_parts"), 1u);
  EXPECT_EQ(store.Statistic("segments"), 1u);
}

TEST(BackgroundJobsTest, PartsAreMergedAtTheSameTimeAndInstalledAsOne) {
  const auto watcher = std::make_shared<Watcher>();
  // The parts begin at different keys. The first key of each waits until all three have begun.
  absl::BlockingCounter not_begun(3);
  absl::Notification looked;
  absl::Mutex mutex;
  std::map<std::thread::id, std::string> begun_with;
  watcher->watch = [&](std::string_view key) {
    {
      absl::MutexLock lock(&mutex);
      if (!begun_with.try_emplace(std::this_thread::get_id(), key).second) return;
    }
    not_begun.DecrementCount();
    looked.WaitForNotification();
  };
  EngineOptions options = OptionsWithJobs(4);
  options.compaction_filter = watcher;
  TestStore store(std::move(options));
  for (uint64_t run = 0; run < 3; ++run) FlushKeys(&store, 0, 500, std::to_string(run));
  const std::set<std::string> before = Segments(store);
  watcher->on = true;
  absl::Status merged;
  std::thread request([&] { merged = store->Compact({}, {}); });
  not_begun.Wait();
  const auto& surveyed = dynamic_cast<const SurveyedStore&>(*store);
  const TreeSurvey survey = surveyed.SurveyTree(100);
  EXPECT_TRUE(survey.merge.has_value());
  if (survey.merge.has_value()) {
    EXPECT_EQ(survey.merge->parts, 3u);
    EXPECT_EQ(survey.merge->segments, before.size());
  }
  EXPECT_EQ(store.Statistic("runs"), 3u) << "nothing is installed yet";
  looked.Notify();
  request.join();
  ASSERT_TRUE(merged.ok()) << merged;
  std::set<std::string> firsts;
  for (const auto& [thread, key] : begun_with) firsts.insert(key);
  EXPECT_EQ(firsts.size(), 3u);
  EXPECT_EQ(store.Statistic("runs"), 1u);
  EXPECT_GE(store.Statistic("segments"), 3u);
  EXPECT_EQ(store.Statistic("compaction_parts"), 3u);
  for (uint64_t i = 0; i < 500; ++i) ASSERT_EQ(store.Get(KeyOfJobs(i)).front(), '2') << i;
}

class FaultInAPartTest : public ::testing::Test {
 protected:
  FaultInAPartTest() : store_(OptionsOn(&files_)) {
    for (uint64_t run = 0; run < 4; ++run) FlushKeys(&store_, 0, 500, std::to_string(run));
    contents_ = store_.Scan();
    segments_ = Segments(store_);
  }
  static EngineOptions OptionsOn(FaultFileSystem* files) {
    EngineOptions options = OptionsWithJobs(5);
    options.file_system = files;
    return options;
  }
  // The merge fails, and changes nothing.
  void ExpectFailure(absl::StatusCode code) {
    const absl::Status merged = store_->Compact({}, {});
    EXPECT_EQ(merged.code(), code) << merged;
    EXPECT_EQ(Segments(store_), segments_);
    EXPECT_EQ(store_.Statistic("runs"), 4u);
    EXPECT_EQ(store_.Statistic("compactions"), 0u);
    EXPECT_EQ(store_.Scan(), contents_);
  }
  void ExpectSuccess() {
    files_.ClearFaults();
    const absl::Status merged = store_->Compact({}, {});
    EXPECT_TRUE(merged.ok()) << merged;
    EXPECT_EQ(store_.Statistic("runs"), 1u);
    EXPECT_GT(store_.Statistic("compaction_parts"), 1u);
    EXPECT_EQ(store_.Scan(), contents_);
  }

  FaultFileSystem files_;
  TestStore store_;
  std::string contents_;
  std::set<std::string> segments_;
};

TEST_F(FaultInAPartTest, AFileThatCannotBeMadeEndsAllParts) {
  for (const uint64_t nth : {1, 2, 3, 4}) {
    files_.Fail(FileOperation::kCreate, nth, absl::InternalError("on command"), /*times=*/1,
                ".seg");
    ExpectFailure(absl::StatusCode::kInternal);
  }
  ExpectSuccess();
}

TEST_F(FaultInAPartTest, AFailedWriteEndsAllParts) {
  for (const FileOperation operation : {FileOperation::kWrite, FileOperation::kSync}) {
    for (const uint64_t nth : {1, 2, 4}) {
      files_.Fail(operation, nth, absl::InternalError("on command"), /*times=*/1, ".seg");
      ExpectFailure(absl::StatusCode::kInternal);
    }
  }
  ExpectSuccess();
}

TEST_F(FaultInAPartTest, AFullDiskIsGivenBackWhatThePartsWrote) {
  for (int i = 0; i < 3; ++i) {
    files_.Fail(FileOperation::kGrow, 3, absl::ResourceExhaustedError("no space"),
                FailingFileSystem::kUnlimited, ".seg");
    ExpectFailure(absl::StatusCode::kResourceExhausted);
    files_.ClearFaults();
  }
  ExpectSuccess();
}

TEST_F(FaultInAPartTest, ADamagedRecordEndsAllParts) {
  files_.Fail(FileOperation::kRead, 3, absl::DataLossError("on command"), /*times=*/2, ".seg");
  ExpectFailure(absl::StatusCode::kDataLoss);
  ExpectSuccess();
}

TEST(BackgroundJobsTest, ACancelledMergeLeavesNoFiles) {
  std::atomic<bool> cancel{false};
  const auto watcher = std::make_shared<Watcher>();
  EngineOptions options = OptionsWithJobs(4);
  options.compaction_filter = watcher;
  const testing::TempDir directory;
  SegmentCaches caches(1u << 20, 0);
  JobThreads jobs(2);
  std::atomic<uint64_t> next_number{1};
  CompactionContext context{.file_system = PosixFileSystem(),
                            .directory = directory.path(),
                            .options = &options,
                            .caches = &caches,
                            .next_file_number = [&] { return next_number++; },
                            .cancel = &cancel,
                            .is_urgent = [] { return true; },
                            .jobs = &jobs};
  std::vector<testing::TestRecord> records;
  for (uint64_t i = 0; i < 3000; ++i)
    records.push_back({FirstTreeKey(1) + KeyOfJobs(i), i + 1, std::string(200, 'x')});
  testing::VectorIterator input(std::move(records));
  auto flushed = RunFlush(&input, {}, {3000, 3000 * 210}, false, nullptr, context);
  ASSERT_TRUE(flushed.ok()) << flushed.status();
  const size_t files = PosixFileSystem()->List(directory.path())->size();
  CompactionPlan plan;
  plan.inputs.push_back({0, flushed->segments});
  plan.output_level = 1;
  // The middle part is cancelled in its middle, when the first one may be done.
  watcher->watch = [&](std::string_view key) {
    if (key == KeyOfJobs(1500)) cancel = true;
  };
  watcher->on = true;
  const std::vector<std::string> cuts = {FirstTreeKey(1) + KeyOfJobs(1000),
                                         FirstTreeKey(1) + KeyOfJobs(2000)};
  const auto merged = RunCompaction(Version(), plan, context, cuts);
  EXPECT_TRUE(absl::IsAborted(merged.status())) << merged.status();
  EXPECT_EQ(PosixFileSystem()->List(directory.path())->size(), files);
  cancel = false;
  watcher->on = false;
  const auto again = RunCompaction(Version(), plan, context, cuts);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->records_written, 3000u);
  EXPECT_GE(again->segments.size(), 3u);
}

}  // namespace
}  // namespace varve
