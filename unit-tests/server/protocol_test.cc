// What goes over the socket: every request in every cut, in every mode of execution and durability.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::RawConnection;
using testing::Resp;
using testing::TestServer;

ServerOptions WithExecution(Execution execution) {
  ServerOptions options;
  options.execution = execution;
  return options;
}

class ProtocolTest : public ::testing::TestWithParam<std::tuple<Execution, Durability>> {
 protected:
  static EngineOptions Engine() {
    EngineOptions engine = TestServer::SmallEngine();
    engine.sync = std::get<1>(GetParam());
    return engine;
  }
  TestServer server_{WithExecution(std::get<0>(GetParam())), Engine()};
};

INSTANTIATE_TEST_SUITE_P(Modes, ProtocolTest,
                         ::testing::Combine(::testing::Values(Execution::kAdaptive,
                                                              Execution::kPool, Execution::kInline),
                                            ::testing::Values(Durability::kAlways,
                                                              Durability::kEverySecond,
                                                              Durability::kNone)));

struct Exchange {
  std::string request;
  std::string reply;
};

std::vector<Exchange> Conversation() {
  return {
      {Resp({"SET", "k", "v1"}), "+OK\r\n"},
      {Resp({"GET", "k"}), "$2\r\nv1\r\n"},
      {"put \"a\\x00b\" 'it\\'s'\r\n", "+OK\r\n"},
      {Resp({"GET", std::string("a\0b", 3)}), "$4\r\nit's\r\n"},
      {"\r\n", ""},
      {Resp({"MSET", "x", "", "y", "\r\n"}), "+OK\r\n"},
      {Resp({"MGET", "x", "nothing", "y"}), "*3\r\n$0\r\n\r\n$-1\r\n$2\r\n\r\n\r\n"},
      {Resp({"INCR", "n"}), ":1\r\n"},
      {"INCR n\n", ":2\r\n"},
      {"FOO a\r\n", "-ERR unknown command 'FOO', with args beginning with: 'a' \r\n"},
      {"GTE a\r\n",
       "-ERR unknown command 'GTE', with args beginning with: 'a' (did you mean GET?)\r\n"},
      {"prefx\r\n",
       "-ERR unknown command 'prefx', with args beginning with: (did you mean PREFIX?)\r\n"},
      {"client lst\r\n",
       "-ERR unknown subcommand 'lst'. Try CLIENT HELP. (did you mean LIST?)\r\n"},
      {Resp({"range", "[x", "+"}), "*4\r\n$1\r\nx\r\n$0\r\n\r\n$1\r\ny\r\n$2\r\n\r\n\r\n"},
      {Resp({"DEL", "x", "y", "n", "k", "zz"}), ":4\r\n"},
      {"*0\r\n", ""},
      {"PREFIX a KEYS\r\n", std::string("*1\r\n$3\r\na\0b\r\n", 13)},
      {Resp({"DELETE", std::string("a\0b", 3)}), ":1\r\n"},
      {Resp({"PING"}), "+PONG\r\n"},
  };
}

TEST_P(ProtocolTest, EveryCutOfARequestGivesTheSameReplies) {
  std::string requests;
  std::string replies;
  for (const Exchange& exchange : Conversation()) {
    requests += exchange.request;
    replies += exchange.reply;
  }
  RawConnection connection(server_.port());
  for (size_t cut = 0; cut < requests.size(); ++cut) {
    ASSERT_TRUE(connection.Send(std::string_view(requests).substr(0, cut)));
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    ASSERT_TRUE(connection.Send(std::string_view(requests).substr(cut)));
    ASSERT_EQ(connection.Receive(replies.size()), replies) << "cut at " << cut;
  }
}

TEST_P(ProtocolTest, OneByteAtATime) {
  RawConnection connection(server_.port());
  for (const Exchange& exchange : Conversation()) {
    for (const char byte : exchange.request) {
      ASSERT_TRUE(connection.Send({&byte, 1}));
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    ASSERT_EQ(connection.Receive(exchange.reply.size()), exchange.reply) << exchange.request;
  }
}

TEST_P(ProtocolTest, ALongPipelineIsAnsweredInOrder) {
  std::string requests;
  std::string replies;
  std::mt19937 random(11);
  std::vector<std::string> values(50);
  for (int i = 0; i < 20000; ++i) {
    const size_t which = random() % values.size();
    const std::string key = "key" + std::to_string(which);
    if (random() % 2 == 0) {
      values[which] = std::to_string(random());
      requests += Resp({"SET", key, values[which]});
      replies += "+OK\r\n";
    } else if (random() % 10 == 0) {
      requests += Resp({"DEL", key});
      replies += values[which].empty() ? ":0\r\n" : ":1\r\n";
      values[which].clear();
    } else {
      requests += Resp({"GET", key});
      replies += values[which].empty()
                     ? "$-1\r\n"
                     : "$" + std::to_string(values[which].size()) + "\r\n" + values[which] + "\r\n";
    }
  }
  RawConnection connection(server_.port());
  std::thread sender([&] { EXPECT_TRUE(connection.Send(requests)); });
  const std::string received = connection.Receive(replies.size());
  sender.join();
  EXPECT_TRUE(received == replies);  // too long to print
}

TEST_P(ProtocolTest, ALargeValueComesBackWhole) {
  std::string value(16u << 20, '\0');
  std::mt19937_64 random(3);
  for (size_t i = 0; i < value.size(); i += sizeof(uint64_t)) {
    const uint64_t word = random();
    std::memcpy(value.data() + i, &word, sizeof(word));
  }
  const std::unique_ptr<Client> client = server_.Connect();
  ASSERT_TRUE(client->Put("large", value).ok());
  absl::StatusOr<std::optional<std::string>> got = client->Get("large");
  ASSERT_TRUE(got.ok()) << got.status();
  ASSERT_TRUE(got->has_value());
  EXPECT_TRUE(**got == value);
  ASSERT_TRUE(client->Put("large", "small now").ok());
  EXPECT_EQ(**client->Get("large"), "small now");
}

TEST_P(ProtocolTest, ManyClientsAtOnceKeepTheirAnswers) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const std::unique_ptr<Client> client = server_.Connect();
      for (int i = 0; i < 50; ++i) {
        const std::string key = std::to_string(t) + ":" + std::to_string(i % 7);
        const std::string value = std::to_string(i);
        ASSERT_TRUE(client->Put(key, value).ok());
        ASSERT_EQ(**client->Get(key), value);
        ASSERT_TRUE(client->Call({"INCR", "shared"}).ok());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(**server_.Connect()->Get("shared"), "400");
}

class HostileInputTest : public ::testing::Test {
 protected:
  // What the server answers to `bytes` before it closes.
  std::string AnswerUntilClosed(std::string_view bytes) {
    RawConnection connection(server_.port());
    EXPECT_TRUE(connection.Send(bytes));
    const std::string answer = connection.ReceiveAll();
    EXPECT_TRUE(connection.closed());
    EXPECT_EQ(server_.Connect()->Ping(), absl::OkStatus());
    return answer;
  }
  TestServer server_;
};

TEST_F(HostileInputTest, HttpIsTurnedAway) {
  EXPECT_EQ(AnswerUntilClosed("GET / HTTP/1.1\r\nHost: 127.0.0.1:7777\r\nAccept: */*\r\n\r\n"),
            "-ERR wrong number of arguments for 'get' command\r\n");
  EXPECT_EQ(AnswerUntilClosed("POST / HTTP/1.1\r\nContent-Length: 20\r\n\r\nSET stolen 1\r\n"), "");
  EXPECT_FALSE((*server_.Connect()->Get("stolen")).has_value());
}

TEST_F(HostileInputTest, ATlsHelloIsTurnedAway) {
  std::string hello("\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03", 11);
  hello += std::string(190, '\x5a');
  EXPECT_EQ(AnswerUntilClosed(hello), "-ERR Protocol error: TLS is not spoken on this port\r\n");
}

TEST_F(HostileInputTest, ProtocolErrorsAreAnsweredAfterWhatCameBefore) {
  EXPECT_EQ(AnswerUntilClosed("PING\r\n*1\r\n$-5\r\nPING\r\n"),
            "+PONG\r\n-ERR Protocol error: invalid bulk length\r\n");
  EXPECT_EQ(AnswerUntilClosed("*1000000000\r\n"),
            "-ERR Protocol error: invalid multibulk length\r\n");
  EXPECT_EQ(AnswerUntilClosed("*1\r\nPING\r\n"), "-ERR Protocol error: expected '$', got 'P'\r\n");
  EXPECT_EQ(AnswerUntilClosed("SET a \"b\r\n"),
            "-ERR Protocol error: unbalanced quotes in request\r\n");
  EXPECT_EQ(AnswerUntilClosed(std::string(70000, 'a')),
            "-ERR Protocol error: too big inline request\r\n");
}

TEST_F(HostileInputTest, AnnouncedLengthsCostNothing) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < 200; ++i) {  // 100 GiB if anybody believed it
    connections.push_back(std::make_unique<RawConnection>(server_.port()));
    ASSERT_TRUE(connections.back()->Send("*1048576\r\n$536870912\r\nx"));
  }
  EXPECT_EQ(server_.Connect()->Ping(), absl::OkStatus());
}

TEST_F(HostileInputTest, UnknownVerbsAndWrongArityLeaveTheConnectionOpen) {
  RawConnection connection(server_.port());
  const std::string expected =
      "-ERR unknown command 'foo', with args beginning with: 'bar' 'b  z' \r\n"
      "-ERR unknown command 'foo', with args beginning with: \r\n"
      "-ERR wrong number of arguments for 'get' command\r\n"
      "-ERR wrong number of arguments for 'mset' command\r\n"
      "-ERR syntax error\r\n"
      "-ERR unknown subcommand 'what'. Try CLIENT HELP.\r\n"
      "+PONG\r\n";
  ASSERT_TRUE(
      connection.Send(Resp({"foo", "bar", "b\r\nz"}) +
                      "foo\r\nget\r\nmset a b c\r\nset a b c d\r\nclient what\r\nPING\r\n"));
  EXPECT_EQ(connection.Receive(expected.size()), expected);
}

TEST_F(HostileInputTest, RandomBytesNeverEndTheServer) {
  std::mt19937 random(5);
  const std::string alphabet = "*$123456789\r\n\r\n GETSET\"'\\x\0\xff";
  for (int round = 0; round < 300; ++round) {
    RawConnection connection(server_.port());
    std::string bytes;
    for (size_t i = random() % 300; i > 0; --i)
      bytes.push_back(alphabet[random() % alphabet.size()]);
    connection.Send(bytes);
    if (round % 2 == 0) connection.Vanish();
  }
  EXPECT_EQ(server_.Connect()->Ping(), absl::OkStatus());
}

}  // namespace
}  // namespace varve
