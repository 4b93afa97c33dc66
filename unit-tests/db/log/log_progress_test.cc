#include "db/log/log_progress.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(LogProgressTest, OperationsAreAppendedWrittenAndDurableInThisOrder) {
  LogProgress progress(10);
  EXPECT_EQ(progress.appended(), 10u);
  EXPECT_EQ(progress.durable(), 10u);
  progress.Appended(12, Durability::kNone, 100);
  progress.Appended(13, Durability::kAlways, 50);
  EXPECT_EQ(progress.appended(), 13u);
  EXPECT_EQ(progress.last(Durability::kNone), 12u);
  EXPECT_EQ(progress.last(Durability::kAlways), 13u);
  EXPECT_EQ(progress.last(Durability::kEverySecond), 10u);
  EXPECT_EQ(progress.buffered_bytes(), 150u);
  progress.Written(12, 100);
  EXPECT_EQ(progress.written(), 12u);
  EXPECT_EQ(progress.buffered_bytes(), 50u);
  EXPECT_EQ(progress.durable(), 10u);
  progress.Durable(12);
  EXPECT_EQ(progress.durable(), 12u);
  EXPECT_EQ(progress.statistics().bytes_appended, 150u);
}

TEST(LogProgressTest, TheMarkIsBehindOnceEverythingIsDurable) {
  LogProgress progress(0);
  EXPECT_FALSE(progress.mark_is_behind());
  progress.Appended(1, Durability::kAlways, 1);
  progress.Written(1, 1);
  EXPECT_FALSE(progress.mark_is_behind()) << "not all is durable";
  progress.Durable(1);
  EXPECT_TRUE(progress.mark_is_behind());
  progress.MarkWritten(1);
  EXPECT_FALSE(progress.mark_is_behind());
}

TEST(LogProgressTest, TheFirstFailureStays) {
  LogProgress progress(0);
  EXPECT_TRUE(progress.status().ok());
  const absl::Status first = progress.Fail(absl::InternalError("EIO at offset 7"));
  EXPECT_TRUE(absl::IsUnavailable(first)) << first;
  EXPECT_NE(first.message().find("EIO at offset 7"), std::string::npos);
  EXPECT_EQ(progress.Fail(absl::InternalError("another")), first);
  EXPECT_EQ(progress.status(), first);
  EXPECT_TRUE(progress.failed());
}

}  // namespace
}  // namespace varve
