// What client_main's import makes of the files of a redis-server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/client/import_export_fixture.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/testing/eventually.h"

namespace varve {
namespace {

using testing::Eventually;
using ::testing::HasSubstr;
using testing::ImportExportTest;
using testing::Pairs;
using testing::ReadFile;
using testing::RedisProcess;

// Imports what a redis-server leaves on disk.
class RedisFilesTest : public ImportExportTest {
 protected:
  void SetUp() override {
    if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    ImportExportTest::SetUp();
    std::filesystem::create_directory(dir_.File("redis"));
  }
  std::string File(const std::string& name) const { return dir_.File("redis") + "/" + name; }

  void ExpectSameExpiry(Client* redis, std::string_view key) {
    const int64_t there = redis->Call({"PEXPIRETIME", key})->integer;
    EXPECT_GT(there, 0);
    EXPECT_EQ(Connect()->Call({"PEXPIRETIME", key})->integer, there);
  }

  // Strings in all encodings, and one value of each other type in small and large encodings.
  static Pairs FillRedis(Client* redis) {
    Pairs pairs;
    for (const std::string number : {"0", "-1", "127", "-128", "128", "32767", "-32768", "40000",
                                     "2147483647", "-2147483648", "2147483648", "99999999999999"}) {
      pairs["int:" + number] = number;
    }
    pairs["text"] = "plain";
    pairs[""] = "";
    pairs[std::string("\0\xff", 2)] = std::string("\r\n\0", 3);
    pairs["compressible"] = std::string(100000, 'a') + "tail";
    std::string mixed;
    for (int i = 0; i < 30000; ++i) mixed += "line " + std::to_string(i % 977) + "\n";
    pairs["mixed"] = mixed;
    pairs["70000 bytes"] = std::string(70000, 'b');
    for (const auto& [key, value] : pairs) EXPECT_EQ(redis->Put(key, value), absl::OkStatus());
    for (int i = 0; i < 600; ++i) {  // beyond what packed encodings take
      const std::string n = std::to_string(i);
      const std::string member = "m" + n;
      const std::vector<std::vector<std::string_view>> commands = {{"RPUSH", "list", n},
                                                                   {"SADD", "set", member},
                                                                   {"ZADD", "zset", n, n},
                                                                   {"HSET", "hash", n, n},
                                                                   {"XADD", "stream", "*", "f", n}};
      for (const auto& command : commands)
        EXPECT_EQ(redis->Call(command).status(), absl::OkStatus());
    }
    const std::vector<std::vector<std::string_view>> small = {
        {"RPUSH", "small list", "1"},
        {"SADD", "small set", "1"},
        {"ZADD", "small zset", "1", "1"},
        {"HSET", "small hash", "1", "1"},
        {"XGROUP", "CREATE", "stream", "group", "0"},
        {"XREADGROUP", "GROUP", "group", "me", "COUNT", "3", "STREAMS", "stream", ">"},
        {"SET", "expiring", "v", "EX", "1000"},
        {"SET", "expired", "v"},
        {"SELECT", "1"},
        {"SET", "elsewhere", "v"},
        {"SELECT", "0"}};
    for (const auto& command : small) EXPECT_EQ(redis->Call(command).status(), absl::OkStatus());
    pairs["expiring"] = "v";
    return pairs;
  }
};

TEST_F(RedisFilesTest, AnRdbFile) {
  RedisProcess redis(dir_.File("redis"));
  const std::unique_ptr<Client> client = redis.Connect();
  ASSERT_NE(client, nullptr) << redis.log();
  Pairs pairs = FillRedis(client.get());
  // Saved while it lives, read when its time is over.
  ASSERT_TRUE(Eventually([&] {
    EXPECT_EQ(client->Call({"SET", "expired", "v", "PX", "300"}).status(), absl::OkStatus());
    EXPECT_EQ(client->Call({"SAVE"}).status(), absl::OkStatus());
    return ReadFile(File("dump.rdb")).find("expired") != std::string::npos;
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  ASSERT_EQ(Run({"import", File("dump.rdb")}), 0) << Output();
  EXPECT_TRUE(Stored() == pairs);
  EXPECT_THAT(Output(), HasSubstr("imported 19 keys"));
  for (const char* type : {"list: 2", "set: 2", "sorted set: 2", "hash: 2", "stream: 1",
                           "key of another database: 1"}) {
    EXPECT_THAT(Output(), HasSubstr(std::string("left out: ") + type));
  }
  EXPECT_THAT(Output(), HasSubstr("keys with an expiry: 1"));
  EXPECT_THAT(Output(), HasSubstr("have expired, left out: 1"));
  ExpectSameExpiry(client.get(), "expiring");
  // A damaged file is refused before anything is written.
  Empty();
  std::string rdb = ReadFile(File("dump.rdb"));
  rdb[rdb.find("plain")] ^= 1;
  Write("damaged.rdb", rdb);
  EXPECT_EQ(Run({"import", dir_.File("damaged.rdb")}), 2);
  EXPECT_THAT(Output(), HasSubstr("checksum"));
  Write("cut.rdb", rdb.substr(0, rdb.size() / 2));
  EXPECT_EQ(Run({"import", dir_.File("cut.rdb")}), 2);
  EXPECT_EQ(Stored().size(), 0u);
}

// As Redis 7.4 writes them, which is not everywhere to be had.
TEST_F(RedisFilesTest, HashesWhoseFieldsExpireAreLeftOut) {
  const auto text = [](const std::string& bytes) {
    return static_cast<char>(bytes.size()) + bytes;
  };
  const std::string time("\x00\x10\xa5\xd4\xe8\x00\x00\x00", 8);
  // A length of 64 bits.
  const std::string absolute = "\x81" + std::string(time.rbegin(), time.rend());
  const std::string none(1, '\0');
  // Of a cluster: its number, keys, keys with an expiry.
  const std::string slot("\xf4\x05\x05\x00", 4);
  const std::string pair = text("field") + text("value");
  std::string rdb = "REDIS0012" + slot;
  rdb += "\x16" + text("candidate's hash") + "\x02" + absolute + pair + none + pair;
  rdb += "\x17" + text("candidate's listpack") + text("packed");
  rdb += "\x18" + text("hash") + time + "\x02" + "\x01" + pair + none + pair;
  rdb += "\x19" + text("listpack") + time + text("packed");
  rdb += none + text("string") + text("1");
  rdb += "\xff" + std::string(8, '\0');  // without a checksum
  Write("new.rdb", rdb);
  EXPECT_EQ(Run({"import", dir_.File("new.rdb")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("left out: hash: 4"));
  EXPECT_EQ(Stored(), (Pairs{{"string", "1"}}));
}

TEST_F(RedisFilesTest, AnAppendOnlyDirectory) {
  for (const std::string preamble : {"yes", "no"}) {
    Empty();
    std::filesystem::remove_all(dir_.File("redis"));
    std::filesystem::create_directory(dir_.File("redis"));
    // With everysec it puts off writing for as long as a sync takes.
    RedisProcess redis(dir_.File("redis"),
                       {"--appendonly", "yes", "--appendfsync", "always", "--aof-use-rdb-preamble",
                        preamble, "--aof-timestamp-enabled", "yes"});
    const std::unique_ptr<Client> client = redis.Connect();
    ASSERT_NE(client, nullptr) << redis.log();
    Pairs pairs = FillRedis(client.get());
    ASSERT_EQ(client->Call({"BGREWRITEAOF"}).status(), absl::OkStatus());
    while (client->Call({"INFO", "persistence"})->text.find("aof_rewrite_in_progress:0") ==
           std::string::npos)
      continue;
    // After the rewrite, in the incremental file.
    ASSERT_EQ(client->Call({"INCR", "int:127"}).status(), absl::OkStatus());
    pairs["int:127"] = "128";
    ASSERT_EQ(client->Delete({"text"}).status(), absl::OkStatus());
    pairs.erase("text");
    client->pipeline().Send({"MULTI"});
    client->pipeline().Send({"SET", "in", "transaction"});
    client->pipeline().Send({"EXEC"});
    while (client->pipeline().outstanding() > 0) ASSERT_TRUE(client->Receive().ok());
    pairs["in"] = "transaction";
    pairs["expired"] = "v";
    // Redis writes the instant, whatever it was told.
    for (const auto& command :
         std::vector<std::vector<std::string_view>>{{"SETEX", "later", "100", "1"},
                                                    {"SET", "expiring", "2", "KEEPTTL"},
                                                    {"EXPIRE", "in", "200"},
                                                    {"SET", "stays", "1", "EX", "100"},
                                                    {"PERSIST", "stays"}}) {
      ASSERT_EQ(client->Call(command).status(), absl::OkStatus());
    }
    pairs["later"] = "1";
    pairs["expiring"] = "2";
    pairs["stays"] = "1";
    ASSERT_EQ(Run({"import", dir_.File("redis")}), 0) << Output();
    EXPECT_TRUE(Stored() == pairs) << Output();
    for (const char* key : {"later", "expiring", "in"}) ExpectSameExpiry(client.get(), key);
    EXPECT_EQ(Connect()->Call({"TTL", "stays"})->integer, -1);
  }
}

TEST_F(RedisFilesTest, AnAppendOnlyFileThatWasCut) {
  Write("one.aof",
        "#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*5\r\n$3\r\nSET\r\n$1\r\na\r\n$"
        "1\r\n1\r\n$4\r\nPXAT\r\n$"
        "1\r\n5\r\n"
        "*4\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\n1\r\n$1\r\n2\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$"
        "1\r\n2\r\n*3\r\n$"
        "3\r\nSET\r\n$1\r\nc");
  EXPECT_EQ(Run({"import", dir_.File("one.aof")}), 0) << Output();
  EXPECT_EQ(Stored(), (Pairs{{"b", "2"}}));
  EXPECT_THAT(Output(), HasSubstr("left out: command RPUSH: 1"));
  EXPECT_THAT(Output(), HasSubstr("have expired, left out: 1"));
  EXPECT_THAT(Output(), HasSubstr("ends in the middle of a command"));
}

TEST_F(RedisFilesTest, WhatWasNeverExecutedIsLeftOut) {
  const std::string transaction = "*1\r\n$5\r\nMULTI\r\n*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
  const std::string whole = transaction + "*1\r\n$4\r\nEXEC\r\n";
  Write("open.aof", whole + transaction + "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n");
  EXPECT_EQ(Run({"import", dir_.File("open.aof")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("ends in the middle of a transaction that begins at offset 50"));
  EXPECT_EQ(Stored(), (Pairs{{"n", "1"}}));
}

TEST_F(RedisFilesTest, AnExpiryOfItsOwnIsNoticed) {
  Write(
      "expire.aof",
      "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$9\r\nPEXPIREAT\r\n$1\r\na\r\n$4\r\n1000\r\n"
      "*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n*3\r\n$8\r\nEXPIREAT\r\n$1\r\nb\r\n$"
      "10\r\n9999999999\r\n");
  EXPECT_EQ(Run({"import", dir_.File("expire.aof")}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("keys with an expiry: 1"));
  EXPECT_THAT(Output(), HasSubstr("have expired, left out: 1"));
  EXPECT_EQ(Stored(), (Pairs{{"b", "2"}}));
  EXPECT_EQ(Connect()->Call({"EXPIRETIME", "b"})->integer, 9999999999);
}

}  // namespace
}  // namespace varve
