#include <fmt/format.h>

#include <thread>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/server/load_generator.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr uint64_t kTables = 1000;
constexpr int kConnections = 50;

struct Figures {
  double rate = 0;
  double p50 = 0;  // microseconds
  double p99 = 0;
  double cpu = 0;  // microseconds of the engine's or server's process for each operation
};

struct Way {
  std::string name;
  bool reads;
  bool in_order;
};

const std::vector<Way>& AllWays() {
  static const std::vector<Way>* const ways =
      new std::vector<Way>{{"write in order", false, true},
                           {"write at random", false, false},
                           {"read in order", true, true},
                           {"read at random", true, false}};
  return *ways;
}

void Add(const std::string& place, size_t value_size, const Way& way, const Figures& figures,
         std::vector<Point>* points) {
  const std::string series = fmt::format("{} B values", value_size);
  const auto add = [&](const std::string& what, double y) {
    points->push_back({fmt::format("{}: {} | | {}", place, what, what), series, way.name, 0, y});
  };
  add("operations a second", figures.rate);
  add("p50, µs", figures.p50);
  add("p99, µs", figures.p99);
  add("CPU µs an operation", figures.cpu);
}

EngineOptions OptionsFor(uint64_t entries, size_t value_size) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.segment_size = std::max<size_t>(4096, entries * (kKeySize + value_size) / kTables);
  return options;
}

// Merged down to about kTables segments, each with its offset table.
void FillAndCompact(uint64_t entries, size_t value_size, StorageEngine* store) {
  const std::string filler(value_size, 'v');
  for (const uint32_t number : Shuffled(entries)) {
    const std::string key = LoadKey(number, kKeySize);
    CheckOk(store->Put(key, key + filler.substr(key.size())));
  }
  CheckOk(store->Flush());
  CheckOk(store->Compact("", ""));
}

Figures Embedded(const Way& way, uint64_t entries, size_t value_size, StorageEngine* store) {
  const std::string filler(value_size, 'v');
  Random random(entries);
  std::string key = LoadKey(0, kKeySize);
  std::string value = key + filler.substr(key.size());
  const auto renumber = [](uint64_t number, std::string* text) {
    for (size_t at = kKeySize; at-- > kKeySize - 12; number /= 10)
      (*text)[at] = static_cast<char>('0' + number % 10);
  };
  Latencies latencies(8);
  const double cpu = CpuSeconds();
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t number = way.in_order ? i : random.Below(entries);
    renumber(number, &key);
    if (way.reads) {
      latencies.Time([&] { CheckOk(store->Get(ReadOptions(), key, &value).status()); });
      if (value.size() != value_size || !value.starts_with(key)) Fail("a get gave a wrong answer");
    } else {
      renumber(number, &value);
      latencies.Time([&] { CheckOk(store->Put(key, value)); });
    }
  }
  const double seconds = SecondsSince(begin);
  const auto count = static_cast<double>(entries);
  return {count / seconds, latencies.histogram().Percentile(0.5) * 1e-3,
          latencies.histogram().Percentile(0.99) * 1e-3, (CpuSeconds() - cpu) * 1e6 / count};
}

Figures OverTcp(const Way& way, uint64_t entries, size_t value_size, uint16_t port,
                const Child& server) {
  Load load;
  load.server = "Varve";
  load.port = port;
  load.operation = way.reads ? Operation::kGet : Operation::kSet;
  load.connections = kConnections;
  load.value_size = value_size;
  load.key_size = kKeySize;
  load.keys = entries;
  load.choice = way.in_order ? KeyChoice::kInOrder : KeyChoice::kUniform;
  const LoadResult result = RunLoad(load, [&] { return server.CpuSeconds(); });
  const auto requests = static_cast<double>(result.requests);
  return {requests / result.seconds, result.p50 * 1e6, result.p99 * 1e6,
          result.server_cpu_seconds * 1e6 / requests};
}

void MeasureServer(const std::string& directory, uint64_t entries, size_t value_size,
                   std::vector<Point>* points) {
  const uint16_t port = FreePort();
  Child server(
      {ProgramDirectory() + "/server_main", "--bind=127.0.0.1", fmt::format("--port={}", port),
       "--http-port=0", "--dir=" + directory, "--sync=no", "--loglevel=warning"},
      directory + ".log");
  while (!AnswersPing(port)) {
    if (!server.Running()) Fail("there is no server_main that serves: build it first");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  // Reads first: writes would merge the many segments.
  for (const size_t at : {2, 3, 0, 1}) {
    const Way& way = AllWays()[at];
    Add("Over TCP, 50 connections", value_size, way,
        OverTcp(way, entries, value_size, port, server), points);
  }
}

}  // namespace

std::vector<Point> ClassicExperiment(const ExperimentOptions& options) {
  std::vector<Point> points;
  for (const size_t value_size : {size_t{100}, size_t{1000}}) {
    const auto entries = std::max<uint64_t>(
        5000, static_cast<uint64_t>((value_size == 100 ? 1e6 : 3e5) * options.scale));
    const std::string directory = fmt::format("{}/classic{}", options.directory, value_size);
    const EngineOptions engine = OptionsFor(entries, value_size);
    {
      const auto store = OpenStore(directory, engine);
      FillAndCompact(entries, value_size, store.get());
      // Fills the caches.
      for (const size_t at : {2, 3}) Embedded(AllWays()[at], entries, value_size, store.get());
      points.push_back({"Offset tables | | segments", fmt::format("{} B values", value_size),
                        "segments", 0, static_cast<double>(Statistic(*store, "segments"))});
      for (const size_t at : {2, 3, 0, 1}) {
        const Way& way = AllWays()[at];
        Add("Library", value_size, way, Embedded(way, entries, value_size, store.get()), &points);
      }
      CheckOk(store->Flush());
      CheckOk(store->Compact("", ""));
      CheckOk(store->Close());
    }
    MeasureServer(directory, entries, value_size, &points);
  }
  return points;
}

}  // namespace varve::bench
