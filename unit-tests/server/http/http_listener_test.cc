// The HTTP listener over real sockets: replies, connections that stay, their limit, slow and wrong
// clients.
#include "server/http/http_listener.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "unit-tests/server/http/http_client.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Fetch;
using testing::HttpAnswer;
using testing::RawConnection;
using testing::ReceiveAnswer;

class HttpListenerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(Start("127.0.0.1", 0).ok()); }

  absl::Status Start(const std::string& address, uint16_t port) {
    return listener_.Start(address, port,
                           {.answer =
                                [](const HttpRequest& request, const HttpPeer& peer) {
                                  const size_t size = request.path == "/large" ? 32u << 20 : 0;
                                  return HttpReply{.body = request.path + std::string(size, 'x') +
                                                           (peer.is_loopback ? " here" : " away")};
                                },
                            .tick = [this] { ++ticks_; }});
  }

  std::atomic<int> ticks_{0};
  HttpListener listener_;
};

TEST_F(HttpListenerTest, AnswersWithTheHeadersThatKeepPagesApart) {
  const HttpAnswer answer = Fetch(listener_.port(), "/a");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "/a here");
  EXPECT_TRUE(answer.Has("Content-Security-Policy: default-src 'none'")) << answer.head;
  EXPECT_TRUE(answer.Has("X-Content-Type-Options: nosniff\r\n")) << answer.head;
  EXPECT_TRUE(answer.Has("Cache-Control: no-store\r\n")) << answer.head;
  EXPECT_FALSE(answer.Has("Access-Control")) << answer.head;
}

TEST_F(HttpListenerTest, ServesRequestsOfOneConnectionInTurn) {
  RawConnection connection(listener_.port());
  connection.Send(
      "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\n"
      "Host: a\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(ReceiveAnswer(connection).body, "/1 here");
  const HttpAnswer head = ReceiveAnswer(connection, /*has_body=*/false);
  EXPECT_TRUE(head.Has("Content-Length: 7\r\n")) << head.head;
  EXPECT_EQ(ReceiveAnswer(connection).body, "/3 here");
  EXPECT_EQ(connection.ReceiveAll(), "");
  EXPECT_TRUE(connection.closed());
}

TEST_F(HttpListenerTest, ALongPipelineIsAnsweredWhole) {
  constexpr int kRequests = 1000;
  std::string requests;
  for (int i = 0; i < kRequests; ++i)
    requests += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n";
  RawConnection connection(listener_.port());
  std::thread sender([&] { connection.Send(requests + "GET /last"); });
  for (int i = 0; i < kRequests; ++i)
    ASSERT_EQ(ReceiveAnswer(connection).body, "/" + std::to_string(i) + " here");
  sender.join();
  connection.Send(" HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(ReceiveAnswer(connection).body, "/last here");
}

TEST_F(HttpListenerTest, ARequestThatWaitsKeepsNobodyElseWaiting) {
  HttpListener listener;
  std::atomic<int> asked{0};
  const auto answer = [](const HttpRequest& request, const HttpPeer&) {
    return HttpReply{.body = request.path};
  };
  const auto delay = [&](const HttpRequest& request, const HttpPeer&) {
    ++asked;
    return std::chrono::milliseconds(request.path == "/slow" ? 1500 : 0);
  };
  ASSERT_TRUE(
      listener.Start("127.0.0.1", 0, {.answer = answer, .tick = [] {}, .delay = delay}).ok());
  RawConnection slow(listener.port());
  const auto begin = std::chrono::steady_clock::now();
  slow.Send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\nGET /next HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(testing::Eventually([&] { return asked == 1; }));
  EXPECT_EQ(Fetch(listener.port(), "/other").body, "/other");
  EXPECT_EQ(ReceiveAnswer(slow).body, "/slow");
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1500));
  EXPECT_EQ(ReceiveAnswer(slow).body, "/next");
  EXPECT_EQ(asked, 3);
}

TEST_F(HttpListenerTest, AReplyMayBeLargerThanTheSocketTakes) {
  EXPECT_EQ(Fetch(listener_.port(), "/large").body.size(), (32u << 20) + 11);
}

TEST_F(HttpListenerTest, RefusesInWordsAndCloses) {
  RawConnection connection(listener_.port());
  connection.Send("GET / HTTP/1.1\r\nX: " + std::string(100 << 10, 'a'));
  const HttpAnswer answer = ReceiveAnswer(connection);
  EXPECT_EQ(answer.status, 431);
  EXPECT_EQ(answer.body, "The head of a request has at most 8192 bytes.\n");
  EXPECT_EQ(Fetch(listener_.port(), "/still").status, 200) << "others do not notice";
  RawConnection post(listener_.port());
  post.Send("POST / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(ReceiveAnswer(post).Has("Allow: GET, HEAD\r\n"));
}

TEST_F(HttpListenerTest, AtTheLimitTheStalestConnectionGoes) {
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (size_t i = 0; i < HttpListener::kMaxConnections; ++i) {
    idle.push_back(std::make_unique<RawConnection>(listener_.port()));
    idle.back()->Send("GET / HT");
  }
  // The first one completes a head and so becomes the freshest.
  idle[0]->Send("TP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(ReceiveAnswer(*idle[0]).status, 200);
  EXPECT_EQ(Fetch(listener_.port(), "/new").status, 200);
  EXPECT_EQ(idle[1]->ReceiveAll(), "") << "the stalest one is closed";
  EXPECT_TRUE(idle[1]->closed());
  idle[0]->Send("GET /again HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_EQ(ReceiveAnswer(*idle[0]).body, "/again here");
}

TEST_F(HttpListenerTest, HundredsOfSlowConnectionsDoNotKeepOthersOut) {
  std::vector<std::unique_ptr<RawConnection>> slow;
  for (size_t i = 0; i < 400; ++i) {
    slow.push_back(std::make_unique<RawConnection>(listener_.port()));
    slow.back()->Send("G");
    if (i % 100 == 99) {
      EXPECT_EQ(Fetch(listener_.port(), "/x").status, 200) << i;
    }
  }
}

TEST_F(HttpListenerTest, AHeadHasTenSeconds) {
  RawConnection slow(listener_.port()), silent(listener_.port()), next(listener_.port());
  const auto begin = std::chrono::steady_clock::now();
  slow.Send("GET / HTTP/1.1\r\n");
  next.Send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nG");
  EXPECT_EQ(ReceiveAnswer(next).body, "/1 here");
  for (RawConnection* const late : {&slow, &next}) {
    const HttpAnswer answer = ReceiveAnswer(*late);
    EXPECT_TRUE(answer.head.starts_with("HTTP/1.1 408 Request Timeout\r\n")) << answer.head;
    EXPECT_TRUE(answer.Has("Connection: close\r\n")) << answer.head;
    EXPECT_EQ(answer.body, "The head of a request has 10 s.\n");
    EXPECT_GE(std::chrono::steady_clock::now() - begin, HttpListener::kHeadTime);
    EXPECT_EQ(late->ReceiveAll(), "");
    EXPECT_TRUE(late->closed());
  }
  EXPECT_EQ(silent.ReceiveAll(), "") << "who said nothing is told nothing";
  EXPECT_TRUE(silent.closed());
}

TEST_F(HttpListenerTest, TicksAndStops) {
  EXPECT_TRUE(testing::Eventually([this] { return ticks_ >= 2; }));
  RawConnection open(listener_.port());
  listener_.Stop();
  EXPECT_EQ(listener_.port(), 0);
  EXPECT_EQ(open.ReceiveAll(), "");
}

TEST_F(HttpListenerTest, ATakenPortIsAnError) {
  HttpListener second;
  const absl::Status status = second.Start(
      "127.0.0.1", listener_.port(),
      {.answer = [](const HttpRequest&, const HttpPeer&) { return HttpReply(); }, .tick = [] {}});
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("can't serve HTTP at 127.0.0.1:"), absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace varve
