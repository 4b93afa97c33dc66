// Compares the server with Redis at equal durability and with a server that does nothing, over
// sockets, in one run, and the server over a cluster of HBase with HBase's own client; README.md of
// this folder says how to run and read it, server_rows.h and cluster_rows.h what each row does.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "benchmark/help.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/server/cluster_rows.h"
#include "benchmark/server/load_generator.h"
#include "benchmark/server/null_server.h"
#include "benchmark/server/server_measurements.h"
#include "benchmark/server/server_report.h"

ABSL_FLAG(std::string, servers, "varve,varve_retaining,redis,redis_without_log,null",
          "Servers to run, separated by commas");
ABSL_FLAG(
    std::string, rows, ".*",
    "Rows to run: a regular expression found anywhere in the row's name (SET/100B/P16/always)");
ABSL_FLAG(std::string, other_rows, "",
          "Rows to run instead of the table's, by their full names (SET/1000B/P64/everysec/c500), "
          "separated by commas");
ABSL_FLAG(uint64_t, keys, 1'000'000,
          "Keys, all loaded before the first measurement; a quarter of them at 4096 bytes");
ABSL_FLAG(double, seconds, 2, "Time of one measurement, after a warm-up");
ABSL_FLAG(int, repetitions, 3,
          "Measurements of each row and server, taken in turns; medians are shown");
ABSL_FLAG(std::string, client, "own", "Load generator: own, or redis-benchmark");
ABSL_FLAG(std::string, varve_flags, "", "Further flags for server_main, separated by spaces");
ABSL_FLAG(std::string, redis_flags, "", "Further flags for redis-server, separated by spaces");
ABSL_FLAG(std::string, dir, "",
          "Where to put the data (removed at the end); by default beside the program");
ABSL_FLAG(double, rest_seconds, varve::bench::kRestSeconds,
          "For how long a server must do nothing before it counts as settled");
ABSL_FLAG(bool, oversubscribe, false,
          "Also measure the scaling rows of more I/O loops than this machine has processors");
ABSL_FLAG(bool, brief, false, "Also print a smaller table: rates, ratio to Redis, p50 and p99");
ABSL_FLAG(bool, history, false, "Also print the line to append to benchmark/history.md");
ABSL_FLAG(std::string, hbase_quorum, "",
          "A running cluster of HBase, as host:port of its ZooKeeper; without it, the rows over a "
          "cluster are skipped");
ABSL_FLAG(std::string, hbase_jars, "", "The folder of HBase's jars; build/hbase-jars by default");
ABSL_FLAG(std::string, hbase_cores, "",
          "Cores for what the rows over a cluster compare, as taskset takes them; by default the "
          "upper half");
ABSL_FLAG(std::string, hbase_processes, "",
          "Processes of the cluster, by numbers separated by commas, whose processor time is told");
ABSL_FLAG(uint64_t, hbase_keys, 20'000, "Keys of the rows over a cluster");
ABSL_FLAG(int, null_server_port, 0, "Internal: be the null server on this port");
ABSL_FLAG(int, null_server_value_size, 100, "Internal: what GET of the null server answers");

namespace varve::bench {
namespace {

void Run(const ServerRow& row, const Contender& contender, ServerMeasurements* measurements,
         Samples* samples, Reasons* reasons, ::benchmark::State& state) {
  std::optional<Figures> figures;
  std::string why;
  for (auto _ : state) {
    figures = measurements->Measure(row, contender, &why);
    const double rate = figures ? (*figures)[kRequestRate] : 0;
    state.SetIterationTime(rate > 0 ? 1 / rate : 0);
  }
  state.SetLabel(row.title());
  if (!figures) {
    (*reasons)[{row.id, contender.id}] = why;
    state.SkipWithError(why.c_str());
    return;
  }
  for (const auto& [name, value] : *figures) state.counters[name] = value;
  state.counters["figure"] = figures->at(row.figure());
  state.counters["less_is_better"] = row.less_is_better() ? 1 : 0;
  (*samples)[{row.id, contender.id}].push_back(*figures);
}

std::vector<Contender> ChosenContenders() {
  std::vector<Contender> chosen;
  for (const std::string& id :
       std::vector<std::string>(absl::StrSplit(absl::GetFlag(FLAGS_servers), ','))) {
    const auto& all = AllContenders();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const Contender& c) { return c.id == id; });
    if (found == all.end()) Fail("--servers names an unknown server: " + id);
    chosen.push_back(*found);
  }
  return chosen;
}

std::vector<ServerRow> ChosenRows() {
  const uint64_t keys = absl::GetFlag(FLAGS_keys);
  std::vector<ServerRow> rows;
  const std::vector<std::string> names =
      absl::StrSplit(absl::GetFlag(FLAGS_other_rows), ',', absl::SkipEmpty());
  for (const std::string& name : names) rows.push_back(ServerRowNamed(name, keys));
  if (!rows.empty()) return rows;
  const std::regex wanted(absl::GetFlag(FLAGS_rows));
  for (ServerRow& row : AllServerRows(keys)) {
    if (std::regex_search(row.id, wanted)) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ClusterRow> ChosenClusterRows() {
  if (!absl::GetFlag(FLAGS_other_rows).empty()) return {};
  const std::regex wanted(absl::GetFlag(FLAGS_rows));
  std::vector<ClusterRow> rows;
  for (ClusterRow& row : AllClusterRows()) {
    if (std::regex_search(row.id, wanted)) rows.push_back(std::move(row));
  }
  return rows;
}

// Measures the rows over a cluster, and prints what came of it.
void RunClusterRows(const std::vector<ClusterRow>& rows, const std::string& directory, FILE* out) {
  if (rows.empty()) return;
  ClusterSettings settings;
  settings.quorum = absl::GetFlag(FLAGS_hbase_quorum);
  settings.jars = absl::GetFlag(FLAGS_hbase_jars);
  if (settings.jars.empty()) settings.jars = std::string(VARVE_SOURCE_DIR) + "/build/hbase-jars";
  settings.directory = directory;
  settings.cores = absl::GetFlag(FLAGS_hbase_cores);
  settings.flags = absl::StrSplit(absl::GetFlag(FLAGS_varve_flags), ' ', absl::SkipEmpty());
  for (const std::string& process : std::vector<std::string>(
           absl::StrSplit(absl::GetFlag(FLAGS_hbase_processes), ',', absl::SkipEmpty()))) {
    if (!absl::SimpleAtoi(process, &settings.processes.emplace_back()))
      Fail("--hbase_processes wants numbers separated by commas");
  }
  settings.keys = absl::GetFlag(FLAGS_hbase_keys);
  settings.seconds = absl::GetFlag(FLAGS_seconds);
  settings.repetitions = absl::GetFlag(FLAGS_repetitions);
  if (settings.keys < kRangeEntries)
    Fail(fmt::format("--hbase_keys wants at least {}", kRangeEntries));
  fmt::print(out, "\n{}", MeasureClusterRows(rows, settings));
}

MeasureSettings Settings(const std::vector<ServerRow>& rows) {
  const std::string client = absl::GetFlag(FLAGS_client);
  if (client != "own" && client != "redis-benchmark")
    Fail("--client wants own or redis-benchmark, not " + client);
  if (absl::GetFlag(FLAGS_keys) < kRangeEntries)
    Fail(fmt::format("--keys wants at least {}", kRangeEntries));
  MeasureSettings settings;
  settings.seconds = absl::GetFlag(FLAGS_seconds);
  settings.rest_seconds = absl::GetFlag(FLAGS_rest_seconds);
  settings.redis_benchmark = client == "redis-benchmark";
  settings.oversubscribe = absl::GetFlag(FLAGS_oversubscribe);
  settings.contenders = ChosenContenders();
  const std::vector<std::string> for_redis =
      absl::StrSplit(absl::GetFlag(FLAGS_redis_flags), ' ', absl::SkipEmpty());
  const std::vector<std::string> for_varve =
      absl::StrSplit(absl::GetFlag(FLAGS_varve_flags), ' ', absl::SkipEmpty());
  settings.flags = {{kVarve, for_varve},
                    {kVarveRetaining, for_varve},
                    {kRedis, for_redis},
                    {kRedisWithoutLog, for_redis}};
  settings.directory = ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "server_benchmark_data");
  if (std::any_of(rows.begin(), rows.end(), [](const ServerRow& row) { return row.tls; })) {
    settings.certificate = MakeCertificate(settings.directory);
    const absl::StatusOr<ClientTlsContext> context =
        ClientTlsContext::Make({.enabled = true, .ca_file = settings.certificate->certificate});
    if (!context.ok()) Fail(context.status().ToString());
    settings.tls = *context;
  }
  MostConnections();  // so that the servers, too, may have as many
  return settings;
}

std::vector<HelpList> Help() {
  HelpList servers{"Servers (--servers):", {}};
  for (const Contender& contender : AllContenders())
    servers.lines.emplace_back(contender.id, contender.title);
  HelpList rows{"Rows (--rows takes a regular expression found in the name):", {}};
  for (const ServerRow& row : AllServerRows(absl::GetFlag(FLAGS_keys)))
    rows.lines.emplace_back(row.id, row.title());
  for (const ClusterRow& row : AllClusterRows()) rows.lines.emplace_back(row.id, row.title);
  return {servers, rows};
}

// Returns roughly how many minutes the rows take.
double EstimateMinutes(const std::vector<ServerRow>& rows,
                       const std::vector<Contender>& contenders) {
  const double keys_seconds =
      3e-6 * static_cast<double>(absl::GetFlag(FLAGS_keys)) + 2 * absl::GetFlag(FLAGS_rest_seconds);
  double seconds = 0;
  std::string store;
  for (const ServerRow& row : rows) {
    const std::string needs =
        row.has_own_server() ? row.id : row.sync + std::to_string(row.value_size);
    for (const Contender& contender : contenders) {
      if (!row.WhyNot(contender.id).empty()) continue;
      const double each = absl::GetFlag(FLAGS_seconds) + 0.5;
      seconds +=
          absl::GetFlag(FLAGS_repetitions) * (each + (row.has_own_server() ? keys_seconds : 0));
      if (needs != store && !row.has_own_server()) seconds += keys_seconds;
    }
    store = needs;
  }
  return seconds / 60;
}

int Main(int argc, char** argv) {
  HelpIfAsked(argc, argv, "server/server_benchmark.cc",
              "compares Varve's server with Redis and with a server that does nothing.", Help());
  const std::string command = CommandLine(argc, argv);
  const bool plain_output = WritesToConsole(argc, argv);
  ::benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_null_server_port) > 0) {
    ServeNothing(static_cast<uint16_t>(absl::GetFlag(FLAGS_null_server_port)),
                 static_cast<size_t>(absl::GetFlag(FLAGS_null_server_value_size)));
  }
  const std::vector<ServerRow> rows = ChosenRows();
  const std::vector<ClusterRow> cluster_rows = ChosenClusterRows();
  FILE* const out = plain_output ? stdout : stderr;
  if (rows.empty() && !cluster_rows.empty()) {
    const std::string directory =
        ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "server_benchmark_data");
    RunClusterRows(cluster_rows, directory, out);
    return 0;
  }
  fmt::print(out, "{} rows, about {:.0f} minutes.\n", rows.size(),
             std::max(1.0, EstimateMinutes(rows, ChosenContenders())));
  std::fflush(out);
  const MeasureSettings settings = Settings(rows);
  ServerMeasurements measurements(settings);
  Samples samples;
  Reasons reasons;
  for (const ServerRow& row : rows) {
    for (int turn = 1; turn <= absl::GetFlag(FLAGS_repetitions); ++turn) {
      for (const Contender& contender : settings.contenders) {
        if (!row.WhyNot(contender.id).empty()) continue;
        ::benchmark::RegisterBenchmark(
            fmt::format("{}/turn:{}/{}", row.id, turn, contender.id).c_str(),
            [&](::benchmark::State& state) {
              Run(row, contender, &measurements, &samples, &reasons, state);
            })
            ->Iterations(1)
            ->UseManualTime()
            ->Unit(::benchmark::kMicrosecond);
      }
    }
  }
  ::benchmark::RunSpecifiedBenchmarks();

  const ServerReport report = ReportServers(rows, samples, reasons);
  fmt::print(out,
             "\nRequests per second (median of {}), 50 connections unless said, client {}, {} "
             "keys; {}.\n\n{}\n{}",
             absl::GetFlag(FLAGS_repetitions), absl::GetFlag(FLAGS_client),
             FormatRate(absl::GetFlag(FLAGS_keys)), MachineKind(), report.table, report.notes);
  fmt::print(out,
             "\nµs: p50 / p99 / p99.9, and processor time of the server for each request.\n\n{}",
             report.beside);
  if (absl::GetFlag(FLAGS_brief)) fmt::print(out, "\nms: p50 / p99.\n\n{}", report.brief);
  RunClusterRows(cluster_rows, settings.directory, out);
  if (absl::GetFlag(FLAGS_history)) fmt::print(out, "\n{}", HistoryLine(command, report.history));
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
