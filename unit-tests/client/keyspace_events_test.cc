// Keyspace notifications beside those of redis-server: the same events in the same order for the
// same commands.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/client.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using testing::RedisProcess;
using testing::ServerProcess;
using testing::TempDir;
using Words = std::vector<std::string>;

// The reply to a request, of which only a text matters; also an error's.
std::string AskForText(Client& client, const Words& request) {
  const std::vector<std::string_view> words(request.begin(), request.end());
  EXPECT_EQ(client.Send(words), absl::OkStatus());
  const absl::StatusOr<Reply> reply = client.Receive();
  if (!reply.ok()) return "lost: " + reply.status().ToString();
  return reply->elements.empty() ? reply->text : reply->elements.back().text;
}

// Hears what a server tells of its keys, as lines "channel message".
class EventLog {
 public:
  explicit EventLog(ClientOptions options) {
    options.protocol = 3;
    options.on_push = [this](const Reply& push) {
      if (push.elements[0].text == "pmessage")
        told_.push_back(push.elements[2].text + " " + push.elements[3].text);
    };
    client_ = *Client::Connect(options);
    EXPECT_EQ(client_->Call({"PSUBSCRIBE", "__key*"}).status(), absl::OkStatus());
  }

  // All that was told before `client` has its next reply.
  Words Take(Client& client) {
    const std::string end = "__key end end";
    AskForText(client, {"PUBLISH", "__key end", "end"});
    while (told_.empty() || told_.back() != end) {
      if (!client_->pipeline().WaitForPush(std::chrono::seconds(10)).ok()) return {"nothing comes"};
    }
    told_.pop_back();
    return std::exchange(told_, {});
  }

 private:
  Words told_;
  std::unique_ptr<Client> client_;
};

constexpr const char* kPayload = "what DUMP answered";

std::vector<Words> CommandsOnValues() {
  return {
      {"SET", "a", "1"},
      {"SET", "a", "2"},
      {"SET", "a", "2", "XX", "GET"},
      {"SET", "b", "2", "XX"},
      {"SET", "b", "2", "GET"},
      {"SET", "a", "3", "EX", "100"},
      {"SET", "a", "3", "KEEPTTL"},
      {"SET", "x", "3", "PX", "100000", "NX"},
      {"SETNX", "a", "1"},
      {"SETNX", "c", "1"},
      {"SETEX", "c", "100", "1"},
      {"PSETEX", "d", "100000", "1"},
      {"GETSET", "d", "1"},
      {"GETSET", "e", "1"},
      {"GETDEL", "e"},
      {"GETDEL", "e"},
      {"MSET", "m1", "1", "a", "2", "m1", "3"},
      {"MSETNX", "n1", "1", "n2", "2"},
      {"MSETNX", "n1", "1", "n3", "2"},
      {"APPEND", "a", "x"},
      {"APPEND", "p", ""},
      {"SETRANGE", "a", "1", "y"},
      {"SETRANGE", "q", "2", "y"},
      {"SETRANGE", "q2", "2", ""},
      {"INCR", "i"},
      {"INCRBY", "i", "2"},
      {"DECR", "i"},
      {"DECRBY", "j", "2"},
      {"INCR", "a"},
      {"INCRBYFLOAT", "i", "0.5"},
      {"INCRBYFLOAT", "k", "0.5"},
      {"SETBIT", "bits", "7", "1"},
      {"SETBIT", "bits", "7", "1"},
      {"SETBIT", "bits2", "7", "0"},
      {"BITFIELD", "bits", "SET", "u8", "0", "3"},
      {"BITFIELD", "bits", "SET", "u8", "0", "3"},
      {"BITFIELD", "bits3", "INCRBY", "u8", "0", "3", "GET", "u8", "0"},
      {"BITFIELD", "bits", "GET", "u8", "0"},
      {"BITOP", "AND", "bits", "bits2", "bits3"},
      {"BITOP", "OR", "bits4", "bits", "bits3"},
      {"BITOP", "NOT", "bits4", "none"},
      {"BITOP", "NOT", "bits4", "none"},
  };
}

std::vector<Words> CommandsOnKeys() {
  return {
      {"EXPIRE", "a", "100"},
      {"EXPIRE", "a", "100", "NX"},
      {"EXPIRE", "none", "100"},
      {"PEXPIREAT", "a", "1"},
      {"EXPIRE", "b", "-1"},
      {"EXPIREAT", "c", "99999999999"},
      {"PERSIST", "c"},
      {"PERSIST", "c"},
      {"GETEX", "c"},
      {"GETEX", "c", "EX", "100"},
      {"GETEX", "c", "PERSIST"},
      {"GETEX", "c", "PERSIST"},
      {"GETEX", "c", "PXAT", "1"},
      {"GETEX", "c"},
      {"GETEX", "c", "EX", "10"},
      {"RENAME", "d", "r"},
      {"RENAME", "i", "r"},
      {"RENAME", "r", "r"},
      {"RENAME", "none", "r"},
      {"RENAMENX", "r", "j"},
      {"RENAMENX", "r", "s"},
      {"COPY", "s", "t"},
      {"COPY", "s", "t"},
      {"COPY", "s", "t", "REPLACE"},
      {"COPY", "none", "t"},
      {"COPY", "s", "t", "DB", "3"},
      {"MOVE", "s", "2"},
      {"MOVE", "s", "2"},
      {"MOVE", "t", "3"},
      {"DEL", "n2", "none", "n1", "n2"},
      {"UNLINK", "m1", "none"},
      {"TOUCH", "j", "none"},
      {"EXISTS", "j", "none"},
      {"GET", "j"},
      {"GET", "none"},
      {"MGET", "j", "none", "none2"},
      {"STRLEN", "none"},
      {"GETRANGE", "none", "0", "1"},
      {"GETBIT", "none", "0"},
      {"BITCOUNT", "none"},
      {"BITPOS", "none", "1"},
      {"TTL", "none"},
      {"EXPIRETIME", "none"},
      {"TYPE", "none"},
      {"OBJECT", "ENCODING", "none"},
      {"LCS", "none", "none2"},
      {"DUMP", "none"},
  };
}

std::vector<Words> CommandsTogether() {
  return {
      {"RESTORE", "dumped", "0", kPayload},
      {"RESTORE", "dumped", "0", kPayload},
      {"RESTORE", "dumped", "100000", kPayload, "REPLACE"},
      {"RESTORE", "dumped", "1", kPayload, "REPLACE", "ABSTTL"},
      {"RESTORE", "dumped", "1", kPayload, "ABSTTL"},
      {"MULTI"},
      {"SET", "t1", "1"},
      {"DEL", "t1"},
      {"INCR", "t2"},
      {"GET", "none"},
      {"SELECT", "4"},
      {"SET", "t1", "1"},
      {"SELECT", "0"},
      {"EXEC"},
      {"MULTI"},
      {"SET", "t3", "1"},
      {"DISCARD"},
      {"SWAPDB", "3", "4"},
      {"FLUSHDB"},
      {"FLUSHALL"},
  };
}

// What one server tells, with the command that it tells of in front.
Words Told(const ClientOptions& options, const std::string& letters) {
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
  EXPECT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(AskForText(**client, {"CONFIG", "SET", "notify-keyspace-events", letters}), "OK");
  AskForText(**client, {"SET", "other", "1"});
  const std::string payload = AskForText(**client, {"DUMP", "other"});
  AskForText(**client, {"DEL", "other"});
  EventLog log(options);
  Words told;
  bool queues = false;
  std::vector<Words> commands = CommandsOnValues();
  for (auto* const more : {&CommandsOnKeys, &CommandsTogether}) {
    for (Words& command : more()) commands.push_back(std::move(command));
  }
  for (const Words& command : commands) {
    Words request = command;
    std::replace(request.begin(), request.end(), std::string(kPayload), payload);
    AskForText(**client, request);
    queues = (queues || command[0] == "MULTI") && command[0] != "EXEC" && command[0] != "DISCARD";
    if (queues) continue;
    std::string words;
    for (const std::string& word : command) words += word + " ";
    for (const std::string& event : log.Take(**client)) told.push_back(words + "-> " + event);
  }
  return told;
}

class KeyspaceEventsBesideRedisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    redis_.emplace(dir_.path());
    ASSERT_NE(redis_->Connect(), nullptr) << redis_->log();
    varve_.emplace(VARVE_SERVER_MAIN, dir_.File("data"),
                   Words{"--port=0", "--sync=no", "--notify-keyspace-events=KEx"});
    options_.port = varve_->port();
  }

  TempDir dir_;
  std::optional<RedisProcess> redis_;
  std::optional<ServerProcess> varve_;
  ClientOptions options_;  // of Varve
};

TEST_F(KeyspaceEventsBesideRedisTest, TheSameIsTold) {
  for (const char* letters : {"KEA", "AE", "K$n", "Kgxm", "KEAmn", ""}) {
    const Words expected = Told(redis_->Options(), letters);
    const Words told = Told(options_, letters);
    EXPECT_EQ(expected.empty(), std::string(letters).empty());
    for (size_t i = 0; i < std::max(expected.size(), told.size()); ++i) {
      ASSERT_LT(i, told.size()) << letters << ": " << expected[i] << " is missing";
      ASSERT_LT(i, expected.size()) << letters << ": " << told[i] << " is told for nothing";
      ASSERT_EQ(told[i], expected[i]) << letters;
    }
  }
}

TEST_F(KeyspaceEventsBesideRedisTest, LettersAreShownAlike) {
  const std::unique_ptr<Client> redis = redis_->Connect(), varve = *Client::Connect(options_);
  EXPECT_EQ(AskForText(*varve, {"CONFIG", "GET", "notify-keyspace-events"}), "xKE");
  for (const char* letters :
       {"", "KEA", "$gKE", "Elshmd", "tdzslhexg$", "KKK", "Az", "KEy", "K E", "kea"}) {
    for (const Words& request : {Words{"CONFIG", "SET", "notify-keyspace-events", letters},
                                 {"CONFIG", "GET", "notify-keyspace-events"}}) {
      EXPECT_EQ(AskForText(*varve, request), AskForText(*redis, request)) << letters;
    }
  }
}

}  // namespace
}  // namespace varve
