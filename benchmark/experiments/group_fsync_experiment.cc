#include <fmt/format.h>

#include <algorithm>
#include <semaphore>

#include "benchmark/experiments/experiments.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;

// Makes writes of new keys.
class Writer {
 public:
  explicit Writer(StorageEngine* store) : store_(store), value_(kValueSize) {}

  WriteBatch* Next() {
    batch_.Clear();
    batch_.Put(key_.Present(next_), value_.Of(next_));
    ++next_;
    return &batch_;
  }

  // One group of just so many writes, from the first submission until all are on disk.
  // Microseconds.
  double GroupOf(int size) {
    const Clock::time_point begin = Clock::now();
    SequenceNumber last = kNoSequence;
    for (int i = 0; i < size; ++i) {
      const absl::StatusOr<CommitResult> result = store_->Submit(WriteOptions(), Next());
      CheckOk(result.status());
      last = result->durable_after;
    }
    CheckOk(store_->Push());
    CheckOk(store_->WaitUntilDurable(last));
    return SecondsSince(begin) * 1e6;
  }

 private:
  StorageEngine* const store_;
  WriteBatch batch_;
  Key key_;
  Value value_;
  uint64_t next_ = 0;
};

double MedianGroup(Writer* writer, int size, int groups) {
  std::vector<double> micros;
  for (int i = 0; i < groups; ++i) micros.push_back(writer->GroupOf(size));
  std::nth_element(micros.begin(), micros.begin() + groups / 2, micros.end());
  return micros[static_cast<size_t>(groups) / 2];
}

std::vector<Point> ByCount(const ExperimentOptions& options) {
  const std::string panel =
      "Groups closed by count | writes in a group | µs per acknowledged write | logx logy";
  const int groups = std::max(20, static_cast<int>(1000 * options.scale));
  const auto store = OpenStore(options.directory + "/count", EngineOptions());
  Writer writer(store.get());
  MedianGroup(&writer, 10, groups);  // past the first log file, which is still being zero-filled
  std::vector<Point> points;
  double one = 0;
  for (const int size : {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}) {
    const double micros = MedianGroup(&writer, size, groups) / size;
    if (size == 1) one = micros;
    points.push_back({panel, "measured", "", static_cast<double>(size), micros});
    points.push_back({panel, "ideal: 1 divided by x", "", static_cast<double>(size), one / size});
  }
  return points;
}

struct Flow {
  double micros_per_write;
  double median_wait;  // microseconds
};

// As many asynchronous writes in flight as asked for, for as long as it takes to make `writes`.
Flow KeepInFlight(StorageEngine* store, int in_flight, uint64_t writes) {
  Writer writer(store);
  std::vector<Clock::time_point> starts(writes);
  std::vector<double> waits(writes);
  std::counting_semaphore<> window(in_flight);
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < writes; ++i) {
    window.acquire();
    starts[i] = Clock::now();
    store->WriteAsync(WriteOptions(), writer.Next(),
                      [&, i](const absl::StatusOr<CommitResult>& result) {
                        CheckOk(result.status());
                        waits[i] = SecondsSince(starts[i]) * 1e6;
                        window.release();
                      });
  }
  for (int i = 0; i < in_flight; ++i) window.acquire();
  const double micros = SecondsSince(begin) * 1e6 / static_cast<double>(writes);
  std::nth_element(waits.begin(), waits.begin() + static_cast<std::ptrdiff_t>(writes / 2),
                   waits.end());
  return {micros, waits[writes / 2]};
}

std::vector<Point> ByDelay(const ExperimentOptions& options) {
  const std::string cost =
      "Groups closed by delay: cost | --group-max-delay, µs | µs per acknowledged write | logy";
  const std::string wait =
      "Groups closed by delay: wait | --group-max-delay, µs | p50 from call to acknowledgement, µs";
  std::vector<Point> points;
  for (const int delay : {0, 100, 200, 500, 1000, 2000}) {
    EngineOptions engine;
    engine.group_max_delay = std::chrono::microseconds(delay);
    const auto store = OpenStore(fmt::format("{}/delay{}", options.directory, delay), engine);
    KeepInFlight(store.get(), 50, 2000);  // past the first log file
    for (const int in_flight : {1, 10, 50}) {
      const auto writes = static_cast<uint64_t>(std::max(200.0, 800.0 * in_flight * options.scale));
      const Flow flow = KeepInFlight(store.get(), in_flight, writes);
      const std::string series = fmt::format("{} in flight", in_flight);
      points.push_back({cost, series, "", static_cast<double>(delay), flow.micros_per_write});
      points.push_back({wait, series, "", static_cast<double>(delay), flow.median_wait});
    }
  }
  return points;
}

}  // namespace

std::vector<Point> GroupFsyncExperiment(const ExperimentOptions& options) {
  std::vector<Point> points = ByCount(options);
  const std::vector<Point> by_delay = ByDelay(options);
  points.insert(points.end(), by_delay.begin(), by_delay.end());
  return points;
}

}  // namespace varve::bench
