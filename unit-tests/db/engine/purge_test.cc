// After a purge no file of the store holds the key's values or its name, and everything else is as
// it was.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "db/engine/flusher.h"
#include "db/engine/purger.h"
#include "fmt/format.h"
#include "unit-tests/db/engine/engine_parts.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/files_with.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/compaction_filter.h"
#include "varve/compaction_picker.h"
#include "varve/ingest.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

using testing::EngineParts;
using testing::Eventually;
using testing::FaultFileSystem;
using testing::FileOperation;
using testing::FilesWith;
using testing::ManualClock;
using testing::TestStore;

constexpr HistoryLimits kHistoryOfADay{.time_ms = 86'400'000};
constexpr char kKey[] = "the-purged-key";
constexpr char kSecret[] = "a-secret-of-somebody";

EngineOptions OptionsToPurge(const HistoryLimits& limits = {}) {
  EngineOptions options;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 32u << 10;
  options.log_file_size = 64u << 10;
  options.runs_per_level = 3;
  options.history = limits;
  return options;
}

std::string Secret(size_t padding, int version) {
  return std::string(padding, 'p') + kSecret + fmt::to_string(version);
}

class PurgeTest : public ::testing::Test {
 protected:
  explicit PurgeTest(const EngineOptions& options = OptionsToPurge()) : store_(options) {}

  void Put(std::string_view key, std::string_view value, NamespaceId space = kDefaultNamespace,
           uint64_t expiry_ms = kNoExpiry) {
    WriteBatch batch;
    batch.Put(key, value, space, expiry_ms);
    Commit(&batch);
  }
  void Commit(WriteBatch* batch) {
    const absl::StatusOr<CommitResult> committed = store_->Write({}, batch);
    ASSERT_TRUE(committed.ok()) << committed.status();
    last_ = committed->sequence;
  }
  void Delete(std::string_view key) {
    WriteBatch batch;
    batch.Delete(key);
    Commit(&batch);
  }
  void Flush() {
    const absl::Status flushed = store_->Flush();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }
  // Puts keys around the purged one, whose values say `round`.
  void PutOthers(int round, size_t size = 40) {
    WriteBatch batch;
    for (int i = 0; i < 100; ++i)
      batch.Put(fmt::format("{}{:03}", i % 2 == 0 ? "a" : "z", i),
                std::string(size, 'o') + fmt::to_string(round));
    Commit(&batch);
  }
  void ExpectOthers(int round, size_t size = 40) {
    for (int i = 0; i < 100; ++i) {
      ASSERT_EQ(store_.Get(fmt::format("{}{:03}", i % 2 == 0 ? "a" : "z", i)),
                std::string(size, 'o') + fmt::to_string(round))
          << i;
    }
  }
  PurgeResult Purge(NamespaceId space = kDefaultNamespace) {
    const absl::StatusOr<PurgeResult> purged = store_->Purge(space, kKey);
    EXPECT_TRUE(purged.ok()) << purged.status();
    return purged.ok() ? *purged : PurgeResult{};
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
    EXPECT_EQ(FilesWith(store_.directory.path(), kKey), "");
  }
  void ExpectSomethingThere() {
    ASSERT_NE(FilesWith(store_.directory.path(), kSecret), "");
    ASSERT_NE(FilesWith(store_.directory.path(), kKey), "");
  }

  TestStore store_;
  SequenceNumber last_ = kNoSequence;  // that was written
};

TEST_F(PurgeTest, VersionsInSeveralRunsAndInTheLogGo) {
  for (int round = 0; round < 5; ++round) {
    PutOthers(round);
    Put(kKey, Secret(0, round));
    if (round == 2) Delete(kKey);
    if (round < 4) Flush();
  }
  ExpectSomethingThere();
  const PurgeResult purged = Purge();
  EXPECT_TRUE(purged.found);
  EXPECT_TRUE(purged.existed);
  ExpectNothingLeft();
  EXPECT_EQ(store_.Get(kKey), "(missing)");
  ExpectOthers(4);
  store_.Reopen();
  EXPECT_EQ(store_.Get(kKey), "(missing)");
  ExpectOthers(4);
  ExpectNothingLeft();
  EXPECT_EQ(store_->Count({}, {}, {})->keys, 100u);
}

TEST_F(PurgeTest, TellsWhetherThereWasAnything) {
  EXPECT_FALSE(Purge().found);
  Put(kKey, Secret(0, 1));
  Flush();
  Put("other", "x");  // what lies above keeps the tombstone
  Delete(kKey);
  PurgeResult purged = Purge();
  EXPECT_TRUE(purged.found);
  EXPECT_FALSE(purged.existed);
  ExpectNothingLeft();
  purged = Purge();
  EXPECT_FALSE(purged.found);
  EXPECT_FALSE(purged.existed);
  EXPECT_EQ(store_->Purge(99, kKey).status(), NoSuchNamespace(99));
  Put(kKey, "again");
  EXPECT_EQ(store_.Get(kKey), "again");
  Flush();
  EXPECT_EQ(store_.Get(kKey), "again");
  EXPECT_TRUE(Purge().existed);
  EXPECT_EQ(FilesWith(store_.directory.path(), kKey), "");
}

TEST_F(PurgeTest, LargeValuesGoAndThoseBesideThemStay) {
  for (int round = 0; round < 4; ++round) {
    PutOthers(round, 1500);
    Put(kKey, Secret(3000, round));
    if (round % 2 == 1) Put(std::string(kKey) + "-longer", std::string(2000, 'l'));
    Flush();
  }
  ASSERT_NE(store_.Statistic("value_files"), 0u);
  ExpectSomethingThere();
  EXPECT_TRUE(Purge().existed);
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  ExpectOthers(3, 1500);
  EXPECT_EQ(store_.Get(std::string(kKey) + "-longer"), std::string(2000, 'l'));
  store_.Reopen();
  ExpectOthers(3, 1500);
  EXPECT_EQ(store_.Get(kKey), "(missing)");
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
}

TEST_F(PurgeTest, OldBytesInRecycledLogFilesGo) {
  Put(kKey, Secret(0, 1));
  for (int round = 0; store_.Statistic("log_files_recycled") < 3; ++round) {
    ASSERT_LT(round, 1000);
    PutOthers(round, 500);
    Put(kKey, Secret(0, round));
  }
  PutOthers(7);
  ExpectSomethingThere();
  Purge();
  ExpectNothingLeft();
  ExpectOthers(7);
  // The log recycles its files as before.
  const uint64_t recycled = store_.Statistic("log_files_recycled");
  for (int round = 0; store_.Statistic("log_files_recycled") == recycled; ++round) {
    ASSERT_LT(round, 1000);
    PutOthers(round, 500);
  }
}

TEST_F(PurgeTest, EntriesOfTheExpiryIndexGo) {
  const uint64_t now = store_->NowMillis();
  for (int round = 1; round < 4; ++round) {
    PutOthers(round);
    Put(kKey, Secret(0, round), kDefaultNamespace, now + 1'000'000u * round);
    Put("another", "x", kDefaultNamespace, now + 1'000'000u * round);
    Flush();
  }
  Put(kKey, "lasts");
  Flush();
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
  EXPECT_EQ(store_.Get("another"), "x");
}

TEST_F(PurgeTest, EmptiedNamespacesGo) {
  Put(kKey, Secret(0, 1));
  Put("other", "x");
  Flush();
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  Commit(&batch);
  PutOthers(1);
  Purge();
  ExpectNothingLeft();
  ExpectOthers(1);
}

TEST_F(PurgeTest, OtherNamespacesKeepTheirKey) {
  WriteBatch batch;
  batch.CreateNamespace({.id = 1});
  Commit(&batch);
  Put(kKey, Secret(0, 1));
  Put(kKey, "of another", 1);
  Flush();
  Put(kKey, Secret(2000, 1));
  Put(kKey, "of another still", 1);
  EXPECT_TRUE(Purge().existed);
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  std::string value;
  ASSERT_TRUE(store_->Get({.space = 1}, kKey, &value)->found);
  EXPECT_EQ(value, "of another still");
}

TEST_F(PurgeTest, ACloneThatHoldsTheKeyIsNamed) {
  WriteBatch batch;
  constexpr NamespaceId kCloned = kFirstNamedNamespace;
  Put(kKey, Secret(0, 1));
  batch.CloneNamespace(kDefaultNamespace, {.id = kCloned, .name = "the-clone"});
  Commit(&batch);
  absl::StatusOr<PurgeResult> purged = store_->Purge(kDefaultNamespace, kKey);
  EXPECT_TRUE(absl::IsFailedPrecondition(purged.status())) << purged.status();
  EXPECT_NE(purged.status().message().find("'the-clone'"), std::string::npos) << purged.status();
  EXPECT_EQ(store_.Get(kKey), Secret(0, 1)) << "as it was";
  // The other way round.
  purged = store_->Purge(kCloned, kKey);
  EXPECT_TRUE(absl::IsFailedPrecondition(purged.status())) << purged.status();
  // A key that is the clone's own, and one that came after the clone.
  Put("own", Secret(0, 2), kCloned);
  purged = store_->Purge(kCloned, "own");
  ASSERT_TRUE(purged.ok()) << purged.status();
  EXPECT_TRUE(purged->existed);
  EXPECT_EQ(FilesWith(store_.directory.path(), Secret(0, 2)), "");
  batch.DropNamespace(kCloned);
  Commit(&batch);
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
}

TEST_F(PurgeTest, ASnapshotIsWaitedForAndThenNamed) {
  Put(kKey, Secret(0, 1));
  auto snapshot = store_->GetSnapshot();
  const absl::StatusOr<PurgeResult> purged = store_->Purge(kDefaultNamespace, kKey);
  EXPECT_TRUE(absl::IsDeadlineExceeded(purged.status())) << purged.status();
  EXPECT_EQ(store_.Get(kKey), "(missing)");
  EXPECT_EQ(store_.Get(kKey, snapshot.get()), Secret(0, 1));
  snapshot.reset();
  EXPECT_TRUE(Purge().found);
  ExpectNothingLeft();
}

TEST_F(PurgeTest, AFileThatIsReadIsNamed) {
  Put(kKey, Secret(0, 1));
  Flush();
  auto iterator = store_->NewIterator({}, {}, {}, nullptr);
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  const absl::StatusOr<PurgeResult> purged = store_->Purge(kDefaultNamespace, kKey);
  EXPECT_TRUE(absl::IsDeadlineExceeded(purged.status())) << purged.status();
  EXPECT_EQ(iterator->value(), Secret(0, 1));
  iterator.reset();
  EXPECT_EQ(store_.Get(kKey), "(missing)");
  Purge();
  ExpectNothingLeft();
}

// --- Failures ------------------------------------------------------------------------------------

// The n-th call of an operation fails, and all of its kind that follow.
class FailingPurgeTest : public ::testing::TestWithParam<FileOperation> {
 protected:
  static void Fill(TestStore* store) {
    for (int round = 0; round < 3; ++round) {
      WriteBatch batch;
      for (int i = 0; i < 20; ++i)
        batch.Put(fmt::format("key{:02}", i), std::string(round == 1 ? 1500 : 30, 'o'));
      batch.Put(kKey, Secret(round == 1 ? 1500 : 0, round));
      ASSERT_TRUE((*store)->Write({}, &batch).ok());
      ASSERT_TRUE((*store)->Flush().ok());
    }
  }
  static void ExpectOthers(TestStore* store) {
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(store->Get(fmt::format("key{:02}", i)), std::string(30, 'o')) << i;
  }
};

TEST_P(FailingPurgeTest, TheKeyStaysHiddenAndIsPurgedWhenAskedAgain) {
  bool failed = true;
  for (uint64_t nth = 1; failed && !HasFailure(); nth += nth < 8 ? 1 : nth / 4) {
    SCOPED_TRACE(nth);
    FaultFileSystem files;
    EngineOptions options = OptionsToPurge();
    options.file_system = &files;
    TestStore store(options);
    Fill(&store);
    files.Fail(GetParam(), nth, absl::UnavailableError("a test's fault"));
    const absl::StatusOr<PurgeResult> purged = store->Purge(kDefaultNamespace, kKey);
    failed = files.failed_calls() != 0;
    EXPECT_TRUE(failed || purged.ok()) << purged.status();
    // Unless the purge came to no write at all, the key is hidden.
    const bool hidden = store.Get(kKey) == "(missing)";
    EXPECT_TRUE(hidden || !purged.ok());
    files.ClearFaults();
    // As after a kill: what lies in the directory now is opened.
    const testing::TempDir copy;
    std::filesystem::remove_all(copy.path());
    files.StandStill([&] {
      std::filesystem::copy(store.directory.path(), copy.path(),
                            std::filesystem::copy_options::recursive);
    });
    EngineOptions plain = OptionsToPurge();
    const auto opened = StorageEngine::Open(copy.path(), plain);
    ASSERT_TRUE(opened.ok()) << opened.status();
    std::string value;
    const absl::StatusOr<ReadResult> read = (*opened)->Get({}, kKey, &value);
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(!read->found || !hidden || !(*opened)->log_status().ok());
    const absl::StatusOr<PurgeResult> again = (*opened)->Purge(kDefaultNamespace, kKey);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(FilesWith(copy.path(), kSecret), "");
    EXPECT_EQ(FilesWith(copy.path(), kKey), "");
    ASSERT_TRUE((*opened)->Get({}, "key07", &value)->found);
    EXPECT_EQ(value, std::string(30, 'o'));
    ExpectOthers(&store);
    if (!store->log_status().ok()) continue;
    // Nor does it take a kill. A flush that has failed is tried again after a while.
    absl::StatusOr<PurgeResult> here;
    EXPECT_TRUE(Eventually([&] {
      here = store->Purge(kDefaultNamespace, kKey);
      return here.ok();
    })) << here.status();
    EXPECT_EQ(FilesWith(store.directory.path(), kSecret), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, FailingPurgeTest,
                         ::testing::Values(FileOperation::kCreate, FileOperation::kWrite,
                                           FileOperation::kSync, FileOperation::kRename,
                                           FileOperation::kRead, FileOperation::kList),
                         [](const auto& each) { return std::string(NameOf(each.param)); });

// --- Beside ingests ------------------------------------------------------------------------------

TEST_F(PurgeTest, IngestsUnderWayStayAsTheyAre) {
  Put(kKey, Secret(0, 1));
  absl::StatusOr<std::unique_ptr<Ingest>> committed = BeginIngest(&*store_, {});
  absl::StatusOr<std::unique_ptr<Ingest>> aborted = BeginIngest(&*store_, {});
  ASSERT_TRUE(committed.ok() && aborted.ok());
  // More than one segment each: finished ones, and one that is being written.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE((*committed)->Add(fmt::format("a{:03}", i), std::string(1000, 'c')).ok());
    ASSERT_TRUE((*aborted)->Add(fmt::format("a{:03}", i), std::string(1000, 'd')).ok());
  }
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
  ASSERT_TRUE((*committed)->Commit().ok());
  Put(kKey, Secret(0, 2));
  EXPECT_TRUE(Purge().existed) << "with one that was committed and is still there";
  committed->reset();
  aborted->reset();
  Put(kKey, Secret(0, 3));
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
  EXPECT_EQ(store_.Get("a099"), std::string(1000, 'c'));
  store_.Reopen();
  EXPECT_EQ(store_.Get("a000"), std::string(1000, 'c'));
}

TEST_F(PurgeTest, AnIngestBringsThePurgedKeyAsAnyLaterWrite) {
  Put(kKey, Secret(0, 1));
  absl::StatusOr<std::unique_ptr<Ingest>> ingest = BeginIngest(&*store_, {});
  ASSERT_TRUE(ingest.ok()) << ingest.status();
  ASSERT_TRUE((*ingest)->Add(kKey, "of the ingest").ok());
  EXPECT_TRUE(Purge().existed);
  EXPECT_EQ(store_.Get(kKey), "(missing)");
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  ASSERT_TRUE((*ingest)->Commit().ok());
  EXPECT_EQ(store_.Get(kKey), "of the ingest");
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
}

// --- With history --------------------------------------------------------------------------------

class PurgedHistoryTest : public PurgeTest {
 protected:
  PurgedHistoryTest() : PurgeTest(OptionsToPurge(kHistoryOfADay)) {}
};

TEST_F(PurgedHistoryTest, ThePastForgetsTheKeyAlone) {
  std::vector<SequenceNumber> versions;
  for (int round = 0; round < 4; ++round) {
    PutOthers(round);
    Put(kKey, Secret(round % 2 == 0 ? 0 : 2000, round));
    versions.push_back(last_);
    Flush();
  }
  WriteBatch batch;
  batch.ClearNamespace(kDefaultNamespace);
  Commit(&batch);
  Put(kKey, Secret(0, 9));
  PutOthers(9);
  ExpectSomethingThere();
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
  for (const bool reopened : {false, true}) {
    if (reopened) store_.Reopen();
    for (int round = 0; round < 4; ++round) {
      const auto snapshot =
          store_->SnapshotAt(kDefaultNamespace, versions[static_cast<size_t>(round)]);
      ASSERT_TRUE(snapshot.ok()) << snapshot.status();
      EXPECT_EQ(store_.Get(kKey, snapshot->get()), "(missing)");
      EXPECT_EQ(store_.Get("a000", snapshot->get()), std::string(40, 'o') + fmt::to_string(round));
      EXPECT_EQ(store_.Get("z099", snapshot->get()), std::string(40, 'o') + fmt::to_string(round));
    }
    ExpectOthers(9);
  }
  EXPECT_FALSE(Purge().found);
}

TEST_F(PurgedHistoryTest, ADroppedCloneHoldsTheKeyUntilItsHistoryIsEnded) {
  const NamespaceDescription clone{.id = kFirstNamedNamespace, .name = "the-clone"};
  Put(kKey, Secret(0, 1));
  WriteBatch batch;
  batch.CloneNamespace(kDefaultNamespace, clone);
  Commit(&batch);
  batch.DropNamespace(clone.id);
  Commit(&batch);
  const absl::StatusOr<PurgeResult> purged = store_->Purge(kDefaultNamespace, kKey);
  EXPECT_TRUE(absl::IsFailedPrecondition(purged.status())) << purged.status();
  EXPECT_NE(purged.status().message().find("end its history"), std::string::npos)
      << purged.status();
  const std::vector<DroppedNamespace> dropped = *store_->DroppedNamespaces();
  ASSERT_EQ(dropped.size(), 1u);
  batch.CloneNamespaceAt(clone.id, dropped[0].dropped_at - 1, dropped[0].space);
  Commit(&batch);
  NamespaceDescription ended = clone;
  ended.options.history = HistoryLimits();
  batch.AlterNamespace(ended);
  Commit(&batch);
  batch.DropNamespace(clone.id);
  Commit(&batch);
  Flush();
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
}

// A model of the present, of the past, and of what must not be found again.
TEST_F(PurgedHistoryTest, RandomKeysArePurgedBesideRandomWrites) {
  std::mt19937_64 random(20261125);
  std::map<std::string, std::string> now;
  std::map<SequenceNumber, std::map<std::string, std::string>> past;
  int writes = 0;
  for (int step = 0; step < 600 && !HasFailure(); ++step) {
    const std::string key = fmt::format("key{:02}!", random() % 40);
    const uint64_t choice = random() % 100;
    if (choice < 70) {
      const std::string value =
          fmt::format("<{}{}:{}>", std::string(random() % 4 == 0 ? 1500 : 9, 'v'), key, ++writes);
      Put(key, value, kDefaultNamespace,
          random() % 5 == 0 ? store_->NowMillis() + 1'000'000 : kNoExpiry);
      now[key] = value;
    } else if (choice < 85) {
      Delete(key);
      now.erase(key);
    } else if (choice < 88) {
      Flush();
    } else if (choice < 90) {
      ASSERT_TRUE(store_->Compact({}, {}).ok());
    } else if (choice < 92) {
      WriteBatch batch;
      batch.ClearNamespace(kDefaultNamespace);
      Commit(&batch);
      now.clear();
    } else if (choice < 94) {
      store_.Reopen();
    } else {
      const absl::StatusOr<PurgeResult> purged = store_->Purge(kDefaultNamespace, key);
      ASSERT_TRUE(purged.ok()) << purged.status();
      EXPECT_EQ(purged->existed, now.contains(key)) << key;
      EXPECT_EQ(FilesWith(store_.directory.path(), key), "") << key;
      now.erase(key);
      for (auto& [version, contents] : past) contents.erase(key);
    }
    past[last_] = now;
  }
  const auto check = [&](const Snapshot* snapshot,
                         const std::map<std::string, std::string>& wanted) {
    std::map<std::string, std::string> found;
    const auto iterator = store_->NewIterator({.snapshot = snapshot}, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      found.emplace(iterator->key(), iterator->value());
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    EXPECT_EQ(found, wanted);
  };
  check(nullptr, now);
  EXPECT_EQ(store_->Count({}, {}, {})->keys, now.size());
  for (const auto& [version, contents] : past) {
    const auto snapshot = store_->SnapshotAt(kDefaultNamespace, version);
    ASSERT_TRUE(snapshot.ok()) << snapshot.status() << " at " << version;
    check(snapshot->get(), contents);
    if (HasFailure()) return;
  }
}

// --- Beside the threads of the background --------------------------------------------------------

// What happens while the purge goes on: its rewriting comes to the key "trigger" and has a write
// buffer flushed, whose flush comes to the key "gate" and stays there, with a file that is no part
// of the store yet, until the merge thread goes on behind the purge. Then it has many more keys to
// write, and takes its time.
struct Course {
  std::atomic<bool> begins{false};
  std::function<void()> flush;
  absl::Notification reached, goes_on;
};

class GateFilter final : public CompactionFilter {
 public:
  explicit GateFilter(Course* course) : course_(*course) {}
  bool Drop(const FilteredRecord& record) const override {
    if (record.key == "trigger" && course_.begins.exchange(false)) {
      course_.flush();
      course_.reached.WaitForNotification();
    }
    if (record.key == "gate" && !course_.reached.HasBeenNotified()) {
      course_.reached.Notify();
      course_.goes_on.WaitForNotification();
    }
    if (record.key.starts_with("later")) std::this_thread::yield();
    return false;
  }

 private:
  Course& course_;
};

class GatePicker final : public CompactionPicker {
 public:
  explicit GatePicker(Course* course) : course_(*course) {}
  std::optional<CompactionPick> Pick(const TreeShape&, const EngineOptions&, bool) const override {
    if (course_.reached.HasBeenNotified() && !course_.goes_on.HasBeenNotified())
      course_.goes_on.Notify();
    return std::nullopt;
  }
  double Debt(const TreeShape&, const EngineOptions&) const override { return 0; }

 private:
  Course& course_;
};

class PurgerTest : public ::testing::Test {
 protected:
  PurgerTest() {
    parts_.OnInstalled([this](bool flushed) { compactor_.NoteInstalled(flushed); });
    flusher_.Start();
    compactor_.Start();
    purger_.set_patience({.time = absl::ZeroDuration(), .looks = 0});
    course_.flush = [this] {
      WriteBatch batch;
      batch.Put("a", "1");
      batch.Put("gate", "1");
      for (int i = 0; i < 500; ++i) batch.Put("later" + std::to_string(i), "1");
      ASSERT_TRUE(parts_.Submit(&batch).ok());
      parts_.Rotate();
    };
  }
  ~PurgerTest() override {
    compactor_.Stop();
    parts_.OnInstalled(nullptr);
    flusher_.Stop();
  }
  void PutAndFlush() {
    for (const char* key : {"purged", "trigger"}) ASSERT_TRUE(parts_.Put(key, "secret").ok());
    const absl::Status flushed = parts_.pipeline().FlushAll();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }

  Course course_;
  EngineParts parts_{{.compaction_filter = std::make_shared<GateFilter>(&course_)}};
  Flusher flusher_{parts_.Parts(), &parts_.version_set(), &parts_.pipeline(), &parts_.sweeper()};
  Compactor compactor_{parts_.Parts(), std::make_shared<GatePicker>(&course_),
                       &parts_.version_set(), &parts_.pipeline()};
  Purger purger_{parts_.Parts(), &parts_.version_set(), &parts_.pipeline(), &compactor_,
                 [this](const WriteOptions&, WriteBatch* batch) -> absl::StatusOr<CommitResult> {
                   absl::StatusOr<CommitResult> result = parts_.Submit(batch);
                   if (result.ok()) {
                     const absl::Status synced = parts_.log()->Sync();
                     if (!synced.ok()) return synced;
                   }
                   return result;
                 }};
};

TEST_F(PurgerTest, AFlushThatIsUnderWayIsAwaitedWithoutPatience) {
  PutAndFlush();
  course_.begins = true;
  const absl::StatusOr<PurgeResult> purged = purger_.Purge(kDefaultNamespace, "purged", nullptr);
  ASSERT_TRUE(purged.ok()) << purged.status();
  EXPECT_TRUE(purged->existed);
  EXPECT_TRUE(course_.goes_on.HasBeenNotified());
  EXPECT_EQ(parts_.Get("purged"), "-");
  EXPECT_EQ(parts_.Get("gate"), "1");
  EXPECT_EQ(parts_.Get("trigger"), "secret");
}

TEST_F(PurgerTest, WhatAReaderHoldsIsNamedOncePatienceIsOver) {
  PutAndFlush();
  const std::shared_ptr<const Version> held = parts_.versions().PresentVersion();
  const absl::StatusOr<PurgeResult> purged = purger_.Purge(kDefaultNamespace, "purged", nullptr);
  EXPECT_TRUE(absl::IsDeadlineExceeded(purged.status())) << purged.status();
  EXPECT_EQ(parts_.Get("purged"), "-");
}

}  // namespace
}  // namespace varve
