// What the server tells of itself: INFO, SLOWLOG, LATENCY, EXPLAIN.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/statistics/slow_log.h"
#include "unit-tests/server/reply_text.h"
#include "unit-tests/server/test_server.h"

namespace varve {
namespace {

using testing::TestServer;

class MonitoringTest : public ::testing::Test {
 protected:
  Reply Do(const std::vector<std::string_view>& arguments) {
    EXPECT_TRUE(client_->Send(arguments).ok());
    absl::StatusOr<Reply> reply = client_->Receive();
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? *std::move(reply) : Reply();
  }
  // The figure behind "name:" in an INFO section; "(none)" if there is no such line.
  std::string Info(std::string_view section, const std::string& name) {
    const std::string text = Do({"INFO", section}).text;
    const size_t line = text.find("\n" + name + ":");
    if (line == std::string::npos) return "(none)";
    const size_t begin = line + name.size() + 2;
    return text.substr(begin, text.find('\r', begin) - begin);
  }
  // Of a reply that is a map, in RESP2 or RESP3.
  static const Reply* Field(const Reply& map, std::string_view name) {
    for (size_t i = 0; i + 1 < map.elements.size(); i += 2) {
      if (map.elements[i].text == name) return &map.elements[i + 1];
    }
    return nullptr;
  }

  TestServer server_;
  std::unique_ptr<Client> client_ = server_.Connect();
};

TEST_F(MonitoringTest, CommandsAreCountedHoweverTheyAreExecuted) {
  Do({"SET", "k", "v"});
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(client_->Send({"GET", i % 2 == 0 ? "k" : "missing"}).ok());
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client_->Send({"SET", "k", "w"}).ok());
  for (int i = 0; i < 15; ++i) ASSERT_TRUE(client_->Receive().ok());
  Do({"MGET", "k", "missing", "k"});
  EXPECT_EQ(Info("commandstats", "cmdstat_get").substr(0, 9), "calls=10,");
  EXPECT_EQ(Info("commandstats", "cmdstat_set").substr(0, 8), "calls=6,");
  EXPECT_EQ(Info("stats", "keyspace_hits"), "7");
  EXPECT_EQ(Info("stats", "keyspace_misses"), "6");
  EXPECT_NE(Info("latencystats", "latency_percentiles_usec_get").find("p99="), std::string::npos);
  EXPECT_EQ(Info("commandstats", "cmdstat_append"), "(none)");
}

TEST_F(MonitoringTest, ErrorsAreCountedByCommandAndCode) {
  Do({"SET", "k", "no number"});
  Do({"INCR", "k"});
  Do({"INCR", "k"});
  Do({"GET"});
  Do({"NOSUCHCOMMAND"});
  EXPECT_EQ(Info("stats", "total_error_replies"), "4");
  EXPECT_EQ(Info("errorstats", "errorstat_ERR"), "count=4");
  const std::string incr = Info("commandstats", "cmdstat_incr");
  EXPECT_NE(incr.find("calls=2,"), std::string::npos) << incr;
  EXPECT_NE(incr.find("rejected_calls=0,failed_calls=2"), std::string::npos) << incr;
  EXPECT_NE(Info("commandstats", "cmdstat_get").find("rejected_calls=1,failed_calls=1"),
            std::string::npos);
}

TEST_F(MonitoringTest, DefaultSectionsLeaveOutWhatIsLong) {
  const std::string by_default = Do({"INFO"}).text;
  for (const char* part : {"# Server", "# Clients", "# Memory", "# Persistence", "# Stats",
                           "# Replication", "# CPU", "# Errorstats", "# Cluster", "# Engine",
                           "# Keyspace", "role:master", "used_memory_human:"}) {
    EXPECT_NE(by_default.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(by_default.find("# Commandstats"), std::string::npos);
  EXPECT_NE(Do({"INFO", "everything"}).text.find("# Commandstats"), std::string::npos);
  EXPECT_NE(Do({"INFO", "latencystats", "cpu"}).text.find("used_cpu_user:"), std::string::npos);
}

TEST_F(MonitoringTest, MemoryTellsWhatItIsUsedFor) {
  const Reply stats = Do({"MEMORY", "STATS"});
  ASSERT_NE(Field(stats, "total.allocated"), nullptr);
  const int64_t resident = Field(stats, "total.allocated")->integer;
  EXPECT_GT(resident, 1 << 20);
  EXPECT_GE(Field(stats, "peak.allocated")->integer, resident);
  EXPECT_GT(Field(stats, "clients.normal")->integer, 0);
  EXPECT_EQ(Field(stats, "keys.count")->integer, 0);
  EXPECT_NE(Do({"MEMORY", "DOCTOR"}).text.find("MiB are resident"), std::string::npos);
  EXPECT_NE(Do({"MEMORY", "MALLOC-STATS"}).text.find("in use: "), std::string::npos);
  EXPECT_EQ(Do({"MEMORY", "PURGE"}).text, "OK");
  EXPECT_EQ(Do({"MEMORY", "PURGE", "x"}).type, Reply::Type::kError);
}

TEST_F(MonitoringTest, ClientsAndChannelsAreCounted) {
  EXPECT_EQ(Info("stats", "pubsub_channels"), "0");
  const std::unique_ptr<Client> listener = server_.Connect();
  testing::Ask(*listener, {"SUBSCRIBE", "news"});
  EXPECT_EQ(Info("stats", "pubsub_channels"), "1");
  EXPECT_EQ(Info("stats", "pubsub_patterns"), "0");
  EXPECT_EQ(Info("clients", "connected_clients"), "2");
  EXPECT_EQ(Info("clients", "pubsub_clients"), "1");
  EXPECT_NE(Info("server", "executable"), "(none)");
  const Reply role = Do({"ROLE"});
  ASSERT_EQ(role.elements.size(), 3u);
  EXPECT_EQ(role.elements[0].text, "master");
  EXPECT_EQ(Do({"BGREWRITEAOF"}).text, "Background append only file rewriting started");
}

TEST_F(MonitoringTest, TheHistogramCountsUpToEachPowerOfTwo) {
  for (int i = 0; i < 7; ++i) Do({"SET", "k", "v"});
  const Reply histogram = Do({"LATENCY", "HISTOGRAM", "set", "append", "nosuchcommand"});
  ASSERT_EQ(histogram.elements.size(), 2u);
  EXPECT_EQ(histogram.elements[0].text, "set");
  EXPECT_EQ(Field(histogram.elements[1], "calls")->integer, 7);
  const Reply* lines = Field(histogram.elements[1], "histogram_usec");
  ASSERT_NE(lines, nullptr);
  ASSERT_GE(lines->elements.size(), 2u);
  for (size_t i = 2; i + 1 < lines->elements.size(); i += 2) {
    EXPECT_GT(lines->elements[i].integer, lines->elements[i - 2].integer);
    EXPECT_GT(lines->elements[i + 1].integer, lines->elements[i - 1].integer);
  }
  EXPECT_EQ(lines->elements.back().integer, 7);
  EXPECT_TRUE(Do({"LATENCY", "LATEST"}).elements.empty());
  EXPECT_EQ(Do({"LATENCY", "FOO"}).type, Reply::Type::kError);
}

TEST_F(MonitoringTest, SlowRequestsAreKeptUntilTheReset) {
  EXPECT_EQ(Do({"SLOWLOG", "LEN"}).integer, 0);
  EXPECT_TRUE(Do({"SLOWLOG", "GET"}).elements.empty());
  EXPECT_EQ(Do({"SLOWLOG", "GET", "-2"}).type, Reply::Type::kError);
  EXPECT_EQ(Do({"SLOWLOG", "RESET"}).text, "OK");
  EXPECT_EQ(Do({"SLOWLOG", "FOO"}).type, Reply::Type::kError);
}

TEST(SlowLogTest, KeepsTheNewestAndShortensWhatIsLong) {
  SlowLog log;
  EXPECT_FALSE(log.Wants(9'999'000));
  EXPECT_TRUE(log.Wants(10'000'000));
  log.set_threshold_micros(-1);
  EXPECT_FALSE(log.Wants(UINT32_MAX));
  log.set_threshold_micros(0);
  EXPECT_TRUE(log.Wants(0));

  log.set_max_entries(2);
  const std::string large(1000, 'x');
  const std::vector<std::string_view> long_list(40, "a");
  for (const std::vector<std::string_view>& arguments : {{"first"}, {"SET", large}, long_list}) {
    log.Add(5'000'000, arguments, "address:1", "name");
  }
  const std::vector<SlowLog::Entry> entries = log.Newest(10);
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].id, 2u);
  EXPECT_EQ(entries[0].arguments.size(), SlowLog::kMaxArguments);
  EXPECT_EQ(entries[0].arguments.back(), "... (9 more arguments)");
  EXPECT_EQ(entries[1].arguments[1], std::string(128, 'x') + "... (872 more bytes)");
  EXPECT_EQ(entries[1].micros, 5000);
  EXPECT_EQ(entries[1].client_address, "address:1");
  log.Clear();
  EXPECT_EQ(log.size(), 0u);
}

TEST_F(MonitoringTest, ExplainTellsWhereAKeyWasFound) {
  Do({"SET", "k", "value"});
  Reply explained = Do({"EXPLAIN", "GET", "k"});
  EXPECT_EQ(Field(explained, "found")->integer, 1);
  EXPECT_EQ(Field(explained, "value_bytes")->integer, 5);
  EXPECT_EQ(Field(explained, "tables_probed")->integer, 0);
  EXPECT_NE(Field(explained, "steps")->elements[0].text.find("write buffers: found"),
            std::string::npos);

  for (int i = 0; i < 100; ++i) Do({"SET", "k" + std::to_string(i), "value"});
  Do({"COMPACT"});
  explained = Do({"EXPLAIN", "GET", "k50"});
  EXPECT_EQ(Field(explained, "found")->integer, 1);
  EXPECT_EQ(Field(explained, "tables_probed")->integer, 1);
  EXPECT_LE(Field(explained, "disk_reads")->integer, 1);
  explained = Do({"EXPLAIN", "GET", "k50"});
  EXPECT_EQ(Field(explained, "disk_reads")->integer, 0);
  EXPECT_EQ(Field(explained, "cache_hits")->integer, 1);
  explained = Do({"EXPLAIN", "GET", "k500"});
  EXPECT_EQ(Field(explained, "found")->integer, 0);
  EXPECT_EQ(Do({"EXPLAIN", "SET", "k"}).type, Reply::Type::kError);
}

// What is said of a command is some hundred times as long as its name: a request of 4 MB would have
// had an answer of 2 GB.
TEST_F(MonitoringTest, WhatIsAskedAboutCommandsIsBounded) {
  for (const std::vector<std::string_view>& asked : std::vector<std::vector<std::string_view>>{
           {"COMMAND", "DOCS"}, {"COMMAND", "INFO"}, {"LATENCY", "HISTOGRAM"}}) {
    std::vector<std::string_view> request = asked;
    request.resize(asked.size() + 1024, "get");
    EXPECT_NE(Do(request).type, Reply::Type::kError) << asked[1];
    request.push_back("get");
    EXPECT_EQ(Do(request).text, "ERR at most 1024 names can be asked about at once") << asked[1];
  }
}

TEST_F(MonitoringTest, MonitorShortensWhatIsLong) {
  testing::RawConnection monitor(server_.port());
  monitor.Send("MONITOR\r\n");
  EXPECT_EQ(monitor.Receive(5), "+OK\r\n");
  Do({"SET", "k", std::string(1u << 20, '\xff')});
  Do(std::vector<std::string_view>(100'000, "MGET"));
  std::string seen;
  while (seen.find("more arguments)\r\n") == std::string::npos && seen.size() < (1u << 20))
    seen += monitor.Receive(1);
  EXPECT_NE(seen.find("\\xff\"... (1044480 more bytes)\r\n"), std::string::npos);
  EXPECT_LT(seen.size(), 100'000u);
}

}  // namespace
}  // namespace varve
