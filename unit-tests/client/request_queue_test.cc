// What becomes of requests when their connection is lost: the queue without a connection.
#include "client/request_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace varve {
namespace {

class RequestQueueTest : public ::testing::Test {
 protected:
  void SendAll(RequestQueue* queue) {
    while (!queue->Unsent().empty()) {
      wire_.append(queue->Unsent());
      queue->MarkSent(queue->Unsent().size());
    }
  }
  static void Arrive(RequestQueue* queue, std::string_view bytes) {
    std::copy(bytes.begin(), bytes.end(), queue->Room(bytes.size()));
    queue->Received(bytes.size());
  }
  static std::string Outcome(RequestQueue* queue) {
    absl::StatusOr<Reply> reply = Reply();
    switch (queue->Take(&reply)) {
      case RequestQueue::Taken::kReply:
        return reply.ok() ? reply->text
                          : std::string(absl::StatusCodeToString(reply.status().code()));
      case RequestQueue::Taken::kNothing:
        return "nothing";
      case RequestQueue::Taken::kBroken:
        return "broken: " + std::string(queue->broken().message());
    }
    return "";
  }

  std::string wire_;
};

TEST_F(RequestQueueTest, ALostConnectionIsMadeGoodWhereThatIsSafe) {
  RequestQueue queue({});
  queue.BeginConnection();
  queue.Add({"GET", "a"}, WhenLost::kByCommand);
  queue.Add({"set", "b", "1"}, WhenLost::kByCommand);
  queue.Add({"SET", "c", "1"}, WhenLost::kResend);
  queue.Add({"GET", "d"}, WhenLost::kReport);
  SendAll(&queue);
  queue.Add({"INCR", "e"}, WhenLost::kByCommand);
  queue.MarkSent(5);  // half a request is none
  queue.ConnectionLost(absl::UnavailableError("gone"), true);
  SendAll(&queue);
  const std::string again =
      "*2\r\n$3\r\nGET\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\nc\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$"
      "1\r\ne\r\n";
  EXPECT_TRUE(wire_.ends_with(again)) << wire_;
  Arrive(&queue, "+first\r\n+third\r\n+fifth\r\n");
  EXPECT_EQ(Outcome(&queue), "first");
  EXPECT_EQ(Outcome(&queue), "UNKNOWN");
  EXPECT_EQ(Outcome(&queue), "third");
  EXPECT_EQ(Outcome(&queue), "UNAVAILABLE");
  EXPECT_EQ(Outcome(&queue), "fifth");
  EXPECT_EQ(queue.outstanding(), 0u);
}

TEST_F(RequestQueueTest, AWriteOfALostTransactionIsNotSentByItself) {
  RequestQueue queue({});
  queue.BeginConnection();
  queue.Add({"MULTI"}, WhenLost::kByCommand);
  SendAll(&queue);
  Arrive(&queue, "+OK\r\n");
  EXPECT_EQ(Outcome(&queue), "OK");
  queue.Add({"SET", "a", "1"}, WhenLost::kResend);
  queue.Add({"GET", "a"}, WhenLost::kByCommand);
  SendAll(&queue);
  queue.Add({"SET", "b", "1"}, WhenLost::kResend);
  queue.ConnectionLost(absl::UnavailableError("gone"), true);
  queue.Add({"SET", "c", "1"}, WhenLost::kResend);
  queue.Add({"exec"}, WhenLost::kByCommand);
  queue.Add({"INCR", "after"}, WhenLost::kByCommand);
  wire_.clear();
  SendAll(&queue);
  EXPECT_EQ(wire_, "*2\r\n$4\r\nINCR\r\n$5\r\nafter\r\n");
  Arrive(&queue, ":1\r\n");
  for (const char* outcome : {"UNKNOWN", "UNAVAILABLE", "ABORTED", "ABORTED", "ABORTED", ""}) {
    EXPECT_EQ(Outcome(&queue), outcome);
  }
  EXPECT_EQ(queue.outstanding(), 0u);
}

TEST_F(RequestQueueTest, ATransactionWithoutItsWatchIsNotBegun) {
  for (const bool acknowledged : {true, false}) {
    RequestQueue queue({});
    queue.BeginConnection();
    queue.Add({"WATCH", "a"}, WhenLost::kByCommand);
    SendAll(&queue);
    if (acknowledged) {
      Arrive(&queue, "+OK\r\n");
      EXPECT_EQ(Outcome(&queue), "OK");
    }
    queue.ConnectionLost(absl::UnavailableError("gone"), true);
    if (!acknowledged) {
      EXPECT_EQ(Outcome(&queue), "UNKNOWN");
    }
    queue.Add({"GET", "a"}, WhenLost::kByCommand);
    queue.Add({"MULTI"}, WhenLost::kByCommand);
    queue.Add({"SET", "a", "2"}, WhenLost::kByCommand);
    queue.Add({"EXEC"}, WhenLost::kByCommand);
    wire_.clear();
    SendAll(&queue);
    EXPECT_EQ(wire_, "*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    Arrive(&queue, "+1\r\n");
    for (const char* outcome : {"1", "ABORTED", "ABORTED", "ABORTED"})
      EXPECT_EQ(Outcome(&queue), outcome);
    // Begun anew it is sent.
    for (const std::vector<std::string_view>& request :
         {std::vector<std::string_view>{"WATCH", "a"}, {"MULTI"}, {"SET", "a", "2"}, {"EXEC"}}) {
      queue.Add(request, WhenLost::kByCommand);
    }
    SendAll(&queue);
    EXPECT_NE(wire_.find("SET"), std::string::npos);
    Arrive(&queue, "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
    for (const char* outcome : {"OK", "OK", "QUEUED", ""}) EXPECT_EQ(Outcome(&queue), outcome);
    // It has ended: the next loss takes nothing with it.
    queue.ConnectionLost(absl::UnavailableError("gone"), true);
    queue.Add({"MULTI"}, WhenLost::kByCommand);
    wire_.clear();
    SendAll(&queue);
    EXPECT_EQ(wire_, "*1\r\n$5\r\nMULTI\r\n");
  }
}

TEST_F(RequestQueueTest, ALostTransactionCanBeGivenUp) {
  RequestQueue queue({});
  for (const char* end : {"WATCH", "WATCHPREFIX", "WATCHRANGE", "MULTI", "RESET", "DISCARD"}) {
    queue.BeginConnection();
    queue.Add({"MULTI"}, WhenLost::kByCommand);
    SendAll(&queue);
    queue.ConnectionLost(absl::UnavailableError("gone"), true);
    EXPECT_EQ(Outcome(&queue), "UNKNOWN");
    queue.Add({"GET", "a"}, WhenLost::kByCommand);
    EXPECT_EQ(Outcome(&queue), "ABORTED");
    queue.Add({end}, WhenLost::kByCommand);
    queue.Add({"SET", "after", end}, WhenLost::kByCommand);
    wire_.clear();
    SendAll(&queue);
    EXPECT_NE(wire_.find("after"), std::string::npos) << end;
    queue.FailAll(absl::UnavailableError("gone"));
    while (queue.outstanding() > 0) EXPECT_NE(Outcome(&queue), "nothing");
  }
}

TEST_F(RequestQueueTest, NothingIsSentAgainUnlessAskedFor) {
  RequestQueue queue({});
  queue.BeginConnection();
  queue.Add({"GET", "a"}, WhenLost::kByCommand);
  queue.Add({"SET", "c", "1"}, WhenLost::kResend);
  SendAll(&queue);
  wire_.clear();
  queue.ConnectionLost(absl::DeadlineExceededError("slow"), false);
  SendAll(&queue);
  EXPECT_EQ(wire_, "");
  EXPECT_EQ(Outcome(&queue), "DEADLINE_EXCEEDED");
  EXPECT_EQ(Outcome(&queue), "UNKNOWN");
}

TEST_F(RequestQueueTest, GivingUpTellsWhatWasSentFromWhatWasNot) {
  RequestQueue queue({});
  queue.BeginConnection();
  queue.Add({"SET", "a", "1"}, WhenLost::kResend);
  SendAll(&queue);
  queue.Add({"SET", "b", "1"}, WhenLost::kResend);
  queue.ConnectionLost(absl::UnavailableError("gone"), true);
  queue.FailAll(absl::UnavailableError("refused"));
  EXPECT_EQ(Outcome(&queue), "UNKNOWN");
  EXPECT_EQ(Outcome(&queue), "UNAVAILABLE");
  EXPECT_EQ(queue.outstanding_bytes(), 0u);
}

TEST_F(RequestQueueTest, TheHandshakeComesFirstAndMayBeRefused) {
  ClientOptions options;
  options.protocol = 3;
  options.password = "secret";
  options.name = "me";
  RequestQueue queue(options);
  queue.Add({"GET", "a"}, WhenLost::kByCommand);
  queue.BeginConnection();
  SendAll(&queue);
  EXPECT_EQ(wire_,
            "*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n$"
            "7\r\nSETNAME\r\n$2\r\nme\r\n");
  EXPECT_FALSE(queue.handshaken());
  Arrive(&queue, "%1\r\n+proto\r\n:3\r\n");
  EXPECT_EQ(Outcome(&queue), "nothing");
  EXPECT_TRUE(queue.handshaken());
  SendAll(&queue);
  EXPECT_TRUE(wire_.ends_with("$3\r\nGET\r\n$1\r\na\r\n"));
  queue.BeginConnection();
  SendAll(&queue);
  Arrive(&queue, "-WRONGPASS no\r\n");
  EXPECT_EQ(Outcome(&queue), "broken: WRONGPASS no");
  EXPECT_TRUE(absl::IsUnauthenticated(queue.broken()));
}

TEST_F(RequestQueueTest, PushMessagesAreNoReplies) {
  std::vector<std::string> pushed;
  ClientOptions options;
  options.protocol = 3;
  options.on_push = [&](const Reply& push) { pushed.push_back(push.elements.back().text); };
  RequestQueue queue(options);
  queue.BeginConnection();
  SendAll(&queue);
  Arrive(&queue, "%0\r\n");
  queue.Add({"SUBSCRIBE", "a", "b"}, WhenLost::kByCommand);
  queue.Add({"GET", "k"}, WhenLost::kByCommand);
  EXPECT_EQ(Outcome(&queue), "nothing");
  SendAll(&queue);
  Arrive(&queue,
         ">3\r\n+subscribe\r\n$1\r\na\r\n$1\r\n1\r\n>3\r\n+message\r\n$1\r\na\r\n$5\r\nhello\r\n");
  EXPECT_EQ(Outcome(&queue), "nothing");
  Arrive(&queue, ">3\r\n+subscribe\r\n$1\r\nb\r\n$1\r\n2\r\n+value\r\n");
  EXPECT_EQ(Outcome(&queue), "");  // the second confirmation is the reply of SUBSCRIBE
  EXPECT_EQ(Outcome(&queue), "value");
  EXPECT_EQ(pushed, (std::vector<std::string>{"1", "hello", "2"}));
  // A new connection subscribes again.
  wire_.clear();
  queue.ConnectionLost(absl::UnavailableError("gone"), true);
  SendAll(&queue);
  EXPECT_TRUE(
      wire_.ends_with("*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\na\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nb\r\n"))
      << wire_;
}

TEST_F(RequestQueueTest, ShardChannelsAreSubscriptionsToo) {
  ClientOptions options;
  options.protocol = 3;
  RequestQueue queue(options);
  queue.BeginConnection();
  SendAll(&queue);
  Arrive(&queue, "%0\r\n");
  queue.Add({"ssubscribe", "a", "b"}, WhenLost::kByCommand);
  queue.Add({"SUNSUBSCRIBE", "a"}, WhenLost::kByCommand);
  EXPECT_EQ(Outcome(&queue), "nothing");
  SendAll(&queue);
  Arrive(&queue, ">3\r\n+ssubscribe\r\n$1\r\na\r\n:1\r\n>3\r\n+ssubscribe\r\n$1\r\nb\r\n:2\r\n");
  EXPECT_EQ(Outcome(&queue), "");
  EXPECT_EQ(Outcome(&queue), "nothing");
  Arrive(&queue, ">3\r\n+sunsubscribe\r\n$1\r\na\r\n:1\r\n");
  EXPECT_EQ(Outcome(&queue), "");
  EXPECT_TRUE(queue.listens());
  wire_.clear();
  queue.ConnectionLost(absl::UnavailableError("gone"), true);
  SendAll(&queue);
  EXPECT_TRUE(wire_.ends_with("$1\r\n3\r\n*2\r\n$10\r\nSSUBSCRIBE\r\n$1\r\nb\r\n")) << wire_;
  queue.StopListening();
  EXPECT_FALSE(queue.listens());
}

// After it a reply would stay out, or come in another form.
TEST_F(RequestQueueTest, WhatWouldConfuseTheQueueIsNotSent) {
  ClientOptions options;
  options.protocol = 3;
  RequestQueue queue(options);
  queue.BeginConnection();
  SendAll(&queue);
  Arrive(&queue, "%0\r\n");
  queue.Add({"client", "Reply", "off"}, WhenLost::kByCommand);
  queue.Add({"CLIENT", "REPLY", "SKIP"}, WhenLost::kResend);
  queue.Add({"HELLO", "2", "SETNAME", "x"}, WhenLost::kByCommand);
  queue.Add({"CLIENT", "REPLY", "ON"}, WhenLost::kByCommand);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Outcome(&queue), "INVALID_ARGUMENT");
  EXPECT_EQ(Outcome(&queue), "nothing");
  wire_.clear();
  SendAll(&queue);
  EXPECT_EQ(wire_, "*3\r\n$6\r\nCLIENT\r\n$5\r\nREPLY\r\n$2\r\nON\r\n");
  Arrive(&queue, "+OK\r\n");
  EXPECT_EQ(Outcome(&queue), "OK");
  RequestQueue of_resp2({});
  of_resp2.BeginConnection();
  of_resp2.Add({"HELLO", "2"}, WhenLost::kByCommand);
  EXPECT_EQ(Outcome(&of_resp2), "nothing");
}

TEST_F(RequestQueueTest, ASinkGetsALongArrayAsItArrives) {
  RequestQueue queue({});
  queue.BeginConnection();
  std::vector<std::string> elements;
  size_t announced = 0;
  auto sink = std::make_unique<ReplySink>();
  sink->begin = [&](size_t count) { announced = count; };
  sink->element = [&](Reply&& element) {
    elements.push_back(element.text);
    return elements.size() < 4;
  };
  queue.Add({"RANGE", "-", "+"}, WhenLost::kByCommand, std::move(sink));
  SendAll(&queue);
  Arrive(&queue, "*5\r\n$1\r\na\r\n$2\r\nb");
  EXPECT_EQ(Outcome(&queue), "nothing");
  EXPECT_EQ(announced, 5u);
  EXPECT_EQ(elements, (std::vector<std::string>{"a"}));
  Arrive(&queue, "b\r\n$1\r\nc\r\n");
  EXPECT_EQ(Outcome(&queue), "nothing");
  EXPECT_EQ(elements.size(), 3u);
  Arrive(&queue, "$1\r\nd\r\n");
  EXPECT_TRUE(Outcome(&queue).starts_with("broken"));  // it wanted no more than four
  queue.ConnectionLost(queue.broken(), true);
  EXPECT_EQ(Outcome(&queue), "UNAVAILABLE");  // a part was handed out, so it isn't asked for again
}

TEST_F(RequestQueueTest, NonsenseBreaksTheConnection) {
  RequestQueue queue({});
  queue.BeginConnection();
  queue.Add({"GET", "a"}, WhenLost::kByCommand);
  SendAll(&queue);
  Arrive(&queue, "HTTP/1.1 400 Bad Request\r\n");
  EXPECT_EQ(Outcome(&queue), "broken: the server does not speak RESP");
  RequestQueue idle({});
  idle.BeginConnection();
  Arrive(&idle, "-ERR max number of clients reached\r\n");
  EXPECT_EQ(Outcome(&idle), "broken: ERR max number of clients reached");
}

}  // namespace
}  // namespace varve
