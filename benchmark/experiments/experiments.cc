// Runs the field's classic experiments (experiments.h) and reports each point as a benchmark of its
// own, named experiment/series/category, with the counters x and y, for benchmark/plot:
//
//   experiments --experiment=group_fsync --benchmark_format=json >group_fsync.json
//   benchmark/plot group_fsync.json --out=images/group_fsync.svg
#include "benchmark/experiments/experiments.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"

ABSL_FLAG(
    std::string, experiment, "all",
    "group_fsync, filter, classic, memory, scaling, past_clones, archive_restore, compression or "
    "all");
ABSL_FLAG(double, scale, 1.0, "Share of the full number of entries and operations, for quick runs");
ABSL_FLAG(std::string, dir, "",
          "Where to put the data (removed at the end); by default beside the program");

namespace varve::bench {

void CheckOk(const absl::Status& status) {
  if (!status.ok()) Fail("Varve: " + status.ToString());
}

std::unique_ptr<StorageEngine> OpenStore(const std::string& directory,
                                         const EngineOptions& options) {
  absl::StatusOr<std::unique_ptr<StorageEngine>> store = StorageEngine::Open(directory, options);
  CheckOk(store.status());
  return *std::move(store);
}

uint64_t Statistic(const Store& store, const std::string& name) {
  for (const auto& [known, value] : store.Statistics()) {
    if (known == name) return value;
  }
  Fail("the store keeps no statistic " + name);
}

double CpuSeconds() { return ProcessUse::Now().cpu_seconds; }

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

namespace {

struct Experiment {
  std::string name;
  std::function<std::vector<Point>(const ExperimentOptions&)> run;
};

void Report(const Experiment& experiment, const Point& point) {
  const std::string category =
      point.category.empty() ? fmt::format("{:g}", point.x) : point.category;
  ::benchmark::RegisterBenchmark(
      fmt::format("{}/{}/{}", experiment.name, point.series, category).c_str(),
      [point](::benchmark::State& state) {
        for (auto _ : state) state.SetIterationTime(0);
        state.SetLabel(point.panel);
        if (point.category.empty()) state.counters["x"] = point.x;
        state.counters["y"] = point.y;
      })
      ->Iterations(1)
      ->UseManualTime();
}

int Main(int argc, char** argv) {
  ::benchmark::Initialize(&argc, argv);
  absl::SetProgramUsageMessage("Runs the field's classic experiments on the engine.");
  absl::ParseCommandLine(argc, argv);
  const std::vector<Experiment> experiments = {{"group_fsync", GroupFsyncExperiment},
                                               {"filter", FilterExperiment},
                                               {"classic", ClassicExperiment},
                                               {"memory", MemoryExperiment},
                                               {"scaling", ScalingExperiment},
                                               {"past_clones", PastClonesExperiment},
                                               {"archive_restore", ArchiveRestoreExperiment},
                                               {"compression", CompressionExperiment}};
  const std::string wanted = absl::GetFlag(FLAGS_experiment);
  if (wanted != "all" && std::none_of(experiments.begin(), experiments.end(),
                                      [&](const Experiment& e) { return e.name == wanted; })) {
    Fail("--experiment names an unknown experiment: " + wanted);
  }
  const std::string directory = ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "experiments_data");
  for (const Experiment& experiment : experiments) {
    if (wanted != "all" && experiment.name != wanted) continue;
    MakeEmptyDirectory(directory);
    for (const Point& point : experiment.run({directory, absl::GetFlag(FLAGS_scale)}))
      Report(experiment, point);
  }
  ::benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
