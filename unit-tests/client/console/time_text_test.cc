#include "client/console/time_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(TimeTextTest, ReadsWhatItWrites) {
  EXPECT_EQ(TimeText(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(TimeText(1'764'099'180'000), "2025-11-25T19:33:00Z");
  EXPECT_EQ(TimeText(1'764'099'180'250), "2025-11-25T19:33:00.250Z");
  for (const uint64_t ms : {uint64_t{0}, uint64_t{1'764'099'180'000}, uint64_t{1'764'099'180'007}})
    EXPECT_EQ(*ParseTimeText(TimeText(ms)), ms);
}

TEST(TimeTextTest, AnOffsetSaysWhere) {
  const uint64_t ms = *ParseTimeText("2025-11-25T19:33:00Z");
  EXPECT_EQ(*ParseTimeText("2025-11-25T20:33:00+01:00"), ms);
  EXPECT_EQ(*ParseTimeText("2025-11-25T14:03:00-05:30"), ms);
  EXPECT_EQ(*ParseTimeText("2025-11-25T19:33:00.0019Z"), ms + 1);
  // A leap second is the second that follows it.
  EXPECT_EQ(*ParseTimeText("2016-12-31T23:59:60Z"), *ParseTimeText("2017-01-01T00:00:00Z"));
}

TEST(TimeTextTest, WithoutAnOffsetItIsNoInstant) {
  for (const char* text :
       {"2025-11-25T19:33:00", "2025-11-25", "19:33", "yesterday", "", "2025-13-25T19:33:00Z",
        "1969-12-31T23:59:59Z", "infinite-future", "1764099180"}) {
    const absl::Status status = ParseTimeText(text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << text;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("2026-11-25T19:33:00Z"));
  }
}

}  // namespace
}  // namespace varve
