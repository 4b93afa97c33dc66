// The asynchronous client against a server_main that is stopped, killed and started again.
#include "client/async_client.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/client/restarting_server.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using std::chrono::milliseconds;
using testing::Process;
using testing::ReadFile;

class AsyncClientTest : public testing::RestartingServer {
 protected:
  // Appends what became of the request to outcomes_; runs the loop until `pending_` requests have
  // ended.
  void Call(AsyncClient* client, std::vector<std::string_view> arguments) {
    ++pending_;
    client->Call(arguments, [this](absl::StatusOr<Reply> reply) {
      --pending_;
      outcomes_.push_back(!reply.ok() ? std::string(absl::StatusCodeToString(reply.status().code()))
                          : reply->type == Reply::Type::kInteger ? std::to_string(reply->integer)
                                                                 : reply->text);
    });
  }
  void RunUntilDone() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    context_.restart();
    while (pending_ > 0 && std::chrono::steady_clock::now() < deadline)
      context_.run_one_for(milliseconds(100));
    EXPECT_EQ(pending_, 0);
  }
  // Runs the loop until it has nothing to do but wait: what was asked for is with the kernel.
  void RunUntilSent() {
    context_.restart();
    context_.poll();
  }
  std::vector<std::string> Outcomes() { return std::exchange(outcomes_, {}); }

  asio::io_context context_;
  int pending_ = 0;
  std::vector<std::string> outcomes_;
};

TEST_F(AsyncClientTest, RepliesComeInOrder) {
  AsyncClient client(context_, options_);
  for (int i = 0; i < 20000; ++i) Call(&client, {"INCR", "n"});
  RunUntilDone();
  for (int i = 0; i < 20000; ++i)
    ASSERT_EQ(outcomes_[static_cast<size_t>(i)], std::to_string(i + 1));
}

// A reply may be here before the loop has heard that its request was sent.
TEST_F(AsyncClientTest, EachReplyLeadsToTheNextRequest) {
  std::vector<std::unique_ptr<AsyncClient>> clients;
  int asked = 0;
  int running = 0;
  std::function<void(AsyncClient*)> ask = [&](AsyncClient* client) {
    ++asked;
    client->Call({"INCR", "n"}, [&, client](absl::StatusOr<Reply> reply) {
      EXPECT_TRUE(reply.ok()) << reply.status();
      if (reply.ok() && asked < 20000) return ask(client);
      if (--running > 0) return;
      for (const auto& each : clients) each->Close();
    });
  };
  for (int i = 0; i < 4; ++i) {
    clients.push_back(std::make_unique<AsyncClient>(context_, options_));
    for (int j = 0; j < 8; ++j, ++running) ask(clients.back().get());
  }
  context_.run();
  EXPECT_EQ(asked, 20000);
  EXPECT_EQ((*Client::Connect("127.0.0.1", options_.port))->Get("n")->value(), "20000");
}

TEST_F(AsyncClientTest, LargeValuesBothWays) {
  AsyncClient client(context_, options_);
  const std::string value(3 << 20, 'v');
  for (int i = 0; i < 10; ++i) {
    Call(&client, {"SET", "k", value});
    Call(&client, {"GET", "k"});
  }
  RunUntilDone();
  const std::vector<std::string> outcomes = Outcomes();
  for (size_t i = 0; i < 20; i += 2) {
    EXPECT_EQ(outcomes[i], "OK");
    EXPECT_TRUE(outcomes[i + 1] == value);
  }
}

TEST_F(AsyncClientTest, ALostConnectionIsMadeAgain) {
  AsyncClient client(context_, options_);
  Call(&client, {"SET", "n", "1"});
  RunUntilDone();
  server_->process().Stop();
  Call(&client, {"INCR", "n"});
  Call(&client, {"GET", "n"});
  RunUntilSent();
  Kill();
  Call(&client, {"APPEND", "n", "x"});
  std::thread later([this] {
    std::this_thread::sleep_for(milliseconds(200));
    Restart();
  });
  RunUntilDone();
  later.join();
  const std::vector<std::string> outcomes = Outcomes();
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_EQ(outcomes[0], "OK");
  EXPECT_EQ(outcomes[1], "UNKNOWN");
  EXPECT_EQ(outcomes[2], "1");
}

TEST_F(AsyncClientTest, WaitsEnd) {
  options_.timeout = milliseconds(1000);
  options_.reconnect_for = milliseconds(300);
  AsyncClient client(context_, options_);
  Call(&client, {"PING"});
  RunUntilDone();
  server_->process().Stop();
  Call(&client, {"GET", "a"});
  Call(&client, {"SET", "a", "1"});
  RunUntilDone();
  Kill();
  Call(&client, {"SET", "a", "1"});
  RunUntilDone();
  EXPECT_EQ(Outcomes(),
            (std::vector<std::string>{"PONG", "DEADLINE_EXCEEDED", "UNKNOWN", "UNAVAILABLE"}));
}

TEST_F(AsyncClientTest, ClosingEndsWhatIsPendingAndLetsTheLoopEnd) {
  {
    AsyncClient client(context_, options_);
    Call(&client, {"PING"});
    RunUntilDone();
    server_->process().Stop();
    Call(&client, {"GET", "a"});
    RunUntilSent();
    client.Close();
    Call(&client, {"GET", "b"});
    context_.restart();
    context_.run();  // ends
    EXPECT_EQ(Outcomes(), (std::vector<std::string>{"PONG", "CANCELLED", "CANCELLED"}));
  }
  server_->process().Kill(SIGCONT);
  auto client = std::make_unique<AsyncClient>(context_, options_);
  Call(client.get(), {"PING"});
  client.reset();  // the client goes while its request is under way
  context_.restart();
  context_.run();
  EXPECT_EQ(Outcomes(), (std::vector<std::string>{"CANCELLED"}));
}

TEST_F(AsyncClientTest, CallsComeFromAnyThread) {
  AsyncClient client(context_, options_);
  std::atomic<int> done = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 500; ++j) {
        client.Call({"INCR", "n"}, [&](absl::StatusOr<Reply> reply) {
          if (reply.ok() && ++done == 2000) client.Close();
        });
      }
    });
  }
  std::thread second_loop([this] { context_.run(); });
  context_.run();
  for (std::thread& caller : callers) caller.join();
  second_loop.join();
  context_.restart();
  context_.run();
  EXPECT_EQ(done, 2000);
}

TEST_F(AsyncClientTest, PasswordOverAUnixSocket) {
  UsePassword("secret");
  Restart();
  for (const int protocol : {2, 3}) {
    options_.protocol = protocol;
    options_.unix_socket = Socket();
    AsyncClient client(context_, options_);
    options_.password = "wrong";
    AsyncClient stranger(context_, options_);
    options_.password = "secret";
    options_.unix_socket.clear();
    AsyncClient over_tcp(context_, options_);
    Call(&client, {"SET", "a", "1"});
    RunUntilDone();
    Call(&over_tcp, {"GET", "a"});
    RunUntilDone();
    Call(&stranger, {"GET", "a"});
    RunUntilDone();
    EXPECT_EQ(Outcomes(), (std::vector<std::string>{"OK", "1", "UNAUTHENTICATED"}));
  }
}

TEST_F(AsyncClientTest, WhatCannotBeSentIsSaid) {
  AsyncClient client(context_, options_);
  Call(&client, {"PING"});
  Call(&client, {});
  Call(&client, {"PING"});
  RunUntilDone();
  EXPECT_EQ(Outcomes(), (std::vector<std::string>{"PONG", "INVALID_ARGUMENT", "PONG"}));
  Call(&client, {"CLIENT", "REPLY", "OFF"});
  RunUntilDone();
  EXPECT_EQ(Outcomes(), (std::vector<std::string>{"INVALID_ARGUMENT"}));
  options_.unix_socket = std::string(200, 'x');
  AsyncClient nowhere(context_, options_);
  Call(&nowhere, {"PING"});
  RunUntilDone();
  EXPECT_EQ(Outcomes(), (std::vector<std::string>{"INVALID_ARGUMENT"}));
}

// It has no request that could bring the connection back.
TEST_F(AsyncClientTest, WhoOnlyListensIsConnectedAgain) {
  std::vector<std::string> messages;
  options_.protocol = 3;
  options_.reconnect_for = milliseconds(100);
  options_.backoff_last = milliseconds(50);
  options_.on_push = [&](const Reply& push) {
    if (push.elements[0].text == "message") messages.push_back(push.elements[2].text);
  };
  AsyncClient subscriber(context_, options_);
  Call(&subscriber, {"SUBSCRIBE", "news"});
  RunUntilDone();
  Kill();
  context_.run_for(milliseconds(300));  // longer than a request would wait for
  Restart();
  const std::unique_ptr<Client> publisher = Connect();
  ASSERT_TRUE(testing::Eventually([&] {
    EXPECT_TRUE(publisher->Call({"PUBLISH", "news", "again"}).ok());
    context_.run_for(milliseconds(10));
    return !messages.empty();
  }));
  EXPECT_EQ(messages[0], "again");
  Kill();
  Call(&subscriber, {"GET", "a"});
  RunUntilDone();
  EXPECT_EQ(Outcomes().back(), "UNAVAILABLE");  // a request still ends in time
}

TEST_F(AsyncClientTest, ManyClientsAtOnce) {
  constexpr size_t kClients = 500;
  std::vector<std::unique_ptr<AsyncClient>> clients;
  for (size_t i = 0; i < kClients; ++i)
    clients.push_back(std::make_unique<AsyncClient>(context_, options_));
  for (int round = 0; round < 4; ++round) {
    for (const auto& client : clients) Call(client.get(), {"INCR", "n"});
  }
  RunUntilDone();
  std::set<std::string> numbers;
  for (const std::string& outcome : Outcomes()) numbers.insert(outcome);
  EXPECT_EQ(numbers.size(), 4 * kClients);
  EXPECT_TRUE(numbers.contains(std::to_string(4 * kClients)));
}

TEST_F(AsyncClientTest, TheExamplesRun) {
  const std::vector<std::pair<std::string, std::string>> examples = {
      {"blocking", "city:2 is Bern\ncity:2\tBern\ncity:1\tZürich West\n"},
      {"pipelined", "100000 keys written\n"},
      {"asynchronous", "counted to 10\n"}};
  for (const auto& [name, output] : examples) {
    Process example(std::string(VARVE_EXAMPLES) + "/example_" + name,
                    {std::to_string(options_.port)}, dir_.File("out"));
    EXPECT_EQ(example.Wait(), 0) << name;
    EXPECT_EQ(ReadFile(dir_.File("out")), output) << name;
  }
}

}  // namespace
}  // namespace varve
