// The blocking clients against a server_main that is stopped, killed and started again, and against
// redis-server.
#include "client/client.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/backoff.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/client/restarting_server.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using std::chrono::milliseconds;
using testing::RedisProcess;
using testing::TempDir;

class ClientTest : public testing::RestartingServer {};

TEST(BackoffTest, PausesGrowAndAreNeverTheSame) {
  Backoff backoff(milliseconds(100), milliseconds(1000), 1);
  int64_t longest = 100;
  for (int i = 0; i < 10; ++i, longest = std::min<int64_t>(longest * 2, 1000)) {
    const int64_t pause = backoff.Next().count();
    EXPECT_GE(pause, longest / 2);
    EXPECT_LE(pause, longest);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next().count(), 100);
  Backoff one(milliseconds(1 << 20), milliseconds(1 << 20), 1);
  Backoff other(milliseconds(1 << 20), milliseconds(1 << 20), 2);
  EXPECT_NE(one.Next(), other.Next());
}

TEST_F(ClientTest, ALostConnectionIsMadeAgain) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_EQ(client->Put("a", "1"), absl::OkStatus());
  Kill();
  Restart();
  EXPECT_EQ(*client->Get("a"), "1");
  EXPECT_EQ(client->pipeline().reconnects(), 1u);
}

TEST_F(ClientTest, ASelectInsideMultiHoldsOnceItIsExecuted) {
  const std::unique_ptr<Client> client = Connect();
  for (const bool executes : {false, true}) {
    for (const std::vector<std::string_view>& request : {std::vector<std::string_view>{"MULTI"},
                                                         {"GET", "key"},
                                                         {"SELECT", "5"},
                                                         {"SELECT", "99"}}) {
      ASSERT_TRUE(client->Call(request).ok());
    }
    EXPECT_EQ(client->pipeline().selected(), "");
    ASSERT_TRUE(client->Call({executes ? "EXEC" : "DISCARD"}).ok());
    EXPECT_EQ(client->pipeline().selected(), executes ? "5" : "");
  }
}

TEST_F(ClientTest, ANewConnectionIsInTheSameDatabase) {
  options_.database = 3;
  const std::unique_ptr<Client> client = Connect();
  EXPECT_EQ(client->pipeline().selected(), "3");
  ASSERT_EQ(client->Put("key", "three"), absl::OkStatus());
  Kill();
  Restart();
  EXPECT_EQ(*client->Get("key"), "three");
  ASSERT_TRUE(client->Call({"select", "4"}).ok());
  ASSERT_EQ(client->Put("key", "four"), absl::OkStatus());
  EXPECT_FALSE(client->Call({"SELECT", "99"}).ok());
  EXPECT_EQ(client->pipeline().selected(), "4");
  // Requests behind a SELECT whose reply is lost are not executed elsewhere.
  server_->process().Stop();
  ASSERT_EQ(client->Send({"SELECT", "3"}), absl::OkStatus());
  ASSERT_EQ(client->Send({"GET", "key"}), absl::OkStatus());
  client->pipeline().Flush();
  Kill();
  Restart();
  EXPECT_EQ(client->Receive()->text, "OK");
  EXPECT_EQ(client->Receive()->text, "three");
  ASSERT_TRUE(client->Call({"NAMESPACE", "CREATE", "users"}).ok());
  ASSERT_TRUE(client->Call({"NAMESPACE", "USE", "users"}).ok());
  ASSERT_EQ(client->Put("key", "users"), absl::OkStatus());
  Kill();
  Restart();
  EXPECT_EQ(*client->Get("key"), "users");
  options_.namespace_name = "users";
  EXPECT_EQ(*Connect()->Get("key"), "users");
  ASSERT_TRUE(client->Call({"RESET"}).ok());
  EXPECT_EQ(client->pipeline().selected(), "");
  Kill();
  Restart();
  EXPECT_EQ(*client->Get("key"), std::nullopt);
}

TEST_F(ClientTest, AWriteWhoseReplyIsLostIsUnknownAndNotSentAgain) {
  const std::unique_ptr<Client> client = Connect();
  ASSERT_EQ(client->Put("a", "1"), absl::OkStatus());
  server_->process().Stop();
  ASSERT_EQ(client->Send({"INCR", "a"}), absl::OkStatus());
  ASSERT_EQ(client->Send({"GET", "a"}), absl::OkStatus());
  client->pipeline().Flush();
  Kill();
  Restart();
  const absl::Status lost = client->Receive().status();
  EXPECT_TRUE(absl::IsUnknown(lost)) << lost;
  EXPECT_NE(lost.message().find("INCR"), std::string::npos) << lost;
  EXPECT_EQ(client->Receive()->text, "1");  // the read was asked again
  EXPECT_EQ(client->pipeline().outstanding(), 0u);
}

TEST_F(ClientTest, RepliesThatCameBeforeTheLossCount) {
  const std::unique_ptr<Client> client = Connect();
  for (int i = 0; i < 100; ++i) ASSERT_EQ(client->Send({"INCR", "n"}), absl::OkStatus());
  client->pipeline().Flush();
  // Another connection sees the last one done: then all replies are on their way.
  const std::unique_ptr<Client> other = Connect();
  while (*other->Get("n") != "100") continue;
  ASSERT_EQ(other->Ping(), absl::OkStatus());
  Kill();
  Restart();
  ASSERT_EQ(client->Send({"GET", "n"}), absl::OkStatus());
  for (int i = 1; i <= 100; ++i) {
    const absl::StatusOr<Reply> reply = client->Receive();
    ASSERT_TRUE(reply.ok()) << i << " " << reply.status();
    ASSERT_EQ(reply->integer, i);
  }
  EXPECT_EQ(client->Receive()->text, "100");
}

TEST_F(ClientTest, AServerThatDoesNotAnswerIsNotWaitedForForever) {
  options_.timeout = milliseconds(1000);
  const std::unique_ptr<Client> client = Connect();
  ASSERT_EQ(client->Put("a", "1"), absl::OkStatus());
  server_->process().Stop();
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Get("a").status()));
  EXPECT_TRUE(absl::IsUnknown(client->Put("a", "2")));
  server_->process().Kill(SIGCONT);
  EXPECT_TRUE(testing::Eventually([&] { return client->Get("a").ok(); }));
}

TEST_F(ClientTest, AServerThatIsGoneIsGivenUpAndTriedAgain) {
  options_.reconnect_for = milliseconds(200);
  const std::unique_ptr<Client> client = Connect();
  Kill();
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_TRUE(absl::IsUnavailable(client->Put("a", "1")));
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(150));
  Restart();
  EXPECT_EQ(client->Put("a", "2"), absl::OkStatus());
}

TEST_F(ClientTest, ManyLargeRequestsAndRepliesDoNotBlockEachOther) {
  const std::unique_ptr<Client> client = Connect();
  const std::string value(1 << 20, 'v');
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(client->Send({"SET", "k" + std::to_string(i % 4), value}), absl::OkStatus());
    ASSERT_EQ(client->Send({"GET", "k" + std::to_string(i % 4)}), absl::OkStatus());
  }
  for (int i = 0; i < 40; ++i) {
    ASSERT_EQ(client->Receive()->text, "OK");
    ASSERT_EQ(client->Receive()->text.size(), value.size());
  }
}

TEST_F(ClientTest, ARangeIsStreamed) {
  const std::unique_ptr<Client> client = Connect();
  for (int i = 0; i < 20000; ++i)
    ASSERT_EQ(client->Send({"SET", "k" + std::to_string(i), "v"}), absl::OkStatus());
  for (int i = 0; i < 20000; ++i) ASSERT_EQ(client->Receive()->text, "OK");
  uint64_t announced = 0;
  std::vector<std::string> keys;
  Client::PairSink sink;
  sink.begin = [&](uint64_t pairs) { announced = pairs; };
  sink.pair = [&](std::string&& key, std::string&& value, uint64_t) {
    EXPECT_EQ(value, "v");
    keys.push_back(std::move(key));
    return keys.size() != 30000;
  };
  ASSERT_EQ(client->StreamRange("-", "+", {}, sink), absl::OkStatus());
  EXPECT_EQ(announced, 20000u);
  EXPECT_EQ(keys.size(), 20000u);
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  // It stops where the sink has enough (after 30000 in all), and the client is good for more.
  ASSERT_EQ(client->StreamPrefix("k", {.reverse = true}, sink), absl::OkStatus());
  EXPECT_EQ(keys.size(), 30000u);
  EXPECT_EQ(keys[20000], "k9999");
  EXPECT_EQ(*client->Get("k1"), "v");
  EXPECT_TRUE(absl::IsFailedPrecondition(client->StreamRange("bad", "+", {}, sink)));
}

// Both ways to the server, with and without RESP3, over all kinds of clients.
TEST_F(ClientTest, PasswordOverAUnixSocket) {
  UsePassword("sec ret\xff");
  Restart();
  for (const int protocol : {2, 3}) {
    for (const std::string& socket : {std::string(), Socket()}) {
      ClientOptions options = options_;
      options.protocol = protocol;
      options.unix_socket = socket;
      options.name = "tester";
      const std::unique_ptr<Client> client = Connect(options);
      ASSERT_NE(client, nullptr);
      EXPECT_EQ(client->Put("a", "1"), absl::OkStatus());
      EXPECT_EQ(client->Call({"CLIENT", "GETNAME"})->text, "tester");
      for (int i = 0; i < 1000; ++i) client->pipeline().Send({"GET", "a"});
      for (int i = 0; i < 1000; ++i) ASSERT_EQ(client->Receive()->text, "1");
      options.password = "wrong";
      EXPECT_TRUE(absl::IsUnauthenticated(Client::Connect(options).status()));
      options.password.clear();
      options.name.clear();
      options.protocol = 2;
      EXPECT_TRUE(absl::IsUnauthenticated(Connect(options)->Ping()));
    }
  }
}

TEST_F(ClientTest, APasswordGivenByHandServesTheNextConnectionToo) {
  UsePassword("secret");
  Restart();
  options_.password.clear();
  const std::unique_ptr<Client> client = Connect();
  EXPECT_TRUE(absl::IsUnauthenticated(client->Put("a", "1")));
  EXPECT_FALSE(client->Call({"AUTH", "wrong"}).ok());
  ASSERT_EQ(client->Call({"AUTH", "secret"}).status(), absl::OkStatus());
  ASSERT_EQ(client->Put("a", "1"), absl::OkStatus());
  client->pipeline().Disconnect();
  EXPECT_EQ(*client->Get("a"), "1");
  EXPECT_FALSE(client->Call({"AUTH", "default", "wrong"}).ok());  // changes nothing
  Kill();
  Restart();
  EXPECT_EQ(*client->Get("a"), "1");
}

TEST_F(ClientTest, MonitoredCommandsAreNoReplies) {
  std::vector<std::string> lines;
  options_.on_push = [&](const Reply& line) { lines.push_back(line.text); };
  const std::unique_ptr<Client> monitor = Connect();
  ASSERT_EQ(monitor->Call({"MONITOR"})->text, "OK");
  EXPECT_TRUE(monitor->pipeline().listens());
  const std::unique_ptr<Client> other = Connect();
  const auto is_shown = [&](std::string_view words) {
    for (int i = 0; i < 100; ++i) {
      if (!lines.empty() && lines.back().ends_with(words)) return true;
      if (monitor->pipeline().WaitForPush(milliseconds(100)).ok()) continue;
    }
    return false;
  };
  EXPECT_EQ(other->Put("a", "1"), absl::OkStatus());
  EXPECT_TRUE(is_shown("\"SET\" \"a\" \"1\""));
  EXPECT_EQ(monitor->Call({"PING"})->text, "PONG");  // not one of the lines
  Kill();
  Restart();
  while (monitor->pipeline().WaitForPush(milliseconds(200)).ok()) continue;  // connected again
  EXPECT_EQ(other->Put("b", "2"), absl::OkStatus());
  EXPECT_TRUE(is_shown("\"SET\" \"b\" \"2\""));
  monitor->pipeline().Disconnect();
  EXPECT_FALSE(monitor->pipeline().listens());
  EXPECT_EQ(*monitor->Get("b"), "2");
}

TEST_F(ClientTest, WhatCannotBeSentIsSaid) {
  const std::unique_ptr<Client> client = Connect();
  EXPECT_TRUE(absl::IsInvalidArgument(client->Call({}).status()));
  EXPECT_EQ(client->Ping(), absl::OkStatus());
  options_.unix_socket = std::string(200, 'x');
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect(options_).status()));
}

class RedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  }
  TempDir dir_;
};

TEST_F(RedisTest, PasswordOverAUnixSocket) {
  RedisProcess redis(dir_.path(), {"--requirepass", "secret"});
  for (const int protocol : {2, 3}) {
    ClientOptions options = redis.Options();
    options.protocol = protocol;
    options.password = "secret";
    options.name = "tester";
    const std::unique_ptr<Client> client = redis.Connect(options);
    ASSERT_NE(client, nullptr) << redis.log();
    EXPECT_EQ(client->Put("a", "1"), absl::OkStatus());
    EXPECT_EQ(client->Call({"CLIENT", "GETNAME"})->text, "tester");
    options.password = "wrong";
    EXPECT_TRUE(absl::IsUnauthenticated(Client::Connect(options).status()));
    options.password.clear();
    options.name.clear();
    options.protocol = 2;
    EXPECT_TRUE(absl::IsUnauthenticated((*Client::Connect(options))->Ping()));
  }
}

TEST_F(RedisTest, PublishedMessagesComeToTheHandler) {
  RedisProcess redis(dir_.path());
  std::vector<std::string> messages;
  ClientOptions options = redis.Options();
  options.protocol = 3;
  options.on_push = [&](const Reply& push) {
    if (push.elements[0].text == "message") messages.push_back(push.elements[2].text);
  };
  const std::unique_ptr<Client> subscriber = redis.Connect(options);
  ASSERT_NE(subscriber, nullptr) << redis.log();
  ASSERT_EQ(subscriber->Call({"SUBSCRIBE", "news", "weather"}).status(), absl::OkStatus());
  const std::unique_ptr<Client> publisher = redis.Connect();
  ASSERT_EQ(publisher->Call({"PUBLISH", "news", "one"})->integer, 1);
  ASSERT_EQ(subscriber->pipeline().WaitForPush(milliseconds(10000)), absl::OkStatus());
  ASSERT_EQ(publisher->Call({"PUBLISH", "weather", "two"})->integer, 1);
  EXPECT_EQ(*subscriber->Get("nothing"), std::nullopt);  // a request goes on working beside
  while (messages.size() < 2)
    ASSERT_EQ(subscriber->pipeline().WaitForPush(milliseconds(10000)), absl::OkStatus());
  EXPECT_EQ(messages, (std::vector<std::string>{"one", "two"}));
  EXPECT_TRUE(absl::IsDeadlineExceeded(subscriber->pipeline().WaitForPush(milliseconds(20))));
  // The server throws the connection out: subscriptions come back with the next one.
  ASSERT_EQ(publisher->Call({"CLIENT", "KILL", "TYPE", "pubsub"})->integer, 1);
  ASSERT_EQ(subscriber->pipeline().WaitForPush(milliseconds(10000)), absl::OkStatus());
  while (publisher->Call({"PUBLISH", "news", "three"})->integer == 0) continue;
  while (messages.size() < 3)
    ASSERT_EQ(subscriber->pipeline().WaitForPush(milliseconds(10000)), absl::OkStatus());
  EXPECT_EQ(messages.back(), "three");
}

}  // namespace
}  // namespace varve
