#include "server/clients/mailbox.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace varve {
namespace {

Mailbox::Message Message(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

class MailboxTest : public ::testing::Test {
 protected:
  MailboxTest() {
    mailbox_.Open(&limits_, [this] { ++wakes_; });
  }
  std::string TakeAll(int protocol = 3) {
    ByteBuffer out;
    gate_ = mailbox_.TakeAll(&out, protocol);
    return std::string(out.view());
  }

  LiveOutputLimits limits_{OutputLimits{}};
  std::atomic<int> wakes_{0};
  SequenceNumber gate_ = kNoSequence;
  Mailbox mailbox_;
};

TEST_F(MailboxTest, TheFirstMessageWakesAndAllLeaveInOrder) {
  EXPECT_TRUE(mailbox_.Deliver(Message("+a\r\n"), kNoSequence));
  EXPECT_FALSE(mailbox_.Deliver(Message("+b\r\n"), 7));
  EXPECT_FALSE(mailbox_.Deliver(Message("+c\r\n"), 5));
  EXPECT_EQ(wakes_, 1);
  EXPECT_GE(mailbox_.bytes(), 12u);
  EXPECT_EQ(TakeAll(), "+a\r\n+b\r\n+c\r\n");
  EXPECT_EQ(gate_, 7u);
  EXPECT_TRUE(mailbox_.empty());
  EXPECT_TRUE(mailbox_.Deliver(Message("+d\r\n"), kNoSequence)) << "the connection sleeps again";
  EXPECT_EQ(wakes_, 2);
}

TEST_F(MailboxTest, APushIsAnArrayForAnOlderProtocol) {
  const std::string push = ">2\r\n$1\r\na\r\n$1\r\nb\r\n";
  for (const int protocol : {2, 3}) {
    mailbox_.Deliver(Message(push), kNoSequence);
    mailbox_.Deliver(Message("+line\r\n"), kNoSequence);
    EXPECT_EQ(TakeAll(protocol), (protocol == 2 ? "*" : ">") + push.substr(1) + "+line\r\n");
  }
}

TEST_F(MailboxTest, MessagesWaitAmongTheRepliesForTheirGates) {
  PendingReplies replies;
  replies.bytes().Append("+OK\r\n");
  replies.Mark(kNoSequence, 1);
  mailbox_.Deliver(Message("+a\r\n"), 9);
  mailbox_.Deliver(Message("+b\r\n"), kNoSequence);
  mailbox_.Take(&replies, 3, /*budget=*/1);  // up to the first message that exceeds it
  EXPECT_EQ(replies.bytes().view(), "+OK\r\n+a\r\n");
  EXPECT_FALSE(mailbox_.empty());
  mailbox_.Take(&replies, 3, /*budget=*/100);
  EXPECT_EQ(replies.bytes().view(), "+OK\r\n+a\r\n+b\r\n");
  EXPECT_TRUE(mailbox_.empty());
  EXPECT_EQ(replies.Releasable(8), 5u);
  EXPECT_EQ(replies.Releasable(9), 13u);
}

TEST_F(MailboxTest, WhatExceedsTheHardLimitIsNotTakenAndEndsTheConnection) {
  limits_.Set({.hard = 500});
  mailbox_.Deliver(Message(std::string(300, 'x')), kNoSequence);
  EXPECT_FALSE(mailbox_.overflowed());
  const size_t before = mailbox_.bytes();
  EXPECT_TRUE(mailbox_.Deliver(Message(std::string(300, 'x')), kNoSequence));
  EXPECT_TRUE(mailbox_.overflowed());
  EXPECT_TRUE(mailbox_.OverLimit({}));
  EXPECT_EQ(wakes_, 2);
  EXPECT_FALSE(mailbox_.Deliver(Message("+small\r\n"), kNoSequence));
  EXPECT_EQ(mailbox_.bytes(), before);
  EXPECT_LE(mailbox_.bytes(), 500u);
}

TEST_F(MailboxTest, TheSoftLimitHoldsAfterItsTime) {
  using std::chrono::seconds;
  const std::chrono::steady_clock::time_point start{seconds(1000)};
  limits_.Set({.soft = 100, .soft_time = seconds(10)});
  mailbox_.Deliver(Message(std::string(300, 'x')), kNoSequence);
  EXPECT_FALSE(mailbox_.OverLimit(start));
  EXPECT_FALSE(mailbox_.OverLimit(start + seconds(10)));
  EXPECT_TRUE(mailbox_.OverLimit(start + seconds(11)));
  TakeAll();
  EXPECT_FALSE(mailbox_.OverLimit(start + seconds(12)));
}

TEST_F(MailboxTest, ARequestToCloseWakes) {
  EXPECT_FALSE(mailbox_.close_requested());
  mailbox_.RequestClose();
  EXPECT_TRUE(mailbox_.close_requested());
  EXPECT_EQ(wakes_, 1);
}

TEST_F(MailboxTest, MessagesOfEachThreadLeaveInItsOrder) {
  constexpr int kThreads = 3, kMessages = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kMessages; ++i)
        mailbox_.Deliver(Message(std::string(1, static_cast<char>('a' + t)) + char(i % 64 + 32)),
                         1);
    });
  }
  std::string taken;
  while (taken.size() < 2 * kThreads * kMessages) taken += TakeAll();
  for (std::thread& thread : threads) thread.join();
  int seen[kThreads] = {};
  for (size_t i = 0; i < taken.size(); i += 2) {
    int& count = seen[taken[i] - 'a'];
    ASSERT_EQ(taken[i + 1], char(count % 64 + 32)) << "message " << count << " of " << taken[i];
    ++count;
  }
  EXPECT_TRUE(mailbox_.empty());
}

class PulledMessageTest : public MailboxTest {
 protected:
  // Takes what may be taken, and returns it.
  std::string Take() {
    PendingReplies replies;
    mailbox_.Take(&replies, /*protocol=*/3, /*budget=*/1u << 20);
    return std::string(replies.bytes().view());
  }

  const std::string large_ = ">1\r\n$100000\r\n" + std::string(100'000, 'v') + "\r\n";
};

TEST_F(PulledMessageTest, ALargeOneLeavesInPartsAndNothingBetweenThem) {
  mailbox_.DeliverPulled(Message(large_), kNoSequence, /*can_be_made_again=*/true);
  mailbox_.Deliver(Message("+after\r\n"), kNoSequence);
  std::string taken = Take();
  EXPECT_LT(taken.size(), 40'000u);
  EXPECT_TRUE(mailbox_.inside());
  PendingReplies unsent;
  unsent.bytes().Append(taken);
  unsent.Mark(kNoSequence, 0);
  mailbox_.Take(&unsent, 3, 1u << 20);
  EXPECT_EQ(unsent.size(), taken.size()) << "the part before has not left";
  for (int part = 0; part < 3; ++part) {
    EXPECT_TRUE(mailbox_.inside());
    taken += Take();
  }
  EXPECT_FALSE(mailbox_.inside());
  EXPECT_EQ(taken, large_ + "+after\r\n");
  EXPECT_TRUE(mailbox_.empty());
}

TEST_F(PulledMessageTest, WhatWasPutAwayIsGivenBackOrRefused) {
  mailbox_.DeliverPulled(Message(large_), kNoSequence, /*can_be_made_again=*/true);
  mailbox_.PutAway(1);
  EXPECT_GT(mailbox_.bytes(), large_.size()) << "nothing of it has left";
  std::string taken = Take();
  mailbox_.PutAway(1);
  EXPECT_LT(mailbox_.bytes(), 1'000u);
  EXPECT_TRUE(mailbox_.LacksText());
  EXPECT_EQ(Take(), "");
  EXPECT_FALSE(mailbox_.GiveText(Message(large_ + "x")));
  EXPECT_FALSE(mailbox_.GiveText(Message(std::string(large_.size(), 'w'))));
  ASSERT_TRUE(mailbox_.GiveText(Message(large_)));
  taken += Take();
  mailbox_.PutAway(2);
  EXPECT_FALSE(mailbox_.LacksText()) << "so soon it is not put away again";
  mailbox_.PutAway(6);
  EXPECT_TRUE(mailbox_.LacksText());
  ASSERT_TRUE(mailbox_.GiveText(Message(large_)));
  while (mailbox_.inside()) taken += Take();
  EXPECT_EQ(taken, large_);
  EXPECT_TRUE(mailbox_.empty());
}

TEST_F(PulledMessageTest, WhatCannotBeMadeAgainStays) {
  mailbox_.DeliverPulled(Message(large_), kNoSequence, /*can_be_made_again=*/false);
  const std::string begin = Take();
  mailbox_.PutAway(100);
  EXPECT_FALSE(mailbox_.LacksText());
  std::string taken = begin;
  while (mailbox_.inside()) taken += Take();
  EXPECT_EQ(taken, large_);
}

}  // namespace
}  // namespace varve
