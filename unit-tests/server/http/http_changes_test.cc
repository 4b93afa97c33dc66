// The change feed over HTTP: server-sent events that go on where they stopped.
#include "server/http/http_changes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "server/http/http_server.h"
#include "unit-tests/server/http/http_client.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/map_store.h"

namespace varve {
namespace {

using testing::Ask;
using testing::Fetch;
using testing::HttpAnswer;
using testing::RawConnection;
using testing::ReceiveAnswer;
using testing::TestServer;
using Words = std::vector<std::string>;

class HttpChangesTest : public ::testing::Test {
 protected:
  HttpChangesTest() {
    ServerConfig config;
    config.server.http_port = -1;
    EXPECT_TRUE(http_.Start(config).ok());
    http_.ServeFor(&server_.server().state());
  }
  ~HttpChangesTest() override {
    client_.reset();
    server_.server().Stop();
    http_.Stop();
  }
  static EngineOptions Retaining() {
    EngineOptions options = TestServer::SmallEngine();
    options.changes.bytes = 64u << 20;
    return options;
  }
  std::string Do(const Words& arguments) { return Ask(*client_, arguments); }
  std::string Now() {
    const std::string now = Do({"CHANGES", "NOW"});
    const size_t begin = now.find(' ') + 1;
    return now.substr(begin, now.find(' ', begin) - begin);
  }
  // Asks for a stream, and takes its head.
  std::unique_ptr<RawConnection> Open(const std::string& query, const std::string& headers = "") {
    auto connection = std::make_unique<RawConnection>(http_.port());
    connection->Send("GET /changes" + query + " HTTP/1.1\r\nHost: localhost\r\n" + headers +
                     "\r\n");
    head_ = ReceiveAnswer(*connection, /*has_body=*/false);
    return connection;
  }
  // Takes what comes until the text has come.
  static std::string Until(RawConnection& connection, const std::string& text) {
    std::string got;
    while (got.find(text) == std::string::npos) {
      const std::string byte = connection.Receive(1);
      if (byte.empty()) return got + "<the end>";
      got += byte;
    }
    return got;
  }

  TestServer server_{{}, Retaining()};
  std::unique_ptr<Client> client_ = server_.Connect();
  HttpServer http_;
  HttpAnswer head_;
};

TEST_F(HttpChangesTest, EventsAreSentAsCommitsCome) {
  const std::string since = Now();
  ASSERT_EQ(Do({"MSET", "a:1", "x", "b", "y"}), "OK");
  const std::string first = Now();
  const std::unique_ptr<RawConnection> stream = Open("?since=" + since + "&prefix=a:");
  EXPECT_EQ(head_.status, 200);
  EXPECT_TRUE(head_.Has("Content-Type: text/event-stream")) << head_.head;
  std::string got = Until(*stream, "progress");
  EXPECT_TRUE(got.starts_with("id: " + first + "\nevent: change\ndata: {\"version\":" + first))
      << got;
  EXPECT_NE(got.find("\"ops\":[{\"op\":\"set\",\"namespace\":\"0\",\"key\":\"a:1\",\"value\":\"x\","
                     "\"expires_ms\":0}]}\n\n"),
            std::string::npos)
      << got;
  ASSERT_EQ(Do({"SET", "a:2", std::string("\xff\0", 2)}), "OK");
  ASSERT_EQ(Do({"DEL", "a:1"}), "1");
  const std::string last = Now();
  got = Until(*stream, "\"del\"");
  got += Until(*stream, "\n\n");
  EXPECT_NE(got.find("\"value\":{\"base64\":\"/wA=\"}"), std::string::npos) << got;
  EXPECT_NE(got.find("\"key\":\"a:1\",\"value\":null"), std::string::npos) << got;
  // Another connection goes on where this one stopped.
  const std::unique_ptr<RawConnection> again =
      Open("?since=" + since + "&prefix=a:", "Last-Event-ID: " + first + "\r\n");
  EXPECT_TRUE(Until(*again, "a:2").find("a:1") == std::string::npos);
  EXPECT_NE(Until(*again, "progress").find("id: " + last + "\nevent: change"), std::string::npos);
}

TEST_F(HttpChangesTest, APollWaitsForTheNextCommit) {
  const std::string since = Now();
  const std::unique_ptr<RawConnection> poll = Open("?feed=longpoll&since=" + since);
  EXPECT_EQ(head_.status, 200);
  ASSERT_EQ(Do({"SET", "k", "v"}), "OK");
  const std::string body = poll->ReceiveAll();
  EXPECT_TRUE(poll->closed());
  EXPECT_NE(body.find("\"next\":" + Now() + ","), std::string::npos) << body;
  EXPECT_NE(body.find("\"commits\":[{\"version\":"), std::string::npos) << body;
  EXPECT_NE(body.find("\"key\":\"k\",\"value\":\"v\""), std::string::npos) << body;
}

// Asks a server over the store for its changes, and returns the answer.
HttpAnswer AskForChanges(Server* server) {
  ServerConfig config;
  config.server.http_port = -1;
  HttpServer http;
  EXPECT_TRUE(http.Start(config).ok());
  http.ServeFor(&server->state());
  HttpAnswer answer = Fetch(http.port(), "/changes");
  server->Stop();
  http.Stop();
  return answer;
}

TEST(HttpNoChangesTest, TheSettingsAreNamedOrTheStoreThatNeverHasThem) {
  TestServer embedded;
  const HttpAnswer off = AskForChanges(&embedded.server());
  EXPECT_EQ(off.status, 503);
  EXPECT_NE(off.body.find("set change-retention-bytes"), std::string::npos) << off.body;
  testing::MapStore store;
  const absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(&store, {.server = {.port = 0}}, {});
  ASSERT_TRUE(server.ok()) << server.status();
  const HttpAnswer never = AskForChanges(server->get());
  EXPECT_EQ(never.status, 501);
  EXPECT_NE(never.body.find("the store of this server keeps neither old versions nor a feed"),
            std::string::npos)
      << never.body;
}

TEST_F(HttpChangesTest, WhatCannotBeReadIsRefused) {
  EXPECT_EQ(Fetch(http_.port(), "/changes?since=x").status, 400);
  EXPECT_EQ(Fetch(http_.port(), "/changes?since=999999999").status, 400);
  EXPECT_EQ(Fetch(http_.port(), "/changes?feed=other").status, 400);
  EXPECT_EQ(Fetch(http_.port(), "/changes?namespace=none").status, 404);
  std::vector<std::unique_ptr<RawConnection>> streams;
  for (size_t i = 0; i < HttpListener::kMaxStreams; ++i) {
    streams.push_back(Open("?since=now"));
    ASSERT_EQ(head_.status, 200);
  }
  EXPECT_EQ(Fetch(http_.port(), "/changes").status, 503);
  EXPECT_EQ(Fetch(http_.port(), "/livez").status, 200);
  streams.clear();
  EXPECT_TRUE(testing::Eventually([&] {
    Open("?since=now");
    return head_.status == 200;
  }));
}

TEST_F(HttpChangesTest, AStreamShowsTheKeysOfItsUser) {
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "on", ">secret", "~app:*", "+@read"}), "OK");
  ASSERT_EQ(Do({"ACL", "SETUSER", "bob", "on", ">secret", "~*", "+get"}), "OK");
  const std::string since = Now();
  ASSERT_EQ(Do({"MSET", "app:1", "x", "other", "y"}), "OK");
  const std::string alice = "Authorization: Basic YWxpY2U6c2VjcmV0\r\n";
  const std::unique_ptr<RawConnection> stream = Open("?since=" + since, alice);
  ASSERT_EQ(head_.status, 200);
  const std::string got = Until(*stream, "progress");
  EXPECT_NE(got.find("app:1"), std::string::npos) << got;
  EXPECT_EQ(got.find("other"), std::string::npos) << got;
  ASSERT_EQ(Do({"ACL", "SETUSER", "alice", "-changes"}), "OK");
  ASSERT_EQ(Do({"SET", "app:1", "z"}), "OK");
  EXPECT_NE(Until(*stream, "event: error").find("event: error"), std::string::npos);
  EXPECT_EQ(Fetch(http_.port(), "/changes", "Authorization: Basic Ym9iOnNlY3JldA==\r\n").status,
            403);
}

}  // namespace
}  // namespace varve
