#include "db/expiry/expiry_sweeper.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/manual_clock.h"
#include "unit-tests/testing/memory_file_system.h"
#include "util/base/hash.h"

namespace varve {
namespace {

// An empty tree and a log in memory; batches of the sweeper are kept for the test.
class ExpirySweeperTest : public ::testing::Test {
 protected:
  ExpirySweeperTest() {
    const Manifest manifest{.namespaces = {{kDefaultNamespace, 1}}};
    {
      absl::MutexLock lock(&versions_.mutex());
      versions_.StartLocked(std::make_shared<const Version>(), NamespaceTable(manifest),
                            kNoSequence, {});
      sweeper_.StartLocked(/*indexed=*/false);
    }
    auto log = Log::Open(&files_, {.directory = "store", .store_id = 1, .file_size = 1u << 20},
                         /*file_number=*/1, kNoSequence);
    EXPECT_TRUE(log.ok()) << log.status();
    log_.Start(*std::move(log));
  }
  ~ExpirySweeperTest() override {
    sweeper_.Stop();
    EXPECT_TRUE(log_->Close().ok());
  }

  void Start() {
    sweeper_.Start([this](WriteBatch* batch) -> absl::StatusOr<CommitResult> {
      absl::MutexLock lock(&mutex_);
      submitted_.push_back(batch->size());
      // As the pipeline would: the key and its entry are gone.
      batch->Clear();
      HideAll();
      return CommitResult{};
    });
  }
  // Puts a key with an expiry, and its entry in the index.
  void Put(std::string_view key, uint64_t expiry_ms) {
    absl::MutexLock lock(&versions_.mutex());
    const TreeKey tree_key(1, key);
    RecordView record;
    record.kind = RecordKind::kValue;
    record.key = tree_key.view();
    record.value = "v";
    record.flags = kHasExpiry;
    record.expiry_ms = expiry_ms;
    record.sequence = versions_.LastSequenceLocked() + 1;
    const ExpirySweeper::IndexEntry entry = sweeper_.NewEntry(record);
    WriteBuffer* const active = versions_.PresentLocked()->active.get();
    active->Reserve(
        WriteBuffer::SizeOf(record) + WriteBuffer::SizeOf(ExpirySweeper::RecordOf(entry)), 0);
    versions_.AdvanceLocked(record.sequence);
    sweeper_.AddLocked(entry, active);
    active->Add(record, HashKey(record.key), /*readers_wait=*/false);
    versions_.show_queue().ShowLocked(versions_.LastSequenceLocked());
  }
  void HideAll() {
    absl::MutexLock lock(&versions_.mutex());
    if (versions_.ActiveBufferIsEmptyLocked()) return;
    versions_.RotateLocked(0);
    const std::shared_ptr<SuperVersion> next = versions_.CopyLocked();
    next->full.clear();
    const SequenceNumber last = versions_.LastSequenceLocked();
    versions_.PopFlushedLocked(last, {}, kNoSequence, {});
    versions_.PublishLocked(next);
  }
  std::vector<size_t> submitted() {
    absl::MutexLock lock(&mutex_);
    return submitted_;
  }

  testing::MemoryFileSystem files_;
  testing::ManualClock time_;
  StoreClock clock_{time_};
  LogView log_;
  SuperVersions versions_{64u << 10};
  ExpirySweeper sweeper_{&versions_, &log_, &clock_};
  absl::Mutex mutex_;
  std::vector<size_t> submitted_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(ExpirySweeperTest, NothingIsRemovedBeforeItsTime) {
  Start();
  Put("key", time_.WallMillis() + 60'000);
  EXPECT_TRUE(sweeper_.SweepAll().ok());
  EXPECT_TRUE(submitted().empty());
  EXPECT_EQ(sweeper_.expired_keys(), 0u);
}

TEST_F(ExpirySweeperTest, AKeyAndItsEntryGoTogetherAndTheListenerHearsOfTheKey) {
  std::vector<std::string> heard;
  sweeper_.SetListener(
      [&](NamespaceId, std::string_view key, SequenceNumber) { heard.emplace_back(key); });
  Put("key", time_.WallMillis() + 10);
  time_.Advance(60'000);
  Start();
  EXPECT_TRUE(sweeper_.SweepAll().ok());
  sweeper_.SetListener(nullptr);
  EXPECT_EQ(submitted(), std::vector<size_t>{2});
  EXPECT_EQ(heard, std::vector<std::string>{"key"});
  EXPECT_EQ(sweeper_.expired_keys(), 1u);
  EXPECT_EQ(sweeper_.operations(), 2u);
}

// A key that was written again with another expiry has two entries, and both of them removed it.
TEST_F(ExpirySweeperTest, AKeyWithTwoEntriesIsRemovedOnce) {
  Put("key", time_.WallMillis() + 10);
  Put("key", time_.WallMillis() + 20);
  time_.Advance(60'000);
  Start();
  EXPECT_TRUE(sweeper_.SweepAll().ok());
  EXPECT_EQ(submitted(), std::vector<size_t>{3}) << "the key and its two entries";
  EXPECT_EQ(sweeper_.expired_keys(), 1u);
}

TEST_F(ExpirySweeperTest, TheThreadRemovesWhatIsDueByItself) {
  time_.Advance(1);
  Put("key", time_.WallMillis() - 1);
  Start();
  EXPECT_TRUE(testing::Eventually([&] { return sweeper_.expired_keys() == 1; }));
}

}  // namespace
}  // namespace varve
