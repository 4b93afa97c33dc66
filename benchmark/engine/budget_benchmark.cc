// The engine's budgets on one large store: how long it takes to open, how much memory its tables
// take, how many disk reads a hit and a miss cost. Fills the store once (default: 10 million keys
// of 25 bytes, values of 100), closes it cleanly, and measures:
//
//   open     seconds from Open() to a store that answers
//   hits     random keys that exist, block cache off: reads_per_get, and table_bytes_per_key with
//            all tables resident
//   misses   random keys that don't
//   observe  what a scrape of the metrics asks, of a small store of about 10,000 segments and 1,000
//            namespaces that changes before each look
//
//   budget_benchmark [--keys=10000000] [--gets=1000000] [--dir=...] [google-benchmark's own flags]
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <string>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "benchmark/help.h"
#include "fmt/format.h"
#include "varve/storage_engine.h"

ABSL_FLAG(uint64_t, keys, 10'000'000, "Keys in the store; 0: only \"observe\"");
ABSL_FLAG(uint64_t, gets, 1'000'000, "Random reads of each kind");
ABSL_FLAG(std::string, dir, "budget_benchmark.data", "Where the store goes; removed at the end");

namespace varve::bench {
namespace {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "budget_benchmark: {}\n", status.ToString());
  std::exit(1);
}

// Existing keys have even numbers.
std::string KeyOf(uint64_t number) { return fmt::format("key:{:021}", number); }

EngineOptions Options() {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.block_cache_size = 0;
  return options;
}

std::unique_ptr<StorageEngine> Open() {
  absl::StatusOr<std::unique_ptr<StorageEngine>> store =
      StorageEngine::Open(absl::GetFlag(FLAGS_dir), Options());
  Check(store.status());
  return *std::move(store);
}

uint64_t Statistic(const StorageEngine& store, std::string_view name) {
  for (const auto& [key, value] : store.Statistics()) {
    if (key == name) return value;
  }
  return 0;
}

// In an order that visits each number once and looks random: steps of a large odd stride.
void Fill() {
  const std::unique_ptr<StorageEngine> store = Open();
  const uint64_t keys = absl::GetFlag(FLAGS_keys);
  uint64_t stride = keys / 2 + 1'234'567;
  while (std::gcd(stride, keys) != 1) ++stride;
  WriteBatch batch;
  const std::string value(100, 'v');
  for (uint64_t i = 0, number = 0; i < keys; ++i, number = (number + stride) % keys) {
    batch.Put(KeyOf(2 * number), value);
    if (batch.size() == 100 || i + 1 == keys) Check(store->Write({}, &batch).status());
  }
  Check(store->Close());
}

void OpenStore(benchmark::State& state) {
  for (auto iteration : state) {
    std::unique_ptr<StorageEngine> store = Open();
    std::string value;
    const absl::StatusOr<ReadResult> result = store->Get({}, KeyOf(0), &value);
    Check(result.status());
    if (!result->found) Check(absl::DataLossError("the first key is gone"));
    state.PauseTiming();
    Check(store->Close());
    store.reset();
    state.ResumeTiming();
  }
}

void Get(benchmark::State& state, uint64_t offset) {
  const std::unique_ptr<StorageEngine> store = Open();
  Check(store->Flush());  // what the log brought back counts as reads too
  const uint64_t keys = absl::GetFlag(FLAGS_keys), gets = absl::GetFlag(FLAGS_gets);
  std::mt19937_64 random(1);
  std::string value;
  const auto get = [&] {
    const absl::StatusOr<ReadResult> result =
        store->Get({}, KeyOf(2 * (random() % keys) + offset), &value);
    Check(result.status());
    if (result->found != (offset == 0)) Check(absl::DataLossError("a wrong answer"));
  };
  for (uint64_t i = 0; i < 100'000; ++i) get();  // until the tables are resident
  const uint64_t records_before = Statistic(*store, "record_reads"),
                 pages_before = Statistic(*store, "table_page_reads");
  for (auto iteration : state) {
    for (uint64_t i = 0; i < gets; ++i) get();
  }
  const double total = static_cast<double>(gets * state.iterations());
  state.SetItemsProcessed(static_cast<int64_t>(total));
  state.counters["reads_per_get"] = (Statistic(*store, "record_reads") - records_before) / total;
  state.counters["table_pages_per_get"] =
      (Statistic(*store, "table_page_reads") - pages_before) / total;
  state.counters["table_bytes_per_key"] = Statistic(*store, "offset_table_cache_bytes") /
                                          static_cast<double>(Statistic(*store, "segment_entries"));
  state.counters["runs"] = static_cast<double>(Statistic(*store, "runs"));
  Check(store->Close());
}

// A store of many small segments and namespaces.
std::unique_ptr<StorageEngine> OpenScattered(const std::string& directory) {
  EngineOptions options = Options();
  options.segment_size = 4096;
  absl::StatusOr<std::unique_ptr<StorageEngine>> opened = StorageEngine::Open(directory, options);
  Check(opened.status());
  StorageEngine& store = **opened;
  const NamespaceId first = kFirstNamedNamespace;
  for (NamespaceId i = 0; i < 1000; ++i) {
    WriteBatch batch;
    batch.CreateNamespace({.id = first + i, .name = fmt::format("space{}", i)});
    for (uint64_t key = 0; key < 300; ++key)
      batch.Put(KeyOf(key), std::string(100, 'v'), first + i);
    Check(store.Write({}, &batch).status());
  }
  Check(store.Flush());
  Check(store.Compact("", "", first));
  return *std::move(opened);
}

void Observe(benchmark::State& state) {
  const std::string directory = absl::GetFlag(FLAGS_dir) + ".observe";
  std::filesystem::remove_all(directory);
  const std::unique_ptr<StorageEngine> store = OpenScattered(directory);
  uint64_t number = 0;
  for (auto iteration : state) {
    state.PauseTiming();
    Check(store->Put(KeyOf(number++), "v"));
    Check(store->Flush());
    state.ResumeTiming();
    benchmark::DoNotOptimize(store->Observe());
  }
  state.counters["segments"] = static_cast<double>(Statistic(*store, "segments"));
  state.counters["namespaces"] = static_cast<double>(Statistic(*store, "namespaces"));
  Check(store->Close());
  std::filesystem::remove_all(directory);
}

int Main(int argc, char** argv) {
  HelpIfAsked(argc, argv, "engine/budget_benchmark.cc",
              "measures the engine's own budgets on one large store.",
              {{"Rows (--benchmark_filter):",
                {{"observe", "what a scrape of the metrics asks of many segments and namespaces"},
                 {"open", "opening after a clean stop"},
                 {"hits", "gets of keys that exist: reads a get, memory of the tables a key"},
                 {"misses", "gets of keys that don't"}}}});
  benchmark::Initialize(&argc, argv);
  absl::ParseCommandLine(argc, argv);
  std::filesystem::remove_all(absl::GetFlag(FLAGS_dir));
  benchmark::RegisterBenchmark("observe", Observe)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(50)
      ->UseRealTime();
  if (absl::GetFlag(FLAGS_keys) == 0) {
    benchmark::RunSpecifiedBenchmarks();
    return 0;
  }
  Fill();
  benchmark::RegisterBenchmark("open", OpenStore)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(5)
      ->UseRealTime();
  benchmark::RegisterBenchmark("hits", Get, 0)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseRealTime();
  benchmark::RegisterBenchmark("misses", Get, 1)
      ->Unit(benchmark::kMillisecond)
      ->Iterations(1)
      ->UseRealTime();
  benchmark::RunSpecifiedBenchmarks();
  std::filesystem::remove_all(absl::GetFlag(FLAGS_dir));
  return 0;
}

}  // namespace
}  // namespace varve::bench

int main(int argc, char** argv) { return varve::bench::Main(argc, argv); }
