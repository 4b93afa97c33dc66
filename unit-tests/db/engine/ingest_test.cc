// Bulk ingests: one step, one version, all or nothing. unit-tests/db/engine/history_test.cc has
// them beside other writes, against a model of every version.
#include "varve/ingest.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "varve/compaction_picker.h"
#include "varve/namespace_status.h"
#include "varve/store_survey.h"

namespace varve {
namespace {

using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::TestStore;

std::string IngestedKey(int i) { return fmt::format("key{:06}", i); }

std::unique_ptr<Ingest> Begin(TestStore& store, const IngestOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Ingest>> ingest = BeginIngest(&*store, options);
  EXPECT_TRUE(ingest.ok()) << ingest.status();
  return ingest.ok() ? *std::move(ingest) : nullptr;
}

SequenceNumber CommitOf(Ingest& ingest) {
  const absl::StatusOr<CommitResult> committed = ingest.Commit();
  EXPECT_TRUE(committed.ok()) << committed.status();
  return committed.ok() ? committed->sequence : kNoSequence;
}

uint64_t CountedKeys(TestStore& store) { return store->Count({}, {}, {}).value().keys; }

int SegmentFilesOf(const TestStore& store) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(store.directory.path()))
    files += entry.path().extension() == ".seg" ? 1 : 0;
  return files;
}

TEST(IngestTest, EverythingIsSeenFromTheCommitOnUnderOneVersion) {
  TestStore store;
  ASSERT_TRUE(store->Put("b", "old").ok());
  ASSERT_TRUE(store->Put("d", "stays").ok());
  auto before = store->GetSnapshot();
  auto ingest = Begin(store);
  ASSERT_TRUE(ingest->Add({{"a", "1"}, {"b", std::string(5000, 'x')}}).ok());
  ASSERT_TRUE(ingest->Add("c", "").ok());
  EXPECT_EQ(store.Scan(), "b=old d=stays ");
  EXPECT_EQ(ingest->progress().keys, 3u);
  ASSERT_TRUE(store->Put("b", "newer").ok()) << "and still older than the commit";
  const SequenceNumber version = CommitOf(*ingest);
  const std::string all = "a=1 b=" + std::string(5000, 'x') + " c= d=stays ";
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store.Scan(), all);
    EXPECT_EQ(store.Get("b"), std::string(5000, 'x'));
    std::string value;
    EXPECT_EQ(store->Get({}, "a", &value)->version, version);
    EXPECT_EQ(store->Get({}, "c", &value)->version, version);
    EXPECT_EQ(CountedKeys(store), 4u);
    if (i == 0) {
      EXPECT_EQ(store.Scan({}, {}, true, before.get()), "d=stays b=old ");
      EXPECT_EQ(store.Get("a", before.get()), "(missing)");
      EXPECT_EQ(store.Get("b", before.get()), "old");
      before.reset();
      store.Reopen();
    }
    if (i == 1) ASSERT_TRUE(store->Compact({}, {}).ok());
  }
  ASSERT_TRUE(store->Put("a", "2").ok());
  EXPECT_EQ(store.Get("a"), "2");
  EXPECT_FALSE(ingest->Commit().ok()) << "it has ended";
}

TEST(IngestTest, AKeyOutOfOrderChangesNothing) {
  TestStore store;
  auto ingest = Begin(store);
  ASSERT_TRUE(ingest->Add({{"a", "1"}, {"k", "1"}}).ok());
  for (const std::string_view key : {"k", "c"}) {
    const absl::Status refused = ingest->Add({{"x", "2"}, {key, "2"}});
    EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
    const absl::Status alone = ingest->Add(key, "2");
    EXPECT_TRUE(absl::IsInvalidArgument(alone)) << alone;
    EXPECT_NE(alone.message().find(fmt::format("'{}' does not come behind", key)),
              std::string_view::npos)
        << alone;
    EXPECT_EQ(ingest->Add("b", "2").message().find("'k'"), std::string_view::npos)
        << "another user may have added it";
  }
  EXPECT_TRUE(absl::IsInvalidArgument(ingest->Add(std::string(kMaxKeySize + 1, 'z'), "")));
  EXPECT_EQ(ingest->progress().keys, 2u);
  ASSERT_TRUE(ingest->Add("x", "3").ok());
  CommitOf(*ingest);
  EXPECT_EQ(store.Scan(), "a=1 k=1 x=3 ");
}

TEST(IngestTest, ARangeIsReplacedAsAWhole) {
  EngineOptions options = testing::TestEngineOptions();
  options.segment_size = 16u << 10;  // several segments, which cut the range
  TestStore store(options);
  for (int i = 0; i < 3000; i += 3) ASSERT_TRUE(store->Put(IngestedKey(i), "old").ok());
  auto before = store->GetSnapshot();
  const IngestOptions replace{.replace = IngestRange{IngestedKey(600), IngestedKey(2400)}};
  EXPECT_TRUE(absl::IsInvalidArgument(Begin(store, replace)->Add(IngestedKey(2400), "")));
  auto ingest = Begin(store, replace);
  for (int i = 700; i < 2300; i += 2)
    ASSERT_TRUE(ingest->Add(IngestedKey(i), "new" + std::string(100, 'n')).ok());
  CommitOf(*ingest);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(CountedKeys(store), 200u + 800u + 200u);
    EXPECT_EQ(store.Get(IngestedKey(600)), "(missing)");
    EXPECT_EQ(store.Get(IngestedKey(2397)), "(missing)");
    EXPECT_EQ(store.Get(IngestedKey(597)), "old");
    EXPECT_EQ(store.Get(IngestedKey(2400)), "old");
    EXPECT_EQ(store.Get(IngestedKey(702)).substr(0, 3), "new");
    if (i == 0) {
      EXPECT_EQ(store.Get(IngestedKey(702), before.get()), "old");
      EXPECT_EQ(store.Get(IngestedKey(600), before.get()), "old");
      ASSERT_TRUE(store->Compact({}, {}).ok());
      EXPECT_EQ(store.Get(IngestedKey(702), before.get()), "old");
    }
    if (i == 1) {
      before.reset();
      store.Reopen();
    }
  }
  // Without keys, the range goes.
  CommitOf(*Begin(store, {.replace = IngestRange{IngestedKey(600), ""}}));
  EXPECT_EQ(CountedKeys(store), 200u);
}

// A clock mark under a number that the manifest gives to the ingest would be lost by a recovery
// from this manifest, and what somebody saw expire would be back once the machine's clock is set
// back.
TEST(IngestTest, NoClockMarkTakesASequenceOfTheIngestWhileItsManifestIsWritten) {
  // Looks at manifests that the test's own thread writes, which is the one that commits: those of
  // flushes and merges come before and behind the ingest's.
  class LookingFileSystem : public FaultFileSystem {
   public:
    absl::Status Rename(const std::string& from, const std::string& to) override {
      if (std::this_thread::get_id() == test_ && look && from.ends_with("MANIFEST.tmp")) look();
      return FaultFileSystem::Rename(from, to);
    }
    std::function<void()> look;

   private:
    const std::thread::id test_ = std::this_thread::get_id();
  };
  LookingFileSystem files;
  EngineOptions options = testing::TestEngineOptions();
  options.file_system = &files;
  TestStore store(options);
  auto ingest = Begin(store, {.replace = IngestRange{"a", "z"}});
  ASSERT_TRUE(ingest->Add("k", "1").ok());
  int looks = 0;
  files.look = [&] {
    ++looks;
    WriteBatch mark;
    mark.MarkClock(1000);
    const absl::Status marked = store->Submit({.waits_for_exclusive_write = false}, &mark).status();
    EXPECT_TRUE(absl::IsCancelled(marked)) << marked;
  };
  CommitOf(*ingest);
  files.look = nullptr;
  EXPECT_GE(looks, 1);
  EXPECT_EQ(store.Scan(), "k=1 ");
}

TEST(IngestTest, AConditionSeesIt) {
  TestStore store;
  ASSERT_TRUE(store->Put("k", "1").ok());
  std::string value;
  const absl::StatusOr<ReadResult> read = store->Get({}, "k", &value);
  const SequenceNumber at = read->read_sequence;
  auto ingest = Begin(store);
  ASSERT_TRUE(ingest->Add("k", "2").ok());
  CommitOf(*ingest);
  WriteBatch batch;
  batch.RequireUnchanged("k", *read);
  batch.Put("k", "3");
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
  batch.Clear();
  batch.RequireRangeUnchanged("a", "z", at);
  batch.Put("k", "3");
  EXPECT_TRUE(absl::IsAborted(store->Write({}, &batch).status()));
  EXPECT_EQ(store.Get("k"), "2");
}

TEST(IngestTest, ItEndsWithWhatItsNamespaceHeld) {
  TestStore store;
  WriteBatch batch;
  batch.CreateNamespace({.id = 3});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  auto ingest = Begin(store, {.space = 3});
  ASSERT_TRUE(ingest->Add("k", "v").ok());
  batch.Clear();
  batch.ClearNamespace(3);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(ingest->Commit().status()));
  batch.Clear();
  batch.DropNamespace(3);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  EXPECT_FALSE(ingest->Commit().ok());
  EXPECT_FALSE(BeginIngest(&*store, {.space = 3}).ok());
  ingest.reset();
  ASSERT_TRUE(store->Flush().ok());
  EXPECT_EQ(SegmentFilesOf(store), 0);
}

TEST(IngestTest, AQuotaHoldsAtTheCommit) {
  TestStore store;
  WriteBatch batch;
  batch.CreateNamespace({.id = 3, .options = {.max_keys = 10}});
  for (int i = 0; i < 5; ++i) batch.Put(IngestedKey(i), "old", 3);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  auto ingest = Begin(store, {.space = 3});
  for (int i = 100; i < 106; ++i) ASSERT_TRUE(ingest->Add(IngestedKey(i), "new").ok());
  EXPECT_TRUE(IsNamespaceFull(ingest->Commit().status()));
  batch.Clear();
  batch.Delete(IngestedKey(0), 3);
  ASSERT_TRUE(store->Write({}, &batch).ok());
  CommitOf(*ingest);
  EXPECT_EQ(store->Count({.space = 3}, {}, {})->keys, 10u);
  batch.Clear();
  batch.Put("one more", "", 3);
  EXPECT_TRUE(IsNamespaceFull(store->Write({}, &batch).status()));
  auto replacing = Begin(store, {.space = 3, .replace = IngestRange{}});
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(replacing->Add(IngestedKey(i), "whole").ok());
  CommitOf(*replacing);
  EXPECT_EQ(store->Count({.space = 3}, {}, {})->keys, 10u);

  store->SetDataLimit(1000);
  auto large = Begin(store);
  ASSERT_TRUE(large->Add("large", std::string(2000, 'x')).ok());
  EXPECT_TRUE(IsStoreFull(large->Commit().status()));
  store->SetDataLimit(100'000);
  CommitOf(*large);
  store->SetDataLimit(1000);
  EXPECT_FALSE(store->Put("small", "x").ok()) << "the limit counts what was ingested";
}

TEST(IngestTest, AQuotaCountsTheBytesThatWereIngestedOnce) {
  TestStore store;
  WriteBatch batch;
  batch.CreateNamespace({.id = 3, .options = {.max_bytes = 2000}});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  const std::string value(199 - IngestedKey(0).size(), 'v');
  const auto ingest_ten = [&](const IngestOptions& options) {
    auto ingest = Begin(store, options);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(ingest->Add(IngestedKey(i), value).ok());
    return ingest;
  };
  CommitOf(*ingest_ten({.space = 3}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(store->Count({.space = 3}, {}, {})->bytes, 1990u);
    batch.Clear();
    batch.Put("eleven", "bytes", 3);
    EXPECT_TRUE(IsNamespaceFull(store->Write({}, &batch).status()));
    batch.Clear();
    batch.Put("ten", "bytes..", 3);
    batch.Delete("ten", 3);
    EXPECT_TRUE(store->Write({}, &batch).ok());
    if (i == 0) CommitOf(*ingest_ten({.space = 3, .replace = IngestRange{}}));
    if (i == 1) store.Reopen();
  }
  // One that does not fit loses nothing, neither of itself nor of the namespace.
  auto again = ingest_ten({.space = 3});
  EXPECT_TRUE(IsNamespaceFull(again->Commit().status()));
  EXPECT_EQ(again->progress().keys, 10u);
  EXPECT_EQ(store->Count({.space = 3}, {}, {})->bytes, 1990u);
  batch.Clear();
  batch.AlterNamespace({.id = 3, .options = {.max_bytes = 4000}});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  CommitOf(*again);
  EXPECT_EQ(store->Count({.space = 3}, {}, {})->bytes, 1990u);
}

TEST(IngestTest, WhatWasNotCommittedIsGoneAfterAnOpening) {
  TestStore store;
  {
    auto ingest = Begin(store);
    ASSERT_TRUE(ingest->Add("a", "1").ok());
  }
  EXPECT_EQ(SegmentFilesOf(store), 0);
  const std::string orphan = store.directory.path() + "/000099.seg";
  { ASSERT_NE(fopen(orphan.c_str(), "w"), nullptr); }
  store.Reopen();
  EXPECT_EQ(SegmentFilesOf(store), 0);
}

TEST(IngestTest, AMergeWritesNothingOfWhatOverlapsNothing) {
  EngineOptions options = testing::TestEngineOptions();
  options.segment_size = 64u << 10;
  options.write_buffer_size = 16u << 10;
  options.compaction_picker = LazyLevelingPicker();
  TestStore store(options);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(store->Put(fmt::format("a{}", i), std::string(100, 'x')).ok());
    ASSERT_TRUE(store->Flush().ok());
  }
  ASSERT_TRUE(store->Compact({}, {}).ok());
  const uint64_t log_before = store.Statistic("log_bytes_appended");
  const uint64_t merged_before = store.Statistic("compacted_bytes");
  auto ingest = Begin(store);
  for (int i = 0; i < 10000; ++i)
    ASSERT_TRUE(ingest->Add(IngestedKey(i), std::string(100, 'v')).ok());
  CommitOf(*ingest);
  EXPECT_LT(store.Statistic("log_bytes_appended"), log_before + 10'000);
  EXPECT_TRUE(Eventually([&] {
    const TreeSurvey survey = dynamic_cast<const SurveyedStore&>(*store).SurveyTree(1000);
    return !survey.levels.empty() && survey.levels.front().runs.empty();
  })) << "it moves to the last level";
  EXPECT_EQ(store.Statistic("compacted_bytes"), merged_before);
  EXPECT_EQ(CountedKeys(store), 10004u);
  store.Reopen();
  EXPECT_EQ(store.Get(IngestedKey(77)), std::string(100, 'v'));
}

TEST(IngestTest, ReadersSeeTheOldSetOrTheNewOne) {
  EngineOptions options = testing::TestEngineOptions();
  options.sync = Durability::kNone;
  options.segment_size = 32u << 10;
  TestStore store(options);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) EXPECT_TRUE(store->Put(fmt::format("w{}", i % 50), "x").ok());
  });
  std::thread reader([&] {
    while (!stop) {
      const auto snapshot = store->GetSnapshot();
      const auto iterator = store->NewIterator({.snapshot = snapshot.get()}, "key", "kez", nullptr);
      std::string first;
      int keys = 0;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++keys) {
        if (keys == 0) first = std::string(iterator->value());
        EXPECT_EQ(iterator->value(), first);
      }
      EXPECT_TRUE(iterator->status().ok()) << iterator->status();
      if (keys != 0) EXPECT_EQ(fmt::to_string(keys), first);
    }
  });
  for (int round = 0; round < 20; ++round) {
    const int keys = 500 + round * 17;
    auto ingest = Begin(store, {.replace = IngestRange{"key", "kez"}});
    for (int i = 0; i < keys; ++i)
      ASSERT_TRUE(ingest->Add(IngestedKey(i), fmt::to_string(keys)).ok());
    CommitOf(*ingest);
    EXPECT_EQ(store->Count({}, "key", "kez")->keys, static_cast<uint64_t>(keys));
  }
  stop = true;
  writer.join();
  reader.join();
}

// Each operation of the disk fails once, wherever the ingest is by then.
class IngestFaultTest : public ::testing::TestWithParam<FileOperation> {};

TEST_P(IngestFaultTest, AllOfItOrNothingAndNoLaterWriteIsLost) {
  for (uint64_t nth = 1; nth < 40; ++nth) {
    FaultFileSystem file_system;
    EngineOptions options = testing::TestEngineOptions();
    options.file_system = &file_system;
    options.segment_size = 8u << 10;
    TestStore store(options);
    ASSERT_TRUE(store->Put("key000000", "old").ok());
    file_system.Fail(GetParam(), nth, absl::InternalError("the device says no"), 1, "");
    auto ingest = BeginIngest(&*store, {.replace = IngestRange{"key", "kez"}});
    absl::Status status = ingest.status();
    for (int i = 0; i < 300 && status.ok(); ++i)
      status = (*ingest)->Add(IngestedKey(i), "new" + std::string(50, 'n'));
    absl::StatusOr<CommitResult> committed = absl::CancelledError("");
    if (status.ok()) committed = (*ingest)->Commit();
    const bool written = store->Put("later", "x").ok();
    ingest = absl::CancelledError("");
    if (committed.ok()) {
      EXPECT_EQ(store.Get(IngestedKey(299)).substr(0, 3), "new");
    }
    file_system.ClearFaults();
    for (int i = 0; i < 2; ++i) {
      store.Open();  // without a clean end
      if (written) {
        EXPECT_EQ(store.Get("later"), "x") << nth;
      }
      const bool is_new = store.Get(IngestedKey(299)) != "(missing)";
      if (committed.ok()) {
        EXPECT_TRUE(is_new) << nth;
      }
      if (!status.ok()) {
        EXPECT_FALSE(is_new) << nth << ": " << status;
      }
      EXPECT_EQ(store->Count({}, "key", "kez")->keys, is_new ? 300u : 1u) << nth;
      EXPECT_EQ(store.Get("key000000").substr(0, 3), is_new ? "new" : "old") << nth;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, IngestFaultTest,
                         ::testing::Values(FileOperation::kCreate, FileOperation::kWrite,
                                           FileOperation::kSync, FileOperation::kRename,
                                           FileOperation::kSyncDirectory, FileOperation::kOpen));

}  // namespace
}  // namespace varve
