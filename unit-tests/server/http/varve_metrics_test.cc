// The metrics page: promtool finds no fault with it, the manual names every metric, and what it
// shows agrees with INFO.
#include "server/http/varve_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "unit-tests/server/command_fixture.h"
#include "unit-tests/server/http/hbase_figures.h"
#include "unit-tests/server/http/programs.h"
#include "unit-tests/testing/eventually.h"
#include "unit-tests/testing/temp_dir.h"

namespace varve {
namespace {

using Format = MetricsText::Format;

class VarveMetricsTest : public testing::CommandTest {
 protected:
  // The page after some work of every kind, and what a server over HBase shows besides.
  std::string Page(Format format) {
    for (int i = 0; i < 100; ++i) Do({"set", "user:" + std::to_string(i), std::string(100, 'v')});
    Do({"get", "user:1"});
    Do({"incr", "user:1"});
    Do({"namespace", "create", "cache"});
    EXPECT_TRUE(server_.store().Flush().ok());
    // The flush thread counts a flush once the segment is in use.
    EXPECT_TRUE(testing::Eventually([&] {
      for (const auto& [name, value] : server_.store().Observe().figures) {
        if (name == "flushed_bytes") return value > 0;
      }
      return false;
    }));
    server_.server().state().replication.followers.Join(
        {.id = "a", .address = "10.0.0.7", .told = std::chrono::steady_clock::now()});
    server_.server().state().replication.UpdateLink(
        [](LinkReport& link) { link.skipped["hash"] = 3; });
    MetricsText text(format);
    WriteVarveMetrics(server_.server().state(), {"user:"}, &text);
    WriteStoreFigures(testing::HbaseFigures(), &text);
    return text.Take();
  }
};

// The names of all samples, without the endings of histograms.
std::set<std::string> NamesIn(const std::string& page) {
  std::set<std::string> names;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    std::string name = line.substr(0, line.find_first_of("{ "));
    for (const std::string_view ending : {"_bucket", "_sum", "_count"}) {
      if (name.ends_with(ending)) name.resize(name.size() - ending.size());
    }
    names.insert(name);
  }
  return names;
}

// The words `varve_...` of the manual's table.
std::set<std::string> NamesInTheManual() {
  std::set<std::string> names;
  std::ifstream file(VARVE_SOURCE_DIR "/docs/metrics.md");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("| `varve_")) continue;
    const std::string cell = line.substr(0, line.find(" | "));
    for (size_t at = 0; (at = cell.find("`varve_", at)) != std::string::npos; ++at)
      names.insert(cell.substr(at + 1, cell.find_first_of("`{", at + 1) - at - 1));
  }
  return names;
}

TEST_F(VarveMetricsTest, TheManualNamesEveryMetricAndNoOther) {
  EXPECT_THAT(NamesInTheManual(), ::testing::ContainerEq(NamesIn(Page(Format::kPlain))));
}

TEST(StoreFiguresTest, EachOneOfAStoreOverHbaseIsShown) {
  for (const auto& [name, value] : testing::HbaseFigures()) {
    MetricsText text(Format::kPlain);
    WriteStoreFigures({{name, value}}, &text);
    EXPECT_NE(text.Take(), "") << name;
  }
}

TEST(StoreFiguresTest, NanosecondsAreShownAsSeconds) {
  MetricsText text(Format::kPlain);
  WriteStoreFigures({{"hbase_wait_nanos", 1'500'000'000}}, &text);
  EXPECT_THAT(text.Take(), ::testing::EndsWith("\nvarve_hbase_wait_seconds_total 1.5\n"));
}

TEST_F(VarveMetricsTest, PromtoolFindsNoFault) {
  if (!testing::HasProgram("promtool")) GTEST_SKIP() << "promtool is not installed (prometheus)";
  testing::TempDir dir;
  std::ofstream(dir.File("metrics")) << Page(Format::kPlain);
  EXPECT_EQ(testing::Output("promtool check metrics < " + dir.File("metrics")), "exit 0");
}

TEST_F(VarveMetricsTest, AStrictParserTakesTheOpenMetrics) {
  if (testing::Output("/usr/bin/python3 -c 'import prometheus_client.openmetrics.parser'") !=
      "exit 0")
    GTEST_SKIP() << "the parser is not installed (python3-prometheus-client)";
  testing::TempDir dir;
  std::ofstream(dir.File("metrics")) << Page(Format::kOpenMetrics);
  std::ofstream(dir.File("parse.py"))
      << "import sys\n"
         "from prometheus_client.openmetrics.parser import text_fd_to_metric_families as parse\n"
         "print(sum(family.name.startswith('varve_') for family in parse(open(sys.argv[1]))) > "
         "40)\n";
  EXPECT_EQ(testing::Output("/usr/bin/python3 " + dir.File("parse.py") + " " + dir.File("metrics")),
            "True\nexit 0");
}

TEST_F(VarveMetricsTest, TheBuildIsTheOneThatInfoTellsOf) {
  const std::string info = Do({"info", "server"});
  const auto told = [&](const std::string& name) {
    const size_t at = info.find("\r\n" + name + ":");
    if (at == std::string::npos) return "no " + name;
    const size_t begin = at + name.size() + 3;
    return info.substr(begin, info.find('\r', begin) - begin);
  };
  EXPECT_THAT(told("varve_commit"), ::testing::MatchesRegex("[0-9A-Za-z._+~-]+"));
  EXPECT_EQ(told("varve_manifest_format"), "7");
  const std::string page = Page(Format::kPlain);
  const std::string line = "varve_build_info{version=\"" + told("varve_version") + "\",commit=\"" +
                           told("varve_commit") + "\",format=\"" + told("varve_manifest_format") +
                           "\"} 1\n";
  EXPECT_NE(page.find(line), std::string::npos) << line << page;
}

TEST_F(VarveMetricsTest, NamespacesAndPrefixes) {
  const std::string page = Page(Format::kPlain);
  for (const char* line : {"varve_namespace_keys{namespace=\"0\"} 100\n",
                           "varve_namespace_keys{namespace=\"cache\"} 0\n",
                           "varve_namespace_bytes{namespace=\"cache\"} 0\n"})
    EXPECT_NE(page.find(line), std::string::npos) << line << page;
  EXPECT_NE(page.find("varve_prefix_bytes{prefix=\"user:\"} "), std::string::npos) << page;
}

TEST_F(VarveMetricsTest, CountsAgreeWithInfo) {
  const std::string page = Page(Format::kOpenMetrics);
  const std::string info = Do({"info", "everything"});
  const auto figure = [&](const std::string& text, const std::string& before, char end) {
    const size_t at = text.find(before);
    if (at == std::string::npos) return "no " + before;
    const size_t begin = at + before.size();
    return text.substr(begin, text.find(end, begin) - begin);
  };
  for (const auto& [metric, name] :
       {std::pair("varve_keyspace_hits_total", "keyspace_hits"),
        std::pair("varve_keyspace_misses_total", "keyspace_misses"),
        std::pair("varve_connections_received_total", "total_connections_received"),
        std::pair("varve_rejected_connections_total", "rejected_connections"),
        std::pair("varve_connected_clients", "connected_clients"),
        std::pair("varve_max_clients", "maxclients"),
        std::pair("varve_visible_sequence", "sequence"),
        std::pair("varve_durable_sequence", "durable_sequence"),
        std::pair("varve_store_gets_total", "gets"),
        std::pair("varve_store_writes_total", "writes"),
        std::pair("varve_write_conflicts_total", "write_conflicts"),
        std::pair("varve_expired_keys_total", "expired_keys"),
        std::pair("varve_log_groups_total", "log_groups"),
        std::pair("varve_log_syncs_total", "log_syncs"),
        std::pair("varve_log_appended_bytes_total", "log_bytes_appended"),
        std::pair("varve_log_written_bytes_total", "log_bytes_written"),
        std::pair("varve_log_files_recycled_total", "log_files_recycled"),
        std::pair("varve_log_live_bytes", "log_live_bytes"),
        std::pair("varve_data_counted_bytes", "data_bytes_counted"),
        std::pair("varve_data_at_most_bytes", "data_bytes_at_most"),
        std::pair("varve_full_write_buffers", "full_write_buffers"),
        std::pair("varve_runs", "runs"),
        std::pair("varve_segment_bytes", "segment_bytes"),
        std::pair("varve_segment_records", "segment_entries"),
        std::pair("varve_value_bytes", "value_bytes"),
        std::pair("varve_flush_written_bytes_total", "flushed_bytes"),
        std::pair("varve_merge_written_bytes_total", "compacted_bytes"),
        std::pair("varve_merge_read_bytes_total", "compaction_input_bytes"),
        std::pair("varve_merge_parts_total", "compaction_parts"),
        std::pair("varve_segment_lookups_total", "segment_lookups"),
        std::pair("varve_record_reads_total", "record_reads"),
        std::pair("varve_cache_hits_total", "block_cache_hits"),
        std::pair("varve_table_cache_bytes", "offset_table_cache_bytes")}) {
    EXPECT_EQ(figure(page, "\n" + std::string(metric) + " ", '\n'),
              figure(info, "\r\n" + std::string(name) + ":", '\r'))
        << metric;
  }
}

// The values of the samples that only grow, by name and labels.
std::map<std::string, double> CountersIn(const std::string& page) {
  std::map<std::string, double> counters;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('#')) continue;
    const std::string sample = line.substr(0, line.rfind(' '));
    const std::string name = sample.substr(0, sample.find('{'));
    for (const std::string_view ending : {"_total", "_bucket", "_sum", "_count"}) {
      if (name.ends_with(ending)) counters[sample] = std::stod(line.substr(sample.size()));
    }
  }
  return counters;
}

TEST_F(VarveMetricsTest, CountersNeverFallUnderALoad) {
  std::map<std::string, double> before = CountersIn(Page(Format::kPlain));
  EXPECT_GT(before.size(), 100u);
  for (int round = 0; round < 3; ++round) {
    const std::map<std::string, double> now = CountersIn(Page(Format::kPlain));
    for (const auto& [sample, value] : before) {
      ASSERT_TRUE(now.contains(sample)) << sample;
      EXPECT_GE(now.at(sample), value) << sample;
    }
    EXPECT_GT(now.at("varve_commands_total{cmd=\"set\"}"),
              before.at("varve_commands_total{cmd=\"set\"}"));
    before = now;
  }
}

TEST_F(VarveMetricsTest, AlertRulesAndTheirTestsPass) {
  if (!testing::HasProgram("promtool")) GTEST_SKIP() << "promtool is not installed (prometheus)";
  const std::string folder = VARVE_SOURCE_DIR "/contrib/prometheus/";
  const std::string checked = testing::Output("promtool check rules " + folder + "varve.rules.yml");
  EXPECT_TRUE(checked.ends_with("exit 0")) << checked;
  const std::string tested =
      testing::Output("promtool test rules " + folder + "varve.rules.test.yml");
  EXPECT_TRUE(tested.ends_with("exit 0")) << tested;
}

// Every metric that the rules and the dashboard ask for exists.
TEST_F(VarveMetricsTest, RulesAndDashboardAskForMetricsThatExist) {
  std::set<std::string> names = NamesIn(Page(Format::kPlain));
  names.insert("varve_tls_certificate_expiry_timestamp_seconds");  // only with a certificate
  for (const char* file : {"/contrib/prometheus/varve.rules.yml", "/contrib/grafana/varve.json"}) {
    std::ifstream in(std::string(VARVE_SOURCE_DIR) + file);
    std::stringstream text;
    text << in.rdbuf();
    const std::string all = text.str();
    ASSERT_FALSE(all.empty()) << file;
    size_t asked = 0;
    for (size_t at = 0; (at = all.find("varve_", at)) != std::string::npos; ++at, ++asked) {
      const size_t end = all.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", at);
      std::string name = all.substr(at, end - at);
      if (name.ends_with("_bucket")) name.resize(name.size() - std::string_view("_bucket").size());
      EXPECT_TRUE(names.contains(name)) << file << ": " << name;
    }
    EXPECT_GT(asked, 5u) << file;
  }
}

}  // namespace
}  // namespace varve
