// The metrics under redis_exporter's names: those that Grafana's dashboard 763 asks for, from the
// page and from Debian's exporter.
#include "server/http/redis_metrics.h"

#include <gtest/gtest.h>

#include <iterator>
#include <set>
#include <string>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/server/http/http_client.h"
#include "unit-tests/server/http/programs.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/server_process.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

constexpr const char* kDashboard763[] = {"up",
                                         "uptime_in_seconds",
                                         "connected_clients",
                                         "blocked_clients",
                                         "memory_used_bytes",
                                         "memory_max_bytes",
                                         "commands_total",
                                         "command_calls_total",
                                         "commands_duration_seconds_total",
                                         "keyspace_hits_total",
                                         "keyspace_misses_total",
                                         "net_input_bytes_total",
                                         "net_output_bytes_total",
                                         "db_keys",
                                         "db_keys_expiring",
                                         "expired_keys_total",
                                         "evicted_keys_total"};
// An earlier name of commands_total, which exporters of Debian 12 do not tell of any server.
constexpr std::string_view kNotOfTheExporter = "command_calls_total";

// The value of the first sample with that name; empty: there is none.
std::string Value(const std::string& page, const std::string& name) {
  for (const char* end : {" ", "{"}) {
    const size_t at = ("\n" + page).find("\nredis_" + name + end);
    if (at == std::string::npos) continue;
    const std::string line = page.substr(at, page.find('\n', at) - at);
    return line.substr(line.rfind(' ') + 1);
  }
  return "";
}

class RedisMetricsTest : public testing::CommandTest {
 protected:
  RedisMetricsTest() {
    for (int i = 0; i < 10; ++i) Do({"set", "key" + std::to_string(i), "value"});
    Do({"get", "key1"});
    Do({"get", "missing"});
  }
  std::string Page() {
    MetricsText text(MetricsText::Format::kPlain);
    WriteRedisMetrics(server_.server().state(), &text);
    return text.Take();
  }
};

TEST_F(RedisMetricsTest, HasTheSeriesOfDashboard763) {
  const std::string page = Page();
  for (const char* name : kDashboard763) EXPECT_NE(Value(page, name), "") << name << "\n" << page;
  EXPECT_EQ(Value(page, "keyspace_hits_total"), "1");
  EXPECT_EQ(Value(page, "db_keys"), "10");
  EXPECT_NE(page.find("redis_commands_total{cmd=\"set\"} 10\n"), std::string::npos) << page;
  EXPECT_NE(page.find("redis_db_keys{db=\"db15\"} 0\n"), std::string::npos) << page;
}

constexpr const char* kRedisExporter = "prometheus-redis-exporter";

// What Debian's exporter tells of the server at that port.
std::string ExportedFrom(uint16_t server, const std::string& log) {
  const uint16_t port = testing::FreePort();
  const testing::Process exporter(kRedisExporter,
                                  {"--redis.addr=redis://127.0.0.1:" + std::to_string(server),
                                   "--web.listen-address=127.0.0.1:" + std::to_string(port)},
                                  log);
  std::string exported;
  EXPECT_TRUE(testing::Eventually([&] {
    exported = testing::FetchSimply(port, "/metrics");
    return Value(exported, "up") == "1";
  })) << exported;
  EXPECT_NE(exported.find("redis_exporter_last_scrape_error{err=\"\"} 0\n"), std::string::npos)
      << exported;
  return exported;
}

std::set<std::string> SeriesOfDashboard763In(const std::string& exported) {
  std::set<std::string> names;
  for (const char* name : kDashboard763) {
    if (!Value(exported, name).empty()) names.insert(name);
  }
  return names;
}

TEST_F(RedisMetricsTest, DebiansExporterTellsTheSame) {
  if (!testing::HasProgram(kRedisExporter)) GTEST_SKIP() << kRedisExporter << " is not installed";
  testing::TempDir dir;
  const std::string exported = ExportedFrom(server_.port(), dir.File("exporter.log"));
  const std::string page = Page();
  std::set<std::string> all(std::begin(kDashboard763), std::end(kDashboard763));
  all.erase(std::string(kNotOfTheExporter));
  EXPECT_EQ(SeriesOfDashboard763In(exported), all) << exported;
  for (const char* name : {"up", "keyspace_hits_total", "keyspace_misses_total", "db_keys",
                           "max_clients", "blocked_clients", "memory_max_bytes"}) {
    if (Value(exported, name).empty()) continue;
    EXPECT_EQ(Value(exported, name), Value(page, name)) << name;
  }
}

// The exporter has the same series of the dashboard for Varve as for Redis itself.
TEST_F(RedisMetricsTest, DebiansExporterHasTheSameSeriesOfRedis) {
  for (const char* program : {kRedisExporter, "redis-server", "redis-cli"}) {
    if (!testing::HasProgram(program)) GTEST_SKIP() << program << " is not installed";
  }
  testing::TempDir dir;
  const uint16_t port = testing::FreePort();
  const testing::Process redis(
      "redis-server",
      {"--port", std::to_string(port), "--bind", "127.0.0.1", "--save", "", "--dir", dir.path()},
      dir.File("redis.log"));
  EXPECT_TRUE(testing::Eventually([&] {
    return testing::Output("redis-cli -p " + std::to_string(port) + " set key value")
        .starts_with("OK");
  }));
  EXPECT_EQ(SeriesOfDashboard763In(ExportedFrom(port, dir.File("redis_exporter.log"))),
            SeriesOfDashboard763In(ExportedFrom(server_.port(), dir.File("varve_exporter.log"))));
}

}  // namespace
}  // namespace varve
