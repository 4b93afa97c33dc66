// Checkpoints: a directory that is a store as of one version, made beside writes and merges.
#include "varve/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "fmt/format.h"
#include "tools/verify.h"
#include "unit-tests/testing/eager_picker.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::FileOperation;
using testing::TempDir;
using testing::TestStore;

using Contents = std::map<std::string, std::string>;

EngineOptions OptionsToCopy() {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 32u << 10;
  options.log_file_size = 64u << 10;
  options.value_separation_size = 1024;
  options.compaction_picker = std::make_shared<testing::EagerPicker>();
  return options;
}

Contents ContentsOf(StorageEngine& store, const Snapshot* snapshot = nullptr,
                    NamespaceId space = kDefaultNamespace) {
  Contents contents;
  const auto iterator = store.NewIterator({.snapshot = snapshot, .space = space}, {}, {}, nullptr);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
    contents[std::string(iterator->key())] = iterator->value();
  EXPECT_TRUE(iterator->status().ok()) << iterator->status();
  return contents;
}

// Opens the checkpoint itself; the test that made it does not use it any more as one.
std::unique_ptr<StorageEngine> Open(const std::string& directory, EngineOptions options) {
  options.file_system = PosixFileSystem();
  auto opened = StorageEngine::Open(directory, options);
  EXPECT_TRUE(opened.ok()) << opened.status();
  return opened.ok() ? *std::move(opened) : nullptr;
}

void ExpectWell(const std::string& directory) {
  const absl::StatusOr<VerifyReport> report =
      VerifyStore(PosixFileSystem(), directory, [](uint64_t, uint64_t) {});
  ASSERT_TRUE(report.ok()) << report.status();
  for (const StoreFinding& found : report->findings)
    ADD_FAILURE() << found.file << ": " << found.what;
}

std::vector<std::string> NamesIn(const std::string& directory) {
  return PosixFileSystem()->List(directory).value_or(std::vector<std::string>());
}

// Values from some bytes to some thousand, so that some of them lie in value files.
std::string ValueOf(int i) { return fmt::format("{}:", i) + std::string(i * 37 % 3000, 'v'); }

void PutSome(StorageEngine& store, int from, int to) {
  for (int i = from; i < to; ++i)
    ASSERT_TRUE(store.Put(fmt::format("key{:04}", i * 7919 % 500), ValueOf(i)).ok());
}

TEST(CheckpointTest, ItHoldsEverythingUpToItsVersionAndNothingBehind) {
  TestStore store(OptionsToCopy());
  PutSome(*store, 0, 1500);
  const Contents before = ContentsOf(*store);
  const std::string directory = store.directory.File("checkpoint");
  const absl::StatusOr<Checkpoint> made = CreateCheckpoint(&*store, directory);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_GT(made->instant_ms, 0u);
  PutSome(*store, 1500, 3000);
  ASSERT_TRUE(store->Compact({}, {}).ok());
  ExpectWell(directory);

  std::vector<std::string> names;
  for (const CheckpointFile& file : made->files) {
    names.push_back(file.name);
    EXPECT_EQ(std::filesystem::file_size(directory + "/" + file.name), file.size) << file.name;
  }
  EXPECT_EQ(names.back(), "MANIFEST");
  names.push_back("MANIFEST.copy");
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, NamesIn(directory));
  EXPECT_TRUE(std::any_of(names.begin(), names.end(),
                          [](const std::string& name) { return name.ends_with(".val"); }));

  const auto copy = Open(directory, OptionsToCopy());
  EXPECT_EQ(ContentsOf(*copy), before);
  ASSERT_TRUE(copy->Put("more", "1").ok());
  EXPECT_EQ(store.Get("more"), "(missing)");
}

TEST(CheckpointTest, ItHoldsNamespacesClonesAndOldVersions) {
  EngineOptions options = OptionsToCopy();
  options.history = {.time_ms = 86'400'000};
  TestStore store(options);
  PutSome(*store, 0, 300);
  const SequenceNumber old = store->durable_sequence();
  const Contents then = ContentsOf(*store, store->SnapshotAt(0, old, {}).value().get());
  WriteBatch batch;
  batch.CloneNamespace(
      kDefaultNamespace,
      {.id = kFirstNamedNamespace, .name = "clone", .options = {.max_keys = 9999}});
  ASSERT_TRUE(store->Write({}, &batch).ok());
  PutSome(*store, 300, 900);
  const Contents now = ContentsOf(*store),
                 clone = ContentsOf(*store, nullptr, kFirstNamedNamespace);
  const std::string directory = store.directory.File("checkpoint");
  ASSERT_TRUE(CreateCheckpoint(&*store, directory).ok());
  const auto copy = Open(directory, options);
  EXPECT_EQ(ContentsOf(*copy), now);
  EXPECT_EQ(ContentsOf(*copy, nullptr, kFirstNamedNamespace), clone);
  EXPECT_EQ(copy->Namespaces()->Find("clone")->options.max_keys, 9999u);
  const auto snapshot = copy->SnapshotAt(0, old, {});
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_EQ(ContentsOf(*copy, snapshot->get()), then);
}

// Each writer counts up in a key of its own, so that a checkpoint that lost a write in the middle,
// or held a later one, would differ from the store as of its version.
TEST(CheckpointTest, ItIsTheStoreAsOfItsVersionBesideWritersAndMerges) {
  EngineOptions options = OptionsToCopy();
  options.history = {.time_ms = 86'400'000};
  TestStore store(options);
  std::atomic<bool> stop{false};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; !stop.load(); ++i) {
        WriteBatch batch;
        batch.Put(fmt::format("counter{}", writer), ValueOf(i));
        batch.Put(fmt::format("key{:04}", i % 100), ValueOf(i + writer));
        ASSERT_TRUE(store->Write({}, &batch).ok());
      }
    });
  }
  const absl::Cleanup join = [&] {
    stop.store(true);
    for (std::thread& writer : writers) writer.join();
  };
  for (int round = 0; round < 8; ++round) {
    const std::string directory = store.directory.File("checkpoint");
    const absl::StatusOr<Checkpoint> made = CreateCheckpoint(&*store, directory);
    ASSERT_TRUE(made.ok()) << made.status();
    const auto snapshot = store->SnapshotAt(0, made->version, {});
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();
    ExpectWell(directory);
    EXPECT_EQ(ContentsOf(*Open(directory, options)), ContentsOf(*store, snapshot->get()));
    std::filesystem::remove_all(directory);
  }
}

// The file remover cuts large files down in steps, which other names of theirs must not see.
TEST(CheckpointTest, FilesThatTheStoreRemovesStayWhole) {
  EngineOptions options = OptionsToCopy();
  options.write_buffer_size = options.segment_size = 16u << 20;
  TestStore store(options);
  for (int i = 0; i < 9000; ++i)
    ASSERT_TRUE(store->Put(fmt::format("key{:06}", i), std::string(900, 'v')).ok());
  const std::string directory = store.directory.File("checkpoint");
  const absl::StatusOr<Checkpoint> made = CreateCheckpoint(&*store, directory);
  ASSERT_TRUE(made.ok()) << made.status();
  const auto is_large = [](const CheckpointFile& file) { return file.size > (4u << 20); };
  EXPECT_TRUE(std::any_of(made->files.begin(), made->files.end(), is_large));
  ASSERT_TRUE(store->DeleteRange("key", "kez").ok());
  ASSERT_TRUE(store->Compact({}, {}).ok());
  store.Close();  // removes what is left to remove
  ExpectWell(directory);
  EXPECT_EQ(ContentsOf(*Open(directory, options)).size(), 9000u);
}

TEST(CheckpointTest, AStoreWithoutWritesHasOne) {
  TestStore store(OptionsToCopy());
  for (int round = 0; round < 3; ++round) {
    const std::string directory = store.directory.File(fmt::format("checkpoint{}", round));
    const absl::StatusOr<Checkpoint> made = CreateCheckpoint(&*store, directory);
    ASSERT_TRUE(made.ok()) << made.status();
    EXPECT_EQ(ContentsOf(*Open(directory, OptionsToCopy())), Contents());
  }
}

TEST(CheckpointTest, TheDirectoryHasToBeEmptyAndTheStoreOpen) {
  TestStore store(OptionsToCopy());
  const std::string directory = store.directory.File("checkpoint");
  std::filesystem::create_directory(directory);
  const std::string foreign = directory + "/foreign";
  ASSERT_TRUE(PosixFileSystem()->OpenForWrite(foreign, /*create=*/true).ok());
  const absl::Status refused = CreateCheckpoint(&*store, directory).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_NE(refused.message().find("not empty"), absl::string_view::npos) << refused;
  EXPECT_TRUE(std::filesystem::exists(foreign));
  std::filesystem::remove(foreign);
  ASSERT_TRUE(store->Close().ok());
  EXPECT_TRUE(absl::IsUnavailable(CreateCheckpoint(&*store, directory).status()));
  EXPECT_EQ(NamesIn(directory), std::vector<std::string>());
}

TEST(CheckpointTest, APowerCutLeavesItOnceItIsMade) {
  testing::SimulatedFileSystem disk;
  ASSERT_TRUE(disk.CreateDirectory("/disk").ok());
  EngineOptions options = OptionsToCopy();
  options.file_system = &disk;
  auto store = StorageEngine::Open("/disk/store", options).value();
  PutSome(*store, 0, 300);
  const Contents before = ContentsOf(*store);
  ASSERT_TRUE(CreateCheckpoint(store.get(), "/disk/store/checkpoint").ok());
  PutSome(*store, 300, 500);
  disk.StopHere();
  store.reset();
  disk.RestorePower();
  const auto copy = StorageEngine::Open("/disk/store/checkpoint", options);
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(ContentsOf(**copy), before);
  EXPECT_TRUE(StorageEngine::Open("/disk/store", options).ok());
}

class FailingCheckpointTest : public ::testing::TestWithParam<FileOperation> {};

TEST_P(FailingCheckpointTest, NothingIsLeftAndTheStoreGoesOn) {
  FaultFileSystem files;
  EngineOptions options = OptionsToCopy();
  options.file_system = &files;
  bool failed = true;
  for (uint64_t nth = 1; failed && !HasFailure(); ++nth) {
    TestStore store(options);
    PutSome(*store, 0, 200);
    const Contents before = ContentsOf(*store);
    const std::string directory = store.directory.File("checkpoint");
    const uint64_t failures = files.failed_calls();
    files.Fail(GetParam(), nth, absl::InternalError("a test's fault"), /*times=*/1, "checkpoint");
    const absl::StatusOr<Checkpoint> made = CreateCheckpoint(&*store, directory);
    failed = files.failed_calls() > failures;
    files.ClearFaults();
    EXPECT_EQ(made.ok(), !failed) << made.status();
    if (failed) EXPECT_EQ(NamesIn(directory), std::vector<std::string>());
    if (!failed) EXPECT_GT(nth, 1u) << "no call was met";
    EXPECT_EQ(ContentsOf(*store), before);
    std::filesystem::remove_all(directory);
    EXPECT_TRUE(CreateCheckpoint(&*store, directory).ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, FailingCheckpointTest,
                         ::testing::Values(FileOperation::kCreate, FileOperation::kWrite,
                                           FileOperation::kSync, FileOperation::kRename,
                                           FileOperation::kLink, FileOperation::kSyncDirectory),
                         [](const auto& info) {
                           std::string name = testing::NameOf(info.param);
                           std::erase(name, ' ');
                           return name;
                         });

}  // namespace
}  // namespace varve
