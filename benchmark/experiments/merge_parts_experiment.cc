#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "benchmark/experiments/experiments.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"
#include "varve/compaction_picker.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;
constexpr uint64_t kRuns = 6;
constexpr int kTurns = 3;

// Leaves every tree as it is, so that all that is merged is what the experiment asks for.
class NoPicker final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape&, const EngineOptions&, bool) const override {
    return std::nullopt;
  }
  double Debt(const TreeShape&, const EngineOptions&) const override { return 0; }
};

struct Merge {
  double seconds = 0, cpu_seconds = 0;
  uint64_t parts = 0, segments = 0;
};

// Fills a store with runs of random keys, and merges them.
Merge FillAndMerge(const std::string& directory, uint64_t entries, int jobs) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = 256u << 20;
  options.max_background_jobs = jobs;
  options.compaction_picker = std::make_shared<NoPicker>();
  const auto store = OpenStore(directory, options);
  Key key;
  Value value(kValueSize);
  uint64_t written = 0;
  for (const uint32_t number : Shuffled(entries)) {
    CheckOk(store->Put(key.Present(number), value.Of(number)));
    if (++written % (entries / kRuns) == 0) CheckOk(store->Flush());
  }
  CheckOk(store->Flush());
  Merge merge;
  const double cpu = CpuSeconds();
  const Clock::time_point begin = Clock::now();
  CheckOk(store->Compact("", ""));
  merge.seconds = SecondsSince(begin);
  merge.cpu_seconds = CpuSeconds() - cpu;
  merge.parts = Statistic(*store, "compaction_parts");
  merge.segments = Statistic(*store, "segments");
  CheckOk(store->Close());
  return merge;
}

}  // namespace

std::vector<Point> MergePartsExperiment(const ExperimentOptions& options) {
  const auto entries = std::max<uint64_t>(1000, static_cast<uint64_t>(2.5e6 * options.scale));
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  std::map<int, std::vector<double>> seconds, cpu_seconds;
  std::map<int, Merge> last;
  int turns = 0;
  // In turns, as the machine is not the same from one minute to the next; the median counts.
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int threads = 1; threads <= std::max(2, processors); threads *= 2) {
      const std::string directory = fmt::format("{}/{}", options.directory, turns++);
      const Merge merge = FillAndMerge(directory, entries, /*jobs=*/threads + 1);
      seconds[threads].push_back(merge.seconds);
      cpu_seconds[threads].push_back(merge.cpu_seconds);
      last[threads] = merge;
    }
  }
  std::vector<Point> points;
  const auto add = [&](const std::string& panel, const std::string& series, int threads, double y) {
    points.push_back({panel, series, "", static_cast<double>(threads), y});
  };
  const std::string time = "Merging six runs, 300 MB | threads that merge | seconds | logx";
  const std::string count = "Parts and segments of that merge | threads that merge | number | logx";
  for (const auto& [threads, merge] : last) {
    add(time, "time", threads, Median(seconds[threads]));
    add(time, "processor time", threads, Median(cpu_seconds[threads]));
    add(count, "parts", threads, static_cast<double>(merge.parts));
    add(count, "segments", threads, static_cast<double>(merge.segments));
  }
  return points;
}

}  // namespace varve::bench
