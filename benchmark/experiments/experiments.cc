// Runs the field's classic experiments (experiments.h) and reports each point as a benchmark of its
// own, named experiment/series/category, with the counters x and y, for benchmark/plot:
//
//   experiments --experiment=group_fsync --benchmark_format=json >group_fsync.json
//   benchmark/plot group_fsync.json --pictures=images
#include "benchmark/experiments/experiments.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "benchmark/help.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"

ABSL_FLAG(std::string, experiment, "all",
          "One of the experiments below, or all of them but the large one");
ABSL_FLAG(uint64_t, keys, 0, "Keys of the experiment large; 0: 100 million, scaled");
ABSL_FLAG(double, scale, 1.0, "Share of the full number of entries and operations, for quick runs");
ABSL_FLAG(std::string, dir, "",
          "Where to put the data (removed at the end); by default beside the program");
ABSL_FLAG(std::string, apart, "",
          "Internal: do this part of zipf_beyond or large and print its figures");
ABSL_FLAG(std::string, memory_group, "", "Internal: the memory cgroup to enter first");

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
  std::string measures;
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

const std::vector<Experiment>& AllExperiments() {
  static const std::vector<Experiment>* const experiments = new std::vector<Experiment>{
      {"group_fsync", "acknowledged writes by the size of groups, and delayed groups",
       GroupFsyncExperiment},
      {"filter", "gets that hit and miss, by segments, tables and caches", FilterExperiment},
      {"classic", "100 and 1000 bytes, in order and at random, library and TCP", ClassicExperiment},
      {"memory", "resident memory of 4 KiB values over time, and of the index", MemoryExperiment},
      {"scaling",
       "gets, MultiGets, puts and synced puts by 1 to 16 threads, and the time with the commit "
       "lock",
       ScalingExperiment},
      {"past_clones", "clones and differences of the past", PastClonesExperiment},
      {"archive_restore", "how fast an archive is restored", ArchiveRestoreExperiment},
      {"compression", "what compression costs a get, a scan, a fill and a merge, and what it saves",
       CompressionExperiment},
      {"merge_parts", "a merge of 300 MB by 1, 2, 4 .. threads", MergePartsExperiment},
      {"zipf_beyond",
       "gets of zipfian keys with data 4 times the memory of a cgroup, mapped and not: 4 minutes",
       ZipfBeyondExperiment},
      {"evict_reads", "GETs of a namespace with EVICT lru and lfu, and of one without",
       EvictReadsExperiment},
      {"large", "100 million keys (--keys) with memory for the tables alone: half an hour, 35 GB",
       LargeExperiment}};
  return *experiments;
}

std::vector<HelpList> Help() {
  HelpList list{"Experiments (--experiment):", {}};
  for (const Experiment& experiment : AllExperiments())
    list.lines.emplace_back(experiment.name, experiment.measures);
  return {list};
}

bool IsWanted(const Experiment& experiment, const std::string& wanted) {
  return experiment.name == wanted || (wanted == "all" && experiment.name != "large");
}

int Main(int argc, char** argv) {
  HelpIfAsked(argc, argv, "experiments/experiments.cc",
              "runs the field's classic experiments on the engine.", Help());
  ::benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  if (const std::string group = absl::GetFlag(FLAGS_memory_group); !group.empty())
    MemoryLimit::Enter(group);
  const std::vector<Experiment>& experiments = AllExperiments();
  const std::string wanted = absl::GetFlag(FLAGS_experiment);
  if (const std::string part = absl::GetFlag(FLAGS_apart); !part.empty()) {
    wanted == "large" ? LargePart(part) : ZipfBeyondPart(part);
    return 0;
  }
  if (std::none_of(experiments.begin(), experiments.end(),
                   [&](const Experiment& e) { return IsWanted(e, wanted); })) {
    Fail("--experiment names an unknown experiment: " + wanted);
  }
  const std::string directory = ClaimDataDirectory(absl::GetFlag(FLAGS_dir), "experiments_data");
  for (const Experiment& experiment : experiments) {
    if (!IsWanted(experiment, wanted)) continue;
    MakeEmptyDirectory(directory);
    for (const Point& point :
         experiment.run({directory, absl::GetFlag(FLAGS_scale), absl::GetFlag(FLAGS_keys)}))
      Report(experiment, point);
  }
  ::benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
