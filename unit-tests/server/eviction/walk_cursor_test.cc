// The cursor of a walk over a store some of whose keys the device fails to read.
#include "server/eviction/walk_cursor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "unit-tests/testing/map_store.h"

namespace varve {
namespace {

using testing::MapStore;

// The device fails to read each key that ends with a 5.
class FailingIterator final : public Iterator {
 public:
  FailingIterator(std::unique_ptr<Iterator> keys, int* failed)
      : keys_(std::move(keys)), failed_(*failed) {}

  bool Valid() const override { return status_.ok() && keys_->Valid(); }
  void SeekToFirst() override { Move(&Iterator::SeekToFirst); }
  void SeekToLast() override { Move(&Iterator::SeekToLast); }
  void Seek(std::string_view key) override {
    keys_->Seek(key);
    Read();
  }
  void SeekForPrev(std::string_view key) override {
    keys_->SeekForPrev(key);
    Read();
  }
  void Next() override { Move(&Iterator::Next); }
  void Prev() override { Move(&Iterator::Prev); }
  std::string_view key() const override { return keys_->key(); }
  std::string_view value() const override { return keys_->value(); }
  std::string_view metadata() const override { return keys_->metadata(); }
  SequenceNumber version() const override { return keys_->version(); }
  uint64_t expiry_ms() const override { return keys_->expiry_ms(); }
  SequenceNumber durable_after() const override { return keys_->durable_after(); }
  absl::Status status() const override { return status_.ok() ? keys_->status() : status_; }

 private:
  void Move(void (Iterator::*move)()) {
    (keys_.get()->*move)();
    Read();
  }
  void Read() {
    if (!keys_->Valid() || !keys_->key().ends_with('5')) return;
    ++failed_;
    status_ = absl::InternalError("on command");
  }

  const std::unique_ptr<Iterator> keys_;
  int& failed_;
  absl::Status status_;
};

class FailingStore final : public MapStore {
 public:
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, std::string_view lower,
                                        std::string_view upper,
                                        SequenceNumber* durable_after) override {
    ReadOptions now = options;
    now.snapshot = nullptr;  // nobody writes meanwhile
    return std::make_unique<FailingIterator>(
        MapStore::NewIterator(now, lower, upper, durable_after), &failed_reads);
  }

  int failed_reads = 0;
};

class WalkCursorTest : public ::testing::Test {
 protected:
  void Put(int keys) {
    for (int key = 0; key < keys; ++key) {
      WriteBatch batch;
      batch.Put(std::to_string(10'000 + key), "v");
      const absl::StatusOr<CommitResult> written = store_.Submit(WriteOptions(), &batch);
      ASSERT_TRUE(written.ok()) << written.status();
    }
  }
  // Returns how many keys a walk finds.
  int Walk() {
    int found = 0;
    WalkCursor walk(&store_, kDefaultNamespace, kNoSequence);
    for (; walk.Valid(); walk.Next()) ++found;
    EXPECT_TRUE(walk.status().ok()) << walk.status();
    EXPECT_TRUE(walk.has_passed_keys());
    return found;
  }

  FailingStore store_;
};

TEST_F(WalkCursorTest, AWalkPassesEachPlaceThatCannotBeRead) {
  Put(100);
  EXPECT_EQ(Walk(), 90);
}

TEST_F(WalkCursorTest, AWalkGivesUpOnADeviceThatFailsAgainAndAgain) {
  Put(1000);
  EXPECT_GT(Walk(), 90);
  EXPECT_LE(store_.failed_reads, 40) << "each may take seconds, wherever it is";
}

}  // namespace
}  // namespace varve
