#include "db/engine/version_set.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <vector>

#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/memory_file_system.h"

namespace varve {
namespace {

class VersionSetTest : public ::testing::Test {
 protected:
  VersionSetTest() {
    EXPECT_TRUE(files_.CreateDirectory("store").ok());
    EXPECT_TRUE(set_.LoadOrCreate().ok());
  }
  VersionSetParts Parts() {
    return {.file_system = &files_,
            .directory = "store",
            .options = &options_,
            .versions = &versions_,
            .log = &log_,
            .counter = &counter_,
            .clock = &clock_,
            .caches = &caches_,
            .remover = &remover_};
  }

  testing::MemoryFileSystem files_;
  testing::ManualClock time_;
  StoreClock clock_{time_};
  EngineOptions options_;
  SegmentCaches caches_{1u << 20, 1u << 20};
  FileThread file_thread_;
  FileRemover remover_{&files_, &file_thread_};
  LogView log_;
  SuperVersions versions_{64u << 10};
  KeyCounter counter_{&versions_, [] { return kMaxSequence; }, /*most_full_buffers=*/2};
  VersionSet set_{Parts()};
};

TEST_F(VersionSetTest, ANewStoreHasAManifestThatTheNextOpenReads) {
  VersionSet again(Parts());
  ASSERT_TRUE(again.LoadOrCreate().ok());
  EXPECT_EQ(again.CurrentManifest().store_id, set_.CurrentManifest().store_id);
  options_.create_if_missing = false;
  VersionSetParts elsewhere = Parts();
  elsewhere.directory = "nowhere";
  EXPECT_TRUE(absl::IsNotFound(VersionSet(elsewhere).LoadOrCreate()));
}

TEST_F(VersionSetTest, NumbersAreGivenOnce) {
  const uint64_t first = set_.NewFileNumber();
  EXPECT_EQ(set_.NewFileNumber(), first + 1);
  set_.SkipFileNumbers(first + 10);
  set_.SkipFileNumbers(first + 5);
  EXPECT_EQ(set_.NewFileNumber(), first + 11);
  const NamespaceGeneration generation = set_.NewGeneration();
  EXPECT_EQ(set_.NewGeneration(), generation + 1);
  set_.SkipGenerations(kExpiryGeneration - 1);
  EXPECT_EQ(set_.NewGeneration(), kNoGeneration);
}

TEST_F(VersionSetTest, AnInstallIsOnDiskBeforeReadersSeeIt) {
  ASSERT_TRUE(set_.OpenSegments().ok());
  const std::shared_ptr<const Version> before = versions_.PresentVersion();
  int installed = 0;
  set_.OnInstalled([&](bool flushed) {
    EXPECT_FALSE(flushed);
    ++installed;
  });
  const auto apply = [](const Version&) { return std::vector<Level>(2); };
  const auto follow = [](const Version&, SegmentKeyCounts*) {};
  ASSERT_TRUE(set_.LogAndApply({}, apply, follow).ok());
  EXPECT_EQ(installed, 1);
  EXPECT_NE(versions_.PresentVersion(), before);
  EXPECT_EQ(set_.CurrentManifest().levels.size(), 2u);
  EXPECT_EQ(ReadManifest(&files_, "store")->levels.size(), 2u);
}

TEST_F(VersionSetTest, AfterAnErrorNothingHasChanged) {
  ASSERT_TRUE(set_.OpenSegments().ok());
  const std::shared_ptr<const Version> before = versions_.PresentVersion();
  files_.CutAfter(0);
  EXPECT_FALSE(set_.LogAndApply(
                       {}, [](const Version&) { return std::vector<Level>(2); },
                       [](const Version&, SegmentKeyCounts*) {})
                   .ok());
  EXPECT_EQ(versions_.PresentVersion(), before);
  EXPECT_TRUE(set_.CurrentManifest().levels.empty());
}

TEST_F(VersionSetTest, WithoutMemoryNothingHasChangedEither) {
  ASSERT_TRUE(set_.OpenSegments().ok());
  const std::shared_ptr<const Version> before = versions_.PresentVersion();
  const absl::Status status = set_.LogAndApply(
      {}, [](const Version&) -> std::vector<Level> { throw std::bad_alloc(); },
      [](const Version&, SegmentKeyCounts*) {});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(versions_.PresentVersion(), before);
}

}  // namespace
}  // namespace varve
