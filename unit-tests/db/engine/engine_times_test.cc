// When versions were committed: across flushes, crashes, clocks that are set, and damage.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "db/version/manifest.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/fault_file_system.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/test_store.h"

namespace varve {
namespace {

using testing::ManualClock;
using testing::TestStore;

class EngineTimesTest : public ::testing::Test {
 protected:
  static EngineOptions Options(const ManualClock* clock) {
    EngineOptions options = testing::TestEngineOptions();
    options.clock = clock;
    return options;
  }
  SequenceNumber Put(const std::string& key) {
    WriteBatch batch;
    batch.Put(key, "value");
    return store_->Write({}, &batch).value().sequence;
  }
  uint64_t InstantOf(SequenceNumber version) { return store_->InstantOf(version).value_or(0); }
  SequenceNumber VersionAt(uint64_t instant) { return store_->VersionAt(instant).value_or(0); }

  ManualClock clock_;
  TestStore store_{Options(&clock_)};
};

TEST_F(EngineTimesTest, AVersionHasTheInstantOfItsCommit) {
  const uint64_t begin = clock_.WallMillis();
  const SequenceNumber first = Put("a");
  clock_.Advance(10'000);
  const SequenceNumber second = Put("b");
  clock_.Advance(400);
  const SequenceNumber third = Put("c");
  EXPECT_EQ(InstantOf(first), begin);
  EXPECT_EQ(InstantOf(second), begin + 10'000);
  EXPECT_EQ(InstantOf(third), begin + 10'000) << "less than a second early";
  EXPECT_EQ(VersionAt(begin + 9'999), first);
  EXPECT_EQ(VersionAt(begin + 10'000), third);
  EXPECT_EQ(VersionAt(begin + 99'000), third);
  EXPECT_TRUE(absl::IsNotFound(store_->VersionAt(begin - 1).status()));
  EXPECT_TRUE(absl::IsOutOfRange(store_->InstantOf(third + 1).status()));
}

TEST_F(EngineTimesTest, MarksTakeNoSequence) {
  const SequenceNumber first = Put("a");
  clock_.Advance(10'000);
  EXPECT_EQ(Put("b"), first + 1);
}

TEST_F(EngineTimesTest, TimesSurviveFlushesAndRestarts) {
  const uint64_t begin = clock_.WallMillis();
  std::vector<SequenceNumber> versions;
  for (int i = 0; i < 30; ++i) {
    versions.push_back(Put("key" + std::to_string(i)));
    clock_.Advance(1'500);
    if (i % 10 == 4) ASSERT_TRUE(store_->Flush().ok());
    if (i % 10 == 8) store_.Reopen();
    if (i % 10 == 9) store_.Open();  // without closing it: what a crash leaves
  }
  for (size_t i = 0; i < versions.size(); ++i) {
    EXPECT_EQ(InstantOf(versions[i]), begin + i * 1'500) << i;
    EXPECT_EQ(VersionAt(begin + i * 1'500), versions[i]) << i;
  }
}

TEST_F(EngineTimesTest, AClockThatIsSetBackChangesNoOrder) {
  const uint64_t begin = clock_.WallMillis();
  const SequenceNumber first = Put("a");
  clock_.SetWall(begin - 50'000);
  const SequenceNumber second = Put("b");
  EXPECT_EQ(InstantOf(second), begin) << "until the clock has come past that instant";
  clock_.SetWall(begin + 2'000);
  const SequenceNumber third = Put("c");
  EXPECT_EQ(InstantOf(first), begin);
  EXPECT_EQ(InstantOf(third), begin + 2'000);
  EXPECT_EQ(VersionAt(begin + 1'000), second);
}

TEST_F(EngineTimesTest, ADamagedTimeFileCostsOnlyOldTimes) {
  const SequenceNumber old = Put("a");
  ASSERT_TRUE(store_->Flush().ok());
  store_.Close();
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
    if (entry.path().extension() != ".tim") continue;
    ++files;
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(30);
    file.put('x');
  }
  ASSERT_EQ(files, 1);
  store_.Open();
  EXPECT_EQ(store_.Get("a"), "value");
  EXPECT_TRUE(absl::IsNotFound(store_->InstantOf(old).status()));
  clock_.Advance(5'000);
  const SequenceNumber fresh = Put("b");
  EXPECT_EQ(InstantOf(fresh), clock_.WallMillis());
  ASSERT_TRUE(store_->Flush().ok());
  store_.Reopen();
  EXPECT_EQ(InstantOf(fresh), clock_.WallMillis());
}

// The kernel may take a second sync for good although it has lost what the first one failed to
// write, so nothing is ever written behind the end of such a file.
TEST(EngineTimesFaultTest, AFailedSyncOfTheTimeFileBeginsANewOne) {
  ManualClock clock;
  testing::FaultFileSystem files;
  EngineOptions options = testing::TestEngineOptions();
  options.clock = &clock;
  options.file_system = &files;
  TestStore store(options);
  const auto put = [&](const std::string& key) {
    WriteBatch batch;
    batch.Put(key, "value");
    clock.Advance(2'000);
    return store->Write({}, &batch)->sequence;
  };
  const auto name_of_time_file = [&] {
    return ReadManifest(&files, store.directory.path())->times.number;
  };
  const SequenceNumber first = put("a");
  ASSERT_TRUE(store->Flush().ok());
  const uint64_t before = name_of_time_file();
  const SequenceNumber second = put("b");
  files.Fail(testing::FileOperation::kSync, 1, absl::InternalError("EIO"), /*times=*/1, ".tim");
  // The flush thread tries again.
  ASSERT_TRUE(testing::Eventually([&] { return store->Flush().ok(); }));
  EXPECT_NE(name_of_time_file(), before);
  const uint64_t instant = store->InstantOf(second).value();
  store.Reopen();
  EXPECT_EQ(store->InstantOf(second).value(), instant);
  EXPECT_EQ(store->InstantOf(first).value(), instant - 2'000);
}

TEST_F(EngineTimesTest, OldMarksAreThinnedOutOfTheFileToo) {
  for (int i = 0; i < 12'000; ++i) {
    Put("key" + std::to_string(i % 7));
    clock_.Advance(1'000);
    if (i % 1'000 == 999) ASSERT_TRUE(store_->Flush().ok());
  }
  store_.Close();
  uint64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(store_.directory.path())) {
    if (entry.path().extension() == ".tim") bytes += entry.file_size();
  }
  EXPECT_GT(bytes, 3'600u * 16) << "an hour is kept whole";
  EXPECT_LT(bytes, 12'000u * 16);
  store_.Open();
}

// A store of an earlier version goes on in its format until somebody finalizes its upgrade.
TEST_F(EngineTimesTest, AnOldStoreKeepsNoTimesUntilItsUpgradeIsFinalized) {
  Put("a");
  store_.Close();
  FileSystem* const files = PosixFileSystem();
  Manifest manifest = ReadManifest(files, store_.directory.path()).value();
  ASSERT_TRUE(manifest.has_history);
  EXPECT_NE(manifest.history_id, 0u);
  manifest.has_history = manifest.shares_keys = false;
  manifest.history_id = 0;
  manifest.times = {};
  ASSERT_TRUE(WriteManifest(files, store_.directory.path(), manifest).ok());

  store_.Open();
  clock_.Advance(3'000);
  const SequenceNumber before = Put("b");
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->InstantOf(before).status()));
  ASSERT_TRUE(store_->Flush().ok());
  store_.Close();
  EXPECT_FALSE(ReadManifest(files, store_.directory.path())->has_history);

  store_.options.finalize_upgrade = true;
  store_.Open();
  clock_.Advance(3'000);
  const SequenceNumber after = Put("c");
  EXPECT_EQ(InstantOf(after), clock_.WallMillis());
  EXPECT_TRUE(absl::IsNotFound(store_->InstantOf(before).status()));
  store_.options.finalize_upgrade = false;
  store_.Reopen();
  EXPECT_EQ(InstantOf(after), clock_.WallMillis()) << "it stays so";
}

}  // namespace
}  // namespace varve
