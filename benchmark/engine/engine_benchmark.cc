// Compares the engine with RocksDB, LevelDB, LMDB, WiredTiger and Pebble in one run on the same
// work; benchmark/README.md says how to run and read it, engine_rows.h what each row does.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/str_split.h"
#include "benchmark/engine/engine_parts.h"
#include "benchmark/engine/engine_report.h"
#include "benchmark/engine/engine_work.h"
#include "benchmark/help.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/report.h"

ABSL_FLAG(double, scale, 1.0, "Share of the full number of entries and operations, for quick runs");
ABSL_FLAG(std::string, engines, "varve,rocksdb,leveldb,lmdb,wiredtiger,pebble",
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
ABSL_FLAG(bool, oversubscribe, false,
          "Also measure the rows of more threads than this machine has processors");
ABSL_FLAG(std::string, apart, "",
          "Internal: do PART|ENGINE|prepare or PART|ENGINE|measure and print the figures");
ABSL_FLAG(std::string, memory_group, "", "Internal: the memory cgroup to enter first");

namespace varve::bench {

const std::vector<Engine>& AllEngines() {
  static const std::vector<Engine>* const engines = new std::vector<Engine>{
      {"varve", "Varve", OpenVarve},
      {"rocksdb", "RocksDB", OpenRocksDb},
      {"leveldb", "LevelDB", OpenLevelDb},
      {"lmdb", "LMDB", OpenLmdb},
      {"wiredtiger", "WiredTiger", OpenWiredTiger, WiredTigerMissing()},
      {"pebble", "Pebble", OpenPebble, PebbleMissing()},
  };
  return *engines;
}

namespace {

// What was found out so far.
struct Found {
  Samples samples;
  Reasons reasons;
};

void Publish(const Row& row, const Figures& figures, ::benchmark::State& state) {
  state.SetLabel(row.title);
  for (const auto& [name, value] : figures) state.counters[name] = value;
  if (figures.contains(row.figure())) state.counters["figure"] = figures.at(row.figure());
  state.counters["less_is_better"] = row.less_is_better() ? 1 : 0;
}

std::optional<Figures> Measure(const Row& row, const Engine& engine, Parts* parts,
                               std::string* why) {
  if (row.needs_processors > std::thread::hardware_concurrency() &&
      !absl::GetFlag(FLAGS_oversubscribe)) {
    *why = fmt::format("not measured: needs {} processors", row.needs_processors);
    return std::nullopt;
  }
  return parts->Measure(row, engine, why);
}

void Run(const Row& row, const Engine& engine, Parts* parts, Found* found,
         ::benchmark::State& state) {
  std::optional<Figures> figures;
  std::string why;
  for (auto _ : state) {
    figures = Measure(row, engine, parts, &why);
    const double rate = figures ? (*figures)[kRate] : 0;
    state.SetIterationTime(rate > 0 ? static_cast<double>(row.operations) / rate : 0);
  }
  state.SetLabel(row.title);
  if (!figures) {
    found->reasons[{row.id, engine.id}] = why;
    state.SkipWithError(why.c_str());
    return;
  }
  Publish(row, *figures, state);
  state.counters["memory_bytes"] = static_cast<double>(row.memory.total);
  state.counters["memory_is_limited"] = parts->Limited() ? 1 : 0;
  found->samples[{row.id, engine.id}].push_back(*figures);
}

void RunBareWrite(const Row& row, const std::string& directory, Found* found,
                  ::benchmark::State& state) {
  Timing timing;
  for (auto _ : state) {
    timing = BareWrite(row, directory);
    state.SetIterationTime(timing.seconds);
  }
  const Figures figures = FiguresOf(row, timing);
  Publish(row, figures, state);
  found->samples[{row.id, kBareWrite}].push_back(figures);
}

template <typename Function>
void Register(const std::string& name, Function run) {
  ::benchmark::RegisterBenchmark(name.c_str(), std::move(run))
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(::benchmark::kMillisecond);
}

std::vector<Engine> ChosenEngines() {
  const std::vector<std::string> names = absl::StrSplit(absl::GetFlag(FLAGS_engines), ',');
  const auto is_named = [&](const Engine& engine) {
    return std::find(names.begin(), names.end(), engine.id) != names.end();
  };
  std::vector<Engine> chosen;
  std::copy_if(AllEngines().begin(), AllEngines().end(), std::back_inserter(chosen), is_named);
  for (const std::string& name : names) {
    if (std::none_of(chosen.begin(), chosen.end(), [&](const Engine& e) { return e.id == name; }))
      Fail("--engines names an unknown engine: " + name);
  }
  return chosen;
}

std::vector<Row> ChosenRows() {
  const std::regex wanted(absl::GetFlag(FLAGS_rows));
  std::vector<Row> rows = AllRows(absl::GetFlag(FLAGS_scale));
  std::erase_if(rows, [&](const Row& row) { return !std::regex_search(row.id, wanted); });
  return rows;
}

std::vector<HelpList> Help() {
  HelpList engines{"Engines (--engines):", {}};
  for (const Engine& engine : AllEngines()) {
    engines.lines.emplace_back(
        engine.id,
        engine.title + (engine.missing.empty() ? "" : ", not measured: " + engine.missing));
  }
  HelpList rows{"Rows (--rows takes a regular expression found in the name):", {}};
  for (const Row& row : AllRows(1)) rows.lines.emplace_back(row.id, row.title);
  return {engines, rows};
}

// What a process of a part needs to know of the flags.
std::vector<std::string> CommandOfParts() {
  return {ProgramPath(),
          fmt::format("--scale={}", absl::GetFlag(FLAGS_scale)),
          "--rows=" + absl::GetFlag(FLAGS_rows),
          "--settings=" + absl::GetFlag(FLAGS_settings),
          fmt::format("--oversubscribe={}", absl::GetFlag(FLAGS_oversubscribe)),
          fmt::format("--rest_seconds={}", absl::GetFlag(FLAGS_rest_seconds))};
}

// Leaves out what this machine has too few processors for.
std::vector<Row> Measurable(std::vector<Row> rows) {
  if (absl::GetFlag(FLAGS_oversubscribe)) return rows;
  std::erase_if(rows, [](const Row& row) {
    return row.needs_processors > std::thread::hardware_concurrency();
  });
  return rows;
}

void PrintReport(const std::vector<Row>& rows, const Found& found, bool limited,
                 const std::string& command, std::FILE* out) {
  const EngineReport report = Report(rows, AllEngines(), found.samples, found.reasons);
  fmt::print(out,
             "\nOperations per second (median), one process a part, same work, same memory, {} "
             "settings; {}.\n{}\n{}\n{}",
             absl::GetFlag(FLAGS_settings), MachineKind(),
             limited ? "Each process was in a memory cgroup, page cache and mapped files "
                       "included.\n"
                     : "No memory cgroup could be made: the engines' caches have the same size, "
                       "the page cache has no limit.\n",
             report.table, report.notes);
  fmt::print(
      out,
      "\nµs: p50 / p99 / p99.9 (writes: / p99.99), and processor time for each operation.\n\n{}",
      report.beside);
  if (absl::GetFlag(FLAGS_history)) fmt::print(out, "\n{}", HistoryLine(command, report.history));
}

int Main(int argc, char** argv) {
  HelpIfAsked(argc, argv, "engine/engine_benchmark.cc",
              "compares Varve with RocksDB, LevelDB, LMDB, WiredTiger and Pebble on the same work.",
              Help());
  const std::string command = CommandLine(argc, argv);
  const bool plain_output = WritesToConsole(argc, argv);
  ::benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  if (const std::string group = absl::GetFlag(FLAGS_memory_group); !group.empty())
    MemoryLimit::Enter(group);

  const std::string kind = absl::GetFlag(FLAGS_settings);
  if (kind != "expert" && kind != "default")
    Fail("--settings wants expert or default, not " + kind);
  const std::vector<Row> rows = ChosenRows();
  if (rows.empty()) Fail("--rows names no row; --help lists them");
  if (const std::string what = absl::GetFlag(FLAGS_apart); !what.empty()) {
    return RunPart(Measurable(rows), AllEngines(), what, absl::GetFlag(FLAGS_dir),
                   kind == "default", absl::GetFlag(FLAGS_rest_seconds));
  }

  const std::vector<Engine> chosen = ChosenEngines();
  FILE* const out = plain_output ? stdout : stderr;
  fmt::print(out, "{} rows of {} engines, about {:.0f} minutes.\n", rows.size(), chosen.size(),
             std::max(1.0, EstimateMinutes(Measurable(rows), chosen.size())));
  std::fflush(out);
  const std::string directory =
      ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "engine_benchmark_data");
  Parts parts(rows, directory, CommandOfParts());
  Found found;
  for (const Row& row : rows) {
    for (const Engine& engine : chosen) {
      Register(row.id + "/" + engine.id,
               [&](::benchmark::State& state) { Run(row, engine, &parts, &found, state); });
    }
    if (row.work != Work::kFillInBatches) continue;
    Register(row.id + "/" + kBareWrite,
             [&](::benchmark::State& state) { RunBareWrite(row, directory, &found, state); });
  }
  ::benchmark::RunSpecifiedBenchmarks();
  PrintReport(rows, found, parts.Limited(), command, out);
  return parts.HasFailed() ? 1 : 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
