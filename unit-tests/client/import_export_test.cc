// client_main's import and export against a server_main, with files of its own and those that redis-server writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "unit-tests/client/redis_process.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using ::testing::HasSubstr;
using testing::Process;
using testing::ReadFile;
using testing::RedisProcess;
using testing::ServerProcess;
using testing::TempDir;

using Pairs = std::map<std::string, std::string>;

// Keys and values that any text format stumbles over.
Pairs NastyPairs() {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  Pairs pairs = {{"", "empty key"},
                 {"empty value", ""},
                 {"quotes \" ' ,", "a,b\"\"c\r\nd\ne\r"},
                 {" blanks ", "  "},
                 {"key", "value"},
                 {std::string("\0", 1), std::string("\0\0", 2)},
                 {"Zürich", "日本語 \xf0\x9f\x8c\x8d"},
                 {"half \xc3", "\xed\xa0\x80"},
                 {all_bytes, all_bytes + all_bytes},
                 {"{\"key\":1}", "*3\r\n$3\r\nSET\r\n"},
                 {"#TS:1", "\\u0041\\n"},
                 {"large", std::string(3000000, 'x') + "\n"}};
  for (int i = 0; i < 1000; ++i) pairs["n" + std::to_string(i)] = std::to_string(i * 7919);
  return pairs;
}

class ImportExportTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Start("--port=0");
    ASSERT_NE(server_->port(), 0) << server_->log();
    port_ = server_->port();
  }
  void Start(const std::string& port) {
    server_.emplace(VARVE_SERVER_MAIN, dir_.File("data"), std::vector<std::string>{port, "--sync=no"});
  }
  std::unique_ptr<Client> Connect() {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect("127.0.0.1", port_, std::chrono::seconds(30));
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  int Run(std::vector<std::string> arguments, const std::string& input = "/dev/null") {
    arguments.insert(arguments.begin(), "--port=" + std::to_string(port_));
    return Process(VARVE_CLIENT_MAIN, arguments, dir_.File("out"), input).Wait();
  }
  std::string Output() const { return ReadFile(dir_.File("out")); }
  void Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_.File(name), std::ios::binary) << text;
  }

  void Fill(const Pairs& pairs) {
    const std::unique_ptr<Client> client = Connect();
    for (const auto& [key, value] : pairs) ASSERT_EQ(client->Put(key, value), absl::OkStatus());
  }
  Pairs Stored() {
    const Client::Pairs pairs = *Connect()->Range("-", "+");
    return Pairs(pairs.begin(), pairs.end());
  }
  void Empty() { ASSERT_EQ(Connect()->Call({"FLUSHALL"}).status(), absl::OkStatus()); }

  TempDir dir_;
  std::optional<ServerProcess> server_;
  uint16_t port_ = 0;
};

TEST_F(ImportExportTest, NastyBytesComeBackInEachFormat) {
  const Pairs pairs = NastyPairs();
  for (const std::string name : {"all.resp", "all.csv", "all.jsonl"}) {
    Fill(pairs);
    ASSERT_EQ(Run({"export", dir_.File(name)}), 0) << Output();
    EXPECT_THAT(Output(), HasSubstr("exported 1012 keys"));
    Empty();
    ASSERT_EQ(Run({"import", dir_.File(name)}), 0) << Output();
    EXPECT_TRUE(Stored() == pairs) << name;
    EXPECT_FALSE(std::filesystem::exists(dir_.File(name) + ".import-state"));
    Empty();
    // The same through pipes.
    const std::string format = "--format=" + name.substr(4);
    ASSERT_EQ(Run({"import", "-", format}, dir_.File(name)), 0) << Output();
    EXPECT_TRUE(Stored() == pairs) << name;
    Empty();
  }
}

TEST_F(ImportExportTest, RedisCliLoadsWhatExportWrites) {
  if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
  const Pairs pairs = NastyPairs();
  Fill(pairs);
  ASSERT_EQ(Run({"export", dir_.File("all.resp")}), 0) << Output();
  Empty();
  const std::string pipe = "redis-cli --pipe -p " + std::to_string(port_);
  ASSERT_EQ(Process("/bin/sh", {"-c", pipe}, dir_.File("out"), dir_.File("all.resp")).Wait(), 0) << Output();
  EXPECT_TRUE(Stored() == pairs) << Output();
}

TEST_F(ImportExportTest, ExportTakesBoundsAndLimitsAndOverwritesNothing) {
  Fill({{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}});
  ASSERT_EQ(Run({"export", dir_.File("some.csv"), "(a", "[c"}), 0) << Output();
  EXPECT_EQ(ReadFile(dir_.File("some.csv")), "key,value\nb,2\nc,3\n");
  EXPECT_EQ(Run({"export", dir_.File("some.csv")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--force"));
  ASSERT_EQ(Run({"export", dir_.File("some.csv"), "--force", "--limit=1"}), 0) << Output();
  EXPECT_EQ(ReadFile(dir_.File("some.csv")), "key,value\na,1\n");
  EXPECT_EQ(Run({"export", dir_.File("x.rdb")}), 2);
}

TEST_F(ImportExportTest, ExportGoesOnInAFileThatWasCut) {
  Fill(NastyPairs());
  for (const std::string name : {"all.resp", "all.csv", "all.jsonl"}) {
    ASSERT_EQ(Run({"export", dir_.File(name)}), 0) << Output();
    const std::string whole = ReadFile(dir_.File(name));
    for (const size_t cut : {size_t{0}, size_t{11}, size_t{60}, whole.size() / 2, whole.size() - 1}) {
      Write(name, whole.substr(0, cut));
      ASSERT_EQ(Run({"export", dir_.File(name), "--resume"}), 0) << Output();
      EXPECT_TRUE(ReadFile(dir_.File(name)) == whole) << name << " cut at " << cut;
    }
  }
}

TEST_F(ImportExportTest, WrongRecordsAreCountedAndTheFirstIsShown) {
  Write("bad.jsonl",
        "{\"key\":\"a\",\"value\":\"1\"}\n{\"key\":\"b\"}\n\nnonsense\n{\"key\":\"c\",\"more\":[1,{\"x\":null}],"
        "\"value\":\"3\"}\n");
  EXPECT_EQ(Run({"import", dir_.File("bad.jsonl")}), 2);
  EXPECT_THAT(Output(), HasSubstr("2 errors, the first:"));
  EXPECT_THAT(Output(), HasSubstr("bad.jsonl: line 2 (offset 24): byte 12: the object has no \"value\""));
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}, {"c", "3"}}));
  Empty();
  Write("bad.csv", "a,1\nb\n\"c\"x,3\nd,\"4\n");
  EXPECT_EQ(Run({"import", dir_.File("bad.csv")}), 2);
  EXPECT_THAT(Output(), HasSubstr("3 errors, the first:"));
  EXPECT_THAT(Output(), HasSubstr("bad.csv: line 2 (offset 4): 1 columns instead of two"));
  EXPECT_EQ(Stored(), (Pairs{{"a", "1"}}));
  // A reply that is an error counts, too.
  Write("bad.resp",
        "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*2\r\n$4\r\nINCR\r\n$1\r\na\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$"
        "1\r\nx\r\n*2\r\n$4\r\n"
        "INCR\r\n$1\r\nb\r\n");
  EXPECT_EQ(Run({"import", dir_.File("bad.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("1 errors, the first:"));
  EXPECT_THAT(Output(), HasSubstr("bad.resp: offset 75: ERR value is not an integer"));
  EXPECT_EQ(Stored(), (Pairs{{"a", "2"}, {"b", "x"}}));
  // Nothing is deleted unasked.
  Write("flush.resp", "*1\r\n$8\r\nFLUSHALL\r\n");
  EXPECT_EQ(Run({"import", dir_.File("flush.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--force"));
  EXPECT_EQ(Stored().size(), 2u);
  EXPECT_EQ(Run({"import", dir_.File("flush.resp"), "--force"}), 0);
  EXPECT_EQ(Stored().size(), 0u);
  Write("cut.resp", "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$3\r\nSE");
  EXPECT_EQ(Run({"import", dir_.File("cut.resp")}), 0);
  EXPECT_THAT(Output(), HasSubstr("ends in the middle of a command that begins at offset 27"));
}

// Kills the server in the middle of an import.
TEST_F(ImportExportTest, AnInterruptedImportIsResumed) {
  constexpr int kKeys = 400000;
  std::string csv = "key,value\n";
  for (int i = 0; i < kKeys; ++i) csv += "key" + std::to_string(i) + ",value" + std::to_string(i) + "\n";
  Write("many.csv", csv);
  int resumed = 0;
  int code = 2;
  for (int round = 0; round < 20 && code != 0; ++round) {
    std::vector<std::string> arguments = {"--port=" + std::to_string(port_), "import", dir_.File("many.csv"),
                                          "--reconnect=1"};
    if (round > 0) arguments.push_back("--resume");
    Process import(VARVE_CLIENT_MAIN, arguments, dir_.File("out"));
    const std::string ahead = "key" + std::to_string((round + 1) * 100000);
    if (round < 2) {
      const std::unique_ptr<Client> client = Connect();
      while (import.Running() && !client->Get(ahead)->has_value()) continue;
      server_->process().Kill(SIGKILL);
      server_->process().Wait();
    }
    code = import.Wait();
    if (code == 0) break;
    EXPECT_THAT(Output(), HasSubstr("--resume goes on at offset"));
    EXPECT_TRUE(std::filesystem::exists(dir_.File("many.csv.import-state")));
    ++resumed;
    server_.reset();
    Start("--port=" + std::to_string(port_));
    ASSERT_EQ(server_->port(), port_) << server_->log();
  }
  EXPECT_EQ(code, 0) << Output();
  EXPECT_EQ(resumed, 2);
  EXPECT_EQ(*Connect()->Count("-", "+"), kKeys);
  EXPECT_FALSE(std::filesystem::exists(dir_.File("many.csv.import-state")));
  EXPECT_EQ(Run({"import", dir_.File("many.csv"), "--resume"}), 2);  // nothing to resume any more
}

TEST_F(ImportExportTest, ALostConnectionDoesNotEndAnImport) {
  std::string csv;
  for (int i = 0; i < 300000; ++i) csv += "key" + std::to_string(i) + ",v\n";
  Write("many.csv", csv);
  Process import(VARVE_CLIENT_MAIN, {"--port=" + std::to_string(port_), "import", dir_.File("many.csv")},
                 dir_.File("out"));
  {
    const std::unique_ptr<Client> client = Connect();
    while (import.Running() && !client->Get("key50000")->has_value()) continue;
  }
  server_->process().Kill(SIGKILL);
  server_.reset();
  Start("--port=" + std::to_string(port_));
  ASSERT_EQ(server_->port(), port_) << server_->log();
  EXPECT_EQ(import.Wait(), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("the connection was lost, and made again: "));
  EXPECT_EQ(*Connect()->Count("-", "+"), 300000);
}

TEST_F(ImportExportTest, CommandsThatMustNotRunTwiceAreNotResumedBlindly) {
  std::string commands;
  for (int i = 0; i < 200000; ++i) commands += "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
  Write("incr.resp", commands);
  Process import(VARVE_CLIENT_MAIN,
                 {"--port=" + std::to_string(port_), "import", dir_.File("incr.resp"), "--reconnect=1"},
                 dir_.File("out"));
  {
    const std::unique_ptr<Client> client = Connect();
    while (import.Running() && !client->Get("n")->has_value()) continue;
  }
  server_->process().Kill(SIGKILL);
  ASSERT_EQ(import.Wait(), 2) << Output();
  EXPECT_THAT(Output(), HasSubstr("may have taken effect or not"));
  EXPECT_EQ(Run({"import", dir_.File("incr.resp"), "--resume"}), 2);
  EXPECT_THAT(Output(), HasSubstr("--force"));
}

TEST_F(ImportExportTest, WhatWasExecutedBeforeADamagedPlaceIsNotExecutedAgain) {
  const std::string increment = "*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n";
  Write("damaged.resp", increment + increment + increment + "garbage");
  EXPECT_EQ(Run({"import", dir_.File("damaged.resp")}), 2);
  EXPECT_THAT(Output(), HasSubstr("--resume goes on at offset 63"));
  Write("damaged.resp", increment + increment + increment);  // mended, and shorter
  EXPECT_EQ(Run({"import", dir_.File("damaged.resp"), "--resume"}), 2);
  EXPECT_THAT(Output(), HasSubstr("when the import began"));
  Write("damaged.resp", increment + increment + increment + "*2\r\n$4\r");  // cut, and as long as it was
  EXPECT_EQ(Run({"import", dir_.File("damaged.resp"), "--resume"}), 0) << Output();
  EXPECT_EQ(*Connect()->Get("n"), "3");
}

// Imports what a redis-server leaves on disk.
class RedisFilesTest : public ImportExportTest {
 protected:
  void SetUp() override {
    if (!RedisProcess::IsInstalled()) GTEST_SKIP() << "redis-server is not installed";
    ImportExportTest::SetUp();
    std::filesystem::create_directory(dir_.File("redis"));
  }
  std::string File(const std::string& name) const { return dir_.File("redis") + "/" + name; }

  // Strings in all encodings, and one value of each other type in small and large encodings.
  static Pairs FillRedis(Client* redis) {
    Pairs pairs;
    for (const std::string number : {"0", "-1", "127", "-128", "128", "32767", "-32768", "40000", "2147483647",
                                     "-2147483648", "2147483648", "99999999999999"}) {
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
      for (const auto& command : commands) EXPECT_EQ(redis->Call(command).status(), absl::OkStatus());
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
  ASSERT_EQ(client->Call({"PEXPIRE", "expired", "300"}).status(), absl::OkStatus());
  ASSERT_EQ(client->Call({"SAVE"}).status(), absl::OkStatus());
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  ASSERT_EQ(Run({"import", File("dump.rdb")}), 0) << Output();
  EXPECT_TRUE(Stored() == pairs);
  EXPECT_THAT(Output(), HasSubstr("imported 19 keys"));
  for (const char* type :
       {"list: 2", "set: 2", "sorted set: 2", "hash: 2", "stream: 1", "key of another database: 1"}) {
    EXPECT_THAT(Output(), HasSubstr(std::string("left out: ") + type));
  }
  EXPECT_THAT(Output(), HasSubstr("imported without it: 1"));
  EXPECT_THAT(Output(), HasSubstr("have expired, left out: 1"));
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

TEST_F(RedisFilesTest, AnAppendOnlyDirectory) {
  for (const std::string preamble : {"yes", "no"}) {
    Empty();
    std::filesystem::remove_all(dir_.File("redis"));
    std::filesystem::create_directory(dir_.File("redis"));
    RedisProcess redis(dir_.File("redis"),
                       {"--appendonly", "yes", "--aof-use-rdb-preamble", preamble, "--aof-timestamp-enabled", "yes"});
    const std::unique_ptr<Client> client = redis.Connect();
    ASSERT_NE(client, nullptr) << redis.log();
    Pairs pairs = FillRedis(client.get());
    ASSERT_EQ(client->Call({"BGREWRITEAOF"}).status(), absl::OkStatus());
    while (client->Call({"INFO", "persistence"})->text.find("aof_rewrite_in_progress:0") == std::string::npos) continue;
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
    redis.process().Kill(SIGTERM);
    redis.process().Wait();
    ASSERT_EQ(Run({"import", dir_.File("redis")}), 0) << Output();
    EXPECT_TRUE(Stored() == pairs) << Output();
  }
}

TEST_F(RedisFilesTest, AnAppendOnlyFileThatWasCut) {
  Write("one.aof",
        "#TS:1700000000\r\n*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n*5\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n$4\r\nPXAT\r\n$"
        "1\r\n5\r\n"
        "*4\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$1\r\n1\r\n$1\r\n2\r\n*3\r\n$3\r\nSET\r\n$1\r\nb\r\n$1\r\n2\r\n*3\r\n$"
        "3\r\nSET\r\n$1\r\nc");
  EXPECT_EQ(Run({"import", dir_.File("one.aof")}), 0) << Output();
  EXPECT_EQ(Stored(), (Pairs{{"b", "2"}}));
  EXPECT_THAT(Output(), HasSubstr("left out: command RPUSH: 1"));
  EXPECT_THAT(Output(), HasSubstr("have expired, left out: 1"));
  EXPECT_THAT(Output(), HasSubstr("ends in the middle of a command"));
}

TEST_F(ImportExportTest, BenchMeasuresBothWays) {
  ASSERT_EQ(Run({"bench", "--seconds=1", "--connections=4", "--pipeline=8", "--keyspace=100", "--json"}), 0)
      << Output();
  EXPECT_THAT(Output(), HasSubstr("{\"test\":\"SET\",\"requests_per_second\":"));
  EXPECT_THAT(Output(), HasSubstr("{\"test\":\"GET\",\"requests_per_second\":"));
  EXPECT_GT(*Connect()->Count("[bench:", "(bench;"), 50);
}

TEST_F(ImportExportTest, ProgressIsShownWhenAskedFor) {
  std::string csv;
  for (int i = 0; i < 200000; ++i) csv += "key" + std::to_string(i) + ",v\n";
  Write("many.csv", csv);
  ASSERT_EQ(Run({"import", dir_.File("many.csv"), "--progress"}), 0) << Output();
  EXPECT_THAT(Output(), HasSubstr("keys/s"));
  EXPECT_THAT(Output(), HasSubstr("%"));
}

}  // namespace
}  // namespace varve
