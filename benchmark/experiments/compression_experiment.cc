#include <fmt/format.h>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

// A value such as applications store: JSON of 200 to 800 bytes, whose names repeat from value to
// value and whose contents mostly don't. It begins with the number of its entry.
std::string Json(uint64_t number) {
  constexpr const char* kCities[] = {"Aarhus", "Bergen", "Coimbra", "Dresden", "Eindhoven", "Faro"};
  Random random(number + 1);
  std::string text = fmt::format(
      R"({{"id":{:012},"name":"customer {:x}","city":"{}","active":{},"balance":{}.{:02},)"
      R"("orders":[)",
      number, random.Below(UINT32_MAX), kCities[random.Below(6)], random.Below(2) == 0,
      random.Below(100'000), random.Below(100));
  const uint64_t orders = 1 + random.Below(9);
  for (uint64_t i = 0; i < orders; ++i) {
    text += fmt::format(R"({}{{"order":{},"article":"{:08x}","count":{},"state":"delivered"}})",
                        i == 0 ? "" : ",", random.Below(1'000'000), random.Below(UINT32_MAX),
                        1 + random.Below(20));
  }
  return text + "]}";
}

struct Method {
  const char* name;
  Compression compression;
};

// Gets keys at random, first until the caches are full and then with a look at each.
Latencies TimeGets(StorageEngine* store, uint64_t entries) {
  Key key;
  Random random(1);
  std::string value;
  const auto get = [&] {
    const uint64_t number = random.Below(entries);
    const auto result = store->Get(ReadOptions(), key.Present(number), &value);
    CheckOk(result.status());
    if (!result->found || value.find(fmt::format("{:012}", number)) == std::string::npos)
      Fail("a get gave a wrong answer");
  };
  for (uint64_t i = 0; i < 2 * entries; ++i) get();
  Latencies latencies(1);
  latencies.Start();
  for (uint64_t i = 0; i < entries; ++i) latencies.Time(get);
  return latencies;
}

// Fills a store at random, merges it into one run, and gets keys at random, from the files and from
// the block cache.
void Measure(const Method& method, const std::string& directory, uint64_t entries,
             std::vector<Point>* points) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.compression = method.compression;
  const auto add = [&](const std::string& panel, const std::string& unit, double y) {
    points->push_back(
        {"Compression of JSON: " + panel + " | | " + unit, "Varve", method.name, 0, y});
  };
  MakeEmptyDirectory(directory);
  auto store = OpenStore(directory, options);
  Key key;
  uint64_t plain = 0;
  const Clock::time_point begin = Clock::now();
  const double cpu = CpuSeconds();
  for (const uint32_t number : Shuffled(entries)) {
    const std::string value = Json(number);
    plain += kKeySize + value.size();
    CheckOk(store->Put(key.Present(number), value));
  }
  const auto count = static_cast<double>(entries);
  add("a fill", "puts a second", count / SecondsSince(begin));
  CheckOk(store->Flush());
  WaitUntilIdle(kRestSeconds);
  add("a fill with its merges", "µs of processor time a put", (CpuSeconds() - cpu) * 1e6 / count);

  const Clock::time_point before_merge = Clock::now();
  CheckOk(store->Compact("", ""));
  add("a merge of all", "MB of plain entries a second",
      static_cast<double>(plain) / 1e6 / SecondsSince(before_merge));
  WaitUntilIdle(kRestSeconds);
  CheckOk(store->Close());
  store.reset();
  add("on disk", "bytes for each plain byte",
      static_cast<double>(BytesOnDisk(directory)) / static_cast<double>(plain));

  for (const bool from_cache : {false, true}) {
    options.block_cache_size = from_cache ? 2 * plain : 0;
    store = OpenStore(directory, options);
    const Latencies latencies = TimeGets(store.get(), entries);
    const std::string where = from_cache ? "from the block cache" : "from the files";
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}}) {
      add(fmt::format("a get {}, {}", where, name), "µs",
          latencies.histogram().Percentile(share) * 1e-3);
    }
    CheckOk(store->Close());
    store.reset();
  }
}

}  // namespace

std::vector<Point> CompressionExperiment(const ExperimentOptions& options) {
  const auto entries = std::max<uint64_t>(1000, static_cast<uint64_t>(5e5 * options.scale));
  std::vector<Point> points;
  for (const Method& method : {Method{"none", {}}, Method{"lz4", {CompressionMethod::kLz4, 0}},
                               Method{"zstd 1", {CompressionMethod::kZstd, 1}},
                               Method{"zstd 3", {CompressionMethod::kZstd, kDefaultZstdLevel}}}) {
    Measure(method, options.directory + "/compression", entries, &points);
  }
  return points;
}

}  // namespace varve::bench
