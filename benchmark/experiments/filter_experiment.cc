#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <shared_mutex>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;
constexpr size_t kSmallSegment = 1u << 20;
constexpr size_t kLargeSegment = 128u << 20;

struct Residence {
  std::string name;
  size_t tables;
  size_t blocks;
};

EngineOptions OptionsFor(size_t segment_size, const Residence& residence) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.segment_size = segment_size;
  options.offset_table_cache_size = residence.tables;
  options.block_cache_size = residence.blocks;
  return options;
}

void Fill(const std::string& directory, uint64_t entries, const EngineOptions& options) {
  const auto store = OpenStore(directory, options);
  Key key;
  Value value(kValueSize);
  for (const uint32_t number : Shuffled(entries))
    CheckOk(store->Put(key.Present(number), value.Of(number)));
  CheckOk(store->Flush());
  CheckOk(store->Compact("", ""));
  CheckOk(store->Close());
}

// What a get would be without fingerprints: a seek through the fences, by one cursor for all.
// Seconds.
double Seeks(Store* store, uint64_t entries, uint64_t gets, bool hit) {
  const std::unique_ptr<Iterator> iterator = store->NewIterator(ReadOptions(), "", "", nullptr);
  Random random(gets);
  Key key;
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < gets; ++i) {
    const uint64_t number = random.Below(entries);
    const std::string_view wanted = hit ? key.Present(number) : key.Missing(number);
    iterator->Seek(wanted);
    const bool found = iterator->Valid() && iterator->key() == wanted;
    if (found != hit || (hit && Value::Number(iterator->value()) != number))
      Fail("a seek gave a wrong answer");
  }
  CheckOk(iterator->status());
  return SecondsSince(begin);
}

// `around` is called with each get, to be locked or not. Seconds.
template <typename Around>
double Gets(Store* store, uint64_t entries, uint64_t gets, bool hit, const Around& around) {
  Random random(gets);
  Key key;
  std::string value;
  const Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < gets; ++i) {
    const uint64_t number = random.Below(entries);
    around([&] {
      const auto result =
          store->Get(ReadOptions(), hit ? key.Present(number) : key.Missing(number), &value);
      CheckOk(result.status());
      if (result->found != hit || (hit && Value::Number(value) != number))
        Fail("a get gave a wrong answer");
    });
  }
  return SecondsSince(begin);
}

constexpr auto kUnlocked = [](const auto& get) { get(); };

double Reads(const Store& store) {
  return static_cast<double>(Statistic(store, "record_reads") +
                             Statistic(store, "table_page_reads") + Statistic(store, "scan_reads"));
}

void MeasureResidence(const std::string& directory, const std::string& segments,
                      const Residence& residence, uint64_t entries, Store* store,
                      std::vector<Point>* points) {
  const std::string time = "Time of a get | segments, and whether the key exists | µs";
  const std::string reads =
      "Reads of a file in a get | segments, and whether the key exists | reads";
  const uint64_t gets = entries / 2;
  const auto measure = [&](const std::string& category, const auto& read) {
    read(entries);  // fills the caches
    const double before = Reads(*store);
    const double seconds = read(gets);
    points->push_back(
        {time, residence.name, category, 0, seconds * 1e6 / static_cast<double>(gets)});
    points->push_back(
        {reads, residence.name, category, 0, (Reads(*store) - before) / static_cast<double>(gets)});
  };
  for (const bool hit : {true, false}) {
    const std::string category = segments + (hit ? ", hit" : ", miss");
    measure(category, [&](uint64_t count) { return Gets(store, entries, count, hit, kUnlocked); });
    measure(category + ", filter off",
            [&](uint64_t count) { return Seeks(store, entries, count, hit); });
  }
}

// In turns, as the machine is not the same from one second to the next; the median turn counts.
void MeasureLocks(uint64_t entries, Store* store, std::vector<Point>* points) {
  constexpr int kTurns = 9;
  const std::string panel =
      "A lock around each get of a single thread | lock, and whether the key exists | ns a get";
  const uint64_t gets = entries / 4;
  std::mutex mutex;
  std::shared_mutex shared_mutex;
  for (const bool hit : {true, false}) {
    std::map<std::string, std::vector<double>> turns;
    for (int turn = 0; turn < kTurns; ++turn) {
      turns["none"].push_back(Gets(store, entries, gets, hit, kUnlocked));
      turns["mutex"].push_back(Gets(store, entries, gets, hit, [&](const auto& get) {
        const std::lock_guard lock(mutex);
        get();
      }));
      turns["shared_mutex, shared"].push_back(Gets(store, entries, gets, hit, [&](const auto& get) {
        const std::shared_lock lock(shared_mutex);
        get();
      }));
    }
    for (const char* lock : {"none", "mutex", "shared_mutex, shared"}) {
      const double seconds = Median(turns[lock]);
      points->push_back(
          {panel, hit ? "hit" : "miss", lock, 0, seconds * 1e9 / static_cast<double>(gets)});
    }
  }
}

}  // namespace

std::vector<Point> FilterExperiment(const ExperimentOptions& options) {
  const auto entries = std::max<uint64_t>(1000, static_cast<uint64_t>(1e6 * options.scale));
  const std::vector<Residence> residences = {
      {"tables and blocks in memory", 512u << 20, 512u << 20},
      {"tables in memory", 512u << 20, 0},
      {"nothing in memory", 0, 0}};
  std::vector<Point> points;
  for (const size_t segment_size : {kSmallSegment, kLargeSegment}) {
    const std::string segments = fmt::format("{} MiB", segment_size >> 20);
    const std::string directory = options.directory + "/" + std::to_string(segment_size);
    Fill(directory, entries, OptionsFor(segment_size, residences[0]));
    for (const Residence& residence : residences) {
      const auto store = OpenStore(directory, OptionsFor(segment_size, residence));
      MeasureResidence(directory, segments, residence, entries, store.get(), &points);
      if (segment_size == kLargeSegment && residence.blocks > 0)
        MeasureLocks(entries, store.get(), &points);
    }
  }
  return points;
}

}  // namespace varve::bench
