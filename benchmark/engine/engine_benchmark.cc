// Compares the engine with RocksDB, LevelDB and LMDB in one run on the same work; README.md of this
// folder says how to run and read it, engine_rows.h what each row does.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_split.h"
#include "benchmark/engine/engine_report.h"
#include "benchmark/engine/engine_work.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/report.h"

ABSL_FLAG(double, scale, 1.0, "Share of the full number of entries and operations, for quick runs");
ABSL_FLAG(std::string, engines, "varve,rocksdb,leveldb,lmdb",
          "Engines to run, separated by commas");
ABSL_FLAG(std::string, rows, ".*",
          "Rows to run: a regular expression found anywhere in the row's name (get/4096B/8)");
ABSL_FLAG(std::string, settings, "expert",
          "Of each engine: expert (peer.h and its adapter say which) or default (its own)");
ABSL_FLAG(std::string, dir, "",
          "Where to put the data (removed at the end); by default beside the program");
ABSL_FLAG(double, rest_seconds, varve::bench::kRestSeconds,
          "For how long a process must do nothing before its store counts as settled");
ABSL_FLAG(bool, history, false, "Also print the line to append to benchmark/history.md");
ABSL_FLAG(std::string, apart, "",
          "Internal: do ROW|ENGINE|prepare or ROW|ENGINE|measure and print the figures");
ABSL_FLAG(std::string, memory_group, "", "Internal: the memory cgroup to enter first");

namespace varve::bench {

const std::vector<Engine>& AllEngines() {
  static const std::vector<Engine>* const engines = new std::vector<Engine>{
      {"varve", "Varve", OpenVarve},
      {"rocksdb", "RocksDB", OpenRocksDb},
      {"leveldb", "LevelDB", OpenLevelDb},
      {"lmdb", "LMDB", OpenLmdb},
  };
  return *engines;
}

namespace {

// Below it the programs and libraries themselves are most of what is in memory.
constexpr uint64_t kLeastMemory = 24u << 20;

// Starts processes for the rows that run apart, and keeps what one process found out for two rows.
class Apart {
 public:
  Apart(std::string directory, Measurements* here)
      : directory_(std::move(directory)), here_(here) {}

  // Nothing where the row can't be run, with `*why`.
  std::optional<Figures> Measure(const Row& row, const Engine& engine, std::string* why) {
    here_->CloseStores();
    if (row.cold()) return MeasureCold(row, engine, why);
    if (!row.footprint()) return Start(row, engine, "measure", "");
    const bool over = row.work == Work::kWrittenOver || row.work == Work::kSpaceOver;
    std::deque<Figures>& known = known_[fmt::format("{} {} {}", engine.id, row.value_size, over)];
    if (row.figure() == std::string(kWritten) || known.empty()) {
      const Figures figures = Start(row, engine, "measure", "");
      if (row.figure() == std::string(kWritten)) known.push_back(figures);
      return figures;
    }
    const Figures figures = known.front();
    known.pop_front();
    return figures;
  }

 private:
  std::optional<Figures> MeasureCold(const Row& row, const Engine& engine, std::string* why) {
    if (row.memory_limit() < kLeastMemory) {
      *why = "needs a larger --scale: there must be at least 24 MiB to limit";
      return std::nullopt;
    }
    const MemoryLimit limit(row.memory_limit());
    if (limit.group().empty()) {
      *why = "needs leave to make a memory cgroup";
      return std::nullopt;
    }
    const std::string store = here_->ColdDirectory(row, engine);
    if (!std::filesystem::exists(store)) Start(row, engine, "prepare", "");
    DropFromPageCache(store);
    return Start(row, engine, "measure", limit.group());
  }

  Figures Start(const Row& row, const Engine& engine, const std::string& step,
                const std::string& group) {
    const std::string printed =
        Capture({ProgramPath(), fmt::format("--apart={}|{}|{}", row.id, engine.id, step),
                 "--memory_group=" + group, "--dir=" + directory_,
                 fmt::format("--scale={}", absl::GetFlag(FLAGS_scale)),
                 "--settings=" + absl::GetFlag(FLAGS_settings),
                 fmt::format("--rest_seconds={}", absl::GetFlag(FLAGS_rest_seconds))});
    Figures figures;
    std::istringstream lines(printed);
    std::string name;
    for (double value = 0; lines >> name >> value;) figures[name] = value;
    return figures;
  }

  const std::string directory_;
  Measurements* const here_;
  std::map<std::string, std::deque<Figures>> known_;
};

// The other side of Apart::Start.
int RunApart(const std::vector<Row>& rows, const std::string& what, const Settings& settings) {
  const std::vector<std::string> words = absl::StrSplit(what, '|');
  if (words.size() != 3) Fail("--apart wants ROW|ENGINE|STEP");
  Measurements measurements(settings);
  for (const Row& row : rows) {
    for (const Engine& engine : AllEngines()) {
      if (row.id != words[0] || engine.id != words[1]) continue;
      if (words[2] == "prepare") {
        measurements.Prepare(row, engine);
        continue;
      }
      for (const auto& [name, value] : measurements.MeasureApart(row, engine))
        fmt::print("{} {}\n", name, value);
    }
  }
  return 0;
}

void Publish(const Row& row, const Figures& figures, ::benchmark::State& state) {
  state.SetLabel(row.title);
  for (const auto& [name, value] : figures) state.counters[name] = value;
  if (figures.contains(row.figure())) state.counters["figure"] = figures.at(row.figure());
  state.counters["less_is_better"] = row.less_is_better() ? 1 : 0;
}

void Run(const Row& row, const Engine& engine, Measurements* here, Apart* apart, Samples* samples,
         ::benchmark::State& state) {
  std::optional<Figures> figures;
  std::string why;
  for (auto _ : state) {
    figures = row.apart() ? apart->Measure(row, engine, &why) : here->Measure(row, engine);
    const double rate = figures ? (*figures)[kRate] : 0;
    state.SetIterationTime(rate > 0 ? static_cast<double>(row.operations) / rate : 0);
  }
  if (!figures) {
    state.SkipWithError(why.c_str());
    return;
  }
  Publish(row, *figures, state);
  (*samples)[{row.id, engine.id}].push_back(*figures);
}

void RunBareWrite(const Row& row, const std::string& directory, Samples* samples,
                  ::benchmark::State& state) {
  Timing timing;
  for (auto _ : state) {
    timing = BareWrite(row, directory);
    state.SetIterationTime(timing.seconds);
  }
  const Figures figures = FiguresOf(row, timing);
  Publish(row, figures, state);
  (*samples)[{row.id, kBareWrite}].push_back(figures);
}

template <typename Function>
void Register(const std::string& name, Function run) {
  ::benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(::benchmark::kMillisecond);
}

std::vector<std::string> ChosenEngines() {
  const std::vector<std::string> chosen = absl::StrSplit(absl::GetFlag(FLAGS_engines), ',');
  for (const std::string& id : chosen) {
    if (std::none_of(AllEngines().begin(), AllEngines().end(),
                     [&](const Engine& e) { return e.id == id; })) {
      Fail("--engines names an unknown engine: " + id);
    }
  }
  return chosen;
}

int Main(int argc, char** argv) {
  const std::string command = CommandLine(argc, argv);
  const bool plain_output = WritesToConsole(argc, argv);
  ::benchmark::Initialize(&argc, argv);
  absl::SetProgramUsageMessage("Compares Varve with RocksDB, LevelDB and LMDB on the same work.");
  absl::ParseCommandLine(argc, argv);
  if (const std::string group = absl::GetFlag(FLAGS_memory_group); !group.empty())
    MemoryLimit::Enter(group);

  const std::string kind = absl::GetFlag(FLAGS_settings);
  if (kind != "expert" && kind != "default")
    Fail("--settings wants expert or default, not " + kind);
  const std::vector<Row> rows = AllRows(absl::GetFlag(FLAGS_scale));
  const std::string what = absl::GetFlag(FLAGS_apart);
  const Settings settings = {.directory = absl::GetFlag(FLAGS_dir),
                             .defaults = kind == "default",
                             .rest_seconds = absl::GetFlag(FLAGS_rest_seconds)};
  if (!what.empty()) return RunApart(rows, what, settings);

  const std::vector<std::string> chosen = ChosenEngines();
  const std::string directory =
      ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "engine_benchmark_data");
  Settings here = settings;
  here.directory = directory;
  Measurements measurements(here);
  Apart apart(directory, &measurements);
  const std::regex wanted(absl::GetFlag(FLAGS_rows));
  Samples samples;
  for (const Row& row : rows) {
    if (!std::regex_search(row.id, wanted)) continue;
    for (const Engine& engine : AllEngines()) {
      if (std::find(chosen.begin(), chosen.end(), engine.id) == chosen.end()) continue;
      Register(row.id + "/" + engine.id, [&](::benchmark::State& state) {
        Run(row, engine, &measurements, &apart, &samples, state);
      });
    }
    if (row.work != Work::kFillInBatches) continue;
    Register(row.id + "/" + kBareWrite,
             [&](::benchmark::State& state) { RunBareWrite(row, directory, &samples, state); });
  }
  ::benchmark::RunSpecifiedBenchmarks();

  const EngineReport report = Report(rows, AllEngines(), samples);
  FILE* const out = plain_output ? stdout : stderr;
  fmt::print(out,
             "\nOperations per second (median), one process, same work, {} settings; {}.\n\n{}\n{}",
             kind, MachineKind(), report.table, report.notes);
  fmt::print(
      out,
      "\nµs: p50 / p99 / p99.9 (writes: / p99.99), and processor time for each operation.\n\n{}",
      report.beside);
  if (absl::GetFlag(FLAGS_history)) fmt::print(out, "\n{}", HistoryLine(command, report.history));
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
