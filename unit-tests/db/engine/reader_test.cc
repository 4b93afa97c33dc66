#include "db/engine/reader.h"

#include <gtest/gtest.h>

#include <string>

#include "db/engine/flusher.h"
#include "unit-tests/db/engine/engine_parts.h"

namespace varve {
namespace {

using testing::EngineParts;
using testing::FailingFileSystem;
using testing::FileOperation;

constexpr ReadOptions kAtOnce{.wait_until_durable = false};

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() { flusher_.Start(); }
  ~ReaderTest() override { flusher_.Stop(); }
  // "key=value " of all that an iterator shows.
  std::string Scan(const ReadOptions& options) {
    std::string text;
    const auto iterator = parts_.reader().NewIterator(options, {}, {}, nullptr);
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next())
      text.append(iterator->key()).append("=").append(iterator->value()).append(" ");
    EXPECT_TRUE(iterator->status().ok()) << iterator->status();
    return text;
  }

  EngineParts parts_;
  Flusher flusher_{parts_.Parts(), &parts_.version_set(), &parts_.pipeline(), &parts_.sweeper()};
};

TEST_F(ReaderTest, TheNewestOfAllLayersIsFound) {
  for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(parts_.Put(key, "segment").ok());
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  ASSERT_TRUE(parts_.Put("b", "buffer").ok());
  ASSERT_TRUE(parts_.Delete("c").ok());
  EXPECT_EQ(parts_.Get("a"), "segment");
  EXPECT_EQ(parts_.Get("b"), "buffer");
  EXPECT_EQ(parts_.Get("c"), "-");
  EXPECT_EQ(Scan(kAtOnce), "a=segment b=buffer ");
  const absl::StatusOr<CountResult> count = parts_.reader().Count(kAtOnce, "a", "b");
  ASSERT_TRUE(count.ok()) << count.status();
  EXPECT_EQ(count->keys, 1u);
}

TEST_F(ReaderTest, AResultSaysWhatHasToBeDurableForIt) {
  const absl::StatusOr<CommitResult> put = parts_.Put("key", "value");
  ASSERT_TRUE(put.ok()) << put.status();
  absl::StatusOr<ReadResult> read = parts_.reader().Get(kAtOnce, "key", nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->durable_after, put->sequence);
  EXPECT_EQ(read->version, put->sequence);
  EXPECT_EQ(read->value_size, 5u);
  ASSERT_TRUE(parts_.log()->Sync().ok());
  read = parts_.reader().Get(kAtOnce, "key", nullptr);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->durable_after, kNoSequence);
  EXPECT_EQ(parts_.reader().gets(), 2u);
}

TEST_F(ReaderTest, WhoAsksForItWaitsUntilTheResultIsDurable) {
  const absl::StatusOr<CommitResult> put = parts_.Put("key", "value");
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_LT(parts_.log()->durable_sequence(), put->sequence);
  ASSERT_TRUE(parts_.reader().Get({}, "key", nullptr).ok());
  EXPECT_GE(parts_.log()->durable_sequence(), put->sequence);
}

TEST_F(ReaderTest, ASnapshotShowsWhatWasThere) {
  ASSERT_TRUE(parts_.Put("key", "old").ok());
  const std::shared_ptr<const Snapshot> snapshot = parts_.reader().GetSnapshot();
  ASSERT_TRUE(parts_.Put("key", "new").ok());
  ASSERT_TRUE(parts_.Put("later", "new").ok());
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  EXPECT_EQ(Scan({.snapshot = snapshot.get()}), "key=old ");
  EXPECT_EQ(Scan({}), "key=new later=new ");
}

TEST_F(ReaderTest, AReadThatAFailedLogOvertakesIsAnsweredAsOfWhatIsDurable) {
  ASSERT_TRUE(parts_.Put("key", "durable").ok());
  ASSERT_TRUE(parts_.log()->Sync().ok());
  ASSERT_TRUE(parts_.Put("key", "lost").ok());
  parts_.FailLog();
  std::string value;
  const absl::StatusOr<ReadResult> read = parts_.reader().Get({}, "key", &value);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(value, "durable");
  EXPECT_EQ(parts_.log_failures_noted(), 1);
  EXPECT_EQ(Scan({}), "key=durable ");
  EXPECT_EQ(Scan({.snapshot = parts_.reader().GetSnapshot().get()}), "key=durable ");
}

TEST_F(ReaderTest, WhatCannotBeReadIsAnErrorAndNoMissingKey) {
  ASSERT_TRUE(parts_.Put("key", "value").ok());
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  parts_.files().Fail(FileOperation::kRead, 1, absl::InternalError("bad sector"),
                      FailingFileSystem::kUnlimited, ".seg");
  EXPECT_NE(parts_.Get("key").find("bad sector"), std::string::npos) << parts_.Get("key");
  parts_.files().ClearFaults();
  EXPECT_EQ(parts_.Get("key"), "value");
}

TEST_F(ReaderTest, AnUnknownNamespaceIsNotReadAsAnEmptyOne) {
  const ReadOptions elsewhere{.space = 9, .wait_until_durable = false};
  EXPECT_FALSE(parts_.reader().HasNamespace(9));
  EXPECT_TRUE(parts_.reader().HasNamespace(kDefaultNamespace));
  EXPECT_FALSE(parts_.reader().Get(elsewhere, "key", nullptr).ok());
  EXPECT_FALSE(parts_.reader().Count(elsewhere, {}, {}).ok());
  EXPECT_FALSE(parts_.reader().NewIterator(elsewhere, {}, {}, nullptr)->status().ok());
}

}  // namespace
}  // namespace varve
