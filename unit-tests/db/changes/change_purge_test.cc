// A purge takes a key out of retained changes: no file holds it any more, every other change stays
// where it is, and readers and feeds go on as if nothing had happened.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "db/changes/change_file.h"
#include "db/format/file_names.h"
#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/files_with.h"
#include "unit-tests/testing/simulated_file_system.h"
#include "unit-tests/testing/test_store.h"
#include "varve/history_status.h"
#include "varve/ingest.h"

namespace varve {
namespace {

using testing::FaultFileSystem;
using testing::FileOperation;
using testing::FilesWith;
using testing::SimulatedFileSystem;
using testing::TestStore;
using Kind = ChangeOperation::Kind;
using Lines = std::vector<std::string>;

constexpr char kKey[] = "the-purged-key";
constexpr char kSecret[] = "a-secret-of-somebody";

EngineOptions RetainingForADay(FileSystem* file_system = nullptr) {
  EngineOptions options;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 32u << 10;
  options.log_file_size = 64u << 10;
  options.changes.bytes = 1u << 20;  // files of 64 KiB
  options.changes.time_ms = 86'400'000;
  if (file_system != nullptr) options.file_system = file_system;
  return options;
}

ChangeFilter AllNamespaces() {
  ChangeFilter filter;
  filter.space = std::nullopt;
  return filter;
}

// A line for each operation: its version, what it did, and the size of its value.
std::string LineOf(const ChangeOperation& operation) {
  return fmt::format("{} {} {}/{} {}", operation.version, static_cast<int>(operation.kind),
                     operation.space, operation.key, operation.value.size());
}

bool IsOfKey(const std::string& line) { return line.find(kKey) != std::string::npos; }

void AppendLines(const Change& change, Lines* lines) {
  for (const ChangeOperation& operation : change.operations) lines->push_back(LineOf(operation));
}

Lines WithoutKey(Lines lines) {
  std::erase_if(lines, IsOfKey);
  return lines;
}

// Returns what is retained behind the position.
Lines ReadLines(StorageEngine& store, SequenceNumber since = kNoSequence) {
  Lines lines;
  auto changes = store.NewChangeIterator(since, AllNamespaces());
  EXPECT_TRUE(changes.ok()) << changes.status();
  if (!changes.ok()) return lines;
  absl::StatusOr<bool> next = true;
  while (next.ok() && *next) {
    next = (*changes)->Next();
    if (next.ok() && *next) AppendLines((*changes)->change(), &lines);
  }
  EXPECT_TRUE(next.ok()) << next.status();
  return lines;
}

// Fills the store with commits that hold the key alone, with others, and not at all. Returns all
// lines of the feed.
Lines Fill(StorageEngine& store, int commits, size_t value_size = 300) {
  std::mt19937_64 random(7);
  for (int i = 0; i < commits; ++i) {
    WriteBatch batch;
    const uint64_t choice = random() % 6;
    if (choice > 0) batch.Put(fmt::format("a{}", random() % 50), std::string(value_size, 'a'));
    if (choice < 2) batch.Put(kKey, kSecret + std::string(i % 7, 's'));
    if (choice == 2) batch.Delete(kKey);
    if (choice == 3) batch.Put(fmt::format("{}-longer", kKey).substr(4), "b");
    if (choice == 5) batch.Put(fmt::format("z{}", random() % 50), std::string(value_size, 'z'));
    const auto committed = store.Write({}, &batch);
    EXPECT_TRUE(committed.ok()) << committed.status();
    if (i % 90 == 60) EXPECT_TRUE(store.Flush().ok());
  }
  return ReadLines(store);
}

class ChangePurgeTest : public ::testing::Test {
 protected:
  StorageEngine& store() { return *store_; }
  SequenceNumber Write(const std::function<void(WriteBatch*)>& fill) {
    WriteBatch batch;
    fill(&batch);
    const absl::StatusOr<CommitResult> committed = store().Write({}, &batch);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return committed.ok() ? committed->sequence : kNoSequence;
  }
  SequenceNumber Put(const std::string& key, const std::string& value, NamespaceId space = 0) {
    return Write([&](WriteBatch* batch) { batch->Put(key, value, space); });
  }
  PurgeResult Purge(NamespaceId space = kDefaultNamespace, const std::string& key = kKey) {
    const absl::StatusOr<PurgeResult> purged = store().Purge(space, key);
    EXPECT_TRUE(purged.ok()) << purged.status();
    return purged.ok() ? *purged : PurgeResult{};
  }
  void ExpectNothingLeft() {
    EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
    EXPECT_EQ(FilesWith(store_.directory.path(), kKey), "");
  }
  size_t Files() {
    size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(store_.directory.path()))
      count += file.path().extension() == ".chg" ? 1 : 0;
    return count;
  }

  TestStore store_{RetainingForADay()};
};

TEST_F(ChangePurgeTest, NothingOfTheKeyIsLeftAndTheRestStaysWhereItIs) {
  const Lines before = Fill(store(), 700);
  const Lines rest = WithoutKey(before);
  ASSERT_GE(Files(), 3u);
  ASSERT_LT(rest.size() + 100, before.size());
  ASSERT_NE(FilesWith(store_.directory.path(), kSecret).find(".chg"), std::string::npos);
  EXPECT_TRUE(Purge().found);
  ExpectNothingLeft();
  EXPECT_EQ(ReadLines(store()), rest);
  const SequenceNumber last = Put("behind", "x");
  Lines more = rest;
  more.push_back(fmt::format("{} 0 0/behind 1", last));
  EXPECT_EQ(ReadLines(store()), more);
  store_.Open();  // what a crash leaves
  EXPECT_EQ(ReadLines(store()), more);
  ExpectNothingLeft();
  store_.Reopen();
  EXPECT_EQ(ReadLines(store()), more);
  ExpectNothingLeft();
  EXPECT_EQ(store_.Statistic("change_first"), 0u);
  EXPECT_EQ(store_.Statistic("changes_given_up"), 0u);
  EXPECT_FALSE(Purge().found);
}

TEST_F(ChangePurgeTest, WhatIsInMemoryAloneNeverGetsToAFile) {
  Put("a", "1");
  const SequenceNumber with_other = Write([](WriteBatch* batch) {
    batch->Put(kKey, kSecret);
    batch->Put("b", "2");
  });
  EXPECT_TRUE(Purge().existed);
  ExpectNothingLeft();
  const Lines rest = {fmt::format("{} 0 0/a 1", with_other - 2),
                      fmt::format("{} 0 0/b 1", with_other)};
  EXPECT_EQ(ReadLines(store()), rest);
  ASSERT_TRUE(store().Flush().ok());
  store_.Reopen();
  ExpectNothingLeft();
  EXPECT_EQ(ReadLines(store()), rest);
}

TEST_F(ChangePurgeTest, ThePastInTheFeedAloneIsFound) {
  Put(kKey, kSecret);
  Write([](WriteBatch* batch) { batch->Delete(kKey); });
  Put("a", "1");
  ASSERT_TRUE(store().Flush().ok());
  ASSERT_TRUE(store().Compact("", "").ok());
  ASSERT_NE(FilesWith(store_.directory.path(), kSecret), "");
  const PurgeResult purged = Purge();
  EXPECT_TRUE(purged.found);
  EXPECT_FALSE(purged.existed);
  ExpectNothingLeft();
  EXPECT_FALSE(Purge().found);
}

TEST_F(ChangePurgeTest, WhatIsWrittenAfterwardsIsRetained) {
  for (int round = 0; round < 3; ++round) {
    Put(kKey, kSecret);
    Purge();
    ExpectNothingLeft();
  }
  const SequenceNumber last = Put(kKey, "anew");
  EXPECT_EQ(ReadLines(store()), Lines{fmt::format("{} 0 0/{} 4", last, kKey)});
  store_.Reopen();
  EXPECT_EQ(ReadLines(store()), Lines{fmt::format("{} 0 0/{} 4", last, kKey)});
}

TEST_F(ChangePurgeTest, TheFileThatIsWrittenToGoesOn) {
  for (int round = 0; round < 20; ++round) {
    Put(kKey, kSecret);
    Put("a", std::string(100, 'a'));
    Purge();
  }
  EXPECT_EQ(Files(), 1u) << "small files do not pile up";
  EXPECT_EQ(ReadLines(store()).size(), 20u);
}

TEST_F(ChangePurgeTest, AReaderInTheMiddleOfAFileGoesOn) {
  const Lines rest = WithoutKey(Fill(store(), 700));
  for (const size_t commits : {1u, 40u, 200u, 500u}) {
    Put(kKey, kSecret);
    Lines read;
    auto changes = store().NewChangeIterator(0, AllNamespaces()).value();
    for (size_t i = 0; i < commits; ++i) {
      ASSERT_TRUE(*changes->Next());
      AppendLines(changes->change(), &read);
    }
    const SequenceNumber position = changes->position();
    Purge();  // it returns although the reader is there
    ExpectNothingLeft();
    EXPECT_EQ(changes->position(), position);
    for (absl::StatusOr<bool> next = changes->Next(); next.ok() && *next; next = changes->Next())
      AppendLines(changes->change(), &read);
    EXPECT_EQ(WithoutKey(read), rest);
    // One that has the position alone.
    const Lines behind = ReadLines(store(), position);
    ASSERT_LE(behind.size(), rest.size());
    EXPECT_TRUE(std::equal(behind.begin(), behind.end(),
                           rest.end() - static_cast<ptrdiff_t>(behind.size())));
  }
}

TEST_F(ChangePurgeTest, AReaderAtTheEndIsToldWhatComes) {
  Fill(store(), 50);
  auto changes =
      store().NewChangeIterator(store().GetChangePositions()->last, AllNamespaces()).value();
  EXPECT_FALSE(*changes->Next());
  Purge();
  EXPECT_FALSE(*changes->Next());
  Put("a", "1");
  EXPECT_TRUE(*changes->Next());
  EXPECT_EQ(changes->change().operations.front().key, "a");
}

TEST_F(ChangePurgeTest, FeedsKeepTheirPlaces) {
  Fill(store(), 200);
  const SequenceNumber last = store().GetChangePositions()->last;
  ASSERT_TRUE(store().CreateFeed({.name = "f", .position = last / 2}).ok());
  const Lines rest = WithoutKey(ReadLines(store(), last / 2));
  Purge();
  for (const bool reopened : {false, true}) {
    if (reopened) store_.Open();
    ASSERT_EQ(store().Feeds().size(), 1u);
    EXPECT_EQ(store().Feeds()[0].position, last / 2);
    EXPECT_FALSE(store().Feeds()[0].lost);
    EXPECT_EQ(ReadLines(store(), last / 2), rest);
  }
  ASSERT_TRUE(store().AckFeed("f", last).ok());
}

TEST_F(ChangePurgeTest, ChangesThatFeedsAloneRetainArePurged) {
  store_.options.changes = {};
  store_.Reopen();
  Put("a", "1");
  ASSERT_TRUE(store().CreateFeed({.name = "f", .position = kMaxSequence}).ok());
  const SequenceNumber since = store().Feeds()[0].position;
  Put(kKey, kSecret);
  const SequenceNumber last = Put("b", "2");
  ASSERT_TRUE(store().Flush().ok());
  Purge();
  ExpectNothingLeft();
  EXPECT_EQ(ReadLines(store(), since), Lines{fmt::format("{} 0 0/b 1", last)});
}

TEST_F(ChangePurgeTest, TheFirstVersionStillRises) {
  store_.options.changes = {.bytes = 300'000};
  store_.Reopen();
  const auto write_much = [&] {
    for (int i = 0; i < 2000; ++i) Put(i % 5 == 0 ? kKey : "a", std::string(300, 'v'));
    ASSERT_TRUE(store().Flush().ok());
  };
  write_much();
  const SequenceNumber first = store().GetChangePositions()->first;
  ASSERT_GT(first, 0u);
  Purge();
  EXPECT_EQ(FilesWith(store_.directory.path(), kKey), "");
  EXPECT_GE(store().GetChangePositions()->first, first);
  write_much();
  EXPECT_GT(store().GetChangePositions()->first, first + 1000);
}

// --- Namespaces ----------------------------------------------------------------------------------

TEST_F(ChangePurgeTest, OtherNamespacesKeepTheirChanges) {
  Write([](WriteBatch* batch) { batch->CreateNamespace({.id = 1}); });
  Put(kKey, kSecret);
  const SequenceNumber other = Put(kKey, "of another", 1);
  Purge();
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  EXPECT_EQ(ReadLines(store()).back(), fmt::format("{} 0 1/{} 10", other, kKey));
}

// What the namespace held before a swap, it held under another id.
TEST_F(ChangePurgeTest, SwapsAreFollowedBack) {
  Write([](WriteBatch* batch) { batch->CreateNamespace({.id = 1}); });
  Write([](WriteBatch* batch) { batch->CreateNamespace({.id = 2}); });
  Put(kKey, "in 0, went to 2");
  Put(kKey, std::string(kSecret) + "in 1", 1);
  Write([](WriteBatch* batch) {
    batch->SwapNamespaces(1, 2);
    batch->Put(kKey, std::string(kSecret) + "in 2", 2);
  });
  Put(kKey, "in 1, where 2 was", 1);
  Write([](WriteBatch* batch) {
    batch->Put(kKey, std::string(kSecret) + "still in 2", 2);
    batch->SwapNamespaces(0, 2);
    batch->Put(kKey, std::string(kSecret) + "in 0");
  });
  Put(kKey, "in 2, where 0 was", 2);
  const Lines before = ReadLines(store());
  EXPECT_TRUE(Purge().existed);
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  Lines sizes;
  for (const std::string& line : ReadLines(store()))
    if (IsOfKey(line)) sizes.push_back(line.substr(line.find(' ') + 3));
  EXPECT_EQ(sizes, (Lines{fmt::format("0/{} 15", kKey), fmt::format("1/{} 17", kKey),
                          fmt::format("2/{} 17", kKey)}));
  EXPECT_EQ(WithoutKey(ReadLines(store())), WithoutKey(before));
}

TEST_F(ChangePurgeTest, WhatANamespaceHeldWhenItWasEmptiedGoes) {
  Write([](WriteBatch* batch) { batch->CreateNamespace({.id = 1}); });
  Put(kKey, kSecret);
  Put(kKey, "emptied elsewhere", 1);
  Write([](WriteBatch* batch) { batch->ClearNamespace(); });
  Write([](WriteBatch* batch) { batch->ClearNamespace(1); });
  Put(kKey, std::string(kSecret) + "1", 1);
  Write([](WriteBatch* batch) { batch->SwapNamespaces(0, 1); });
  EXPECT_TRUE(Purge().existed);
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  Lines sizes;
  for (const std::string& line : ReadLines(store()))
    if (IsOfKey(line)) sizes.push_back(line.substr(line.find(' ') + 3));
  EXPECT_EQ(sizes, Lines{fmt::format("1/{} 17", kKey)});
}

// --- Ranges --------------------------------------------------------------------------------------

TEST_F(ChangePurgeTest, AnIngestNoLongerNamesTheKeyAndStillCoversItsOthers) {
  for (const auto& [first, last] :
       {std::pair<std::string, std::string>{kKey, "z"}, {"a", kKey}, {kKey, kKey}}) {
    auto ingest = BeginIngest(&store(), {}).value();
    ASSERT_TRUE(ingest->Add(first, kSecret).ok());
    if (last != first) ASSERT_TRUE(ingest->Add(last, kSecret).ok());
    const absl::StatusOr<CommitResult> committed = ingest->Commit();
    ASSERT_TRUE(committed.ok()) << committed.status();
    Purge(0, first);
    Purge(0, last);
    ExpectNothingLeft();
    auto changes = store().NewChangeIterator(committed->sequence - 1, {}).value();
    ASSERT_TRUE(*changes->Next());
    const ChangeOperation& operation = changes->change().operations.back();
    EXPECT_EQ(operation.kind, Kind::kIngest);
    EXPECT_EQ(operation.version, committed->sequence);
    EXPECT_LT(operation.key, first);
    EXPECT_GT(operation.value, last);
  }
}

TEST_F(ChangePurgeTest, ABoundOfADeletedRangeStays) {
  Put(kKey, kSecret);
  Write([](WriteBatch* batch) { batch->DeleteRange(kKey, "z"); });
  Purge();
  EXPECT_EQ(FilesWith(store_.directory.path(), kSecret), "");
  const Lines lines = ReadLines(store());
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(IsOfKey(lines.front()));
}

// --- Threads -------------------------------------------------------------------------------------

TEST_F(ChangePurgeTest, ReadersAndWritersGoOnBeside) {
  constexpr int kCommits = 3000;
  std::atomic<SequenceNumber> end{0};
  std::atomic<int> purges{0};
  std::thread writer([&] {
    SequenceNumber last = kNoSequence;
    for (int i = 0; i < kCommits; ++i) {
      // Purges have to come between, however late their thread gets a processor.
      if (i == kCommits / 2) EXPECT_TRUE(testing::Eventually([&] { return purges > 0; }));
      last = Write([&](WriteBatch* batch) {
        batch->Put(fmt::format("a{}", i), std::string(100, 'a'));
        if (i % 3 == 0) batch->Put(kKey, kSecret);
      });
    }
    end.store(last);
  });
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 2; ++reader) {
    readers.emplace_back([&, reader] {
      SequenceNumber position = 0;
      int wanted = 0;
      auto changes = store().NewChangeIterator(0, AllNamespaces()).value();
      while (end.load() == 0 || position < end.load()) {
        if (reader == 0) changes = store().NewChangeIterator(position, AllNamespaces()).value();
        const absl::StatusOr<bool> next = changes->Next();
        ASSERT_TRUE(next.ok()) << next.status();
        position = changes->position();
        if (!*next) continue;
        for (const ChangeOperation& operation : changes->change().operations) {
          if (operation.key != kKey) ASSERT_EQ(operation.key, fmt::format("a{}", wanted++));
        }
      }
      EXPECT_EQ(wanted, kCommits);
    });
  }
  for (; end.load() == 0; ++purges) Purge();
  writer.join();
  for (std::thread& reader : readers) reader.join();
  Purge();
  ExpectNothingLeft();
  EXPECT_EQ(ReadLines(store()).size(), static_cast<size_t>(kCommits));
}

// --- Failures ------------------------------------------------------------------------------------

struct FaultyCall {
  FileOperation operation;
  const char* part;
};

// One call fails, or that one and all behind it.
class FailingChangePurgeTest : public ::testing::TestWithParam<FaultyCall> {
 protected:
  static void ExpectRest(StorageEngine& store, const Lines& rest) {
    EXPECT_EQ(WithoutKey(ReadLines(store)), rest);
  }
};

TEST_P(FailingChangePurgeTest, OldFilesStayOrNewOnesAndThePurgeCanBeAskedAgain) {
  for (const uint64_t times : {uint64_t{1}, FaultFileSystem::kUnlimited}) {
    bool failed = true;
    for (uint64_t nth = 1; failed && !HasFailure(); nth += nth < 12 ? 1 : nth / 3) {
      SCOPED_TRACE(fmt::format("call {}, {} times", nth, times));
      FaultFileSystem files;
      TestStore store(RetainingForADay(&files));
      const Lines rest = WithoutKey(Fill(*store, 200));
      files.Fail(GetParam().operation, nth, absl::UnavailableError("a test's fault"), times,
                 GetParam().part);
      const absl::StatusOr<PurgeResult> purged = store->Purge(kDefaultNamespace, kKey);
      failed = files.failed_calls() != 0;
      EXPECT_TRUE(failed || purged.ok()) << purged.status();
      if (purged.ok()) {
        EXPECT_EQ(FilesWith(store.directory.path(), kSecret), "");
        EXPECT_EQ(FilesWith(store.directory.path(), kKey), "");
      }
      files.ClearFaults();
      // As after a kill: what lies in the directory now is opened.
      const testing::TempDir copy;
      std::filesystem::remove_all(copy.path());
      files.StandStill([&] {
        std::filesystem::copy(store.directory.path(), copy.path(),
                              std::filesystem::copy_options::recursive);
      });
      {
        const auto opened = StorageEngine::Open(copy.path(), RetainingForADay());
        ASSERT_TRUE(opened.ok()) << opened.status();
        const absl::StatusOr<PurgeResult> again = (*opened)->Purge(kDefaultNamespace, kKey);
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_EQ(FilesWith(copy.path(), kSecret), "");
        EXPECT_EQ(FilesWith(copy.path(), kKey), "");
        // A sync that fails gives up what was retained.
        if ((*opened)->GetChangePositions()->first == 0) ExpectRest(**opened, rest);
      }
      if (store->log_status().ok()) {
        if (store->GetChangePositions()->first == 0) ExpectRest(*store, rest);
        // Until it has tried again, the flusher tells of the call that failed.
        ASSERT_TRUE(testing::Eventually([&] { return store->Flush().ok(); }));
        // A segment that an install could not name may stay until the store is opened again.
        if (std::string_view(GetParam().part) != ".chg") store.Reopen();
        const absl::StatusOr<PurgeResult> again = store->Purge(kDefaultNamespace, kKey);
        ASSERT_TRUE(again.ok()) << again.status();
        EXPECT_EQ(FilesWith(store.directory.path(), kSecret), "");
        EXPECT_EQ(FilesWith(store.directory.path(), kKey), "");
        if (store->GetChangePositions()->first == 0) ExpectRest(*store, rest);
        EXPECT_TRUE(store->GetChangePositions()->first == 0 ||
                    GetParam().operation == FileOperation::kSync ||
                    GetParam().operation == FileOperation::kSyncDirectory);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Calls, FailingChangePurgeTest,
                         ::testing::Values(FaultyCall{FileOperation::kCreate, ".chg"},
                                           FaultyCall{FileOperation::kWrite, ".chg"},
                                           FaultyCall{FileOperation::kRead, ".chg"},
                                           FaultyCall{FileOperation::kOpen, ".chg"},
                                           FaultyCall{FileOperation::kSync, ".chg"},
                                           FaultyCall{FileOperation::kSyncDirectory, ""},
                                           FaultyCall{FileOperation::kWrite, "MANIFEST"},
                                           FaultyCall{FileOperation::kRename, "MANIFEST"}),
                         [](const auto& each) {
                           std::string name =
                               NameOf(each.param.operation) + std::string("_") + each.param.part;
                           std::erase_if(name, [](char c) {
                             return c != '_' && !std::isalnum(static_cast<uint8_t>(c));
                           });
                           return name;
                         });

// The power goes after each number of writes, syncs and changes of names that the purge makes, and
// whatever was not synced is lost, kept or torn.
TEST(PowerCutChangePurgeTest, TheStoreOpensWithTheOldFilesOrTheNewOnes) {
  uint32_t purged_before = 0;
  bool stopped = true;
  for (uint32_t calls = 0; stopped && !::testing::Test::HasFailure(); calls += 1 + calls / 40) {
    SCOPED_TRACE(calls);
    SimulatedFileSystem disk;
    ASSERT_TRUE(disk.CreateDirectory("/disk").ok());
    auto store = StorageEngine::Open("/disk/store", RetainingForADay(&disk)).value();
    const Lines rest = WithoutKey(Fill(*store, 150));
    disk.StopAfter(calls);
    stopped = !store->Purge(kDefaultNamespace, kKey).ok();
    disk.StopHere();
    store.reset();
    disk.RestorePower(calls);
    auto opened = StorageEngine::Open("/disk/store", RetainingForADay(&disk));
    ASSERT_TRUE(opened.ok()) << opened.status();
    const Lines lines = ReadLines(**opened);
    EXPECT_EQ(WithoutKey(lines), rest);
    EXPECT_EQ((*opened)->GetChangePositions()->first, 0u);
    purged_before += WithoutKey(lines) == lines ? 1 : 0;
    EXPECT_TRUE(stopped || WithoutKey(lines) == lines);
    const absl::StatusOr<PurgeResult> again = (*opened)->Purge(kDefaultNamespace, kKey);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ReadLines(**opened), rest);
  }
  EXPECT_GT(purged_before, 1u) << "the power went behind the manifest, too";
}

}  // namespace
}  // namespace varve
