// The change feed of the engine: every commit whole, once and in order, across flushes, crashes,
// restarts and retention. A model keeps what was committed.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "fmt/format.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"
#include "varve/history_status.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;
using Kind = ChangeOperation::Kind;

EngineOptions Retaining(const ChangeRetention& changes) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 64u << 10;
  options.segment_size = 32u << 10;
  options.changes = changes;
  return options;
}

constexpr NamespaceId kOne = kFirstNamedNamespace, kTwo = kFirstNamedNamespace + 1;

const char* WordOf(Kind kind) {
  static constexpr const char* kNames[] = {"set",      "del",   "expire", "expired", "evicted",
                                           "delrange", "flush", "ingest", "create",  "drop",
                                           "swap",     "clone", "meta"};
  return kNames[static_cast<size_t>(kind)];
}

std::string TextOf(const ChangeOperation& operation) {
  return fmt::format("{} {} {} {} {} {}", WordOf(operation.kind), operation.name, operation.key,
                     operation.value, operation.metadata, operation.expiry_ms);
}

// A commit as the model has it and as the feed shows it.
struct Commit {
  SequenceNumber version = kNoSequence;
  std::vector<std::string> operations;

  friend bool operator==(const Commit&, const Commit&) = default;
  friend void PrintTo(const Commit& commit, std::ostream* out) {
    *out << commit.version;
    for (const std::string& operation : commit.operations)
      *out << " [" << operation.substr(0, 60) << "]";
  }
};

Commit CommitOf(const Change& change) {
  Commit commit{change.version, {}};
  for (const ChangeOperation& operation : change.operations)
    commit.operations.push_back(TextOf(operation));
  return commit;
}

constexpr ChangeFilter AllOfIt() {
  ChangeFilter filter;
  filter.space = std::nullopt;
  return filter;
}

// Reads up to `most` commits behind `*position`, which it moves.
std::vector<Commit> ReadSome(StorageEngine& store, SequenceNumber* position, size_t most = SIZE_MAX,
                             const ChangeFilter& filter = AllOfIt()) {
  std::vector<Commit> commits;
  auto changes = store.NewChangeIterator(*position, filter);
  EXPECT_TRUE(changes.ok()) << changes.status();
  if (!changes.ok()) return commits;
  while (commits.size() < most) {
    const absl::StatusOr<bool> next = (*changes)->Next();
    EXPECT_TRUE(next.ok()) << next.status();
    if (!next.ok() || !*next) break;
    commits.push_back(CommitOf((*changes)->change()));
  }
  *position = (*changes)->position();
  return commits;
}

std::vector<Commit> ReadAll(StorageEngine& store, SequenceNumber since,
                            const ChangeFilter& filter = AllOfIt()) {
  return ReadSome(store, &since, SIZE_MAX, filter);
}

class ChangeFeedTest : public ::testing::Test {
 protected:
  void Open(const ChangeRetention& changes) {
    EngineOptions options = Retaining(changes);
    options.clock = &clock_;
    store_ = std::make_unique<TestStore>(options);
  }
  StorageEngine& store() { return **store_; }

  SequenceNumber Write(const std::function<void(WriteBatch*)>& fill) {
    WriteBatch batch;
    fill(&batch);
    const absl::StatusOr<CommitResult> committed = store().Write({}, &batch);
    EXPECT_TRUE(committed.ok()) << committed.status();
    return committed.ok() ? committed->sequence : kNoSequence;
  }
  SequenceNumber Put(const std::string& key, const std::string& value) {
    return Write([&](WriteBatch* batch) { batch->Put(key, value); });
  }
  SequenceNumber First() { return store().GetChangePositions()->first; }
  uint64_t BytesOfFiles() {
    uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(store_->directory.path())) {
      std::error_code gone;  // a file may be removed meanwhile
      const uint64_t size = file.path().extension() == ".chg" ? file.file_size(gone) : 0;
      if (!gone) bytes += size;
    }
    return bytes;
  }
  size_t Files() {
    size_t count = 0;
    for (const auto& file : std::filesystem::directory_iterator(store_->directory.path()))
      count += file.path().extension() == ".chg" ? 1 : 0;
    return count;
  }

  // Counts the files of changes that the process holds open.
  static size_t OpenFiles() {
    size_t count = 0;
    for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(descriptor, gone).extension() == ".chg" ? 1 : 0;
    }
    return count;
  }

  ManualClock clock_;
  std::unique_ptr<TestStore> store_;
};

TEST_F(ChangeFeedTest, AStoreThatRetainsNothingSaysSo) {
  Open({});
  Put("a", "1");
  EXPECT_TRUE(absl::IsFailedPrecondition(store().GetChangePositions().status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(store().NewChangeIterator(0, {}).status()));
  ASSERT_TRUE(store().Flush().ok());
  EXPECT_EQ(Files(), 0u);
}

TEST_F(ChangeFeedTest, EveryKindOfOperation) {
  Open({.bytes = 1u << 20});
  const uint64_t begin = clock_.WallMillis();
  const SequenceNumber first = Write([](WriteBatch* batch) {
    batch->Put("a", "1");
    batch->Put("b", "2", PutExtras{.expiry_ms = 1'900'000'000'000, .metadata = "m"});
    batch->Delete("c");
  });
  Write([](WriteBatch* batch) {
    batch->Put("a", "1", PutExtras{.expiry_ms = 0, .cause = WriteCause::kExpiryChange});
    batch->Put("a", "1", PutExtras{.metadata = "n", .cause = WriteCause::kMetadataChange});
    batch->Delete("a", kDefaultNamespace, WriteCause::kExpired);
    batch->Delete("b", kDefaultNamespace, WriteCause::kEvicted);
    batch->DeleteRange("d", "e");
    batch->DeleteRange("f", "");
    batch->ClearNamespace();
  });
  clock_.Advance(5'000);
  Write([](WriteBatch* batch) { batch->CreateNamespace({.id = kOne, .name = "one"}); });
  Write([](WriteBatch* batch) { batch->Put("k", "v", kOne); });
  Write([](WriteBatch* batch) { batch->CloneNamespace(kOne, {.id = kTwo, .name = "two"}); });
  Write([](WriteBatch* batch) { batch->Put("k", "w", kTwo); });
  Write([](WriteBatch* batch) { batch->SwapNamespaces(kOne, kTwo); });
  Write([](WriteBatch* batch) { batch->Put("k", "x", kOne); });
  Write([](WriteBatch* batch) { batch->AlterNamespace({.id = kOne, .name = "uno"}); });
  Write([](WriteBatch* batch) { batch->Put("k", "y", kOne); });
  const SequenceNumber last = Write([](WriteBatch* batch) { batch->DropNamespace(kTwo); });
  const std::vector<std::vector<std::string>> expected = {
      {"set 0 a 1  0", "set 0 b 2 m 1900000000000", "del 0 c   0"},
      {"expire 0 a 1  0", "meta 0 a 1 n 0", "expired 0 a   0", "evicted 0 b   0",
       "delrange 0 d e  0", "delrange 0 f   0", "flush 0    0"},
      {"create one    0"},
      {"set one k v  0"},
      {"clone two one   0"},
      {"set two k w  0"},
      {"swap one two   0"},
      {"set one k x  0"},
      {"set uno k y  0"},
      {"drop two    0"}};
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_TRUE(store().Flush().ok());
    SequenceNumber position = 0;
    const std::vector<Commit> commits = ReadSome(store(), &position);
    ASSERT_EQ(commits.size(), expected.size());
    for (size_t i = 0; i < commits.size(); ++i) EXPECT_EQ(commits[i].operations, expected[i]) << i;
    EXPECT_EQ(commits.front().version, first);
    EXPECT_EQ(commits.back().version, last);
    EXPECT_EQ(position, last);
  }
  auto changes = store().NewChangeIterator(0, AllOfIt()).value();
  ASSERT_TRUE(*changes->Next());
  EXPECT_EQ(changes->change().instant_ms, begin);
  EXPECT_EQ(changes->change().operations.back().version, first);
  EXPECT_EQ(changes->change().operations.front().version, first - 2);
  ASSERT_TRUE(*changes->Next());
  ASSERT_TRUE(*changes->Next());
  EXPECT_EQ(changes->change().instant_ms, begin + 5'000);
}

TEST_F(ChangeFeedTest, FiltersCutCommitsAndRanges) {
  Open({.bytes = 1u << 20});
  Write([](WriteBatch* batch) { batch->CreateNamespace({.id = 1}); });
  Write([](WriteBatch* batch) {
    batch->Put("a", "1");
    batch->Put("b1", "2");
    batch->Put("b2", "3", NamespaceId{1});
    batch->Put("c", "4");
  });
  const SequenceNumber unseen = Put("x", "5");
  Write([](WriteBatch* batch) { batch->DeleteRange("a", "b5"); });
  Write([](WriteBatch* batch) { batch->DeleteRange("x", "z"); });
  Write([](WriteBatch* batch) { batch->SwapNamespaces(0, 1); });
  ChangeFilter filter{.lower = "b", .upper = "c"};
  SequenceNumber position = 0;
  std::vector<Commit> commits = ReadSome(store(), &position, SIZE_MAX, filter);
  ASSERT_EQ(commits.size(), 3u);
  EXPECT_EQ(commits[0].operations, std::vector<std::string>{"set 0 b1 2  0"});
  EXPECT_EQ(commits[1].operations, std::vector<std::string>{"delrange 0 b b5  0"});
  EXPECT_EQ(commits[2].operations, std::vector<std::string>{"swap 0 1   0"});
  EXPECT_GT(position, unseen);
  filter = {.space = NamespaceId{1}, .keys_only = true};
  commits = ReadAll(store(), 0, filter);
  ASSERT_EQ(commits.size(), 3u);
  EXPECT_EQ(commits[1].operations, std::vector<std::string>{"set 1 b2   0"});
  EXPECT_EQ(commits[2].operations, std::vector<std::string>{"swap 0 1   0"})
      << "a swap concerns both";
}

TEST_F(ChangeFeedTest, PositionsThatAreNoneAreRefused) {
  Open({.bytes = 1u << 20});
  const SequenceNumber last = Put("a", "1");
  EXPECT_TRUE(absl::IsOutOfRange(store().NewChangeIterator(last + 1, {}).status()));
  auto changes = store().NewChangeIterator(last, {}).value();
  EXPECT_FALSE(*changes->Next());
  Put("b", "2");
  EXPECT_TRUE(*changes->Next()) << "an iterator at the end goes on";
}

TEST_F(ChangeFeedTest, WhatIsNotYetAsDurableAsItsWriterAskedIsNotDelivered) {
  Open({.bytes = 1u << 20});
  const SequenceNumber before = Put("a", "1");
  WriteBatch batch;
  batch.Put("b", "2");
  const CommitResult committed =
      store().Submit({.sync = Durability::kAlways, .override_sync = true}, &batch).value();
  auto changes = store().NewChangeIterator(before, {}).value();
  EXPECT_FALSE(*changes->Next());
  ASSERT_TRUE(store().WaitUntilDurable(committed.durable_after).ok());
  EXPECT_TRUE(*changes->Next());
}

TEST_F(ChangeFeedTest, ListenersHearOfWhatCanBeRead) {
  Open({.bytes = 1u << 20});
  std::atomic<int> calls{0};
  const uint64_t token = store().AddChangeListener([&] { ++calls; });
  const SequenceNumber last = Put("a", "1");
  EXPECT_TRUE(testing::Eventually([&] { return calls.load() > 0; }));
  auto changes = store().NewChangeIterator(last - 1, {}).value();
  EXPECT_TRUE(*changes->Next());
  store().RemoveChangeListener(token);
}

TEST_F(ChangeFeedTest, NothingIsLostOrDoubledByCrashes) {
  Open({.bytes = 64u << 20});
  std::vector<Commit> expected;
  for (int i = 0; i < 4000; ++i) {
    const std::string key = fmt::format("key{}", i), value(i % 97, 'v');
    expected.push_back({Put(key, value), {fmt::format("set 0 {} {}  0", key, value)}});
    if (i % 700 == 300) ASSERT_TRUE(store().Flush().ok());
    if (i % 900 == 500) store_->Open();  // what a crash leaves
    if (i % 1100 == 700) store_->Reopen();
  }
  EXPECT_EQ(ReadAll(store(), 0), expected);
  store_->Open();
  EXPECT_EQ(ReadAll(store(), 0), expected);
}

TEST_F(ChangeFeedTest, TheBytesOfFilesAreBounded) {
  constexpr uint64_t kBytes = 1u << 20;
  Open({.bytes = kBytes});
  SequenceNumber last = kNoSequence;
  for (int i = 0; i < 6000; ++i) {
    last = Put(fmt::format("key{}", i % 50), std::string(1000, 'v'));
    if (i % 500 != 499) continue;
    ASSERT_TRUE(store().Flush().ok());
    EXPECT_TRUE(testing::Eventually([&] { return BytesOfFiles() < kBytes + (256u << 10); }));
  }
  const SequenceNumber first = First();
  EXPECT_GT(first, 0u);
  EXPECT_LT(first, last - kBytes / 2000) << "about as much is retained as may be";
  const auto below = store().NewChangeIterator(first - 1, {});
  EXPECT_EQ(FirstOfTrimmed(below.status()), first);
  const std::vector<Commit> commits = ReadAll(store(), first);
  ASSERT_EQ(commits.size(), last - first);
  EXPECT_EQ(commits.front().version, first + 1);
  store_->Open();
  EXPECT_EQ(First(), first);
  EXPECT_EQ(ReadAll(store(), first), commits);
}

TEST_F(ChangeFeedTest, FullFilesAreNotHeldOpen) {
  Open({.bytes = 1u << 20});
  for (int i = 0; i < 800; ++i) {
    Put("key", std::string(1000, 'v'));
    if (i % 100 == 99) ASSERT_TRUE(store().Flush().ok());
  }
  EXPECT_GT(Files(), 4u);
  EXPECT_LE(OpenFiles(), 1u);
  EXPECT_EQ(ReadAll(store(), 0).size(), 800u);
  EXPECT_LE(OpenFiles(), 2u) << "a reader closes a full file behind it";
}

TEST_F(ChangeFeedTest, ChangesGoByTime) {
  Open({.time_ms = 60'000});
  Put("a", "1");
  ASSERT_TRUE(store().Flush().ok());
  clock_.Advance(30'000);
  const SequenceNumber second = Put("b", "2");
  ASSERT_TRUE(store().Flush().ok());
  clock_.Advance(40'000);
  ASSERT_TRUE(store().Compact("", "").ok());
  EXPECT_EQ(First(), second - 1);
  clock_.Advance(40'000);
  ASSERT_TRUE(store().Compact("", "").ok());
  EXPECT_EQ(First(), second);
  EXPECT_TRUE(testing::Eventually([&] { return Files() == 0; }));
  store_->Reopen();
  EXPECT_EQ(First(), second);
  const SequenceNumber third = Put("c", "3");
  EXPECT_EQ(ReadAll(store(), second).front().version, third);
}

TEST_F(ChangeFeedTest, AFileThatHoldsClockMarksAloneIsAsOldAsThey) {
  Open({.time_ms = 60'000});
  Write([](WriteBatch* batch) { batch->MarkClock(ManualClock::kStart); });
  ASSERT_TRUE(store().Flush().ok());
  clock_.Advance(30'000);  // the next file begins
  Put("a", "1");
  ASSERT_TRUE(store().Flush().ok());
  EXPECT_EQ(Files(), 2u);
  ASSERT_TRUE(store().Compact("", "").ok());
  EXPECT_EQ(First(), 0u);
  EXPECT_EQ(ReadAll(store(), 0).size(), 1u);
}

TEST_F(ChangeFeedTest, AReaderInTheMiddleIsToldThatItsChangesWent) {
  Open({.bytes = 1u << 20});
  for (int i = 0; i < 200; ++i) Put("key", std::string(1000, 'v'));
  auto changes = store().NewChangeIterator(0, {}).value();
  ASSERT_TRUE(*changes->Next());
  for (int i = 0; i < 6000; ++i) Put("key", std::string(1000, 'v'));
  ASSERT_TRUE(store().Flush().ok());
  absl::StatusOr<bool> next = true;
  SequenceNumber before = changes->position();
  while (next.ok() && *next) {
    next = changes->Next();
    if (!next.ok()) break;
    EXPECT_EQ(changes->position(), ++before);
  }
  EXPECT_EQ(FirstOfTrimmed(next.status()), First());
}

TEST_F(ChangeFeedTest, RetentionThatEndsLeavesNothing) {
  Open({.bytes = 1u << 20});
  const SequenceNumber last = Put("a", "1");
  ASSERT_TRUE(store().Flush().ok());
  EXPECT_EQ(Files(), 1u);
  store_->options.changes = {};
  store_->Reopen();
  EXPECT_TRUE(absl::IsFailedPrecondition(store().GetChangePositions().status()));
  EXPECT_TRUE(testing::Eventually([&] { return Files() == 0; }));
  store_->options.changes = {.bytes = 1u << 20};
  store_->Reopen();
  EXPECT_GE(First() + 1, last) << "what segments hold is gone";
  EXPECT_TRUE(ReadAll(store(), First()).empty());
}

// --- Feeds ---------------------------------------------------------------------------------------

TEST_F(ChangeFeedTest, AFeedKeepsItsPlace) {
  Open({.bytes = 1u << 20});
  Put("a", "1");
  ASSERT_TRUE(store().CreateFeed({.name = "f", .position = 0, .prefix = "a"}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(store().CreateFeed({.name = "f"})));
  const SequenceNumber last = Put("b", "2");
  EXPECT_TRUE(absl::IsOutOfRange(store().AckFeed("f", last + 1)));
  EXPECT_TRUE(absl::IsNotFound(store().AckFeed("g", 1)));
  ASSERT_TRUE(store().AckFeed("f", last).ok());
  ASSERT_TRUE(store().AckFeed("f", 1).ok()) << "it never goes back";
  for (const bool flushed : {false, true}) {
    if (flushed) ASSERT_TRUE(store().Flush().ok());
    store_->Open();
    const std::vector<FeedPlace> feeds = store().Feeds();
    ASSERT_EQ(feeds.size(), 1u);
    EXPECT_EQ(feeds[0].name, "f");
    EXPECT_EQ(feeds[0].prefix, "a");
    EXPECT_EQ(feeds[0].position, last);
    EXPECT_EQ(feeds[0].most_bytes, uint64_t{1} << 30) << "the bounds that hold if none are given";
    EXPECT_EQ(feeds[0].most_age_ms, 86'400'000u);
    EXPECT_FALSE(feeds[0].lost);
  }
  ASSERT_TRUE(store().DropFeed("f").ok());
  EXPECT_TRUE(absl::IsNotFound(store().DropFeed("f")));
  store_->Open();
  EXPECT_TRUE(store().Feeds().empty());
}

TEST_F(ChangeFeedTest, AFeedHoldsChangesBackThatNobodyElseRetains) {
  Open({});
  Put("a", "1");
  ASSERT_TRUE(store().CreateFeed({.name = "f", .position = kMaxSequence}).ok());
  const SequenceNumber since = store().Feeds().front().position;
  std::vector<Commit> expected;
  for (int i = 0; i < 2000; ++i) {
    const std::string key = fmt::format("key{}", i);
    expected.push_back({Put(key, std::string(100, 'v')),
                        {fmt::format("set 0 {} {}  0", key, std::string(100, 'v'))}});
    if (i % 500 == 300) ASSERT_TRUE(store().Flush().ok());
    if (i % 900 == 600) store_->Open();
  }
  EXPECT_EQ(ReadAll(store(), since), expected);
  EXPECT_GT(store().Feeds().front().retained_bytes, 100'000u);
  ASSERT_TRUE(store().AckFeed("f", expected.back().version).ok());
  EXPECT_EQ(store().Feeds().front().retained_bytes, 0u);
  ASSERT_TRUE(store().DropFeed("f").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(store().GetChangePositions().status()));
  EXPECT_TRUE(testing::Eventually([&] { return Files() == 0; }));
}

TEST_F(ChangeFeedTest, AFeedThatIsRefusedRetainsNothing) {
  Open({});
  const SequenceNumber last = Put("a", "1");
  EXPECT_TRUE(absl::IsOutOfRange(store().CreateFeed({.name = "f", .position = last + 1})));
  EXPECT_TRUE(absl::IsOutOfRange(store().CreateFeed({.name = "f", .position = last - 1})));
  EXPECT_TRUE(absl::IsFailedPrecondition(store().GetChangePositions().status()));
  EXPECT_TRUE(store().CreateFeed({.name = "f", .position = kMaxSequence}).ok());
  EXPECT_TRUE(absl::IsOutOfRange(store().CreateFeed({.name = "g", .position = last + 1000})));
  EXPECT_TRUE(store().GetChangePositions().ok());
}

TEST_F(ChangeFeedTest, AFeedBeyondItsBoundsIsLost) {
  Open({});
  ASSERT_TRUE(
      store().CreateFeed({.name = "f", .position = kMaxSequence, .most_bytes = 200'000}).ok());
  ASSERT_TRUE(store().CreateFeed({.name = "g", .position = kMaxSequence}).ok());
  for (int i = 0; i < 6000; ++i) Put("key", std::string(1000, 'v'));
  ASSERT_TRUE(store().Flush().ok());
  EXPECT_FALSE(store().Feeds()[0].lost) << "g holds its changes back, too";
  ASSERT_TRUE(store().AckFeed("g", store().GetChangePositions()->last).ok());
  Put("key", "v");
  ASSERT_TRUE(store().Flush().ok());
  EXPECT_TRUE(store().Feeds()[0].lost);
  EXPECT_FALSE(store().Feeds()[1].lost);
  store_->Open();
  EXPECT_TRUE(store().Feeds()[0].lost);
  EXPECT_TRUE(absl::IsFailedPrecondition(store().AckFeed("f", store().GetChangePositions()->last)));
}

// --- Failures ------------------------------------------------------------------------------------

class ChangeFeedFaultTest : public ::testing::Test {
 protected:
  ChangeFeedFaultTest() {
    EngineOptions options = Retaining({.bytes = 64u << 20});
    options.file_system = &files_;
    store_ = std::make_unique<TestStore>(options);
  }
  StorageEngine& store() { return **store_; }
  SequenceNumber Put(int i, size_t size = 1000) {
    WriteBatch batch;
    batch.Put(fmt::format("key{}", i), std::string(size, 'v'));
    return store().Write({}, &batch).value().sequence;
  }
  void ExpectAllFrom(SequenceNumber first, SequenceNumber last) {
    const std::vector<Commit> commits = ReadAll(store(), first);
    ASSERT_EQ(commits.size(), last - first);
    for (size_t i = 0; i < commits.size(); ++i) ASSERT_EQ(commits[i].version, first + 1 + i);
  }

  testing::FaultFileSystem files_;
  std::unique_ptr<TestStore> store_;
};

TEST_F(ChangeFeedFaultTest, AWriteThatFailsIsTriedAgain) {
  SequenceNumber last = kNoSequence;
  for (int i = 0; i < 500; ++i) {
    if (i == 100) {
      files_.Fail(testing::FileOperation::kWrite, 1, absl::ResourceExhaustedError("ENOSPC"),
                  /*times=*/2, ".chg");
    }
    last = Put(i);
  }
  ASSERT_TRUE(store().Flush().ok());
  ExpectAllFrom(0, last);
  store_->Reopen();
  ExpectAllFrom(0, last);
}

TEST_F(ChangeFeedFaultTest, ADiskThatTakesNoChangesHindersNoWrite) {
  files_.Fail(testing::FileOperation::kWrite, 1, absl::ResourceExhaustedError("ENOSPC"),
              /*times=*/1'000'000, ".chg");
  SequenceNumber last = kNoSequence;
  for (int i = 0; i < 450; ++i) last = Put(i, 100'000);
  ASSERT_TRUE(store().Flush().ok());
  const SequenceNumber first = store().GetChangePositions()->first;
  EXPECT_GT(first, 0u) << "45 MB are more than wait in memory";
  EXPECT_EQ(FirstOfTrimmed(store().NewChangeIterator(0, {}).status()), first);
  ExpectAllFrom(first, last);
  EXPECT_GT(store_->Statistic("changes_given_up"), 0u);
  files_.ClearFaults();
}

TEST_F(ChangeFeedFaultTest, AFailedSyncGivesUpWhatWasRetained) {
  for (int i = 0; i < 200; ++i) Put(i);
  files_.Fail(testing::FileOperation::kSync, 1, absl::InternalError("EIO"), /*times=*/1, ".chg");
  ASSERT_TRUE(store().Flush().ok());
  const SequenceNumber first = store().GetChangePositions()->first;
  EXPECT_GT(first, 0u);
  EXPECT_EQ(FirstOfTrimmed(store().NewChangeIterator(0, {}).status()), first);
  SequenceNumber last = kNoSequence;
  for (int i = 0; i < 200; ++i) last = Put(i);
  ASSERT_TRUE(store().Flush().ok());
  ExpectAllFrom(first, last);
  store_->Reopen();
  EXPECT_EQ(store().GetChangePositions()->first, first);
  ExpectAllFrom(first, last);
}

TEST_F(ChangeFeedFaultTest, DamageIsToldWithItsPlaceAndHindersNothingElse) {
  SequenceNumber last = kNoSequence;
  for (int i = 0; i < 500; ++i) last = Put(i);
  ASSERT_TRUE(store().Flush().ok());
  store_->Close();
  std::string name;
  for (const auto& file : std::filesystem::directory_iterator(store_->directory.path()))
    if (file.path().extension() == ".chg") name = file.path();
  {
    std::fstream file(name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100'000);
    file.put('x');
  }
  store_->Open();
  EXPECT_EQ(store_->Get("key7"), std::string(1000, 'v'));
  auto changes = store().NewChangeIterator(0, {}).value();
  absl::StatusOr<bool> next = true;
  while (next.ok() && *next) next = changes->Next();
  EXPECT_TRUE(absl::IsDataLoss(next.status())) << next.status();
  EXPECT_NE(next.status().message().find(name), std::string::npos) << next.status();
  ExpectAllFrom(last - 100, last);
}

// --- Model ---------------------------------------------------------------------------------------

class ChangeFeedModelTest : public ChangeFeedTest, public ::testing::WithParamInterface<int> {
 protected:
  std::string Key() { return fmt::format("key{:03}", random_() % 60); }
  std::string NameOf(NamespaceId id) {
    return id < kFirstNamedNamespace ? fmt::to_string(id) : names_[id];
  }

  void WriteSomething() {
    WriteBatch batch;
    Commit commit;
    const NamespaceId space = spaces_[random_() % spaces_.size()];
    batch.UseNamespace(space);
    const std::string name = NameOf(space);
    const uint64_t choice = random_() % 100;
    if (choice < 80) {
      for (uint64_t i = 0; i <= random_() % 4; ++i) {
        const std::string key = Key(), value(random_() % 10 == 0 ? 5000 : 30, 'v');
        if (random_() % 3 == 0) {
          batch.Delete(key);
          commit.operations.push_back(fmt::format("del {} {}   0", name, key));
        } else {
          batch.Put(key, value);
          commit.operations.push_back(fmt::format("set {} {} {}  0", name, key, value));
        }
      }
    } else if (choice < 86) {
      batch.DeleteRange("key010", "key020");
      commit.operations.push_back(fmt::format("delrange {} key010 key020  0", name));
    } else if (choice < 90) {
      batch.Put("before", "1");
      batch.ClearNamespace();
      batch.Put("behind", "2");
      commit.operations = {fmt::format("set {} before 1  0", name),
                           fmt::format("flush {}    0", name),
                           fmt::format("set {} behind 2  0", name)};
    } else if (choice < 93 && space != 0) {
      batch.SwapNamespaces(0, space);
      commit.operations.push_back(fmt::format("swap 0 {}   0", name));
    } else if (choice < 96 && spaces_.size() < 8) {
      const NamespaceId id = store().Namespaces()->next_id;
      names_[id] = fmt::format("n{}", id);
      spaces_.push_back(id);
      if (random_() % 2 == 0) {
        batch.CreateNamespace({.id = id, .name = names_[id]});
        commit.operations.push_back(fmt::format("create {}    0", names_[id]));
      } else {
        batch.CloneNamespace(space, {.id = id, .name = names_[id]});
        commit.operations.push_back(fmt::format("clone {} {}   0", names_[id], name));
      }
    } else if (space >= kFirstNamedNamespace) {
      batch.DropNamespace(space);
      commit.operations.push_back(fmt::format("drop {}    0", name));
      std::erase(spaces_, space);
    } else {
      batch.Put("x", "y");
      commit.operations.push_back(fmt::format("set {} x y  0", name));
    }
    const absl::StatusOr<CommitResult> committed = store().Write({}, &batch);
    if (batch.clones_namespace() && absl::IsResourceExhausted(committed.status())) {
      spaces_.pop_back();  // too many clones of clones
      return;
    }
    ASSERT_TRUE(committed.ok()) << committed.status();
    commit.version = committed->sequence;
    model_.push_back(std::move(commit));
  }

  // Compares what a reader at the position reads with the model; moves the position.
  void Consume(SequenceNumber* position) {
    auto changes = store().NewChangeIterator(*position, AllOfIt());
    if (const auto first = FirstOfTrimmed(changes.status())) {
      ASSERT_GT(*first, *position);
      *position = *first;
      return;
    }
    ASSERT_TRUE(changes.ok()) << changes.status();
    auto expected = std::find_if(model_.begin(), model_.end(),
                                 [&](const Commit& each) { return each.version > *position; });
    absl::StatusOr<bool> next = true;
    for (uint64_t most = 1 + random_() % 300; most > 0; --most) {
      next = (*changes)->Next();
      if (!next.ok() || !*next) break;
      ASSERT_NE(expected, model_.end());
      ASSERT_EQ(CommitOf((*changes)->change()), *expected++);
    }
    *position = (*changes)->position();
    if (const auto first = FirstOfTrimmed(next.status())) {
      ASSERT_GT(*first, *position);
      *position = *first;
      return;
    }
    ASSERT_TRUE(next.ok()) << next.status();
    if (expected != model_.end()) ASSERT_LT(*position, expected->version);
    if (!*next) ASSERT_EQ(expected, model_.end()) << "everything is delivered";
  }

  std::mt19937_64 random_{static_cast<uint64_t>(GetParam())};
  std::vector<NamespaceId> spaces_ = {0};
  std::map<NamespaceId, std::string> names_;
  std::vector<Commit> model_;
};

TEST_P(ChangeFeedModelTest, ReadersEqualTheModel) {
  const bool trims = GetParam() % 2 == 1;
  Open({.bytes = trims ? 300'000u : 64u << 20});
  SequenceNumber positions[3] = {};
  for (int step = 0; step < 3000; ++step) {
    ASSERT_NO_FATAL_FAILURE(WriteSomething());
    if (random_() % 40 == 0) clock_.Advance(700);
    if (random_() % 60 == 0) {
      ASSERT_NO_FATAL_FAILURE(Consume(&positions[random_() % 3]));
    }
    const uint64_t choice = random_() % 1000;
    if (choice < 4) ASSERT_TRUE(store().Flush().ok());
    if (choice == 4) store_->Open();  // what a crash leaves
    if (choice == 5) store_->Reopen();
    if (choice == 6) ASSERT_TRUE(store().Compact("", "").ok());
  }
  for (SequenceNumber& position : positions) {
    for (SequenceNumber before = ~SequenceNumber{0}; before != position;) {
      before = position;
      ASSERT_NO_FATAL_FAILURE(Consume(&position));
    }
    EXPECT_EQ(position, model_.back().version);
  }
  EXPECT_EQ(First() != 0, trims);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ChangeFeedModelTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace varve
