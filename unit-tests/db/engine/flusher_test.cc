#include "db/engine/flusher.h"

#include <gtest/gtest.h>

#include <string>

#include "db/version/manifest.h"
#include "unit-tests/db/engine/engine_parts.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::EngineParts;
using testing::Eventually;
using testing::FileOperation;

class FlusherTest : public ::testing::Test {
 protected:
  ~FlusherTest() override { flusher_.Stop(); }
  uint64_t Segments() { return parts_.versions().PresentVersion()->segment_count(); }

  EngineParts parts_;
  Flusher flusher_{parts_.Parts(), &parts_.version_set(), &parts_.pipeline(), &parts_.sweeper()};
};

TEST_F(FlusherTest, AFullBufferBecomesASegmentThatTheManifestNames) {
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(parts_.Put("k" + std::to_string(i), "value").ok());
  flusher_.Start();
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  EXPECT_EQ(Segments(), 1u);
  EXPECT_EQ(parts_.version_set().CurrentManifest().flushed_sequence, 100u);
  EXPECT_EQ(parts_.versions().full_buffers(), 0);
  EXPECT_EQ(parts_.Files(".seg").size(), 1u);
  EXPECT_EQ(parts_.Get("k99"), "value");
  EXPECT_TRUE(Eventually([&] { return flusher_.flushes() == 1; }));
  EXPECT_GE(flusher_.flushed_bytes(), 100 * std::string("value").size());
}

TEST_F(FlusherTest, SegmentsHoldNothingThatTheLogCouldStillLose) {
  const absl::StatusOr<CommitResult> put = parts_.Put("key", "value");
  ASSERT_TRUE(put.ok()) << put.status();
  ASSERT_LT(parts_.log()->durable_sequence(), put->sequence);
  flusher_.Start();
  ASSERT_TRUE(parts_.pipeline().FlushAll().ok());
  EXPECT_GE(parts_.log()->durable_sequence(), put->sequence);
}

TEST_F(FlusherTest, BuffersAreFlushedOldestFirst) {
  ASSERT_TRUE(parts_.Put("key", "old").ok());
  ASSERT_TRUE(parts_.Put("gone", "old").ok());
  parts_.Rotate();
  ASSERT_TRUE(parts_.Put("key", "new").ok());
  ASSERT_TRUE(parts_.Delete("gone").ok());
  parts_.Rotate();
  EXPECT_EQ(parts_.versions().full_buffers(), 2);
  flusher_.Start();
  EXPECT_TRUE(Eventually([&] { return flusher_.flushes() == 2; }));
  EXPECT_EQ(parts_.versions().full_buffers(), 0);
  EXPECT_EQ(parts_.versions().PresentVersion()->runs().size(), 2u);
  EXPECT_EQ(parts_.Get("key"), "new");
  EXPECT_EQ(parts_.Get("gone"), "-");
}

TEST_F(FlusherTest, WritesAreRefusedWhileFlushesFailAndGoOnBehindThem) {
  ASSERT_TRUE(parts_.Put("key", "value").ok());
  parts_.files().Fail(FileOperation::kCreate, 1, absl::ResourceExhaustedError("no disk"),
                      testing::FailingFileSystem::kUnlimited, ".seg");
  flusher_.Start();
  EXPECT_FALSE(parts_.pipeline().FlushAll().ok());
  EXPECT_TRUE(absl::IsResourceExhausted(parts_.Put("more", "value").status()));
  EXPECT_TRUE(parts_.Delete("more").ok()) << "what makes room is taken";
  EXPECT_EQ(flusher_.flushes(), 0u);
  EXPECT_EQ(Segments(), 0u);
  EXPECT_EQ(parts_.Get("key"), "value");
  parts_.files().ClearFaults();
  EXPECT_TRUE(Eventually([&] { return flusher_.flushes() == 1; }));
  EXPECT_TRUE(parts_.Put("more", "value").ok());
  EXPECT_EQ(parts_.Get("key"), "value");
}

TEST_F(FlusherTest, NothingIsFlushedThatAFailedLogLost) {
  ASSERT_TRUE(parts_.Put("key", "value").ok());
  parts_.FailLog();
  flusher_.Start();
  EXPECT_FALSE(parts_.pipeline().FlushAll().ok());
  flusher_.Stop();
  EXPECT_EQ(flusher_.flushes(), 0u);
  EXPECT_TRUE(parts_.Files(".seg").empty());
}

TEST_F(FlusherTest, AStopEndsTheThreadAndMayComeTwice) {
  flusher_.Start();
  flusher_.Stop();
  flusher_.Stop();
  EXPECT_TRUE(parts_.versions().stopped());
}

}  // namespace
}  // namespace varve
