// Compares the server with Redis at equal durability and with a server that does nothing, over sockets, in one run;
// README.md of this folder says how to run and read it.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "benchmark/contenders.h"
#include "benchmark/load_generator.h"
#include "benchmark/null_server.h"
#include "benchmark/report.h"

ABSL_FLAG(std::string, servers, "varve,redis,null", "Servers to run, separated by commas");
ABSL_FLAG(std::string, sync, "always",
          "Durability to compare at: always, everysec, no, or several separated by commas");
ABSL_FLAG(std::string, sizes, "100", "Value sizes in bytes, separated by commas");
ABSL_FLAG(std::string, pipelines, "1,16,64", "Requests that a connection sends at once, separated by commas");
ABSL_FLAG(std::string, rows, ".*",
          "Rows to run: a regular expression found anywhere in the row's name (SET/100B/P16/always)");
ABSL_FLAG(int, connections, 50, "Connections");
ABSL_FLAG(uint64_t, keys, 1'000'000, "Keys, all loaded before the first measurement");
ABSL_FLAG(double, seconds, 2, "Time of one measurement, after a warm-up");
ABSL_FLAG(int, repetitions, 3, "Measurements of each row and server, taken in turns; medians are shown");
ABSL_FLAG(std::string, client, "own", "Load generator: own, or redis-benchmark");
ABSL_FLAG(std::string, varve_flags, "", "Further flags for server_main, separated by spaces");
ABSL_FLAG(std::string, redis_flags, "", "Further flags for redis-server, separated by spaces");
ABSL_FLAG(std::string, dir, "", "Where to put the data (removed at the end); by default beside the program");
ABSL_FLAG(bool, history, false, "Also print the line to append to benchmark/history.md");
ABSL_FLAG(int, null_server_port, 0, "Internal: be the null server on this port");
ABSL_FLAG(int, null_server_value_size, 100, "Internal: what GET of the null server answers");

namespace varve::bench {
namespace {

constexpr double kWarmUpSeconds = 0.3;

struct Row {
  Operation operation;
  size_t value_size;
  int pipeline;
  std::string sync;

  std::string verb() const { return operation == Operation::kSet ? "SET" : "GET"; }
  std::string id() const { return fmt::format("{}/{}B/P{}/{}", verb(), value_size, pipeline, sync); }
  std::string title() const {
    const std::string pipelined = pipeline == 1 ? "no pipeline" : fmt::format("pipeline {}", pipeline);
    return fmt::format("{} {} B, sync {}, {}", verb(), value_size, sync, pipelined);
  }
};

struct Figures {
  double throughput = 0;  // requests per second
  double p50 = 0;         // seconds, as the next two; below 0: not known
  double p99 = 0;
  double p999 = 0;
  double cpu_per_request = 0;  // seconds
};

using Samples = std::map<std::pair<std::string, std::string>, std::vector<Figures>>;  // by row and server

Figures FiguresOf(const LoadResult& result) {
  const auto requests = static_cast<double>(result.requests);
  return {requests / result.seconds, result.p50, result.p99, result.p999, result.server_cpu_seconds / requests};
}

// redis-benchmark counts requests, not time: enough of them for about as long as --seconds.
Figures DriveRedisBenchmark(const Load& load, Child& server) {
  const double rate = load.pipeline == 1 ? 100e3 : 400e3;
  const auto requests = static_cast<uint64_t>(rate * load.seconds);
  const double cpu_before = server.CpuSeconds();
  const std::string csv = Capture(
      {"redis-benchmark", "-h", "127.0.0.1", "-p", std::to_string(load.port), "-c", std::to_string(load.connections),
       "-n", std::to_string(requests), "-r", std::to_string(load.keys), "-d", std::to_string(load.value_size), "-P",
       std::to_string(load.pipeline), "-t", load.operation == Operation::kSet ? "set" : "get", "--csv"});
  const double cpu = server.CpuSeconds() - cpu_before;
  // "test","rps","avg","min","p50","p95","p99","max" in milliseconds, after a heading.
  const std::vector<std::string> lines = absl::StrSplit(csv, '\n', absl::SkipEmpty());
  const std::vector<std::string> cells = absl::StrSplit(lines.empty() ? "" : lines.back(), ',');
  const auto number = [&](size_t i) {
    double value = 0;
    const std::string_view cell = cells[i];
    if (cell.size() < 3 || !absl::SimpleAtod(std::string(cell.substr(1, cell.size() - 2)), &value)) {
      Fail("redis-benchmark printed something unknown: " + csv);
    }
    return value;
  };
  if (cells.size() < 8) Fail("redis-benchmark printed something unknown: " + csv);
  return {number(1), number(4) * 1e-3, number(6) * 1e-3, -1, cpu / static_cast<double>(requests)};
}

// The servers of one durability and value size, all running, all but the measured one paused.
class Arena {
 public:
  Arena(std::string directory, std::vector<Contender> contenders)
      : directory_(std::move(directory)), contenders_(std::move(contenders)) {}

  Figures Measure(const Row& row, const Contender& contender) {
    Prepare(row);
    Server& server = *servers_.at(contender.id);
    Load load = LoadFor(row.operation, server);
    load.pipeline = row.pipeline;
    server.process().Resume();
    const Figures figures = absl::GetFlag(FLAGS_client) == "own"
                                ? FiguresOf(RunLoad(load, [&] { return server.process().CpuSeconds(); }))
                                : DriveRedisBenchmark(load, server.process());
    server.process().Pause();
    return figures;
  }

  // One line for each durability and value size.
  const std::string& memory_report() const { return memory_report_; }

 private:
  Load LoadFor(Operation operation, const Server& server) const {
    Load load;
    load.server = server.contender().title;
    load.port = server.port();
    load.operation = operation;
    load.connections = absl::GetFlag(FLAGS_connections);
    load.value_size = value_size_;
    load.keys = absl::GetFlag(FLAGS_keys);
    load.check_values = server.contender().id != "null" && absl::GetFlag(FLAGS_client) == "own";
    load.warm_up_seconds = kWarmUpSeconds;
    load.seconds = absl::GetFlag(FLAGS_seconds);
    return load;
  }

  void Prepare(const Row& row) {
    if (row.sync == sync_ && row.value_size == value_size_) return;
    servers_.clear();
    sync_ = row.sync;
    value_size_ = row.value_size;
    memory_report_ +=
        fmt::format("Resident after loading {} values of {} B, sync {}:", FormatRate(absl::GetFlag(FLAGS_keys)),
                    value_size_, sync_);
    for (const Contender& contender : contenders_) {
      const std::string flags = contender.id == "varve"   ? absl::GetFlag(FLAGS_varve_flags)
                                : contender.id == "redis" ? absl::GetFlag(FLAGS_redis_flags)
                                                          : "";
      auto server = std::make_unique<Server>(contender, sync_, value_size_, directory_ + "/" + contender.id,
                                             absl::StrSplit(flags, ' ', absl::SkipEmpty()));
      if (contender.id != "null") {
        LoadKeys(*server);
        memory_report_ += fmt::format(" {} {},", contender.title,
                                      FormatBytes(static_cast<double>(server->process().ResidentBytes())));
      }
      server->process().Pause();
      servers_[contender.id] = std::move(server);
    }
    memory_report_.back() = '\n';
  }

  void LoadKeys(Server& server) {
    constexpr auto kRest = std::chrono::seconds(1);
    Load load = LoadFor(Operation::kSet, server);
    load.connections = 8;
    load.pipeline = 64;
    load.every_key_once = true;
    RunLoad(load, [] { return 0.0; });
    std::this_thread::sleep_for(kRest);
  }

  const std::string directory_;
  const std::vector<Contender> contenders_;
  std::string sync_;
  size_t value_size_ = 0;
  std::map<std::string, std::unique_ptr<Server>> servers_;
  std::string memory_report_;
};

void Run(const Row& row, const Contender& contender, Arena* arena, Samples* samples, ::benchmark::State& state) {
  Figures figures;
  for (auto _ : state) {
    figures = arena->Measure(row, contender);
    state.SetIterationTime(1 / figures.throughput);
  }
  state.SetItemsProcessed(1);
  state.counters["p50_us"] = figures.p50 * 1e6;
  state.counters["p99_us"] = figures.p99 * 1e6;
  if (figures.p999 >= 0) state.counters["p999_us"] = figures.p999 * 1e6;
  state.counters["server_cpu_us"] = figures.cpu_per_request * 1e6;
  (*samples)[{row.id(), contender.id}].push_back(figures);
}

Figures MedianOf(const std::vector<Figures>& samples) {
  const auto median = [&](double Figures::*field) {
    std::vector<double> values;
    for (const Figures& figures : samples) values.push_back(figures.*field);
    return Median(values);
  };
  return {median(&Figures::throughput), median(&Figures::p50), median(&Figures::p99), median(&Figures::p999),
          median(&Figures::cpu_per_request)};
}

std::string LatencyCell(const Figures& figures) {
  if (figures.throughput == 0) return "filtered out";
  const std::string p999 = figures.p999 < 0 ? "-" : fmt::format("{:.2f}", figures.p999 * 1e3);
  return fmt::format("{:.2f} / {:.2f} / {}", figures.p50 * 1e3, figures.p99 * 1e3, p999);
}

std::string ThroughputCell(const Figures& figures) {
  return figures.throughput == 0 ? "filtered out" : FormatRate(figures.throughput);
}

std::string CpuCell(const Figures& figures) {
  return figures.throughput == 0 ? "filtered out" : fmt::format("{:.2f}", figures.cpu_per_request * 1e6);
}

// The table, and the ratios to Redis for history.md.
std::pair<std::string, std::string> Report(const std::vector<Row>& rows, Samples& samples) {
  std::vector<std::vector<std::string>> table = {{"work", "Varve", "Redis", "null server", "Varve / Redis",
                                                  "Varve / null", "Varve p50 / p99 / p99.9 ms",
                                                  "Redis p50 / p99 / p99.9 ms", "Varve CPU µs", "Redis CPU µs"}};
  std::string ratios;
  const auto ratio = [](double ours, double theirs) { return theirs > 0 ? ours / theirs : 0; };
  for (const Row& row : rows) {
    const Figures varve = MedianOf(samples[{row.id(), "varve"}]);
    const Figures redis = MedianOf(samples[{row.id(), "redis"}]);
    const Figures null = MedianOf(samples[{row.id(), "null"}]);
    const double to_redis = ratio(varve.throughput, redis.throughput);
    table.push_back({row.title(), ThroughputCell(varve), ThroughputCell(redis), ThroughputCell(null),
                     FormatRatio(to_redis), FormatRatio(ratio(varve.throughput, null.throughput)), LatencyCell(varve),
                     LatencyCell(redis), CpuCell(varve), CpuCell(redis)});
    if (to_redis > 0) ratios += fmt::format("{}{} {:.2f}", ratios.empty() ? "" : ", ", row.id(), to_redis);
  }
  return {MarkdownTable(table), ratios};
}

template <typename Number>
std::vector<Number> Numbers(const std::string& flag, const std::string& list) {
  std::vector<Number> numbers;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(list, ','))) {
    int number = 0;
    if (!absl::SimpleAtoi(text, &number) || number <= 0)
      Fail(fmt::format("--{} wants numbers above 0: {}", flag, list));
    numbers.push_back(static_cast<Number>(number));
  }
  return numbers;
}

std::vector<Row> AllRows() {
  std::vector<Row> rows;
  for (const std::string& sync : std::vector<std::string>(absl::StrSplit(absl::GetFlag(FLAGS_sync), ','))) {
    if (sync != "always" && sync != "everysec" && sync != "no")
      Fail("--sync wants always, everysec or no, not " + sync);
    for (const auto size : Numbers<size_t>("sizes", absl::GetFlag(FLAGS_sizes))) {
      for (const Operation operation : {Operation::kGet, Operation::kSet}) {
        for (const int pipeline : Numbers<int>("pipelines", absl::GetFlag(FLAGS_pipelines))) {
          rows.push_back({operation, size, pipeline, sync});
        }
      }
    }
  }
  return rows;
}

std::vector<Contender> ChosenContenders() {
  std::vector<Contender> chosen;
  for (const std::string& id : std::vector<std::string>(absl::StrSplit(absl::GetFlag(FLAGS_servers), ','))) {
    const auto& all = AllContenders();
    const auto found = std::find_if(all.begin(), all.end(), [&](const Contender& c) { return c.id == id; });
    if (found == all.end()) Fail("--servers names an unknown server: " + id);
    chosen.push_back(*found);
  }
  return chosen;
}

int Main(int argc, char** argv) {
  const std::string command = CommandLine(argc, argv);
  const bool plain_output = WritesToConsole(argc, argv);
  ::benchmark::Initialize(&argc, argv);
  absl::SetProgramUsageMessage("Compares Varve's server with Redis and with a server that does nothing.");
  absl::ParseCommandLine(argc, argv);
  if (absl::GetFlag(FLAGS_null_server_port) > 0) {
    ServeNothing(static_cast<uint16_t>(absl::GetFlag(FLAGS_null_server_port)),
                 static_cast<size_t>(absl::GetFlag(FLAGS_null_server_value_size)));
  }
  const std::string client = absl::GetFlag(FLAGS_client);
  if (client != "own" && client != "redis-benchmark") Fail("--client wants own or redis-benchmark, not " + client);
  if (absl::GetFlag(FLAGS_keys) == 0 || absl::GetFlag(FLAGS_keys) > UINT32_MAX ||
      absl::GetFlag(FLAGS_connections) < 1 || absl::GetFlag(FLAGS_seconds) <= 0) {
    Fail("--keys wants 1 to 2^32 - 1, --connections at least 1, --seconds more than 0");
  }
  const std::vector<Row> rows = AllRows();
  const std::vector<Contender> contenders = ChosenContenders();
  const std::string directory = ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "server_benchmark_data");

  const std::regex wanted(absl::GetFlag(FLAGS_rows));
  Arena arena(directory, contenders);
  Samples samples;
  for (const Row& row : rows) {
    if (!std::regex_search(row.id(), wanted)) continue;
    for (int turn = 1; turn <= absl::GetFlag(FLAGS_repetitions); ++turn) {
      for (const Contender& contender : contenders) {
        const std::string name = fmt::format("{}/turn:{}/{}", row.id(), turn, contender.id);
        ::benchmark::RegisterBenchmark(
            name.c_str(),
            [&, row, contender](::benchmark::State& state) { Run(row, contender, &arena, &samples, state); })
            ->Iterations(1)
            ->UseManualTime()
            ->Unit(::benchmark::kMicrosecond);
      }
    }
  }
  ::benchmark::RunSpecifiedBenchmarks();

  const auto [table, ratios] = Report(rows, samples);
  FILE* const out = plain_output ? stdout : stderr;
  fmt::print(out, "\nRequests per second (median of {}), {} connections, client {}, {} keys at random; {}.\n\n{}\n{}",
             absl::GetFlag(FLAGS_repetitions), absl::GetFlag(FLAGS_connections), client,
             FormatRate(absl::GetFlag(FLAGS_keys)), MachineKind(), table, arena.memory_report());
  if (absl::GetFlag(FLAGS_history)) fmt::print(out, "\n{}", HistoryLine(command, ratios));
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
