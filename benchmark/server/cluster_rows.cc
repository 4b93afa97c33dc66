#include "benchmark/server/cluster_rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/report.h"
#include "benchmark/server/java_client.h"
#include "benchmark/server/load_generator.h"

namespace varve::bench {
namespace {

constexpr double kGoal = 0.9;         // of the Java client's rate
constexpr double kGoalPipeline = 10;  // of the rate without a pipeline
constexpr double kWarmUpSeconds = 1;
constexpr uint64_t kKeysOfMultiGet = 50;
constexpr char kNoPipeline[] = "cluster/SET/100B/P1/c1";
constexpr char kPipeline[] = "cluster/SET/100B/P64/c1";

std::string UpperHalf() {
  const unsigned all = std::max(1u, std::thread::hardware_concurrency());
  return all == 1 ? "0" : fmt::format("{}-{}", all / 2, all - 1);
}

// A server over the cluster.
class VarveOverHbase {
 public:
  VarveOverHbase(const ClusterSettings& settings, const std::string& table,
                 const std::string& cores)
      : port_(FreePort()) {
    const std::string program = ProgramDirectory() + "/server_main";
    if (!std::filesystem::exists(program)) Fail("there is no " + program + ": build it first");
    std::vector<std::string> arguments = {"taskset",
                                          "-c",
                                          cores,
                                          program,
                                          "--bind=127.0.0.1",
                                          "--http-port=0",
                                          fmt::format("--port={}", port_),
                                          "--dir=" + settings.directory + "/varve",
                                          "--store=hbase",
                                          "--hbase-quorum=" + settings.quorum,
                                          "--hbase-table=" + table};
    arguments.insert(arguments.end(), settings.flags.begin(), settings.flags.end());
    MakeEmptyDirectory(settings.directory + "/varve");
    process_ = std::make_unique<Child>(arguments, settings.directory + "/varve.log");
    constexpr int kMaxSteps = 1500;
    for (int step = 0; !AnswersPing(port_); ++step) {
      if (!process_->Running()) Fail("server_main has ended instead of serving");
      if (step == kMaxSteps) Fail("server_main does not answer");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  LoadResult Run(Load load) {
    load.server = "Varve over HBase";
    load.port = port_;
    return RunLoad(load, [this] { return process_->CpuSeconds(); });
  }

 private:
  const uint16_t port_;
  std::unique_ptr<Child> process_;
};

struct ClusterSamples {
  std::vector<double> rates;
  std::vector<double> p50s;
  std::vector<double> p99s;
  std::vector<double> cluster_micros;  // processor time of a request
  std::vector<double> server_micros;
};

double CpuSecondsOf(const std::vector<int>& processes) {
  double seconds = 0;
  for (const int process : processes) seconds += ProcessUse::Now(process).cpu_seconds;
  return seconds;
}

// Runs a load, and keeps what came of it.
template <typename Contender>
void Measure(const Load& load, const std::vector<int>& processes, Contender* contender,
             ClusterSamples* samples) {
  const double cpu_before = CpuSecondsOf(processes);
  const auto begin = std::chrono::steady_clock::now();
  const LoadResult result = contender->Run(load);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  const double cpu = CpuSecondsOf(processes) - cpu_before;
  const auto requests = static_cast<double>(std::max<uint64_t>(result.requests, 1));
  const double rate = requests / result.seconds;
  samples->rates.push_back(rate);
  samples->p50s.push_back(result.p50 * 1e6);
  samples->p99s.push_back(result.p99 * 1e6);
  samples->cluster_micros.push_back(1e6 * cpu / taken.count() / rate);
  samples->server_micros.push_back(1e6 * result.server_cpu_seconds / requests);
}

std::string Spread(const ClusterSamples& samples) {
  const auto [least, most] = std::minmax_element(samples.rates.begin(), samples.rates.end());
  return fmt::format("{} ({} to {})", FormatRate(Median(samples.rates)), FormatRate(*least),
                     FormatRate(*most));
}

std::string Times(const ClusterSamples& samples) {
  return fmt::format("{} / {}", FormatMicros(Median(samples.p50s)),
                     FormatMicros(Median(samples.p99s)));
}

struct MeasuredRow {
  ClusterRow row;
  ClusterSamples varve;
  ClusterSamples java;
};

// Returns the table, and what a pipeline gains.
std::string Report(const std::vector<MeasuredRow>& rows) {
  std::vector<std::vector<std::string>> table = {{"over a cluster of HBase", "Varve", "Java client",
                                                  "Varve / Java", "goal", "Varve µs", "Java µs",
                                                  "CPU µs: Varve", "cluster", "cluster with Java"}};
  std::map<std::string, double> rates;
  for (const MeasuredRow& each : rows) {
    const double rate = Median(each.varve.rates);
    const double ratio = rate / Median(each.java.rates);
    rates[each.row.id] = rate;
    table.push_back({each.row.title, Spread(each.varve), Spread(each.java), FormatRatio(ratio),
                     fmt::format("{:.1f}× {}", kGoal, ratio >= kGoal ? "met" : "MISSED"),
                     Times(each.varve), Times(each.java),
                     FormatMicros(Median(each.varve.server_micros)),
                     FormatMicros(Median(each.varve.cluster_micros)),
                     FormatMicros(Median(each.java.cluster_micros))});
  }
  std::string text = MarkdownTable(table);
  if (rates.contains(kNoPipeline) && rates.contains(kPipeline)) {
    const double gain = rates[kPipeline] / rates[kNoPipeline];
    text +=
        fmt::format("\nSET on one connection, pipelines of 64 beside none: {}, goal {:.0f}× {}\n",
                    FormatRatio(gain), kGoalPipeline, gain >= kGoalPipeline ? "met" : "MISSED");
  }
  return text;
}

ClusterRow Row(const std::string& work, Operation operation, int pipeline, int connections,
               const std::string& title) {
  ClusterRow row{.id = fmt::format("cluster/{}/100B/P{}/c{}", work, pipeline, connections)};
  row.title = fmt::format("{}, 100 B, {}{} connection{}", title,
                          pipeline == 1 ? "" : fmt::format("{} at a time, ", pipeline), connections,
                          connections == 1 ? "" : "s");
  row.load.operation = operation;
  row.load.keys_a_call = kKeysOfMultiGet;
  row.load.pipeline = pipeline;
  row.load.connections = connections;
  row.load.warm_up_seconds = kWarmUpSeconds;
  return row;
}

// Fills the table of Varve with the keys that the Java client's has.
void Fill(const ClusterSettings& settings, VarveOverHbase* varve) {
  Load load;
  load.operation = Operation::kSet;
  load.connections = 4;
  load.pipeline = 64;
  load.keys = settings.keys;
  load.choice = KeyChoice::kShuffled;
  varve->Run(load);
}

// Has the virtual machines of Java compile what they will run.
void WarmUp(const ClusterSettings& settings, VarveOverHbase* varve, JavaClient* java) {
  for (const Operation operation :
       {Operation::kSet, Operation::kGet, Operation::kMultiGet, Operation::kRange}) {
    Load load;
    load.operation = operation;
    load.keys_a_call = kKeysOfMultiGet;
    load.connections = 16;
    load.keys = settings.keys;
    load.seconds = 3;
    varve->Run(load);
    java->Run(load);
  }
}

}  // namespace

std::vector<ClusterRow> AllClusterRows() {
  std::vector<ClusterRow> rows;
  for (const int connections : {1, 64})
    rows.push_back(Row("GET", Operation::kGet, 1, connections, "GET"));
  for (const int connections : {1, 16}) {
    rows.push_back(Row("GET", Operation::kGet, 50, connections, "GET"));
    rows.push_back(Row("MGET50", Operation::kMultiGet, 1, connections, "MGET of 50 keys"));
  }
  for (const int connections : {1, 64})
    rows.push_back(Row("RANGE50", Operation::kRange, 1, connections, "a range of 50 keys"));
  for (const int connections : {1, 64})
    rows.push_back(Row("SET", Operation::kSet, 1, connections, "SET"));
  for (const int connections : {1, 16})
    rows.push_back(Row("SET", Operation::kSet, 50, connections, "SET"));
  rows.push_back(Row("SET", Operation::kSet, 64, 1, "SET"));
  return rows;
}

std::string MeasureClusterRows(const std::vector<ClusterRow>& rows,
                               const ClusterSettings& settings) {
  if (settings.quorum.empty()) {
    return "The rows over a cluster of HBase are skipped, as --hbase_quorum names none "
           "(scripts/hbase_benchmark.sh runs a cluster and measures).\n";
  }
  const std::string tables = fmt::format("bench{}", getpid());
  const std::string cores = settings.cores.empty() ? UpperHalf() : settings.cores;
  const JavaClient::Settings of_java = {.quorum = settings.quorum,
                                        .jars = settings.jars,
                                        .table = tables + "-java",
                                        .directory = settings.directory,
                                        .cores = cores,
                                        .keys = settings.keys};
  if (const std::string why = JavaClient::WhyNot(of_java); !why.empty())
    return fmt::format("The rows over a cluster of HBase are skipped: {}.\n", why);
  // The load of Varve is this process.
  Capture({"taskset", "-c", "-p", cores, std::to_string(getpid())});
  JavaClient java(of_java);
  auto varve = std::make_unique<VarveOverHbase>(settings, tables + "-varve", cores);
  Fill(settings, varve.get());
  WarmUp(settings, varve.get(), &java);

  std::vector<MeasuredRow> measured;
  for (const ClusterRow& row : rows) {
    Load load = row.load;
    load.keys = settings.keys;
    load.seconds = settings.seconds;
    MeasuredRow& samples = measured.emplace_back(MeasuredRow{row, {}, {}});
    for (int turn = 0; turn < settings.repetitions; ++turn) {
      load.seed = static_cast<uint64_t>(turn) + 1;
      Measure(load, settings.processes, varve.get(), &samples.varve);
      Measure(load, settings.processes, &java, &samples.java);
    }
    fmt::print(stderr, "{}: {} beside {}\n", row.id, Spread(samples.varve), Spread(samples.java));
  }
  varve.reset();
  java.Drop(tables);
  return fmt::format(
      "\nRequests per second, medians of {} in turns (the least to the most), {} keys, cores {}; "
      "µs: p50 / p99 of a call, a batch or a pipeline; processor time of a request. {}.\n\n{}",
      settings.repetitions, settings.keys, cores, MachineKind(), Report(measured));
}

}  // namespace varve::bench
