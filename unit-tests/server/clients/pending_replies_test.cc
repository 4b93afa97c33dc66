#include "server/clients/pending_replies.h"

#include <gtest/gtest.h>

#include <string>

namespace varve {
namespace {

void Write(PendingReplies* replies, std::string_view bytes, SequenceNumber durable_after,
           uint32_t count = 1) {
  replies->bytes().Append(bytes);
  replies->Mark(durable_after, count);
}

TEST(PendingRepliesTest, LetsOutInOrderUpToTheFirstReplyThatMustWait) {
  PendingReplies replies;
  Write(&replies, "aa", kNoSequence);
  Write(&replies, "bbb", 10);
  Write(&replies, "c", kNoSequence);  // behind a reply that waits: order comes first
  Write(&replies, "dddd", 12);
  EXPECT_EQ(replies.Releasable(0), 2u);
  EXPECT_EQ(replies.NextDurableAfter(0), 10u);
  EXPECT_EQ(replies.Releasable(9), 2u);
  EXPECT_EQ(replies.Releasable(10), 6u);
  EXPECT_EQ(replies.NextDurableAfter(10), 12u);
  EXPECT_EQ(replies.Releasable(12), 10u);
  EXPECT_EQ(replies.NextDurableAfter(12), kNoSequence);
  replies.Consume(3);  // a part of a reply
  EXPECT_EQ(replies.Releasable(10), 3u);
  replies.Consume(7);
  EXPECT_TRUE(replies.empty());
}

TEST(PendingRepliesTest, TakesOverWhatAWorkerWrote) {
  PendingReplies first;
  PendingReplies second;
  Write(&first, "1", 5);
  Write(&second, "2", 6);
  first.Take(&second);
  EXPECT_TRUE(second.empty());
  EXPECT_EQ(first.Releasable(5), 1u);
  EXPECT_EQ(first.Releasable(6), 2u);
  EXPECT_EQ(first.bytes().view(), "12");
}

TEST(PendingRepliesTest, AFailedLogTurnsEachParkedReplyIntoAnError) {
  PendingReplies replies;
  Write(&replies, "+A\r\n", kNoSequence);
  Write(&replies, "+B\r\n+C\r\n", 10, 2);
  Write(&replies, "+D\r\n", 3);
  ASSERT_TRUE(replies.FailAbove(5, "MISCONF no"));
  EXPECT_EQ(replies.bytes().view(), "+A\r\n-MISCONF no\r\n-MISCONF no\r\n+D\r\n");
  EXPECT_EQ(replies.Releasable(5), replies.size());
}

TEST(PendingRepliesTest, AReplyThatHasBegunCannotBecomeAnError) {
  PendingReplies replies;
  Write(&replies, "*100\r\n", 10, 0);
  EXPECT_FALSE(replies.FailAbove(5, "MISCONF no"));
}

TEST(PendingRepliesTest, TheEndOfAReplyCannotBecomeAnError) {
  PendingReplies both;
  Write(&both, "*2\r\n+A\r\n", kNoSequence, 0);
  Write(&both, "+B\r\n", 10);
  EXPECT_FALSE(both.FailAbove(5, "MISCONF no"));

  PendingReplies sent;
  Write(&sent, "*2\r\n+A\r\n", kNoSequence, 0);
  sent.Consume(sent.size());
  Write(&sent, "+B\r\n", 10);
  EXPECT_FALSE(sent.FailAbove(5, "MISCONF no"));

  PendingReplies taken;
  PendingReplies worker;
  Write(&worker, "*2\r\n+A\r\n", kNoSequence, 0);
  taken.Take(&worker);
  worker.BeginBatch(true);
  Write(&worker, "+B\r\n", 10);
  taken.Take(&worker);
  Write(&taken, "+C\r\n", 11);
  EXPECT_FALSE(taken.FailAbove(5, "MISCONF no"));
  taken.Consume(taken.Releasable(10));
  ASSERT_TRUE(taken.FailAbove(10, "MISCONF no"));  // the next reply is whole
  EXPECT_EQ(taken.bytes().view(), "-MISCONF no\r\n");
}

TEST(PendingRepliesTest, AFailedPushConcernsItsOwnBatchAlone) {
  PendingReplies replies;
  Write(&replies, "+A\r\n", kNoSequence);
  replies.BeginBatch();
  Write(&replies, "+B\r\n", kNoSequence);
  Write(&replies, "+C\r\n", kNoSequence);
  ASSERT_TRUE(replies.FailBatch("MISCONF no"));
  EXPECT_EQ(replies.bytes().view(), "+A\r\n-MISCONF no\r\n-MISCONF no\r\n");
}

}  // namespace
}  // namespace varve
