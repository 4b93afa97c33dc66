// Compares the engine with RocksDB, LevelDB and LMDB in one run on the same work; README.md of this folder says how to
// run and read it, engine_rows.h what each row does.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_split.h"
#include "benchmark/engine_rows.h"
#include "benchmark/process.h"
#include "benchmark/report.h"

ABSL_FLAG(double, scale, 1.0, "Share of the full number of entries and operations, for quick runs");
ABSL_FLAG(std::string, engines, "varve,rocksdb,leveldb,lmdb", "Engines to run, separated by commas");
ABSL_FLAG(std::string, rows, ".*", "Rows to run: a regular expression found anywhere in the row's name (get/4096B/8)");
ABSL_FLAG(std::string, dir, "", "Where to put the data (removed at the end); by default beside the program");
ABSL_FLAG(bool, history, false, "Also print the line to append to benchmark/history.md");
ABSL_FLAG(std::string, memory_of, "",
          "Internal: fill a store of ROW|ENGINE and print the bytes resident in this process");

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

// Operations per second or bytes, by row and engine, one sample a repetition.
using Samples = std::map<std::pair<std::string, std::string>, std::vector<double>>;

// In a process of its own, as memory that one engine gave back may stay with the process.
double MemoryInFreshProcess(const Row& row, const Engine& engine, const std::string& directory) {
  const std::string printed = Capture({ProgramPath(), fmt::format("--memory_of={}|{}", row.id, engine.id),
                                       "--dir=" + directory, fmt::format("--scale={}", absl::GetFlag(FLAGS_scale))});
  return std::stod(printed);
}

void Run(const Row& row, const Engine& engine, const std::string& directory, Measurements* measurements,
         Samples* samples, ::benchmark::State& state) {
  double figure = 0;
  for (auto _ : state) {
    double seconds = 0;
    if (row.in_bytes()) {
      figure = MemoryInFreshProcess(row, engine, directory);
      state.counters["resident_bytes"] = figure;
    } else {
      seconds = measurements->Seconds(row, engine);
      figure = static_cast<double>(row.operations) / seconds;
    }
    state.SetIterationTime(seconds);
  }
  if (!row.in_bytes()) state.SetItemsProcessed(static_cast<int64_t>(row.operations));
  (*samples)[{row.id, engine.id}].push_back(figure);
}

std::string Cell(const Row& row, double figure) {
  if (figure == 0) return "filtered out";
  return row.in_bytes() ? FormatBytes(figure) : FormatRate(figure);
}

// The table, and the ratios of history.md. A ratio above 1 is a lead, also where less is better.
std::pair<std::string, std::string> Report(const std::vector<Row>& rows, Samples& samples) {
  const std::vector<Engine>& engines = AllEngines();
  std::vector<std::vector<std::string>> table = {{"work"}};
  for (const Engine& engine : engines) table[0].push_back(engine.title);
  table[0].insert(table[0].end(), {"best peer", "Varve / best peer"});
  std::string ratios;
  for (const Row& row : rows) {
    std::vector<std::string> cells = {row.title};
    double ours = 0;
    double best = 0;
    std::string best_title = "-";
    for (const Engine& engine : engines) {
      const double figure = Median(samples[{row.id, engine.id}]);
      cells.push_back(Cell(row, figure));
      if (engine.id == "varve") {
        ours = figure;
      } else if (figure > 0 && (best == 0 || (row.in_bytes() ? figure < best : figure > best))) {
        best = figure;
        best_title = engine.title;
      }
    }
    const double ratio = ours == 0 || best == 0 ? 0 : row.in_bytes() ? best / ours : ours / best;
    cells.push_back(best_title);
    cells.push_back(FormatRatio(ratio));
    table.push_back(cells);
    if (ratio > 0) ratios += fmt::format("{}{} {:.2f}", ratios.empty() ? "" : ", ", row.id, ratio);
  }
  return {MarkdownTable(table), ratios};
}

int Main(int argc, char** argv) {
  const std::string command = CommandLine(argc, argv);
  const bool plain_output = WritesToConsole(argc, argv);
  ::benchmark::Initialize(&argc, argv);
  absl::SetProgramUsageMessage("Compares Varve with RocksDB, LevelDB and LMDB on the same work.");
  absl::ParseCommandLine(argc, argv);

  const std::vector<Row> rows = AllRows(absl::GetFlag(FLAGS_scale));
  const std::string memory_of = absl::GetFlag(FLAGS_memory_of);
  const std::string directory =
      ClaimDataDirectory(absl::GetFlag(FLAGS_dir), memory_of.empty() ? "engine_benchmark_data" : "memory");
  Measurements measurements(directory);
  if (!memory_of.empty()) {
    for (const Row& row : rows) {
      for (const Engine& engine : AllEngines()) {
        if (row.id + "|" + engine.id == memory_of) fmt::print("{:.0f}\n", measurements.MemoryBytes(row, engine));
      }
    }
    return 0;
  }

  const std::vector<std::string> chosen = absl::StrSplit(absl::GetFlag(FLAGS_engines), ',');
  for (const std::string& id : chosen) {
    if (std::none_of(AllEngines().begin(), AllEngines().end(), [&](const Engine& e) { return e.id == id; })) {
      Fail("--engines names an unknown engine: " + id);
    }
  }
  const std::regex wanted(absl::GetFlag(FLAGS_rows));
  Samples samples;
  for (const Row& row : rows) {
    if (!std::regex_search(row.id, wanted)) continue;
    for (const Engine& engine : AllEngines()) {
      if (std::find(chosen.begin(), chosen.end(), engine.id) == chosen.end()) continue;
      ::benchmark::RegisterBenchmark(
          (row.id + "/" + engine.id).c_str(),
          [&](::benchmark::State& state) { Run(row, engine, directory, &measurements, &samples, state); })
          ->Iterations(1)
          ->UseManualTime()
          ->Unit(::benchmark::kMillisecond);
    }
  }
  ::benchmark::RunSpecifiedBenchmarks();

  const auto [table, ratios] = Report(rows, samples);
  FILE* const out = plain_output ? stdout : stderr;
  fmt::print(out, "\nOperations per second (median), one process, same work; {}.\n\n{}", MachineKind(), table);
  if (absl::GetFlag(FLAGS_history)) fmt::print(out, "\n{}", HistoryLine(command, ratios));
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
