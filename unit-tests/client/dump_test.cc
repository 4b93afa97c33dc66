// DUMP and RESTORE between redis-server and server_main, both ways, and their errors side by side.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using Words = std::vector<std::string>;

std::string Text(const Reply& reply) {
  std::string text = reply.is_null()                       ? "nil"
                     : reply.type == Reply::Type::kInteger ? std::to_string(reply.integer)
                                                           : reply.text;
  for (const Reply& element : reply.elements) text += "(" + Text(element) + ")";
  return text;
}

// The reply as text, also where it is an error.
std::string Ask(Client& client, const Words& request) {
  const std::vector<std::string_view> words(request.begin(), request.end());
  EXPECT_EQ(client.Send(words), absl::OkStatus());
  const absl::StatusOr<Reply> reply = client.Receive();
  return reply.ok() ? Text(*reply) : "lost: " + reply.status().ToString();
}

class DumpBetweenServersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    redis_server_.emplace(dir_.path());
    varve_server_.emplace(VARVE_SERVER_MAIN, dir_.File("data"), Words{"--port=0", "--sync=no"});
    redis_ = redis_server_->Connect();
    ASSERT_NE(redis_, nullptr) << redis_server_->log();
    varve_ = *Client::Connect("127.0.0.1", varve_server_->port(), std::chrono::seconds(30));
  }

  testing::TempDir dir_;
  std::optional<testing::RedisProcess> redis_server_;
  std::optional<testing::ServerProcess> varve_server_;
  std::unique_ptr<Client> redis_, varve_;
};

TEST_F(DumpBetweenServersTest, ValuesGoBothWays) {
  std::vector<std::string> values = {
      "", "text", std::string("\0\xff\r\n", 4), "0", "-1", "01", "1.5", " 7", "-0"};
  for (const char* number :
       {"127", "128", "-128", "-129", "32767", "32768", "-32768", "-32769", "2147483647",
        "2147483648", "-2147483648", "-2147483649", "9223372036854775807"}) {
    values.emplace_back(number);
  }
  std::string lines;
  for (int i = 0; i < 30000; ++i) lines += "line " + std::to_string(i % 977) + "\n";
  for (const size_t size : {20, 21, 63, 64, 16383, 16384, 300000}) {
    values.emplace_back(size, 'a');
    values.push_back(lines.substr(0, size));
  }
  for (const std::string& value : values) {
    for (Client* from : {redis_.get(), varve_.get()}) {
      Client& to = from == redis_.get() ? *varve_ : *redis_;
      ASSERT_EQ(Ask(*from, {"SET", "k", value}), "OK");
      const std::string payload = Ask(*from, {"DUMP", "k"});
      ASSERT_EQ(Ask(to, {"RESTORE", "k", "0", payload, "REPLACE"}), "OK") << value.substr(0, 20);
      ASSERT_TRUE(Ask(to, {"GET", "k"}) == value) << value.substr(0, 20);
      // What the server itself wrote is no different.
      ASSERT_EQ(Ask(*from, {"RESTORE", "k", "0", payload, "REPLACE"}), "OK");
      ASSERT_TRUE(Ask(*from, {"GET", "k"}) == value);
    }
  }
}

TEST_F(DumpBetweenServersTest, RepliesAreTheSame) {
  Ask(*redis_, {"RPUSH", "list", "1"});
  Ask(*redis_, {"SET", "one", "1"});
  const std::string list = Ask(*redis_, {"DUMP", "list"});
  const std::string one = Ask(*redis_, {"DUMP", "one"});
  Ask(*redis_, {"FLUSHALL"});
  std::string newer = one;
  newer[newer.size() - 10] = 99;
  const std::vector<Words> lines = {
      {"DUMP", "k"},
      {"DUMP"},
      {"RESTORE", "k", "0"},
      {"RESTORE", "k", "0", one},
      {"DUMP", "k"},
      {"RESTORE", "k", "0", one},
      {"RESTORE", "k", "x", one},
      {"RESTORE", "k", "0", "junk"},
      {"RESTORE", "l", "0", "junk"},
      {"RESTORE", "l", "0", ""},
      {"RESTORE", "l", "0", newer},
      {"RESTORE", "l", "x", "junk"},
      {"RESTORE", "l", "-1", "junk"},
      {"RESTORE", "l", "-1", one},
      {"RESTORE", "l", "0", one.substr(0, one.size() - 1)},
      {"RESTORE", "k", "0", one, "nonsense"},
      {"RESTORE", "k", "0", one, "IDLETIME", "x"},
      {"RESTORE", "k", "0", one, "IDLETIME", "-1"},
      {"RESTORE", "k", "0", one, "FREQ", "-1"},
      {"RESTORE", "k", "0", one, "FREQ", "256"},
      {"RESTORE", "k", "0", one, "FREQ"},
      {"RESTORE", "k", "0", one, "FREQ", "1", "IDLETIME", "1"},
      {"RESTORE", "k", "0", one, "IDLETIME", "1", "FREQ", "1"},
      {"RESTORE", "k", "0", one, "REPLACE", "IDLETIME", "1", "IDLETIME", "2"},
      {"RESTORE", "k", "0", one, "REPLACE", "REPLACE", "ABSTTL"},
      {"RESTORE", "k", "9999999999999", one, "REPLACE", "ABSTTL"},
      {"PEXPIRETIME", "k"},
      {"RESTORE", "k", "1", one, "ABSTTL", "REPLACE"},
      {"EXISTS", "k"},
      {"RESTORE", "k", "1", one, "ABSTTL"},
      {"EXISTS", "k"},
      {"MULTI"},
      {"RESTORE", "k", "0", one},
      {"RESTORE", "k", "0", one},
      {"DUMP", "k"},
      {"EXEC"},
  };
  for (const Words& line : lines) {
    EXPECT_EQ(Ask(*varve_, line), Ask(*redis_, line))
        << line[0] << " " << line.size() << " " << line.back();
  }
  EXPECT_EQ(Ask(*varve_, {"RESTORE", "list", "0", list}), "ERR Bad data format");
}

}  // namespace
}  // namespace varve
