// What scans tell those after them: how far they came, and what the disk is asked for then.
#include "db/segment/scan_history.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "unit-tests/testing/segment_fixture.h"
#include "util/os/forwarding_file.h"
#include "util/os/forwarding_file_system.h"

namespace varve {
namespace {

using testing::NumberedKey;
using testing::NumberedRecords;
using testing::SegmentFixture;

TEST(ScanHistoryTest, TheReachLiesAboveMostOfWhatWasNoted) {
  std::atomic<uint64_t> usual{0};
  ScanHistory history(&usual);
  EXPECT_EQ(history.reach(), 0u);
  for (int i = 0; i < 300; ++i) history.NoteReach(i % 2 == 0 ? 20'000 : 40'000);
  EXPECT_GT(history.reach(), 32'000u);
  EXPECT_LT(history.reach(), 40'000u);
  for (int i = 0; i < 300; ++i) history.NoteReach(4000);
  EXPECT_LT(history.reach(), 8000u);
  for (int i = 0; i < 300; ++i) history.NoteReach(uint64_t{1} << 40);
  EXPECT_LE(history.reach(), ScanHistory::kMostReach);
  EXPECT_EQ(ScanHistory(&usual).reach(), history.reach()) << "the next segment begins with it";
}

struct Stretch {
  uint64_t begin = 0;
  uint64_t size = 0;
  uint64_t end() const { return begin + size; }
};

// What a file was read and asked for, and whether the kernel is to have it.
struct FileUse {
  bool kernel_has_it = false;
  std::vector<Stretch> reads;
  std::vector<Stretch> asks;
  std::string order;  // 'r' for each read, 'a' for each ask
};

class WatchedFile final : public ForwardingFile {
 public:
  WatchedFile(std::unique_ptr<File> file, FileUse* use)
      : ForwardingFile(std::move(file)), use_(*use) {}
  absl::StatusOr<size_t> Read(uint64_t offset, size_t size, char* buffer) const override {
    use_.reads.push_back({offset, size});
    use_.order.push_back('r');
    return ForwardingFile::Read(offset, size, buffer);
  }
  bool Prefetch(uint64_t offset, uint64_t size) const override {
    use_.asks.push_back({offset, size});
    use_.order.push_back('a');
    return use_.kernel_has_it;
  }

 private:
  FileUse& use_;
};

class WatchedFileSystem final : public ForwardingFileSystem {
 public:
  explicit WatchedFileSystem(FileUse* use) : ForwardingFileSystem(PosixFileSystem()), use_(use) {}
  absl::StatusOr<std::unique_ptr<File>> OpenForRead(const std::string& path) override {
    absl::StatusOr<std::unique_ptr<File>> file = ForwardingFileSystem::OpenForRead(path);
    if (!file.ok()) return file.status();
    return std::make_unique<WatchedFile>(*std::move(file), use_);
  }

 private:
  FileUse* const use_;
};

class ScanReadsTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kKeys = 20'000, kBlock = 4096, kValue = 1000;

  ScanReadsTest() {
    const SegmentInfo info = fixture_.Build(1, NumberedRecords(kKeys, kValue), kBlock);
    auto segment = Segment::Open(&files_, fixture_.directory.path(), info, fixture_.caches.get());
    EXPECT_TRUE(segment.ok()) << segment.status();
    segment_ = *std::move(segment);
    Scan(1);  // loads the fences
  }
  // Seeks a key that nobody has come near yet, and takes so many records from there on.
  void Scan(uint64_t records) {
    const uint64_t first = next_;
    next_ += 60;
    ASSERT_LT(next_, kKeys);
    const auto iterator = segment_->NewIterator(/*fill_cache=*/true);
    iterator->Seek(NumberedKey(2 * first), kMaxSequence);
    for (uint64_t i = 1; i < records; ++i) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status();
      ASSERT_EQ(iterator->record().key, NumberedKey(2 * (first + i - 1)));
      iterator->Next();
    }
    ASSERT_TRUE(iterator->Valid());
  }
  void Forget() {
    use_.reads.clear();
    use_.asks.clear();
    use_.order.clear();
  }

  FileUse use_;
  WatchedFileSystem files_{&use_};
  SegmentFixture fixture_;
  std::shared_ptr<Segment> segment_;
  uint64_t next_ = 0;
};

TEST_F(ScanReadsTest, OneReadBringsWhatScansBeforeCameTo) {
  constexpr uint64_t kRecords = 40;
  Forget();
  Scan(kRecords);
  EXPECT_GT(use_.reads.size(), 3u) << "nothing is known yet";
  for (int i = 0; i < 60; ++i) Scan(kRecords);
  Forget();
  for (int i = 0; i < 20; ++i) Scan(kRecords);
  EXPECT_EQ(use_.asks.size(), 20u);
  EXPECT_LE(use_.reads.size(), 30u);
  for (const Stretch& ask : use_.asks) {
    EXPECT_GE(ask.size, kRecords * kValue);
    EXPECT_LE(ask.size, kRecords * (kValue + 40) + 3 * kBlock);
  }
  EXPECT_EQ(use_.reads.front().end(), use_.asks.front().end());
}

TEST_F(ScanReadsTest, ShortScansAskForNothing) {
  for (int i = 0; i < 60; ++i) Scan(1);
  Forget();
  for (int i = 0; i < 20; ++i) Scan(1);
  EXPECT_EQ(use_.asks.size(), 0u);
  EXPECT_LE(use_.reads.size(), 40u);
  for (const Stretch& read : use_.reads) EXPECT_LE(read.size, 2 * kBlock);
}

// In a thread of its own, as each thread remembers whether asks were in vain.
TEST_F(ScanReadsTest, WhereTheKernelHasAllDataFewAsk) {
  use_.kernel_has_it = true;
  std::thread([this] {
    for (int i = 0; i < 20; ++i) Scan(40);
    Forget();
    for (int i = 0; i < 200; ++i) Scan(40);
    EXPECT_GE(use_.asks.size(), 200u / 32);
    EXPECT_LE(use_.asks.size(), 20u);
    use_.kernel_has_it = false;
    for (int i = 0; i < 40; ++i) Scan(40);
    Forget();
    for (int i = 0; i < 20; ++i) Scan(40);
    EXPECT_EQ(use_.asks.size(), 20u) << "once one found nothing";
  }).join();
}

TEST_F(ScanReadsTest, TheWayBackTellsAndAsksForNothing) {
  for (int i = 0; i < 60; ++i) Scan(40);
  const uint64_t reach = segment_->scan_history().reach();
  const auto iterator = segment_->NewIterator(/*fill_cache=*/true);
  Forget();
  for (int i = 0; i < 60; ++i) {
    iterator->ExpectWayBack();
    iterator->Seek(NumberedKey(2 * (next_ += 60)), kMaxSequence);
    for (int step = 0; step < 20; ++step) iterator->Prev();
  }
  EXPECT_EQ(use_.asks.size(), 0u);
  EXPECT_EQ(segment_->scan_history().reach(), reach);
  Scan(40);
  EXPECT_EQ(use_.asks.size(), 1u) << "forward as before";
}

// Two cursors are sought together, as a merging iterator seeks them.
class ScanOfTwoTest : public ScanReadsTest {
 protected:
  ScanOfTwoTest() {
    const SegmentInfo info = fixture_.Build(2, NumberedRecords(kKeys, kValue), kBlock);
    auto segment = Segment::Open(&files_, fixture_.directory.path(), info, fixture_.caches.get());
    EXPECT_TRUE(segment.ok()) << segment.status();
    other_ = *std::move(segment);
  }
  void ScanBoth(uint64_t first, uint64_t records) {
    std::vector<std::unique_ptr<InternalIterator>> cursors;
    for (const auto& segment : {segment_, other_})
      cursors.push_back(segment->NewIterator(/*fill_cache=*/true));
    using SeekStep = InternalIterator::SeekStep;
    for (const SeekStep step :
         {SeekStep::kFindPlace, SeekStep::kFetchPlace, SeekStep::kFetchRecord}) {
      for (const auto& cursor : cursors) cursor->PrepareSeek(NumberedKey(2 * first), step);
    }
    for (const auto& cursor : cursors) cursor->Seek(NumberedKey(2 * first), kMaxSequence);
    for (const auto& cursor : cursors) {
      for (uint64_t i = 1; i < records; ++i) cursor->Next();
      ASSERT_TRUE(cursor->Valid()) << cursor->status();
      ASSERT_EQ(cursor->record().key, NumberedKey(2 * (first + records - 1)));
    }
  }

  std::shared_ptr<Segment> other_;
};

TEST_F(ScanOfTwoTest, BothAskBeforeOneWaits) {
  for (int i = 0; i < 60; ++i) ScanBoth(next_ += 60, 40);
  Forget();
  ScanBoth(next_ += 60, 40);
  EXPECT_EQ(use_.order.substr(0, 4), "aarr");
  EXPECT_LE(use_.order.size(), 6u);
  for (const Stretch& ask : use_.asks) EXPECT_GE(ask.size, 40 * kValue);
}

TEST_F(ScanOfTwoTest, ShortScansLeaveTheirBlocksInTheCache) {
  std::thread([this] {  // no question of this thread was in vain
    ScanBoth(100, 1);
    Forget();
    ScanBoth(5000, 1);
    EXPECT_EQ(use_.order, "aarr");
    for (const Stretch& ask : use_.asks) EXPECT_LE(ask.size, 2 * kBlock);
    Forget();
    ScanBoth(5000, 1);
    EXPECT_EQ(use_.order, "");
  })
      .join();
}

}  // namespace
}  // namespace varve
