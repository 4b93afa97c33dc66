#include "db/log/log_room.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

constexpr uint64_t kPage = kLogPageSize;

class LogRoomTest : public ::testing::Test {
 protected:
  LogRoomTest() { room_.Begin(10 * kPage); }

  std::atomic<uint64_t> safe_{0};
  LogRoom room_{2 * kPage, &safe_};  // two pages for deletes
};

TEST_F(LogRoomTest, ARecordIsPromisedABlockOfItsOwn) {
  EXPECT_EQ(LogRoom::WorstCase(1), kPage);
  EXPECT_EQ(LogRoom::WorstCase(kPage - kLogBlockHeaderSize), kPage);
  EXPECT_EQ(LogRoom::WorstCase(kPage), 2 * kPage);
}

TEST_F(LogRoomTest, TheLastFileKeepsAReserveForDeletes) {
  EXPECT_TRUE(room_.Fits(7 * kPage, /*next_size=*/0, /*for_deletes=*/false));
  EXPECT_FALSE(room_.Fits(8 * kPage, 0, false));
  EXPECT_TRUE(room_.Fits(9 * kPage, 0, true));
  EXPECT_FALSE(room_.Fits(10 * kPage, 0, true));
  EXPECT_TRUE(room_.Fits(9 * kPage, 10 * kPage, false)) << "the reserve is in the next file";
  EXPECT_TRUE(room_.Fits(10 * kPage, 13 * kPage, false)) << "in the next file";
}

TEST_F(LogRoomTest, WhatDoesNotFitGoesToTheNextFile) {
  room_.Take(8 * kPage, 10 * kPage);
  EXPECT_FALSE(room_.GoesToNextFile(kPage));
  EXPECT_TRUE(room_.GoesToNextFile(2 * kPage));
  room_.Take(2 * kPage, 10 * kPage);
  EXPECT_FALSE(room_.GoesToNextFile(kPage)) << "it is there already";
  EXPECT_TRUE(room_.Fits(5 * kPage, 10 * kPage, false));
  EXPECT_FALSE(room_.Fits(6 * kPage, 10 * kPage, false));
}

TEST_F(LogRoomTest, WritingBringsTheCursorBack) {
  for (int i = 0; i < 7; ++i) room_.Take(kPage, 0);
  EXPECT_FALSE(room_.Fits(kPage, 0, false));
  room_.BufferIsWritten();
  room_.BringBack(kPage + 700, 0);  // they shared a page
  EXPECT_TRUE(room_.Fits(6 * kPage, 0, false));
  EXPECT_FALSE(room_.Fits(7 * kPage, 0, false));
}

TEST_F(LogRoomTest, WhatWasAppendedMeanwhileKeepsItsRoom) {
  for (int i = 0; i < 4; ++i) room_.Take(kPage, 0);
  room_.BufferIsWritten();
  room_.Take(3 * kPage, 0);
  room_.BringBack(2 * kPage, 0);
  EXPECT_TRUE(room_.Fits(3 * kPage, 0, false));
  EXPECT_FALSE(room_.Fits(4 * kPage, 0, false));
}

TEST_F(LogRoomTest, TheNextFileComesIntoUse) {
  room_.Take(8 * kPage, 20 * kPage);
  room_.Take(2 * kPage, 20 * kPage);
  room_.BufferIsWritten();
  room_.NextFile(20 * kPage);
  room_.BringBack(2 * kPage, 0);
  EXPECT_TRUE(room_.Fits(16 * kPage, 0, false));
  EXPECT_FALSE(room_.Fits(17 * kPage, 0, false));
}

TEST_F(LogRoomTest, WhatIsSafeLeavesTheReserveAndAPageForAMark) {
  room_.Take(kPage, 0);
  EXPECT_EQ(safe_, 5 * kPage);
  ASSERT_TRUE(room_.TakeMark(2 * kPage, 0));
  EXPECT_EQ(safe_, 4 * kPage);
}

TEST_F(LogRoomTest, AMarkTakesNoPageThatWasPromised) {
  EXPECT_FALSE(room_.TakeMark(2 * kPage, 0)) << "not where the cursor is";
  room_.Promise();
  EXPECT_FALSE(room_.TakeMark(kPage, 0));
  room_.EndPromise();
  EXPECT_TRUE(room_.TakeMark(kPage, 0));
  for (int i = 2; i < 8; ++i) EXPECT_TRUE(room_.TakeMark(i * kPage, 0)) << i;
  EXPECT_FALSE(room_.TakeMark(8 * kPage, 0)) << "the reserve for deletes";
  EXPECT_TRUE(room_.TakeMark(8 * kPage, 10 * kPage));
}

}  // namespace
}  // namespace varve
