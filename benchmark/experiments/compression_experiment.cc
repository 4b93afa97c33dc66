#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"
#include "varve/compression.h"

namespace varve::bench {
namespace {

constexpr uint64_t kKeys = 400'000;
constexpr uint64_t kLeastKeys = 20'000;
constexpr uint64_t kReads = 400'000;
constexpr size_t kPutsInBatch = 50;
constexpr size_t kRandomSize = 500;
// Values are made before anything is measured.
constexpr size_t kDistinctValues = 20'000;

// JSON of 200 to 800 bytes, as an account of a shop might be, with random parts.
std::string JsonValue(std::mt19937_64* random) {
  static constexpr const char* kWords[] = {"order",   "shipped", "pending", "invoice", "paid",
                                           "express", "gift",    "return",  "discount"};
  const auto below = [random](uint64_t end) { return (*random)() % end; };
  std::string json = fmt::format(
      R"({{"id":{},"token":"{:016x}","email":"user{}@example.com","city":"City {}","age":{},)"
      R"("active":{},"created_at":"2026-{:02}-{:02}T{:02}:{:02}:00Z","items":[)",
      below(1'000'000), (*random)(), below(1'000'000), below(50), 18 + below(60),
      below(2) == 0 ? "true" : "false", 1 + below(12), 1 + below(28), below(24), below(60));
  const size_t size = 200 + below(600);
  while (json.size() < size) {
    json += fmt::format(R"({{"state":"{}","sku":{},"price":{}.{:02}}},)", kWords[below(9)],
                        below(100'000), below(500), below(100));
  }
  json.back() = ']';
  return json + "}";
}

std::string RandomValue(std::mt19937_64* random) {
  std::string value(kRandomSize, '\0');
  for (char& byte : value) byte = static_cast<char>((*random)());
  return value;
}

std::vector<std::string> ValuesOf(bool json) {
  std::mt19937_64 random(1);
  std::vector<std::string> values;
  for (size_t i = 0; i < kDistinctValues; ++i)
    values.push_back(json ? JsonValue(&random) : RandomValue(&random));
  return values;
}

struct Measured {
  double fill = 0;           // puts a second
  double merge_seconds = 0;  // of processor, for a GB of plain keys and values
  double get = 0;            // gets a second
  double scan = 0;           // entries a second
  double share = 0;          // of the plain bytes that are on disk
};

Measured Measure(const std::string& directory, const Compression& compression, uint64_t keys,
                 const std::vector<std::string>& values) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.compression = compression;
  const auto store = OpenStore(directory, options);
  Measured measured;
  Key key;
  WriteBatch batch;
  uint64_t plain = 0;
  Clock::time_point begin = Clock::now();
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string_view name = key.Present(i * 7919 % keys);
    const std::string& value = values[i % values.size()];
    plain += name.size() + value.size();
    batch.Put(name, value);
    if (batch.size() == kPutsInBatch || i + 1 == keys) CheckOk(store->Write({}, &batch).status());
  }
  measured.fill = static_cast<double>(keys) / SecondsSince(begin);

  CheckOk(store->Flush());
  const double cpu = CpuSeconds();
  CheckOk(store->Compact("", ""));
  measured.merge_seconds = (CpuSeconds() - cpu) / (static_cast<double>(plain) / 1e9);
  measured.share = static_cast<double>(store->EstimateSize(kDefaultNamespace, "", "").bytes) /
                   static_cast<double>(plain);

  std::string value;
  std::mt19937_64 random(2);
  for (int pass = 0; pass < 2; ++pass) {  // the first one fills the cache
    begin = Clock::now();
    for (uint64_t i = 0; i < kReads; ++i) {
      const auto found = store->Get({}, key.Present(random() % keys), &value);
      CheckOk(found.status());
      if (!found->found) Fail("a key is missing");
    }
    measured.get = static_cast<double>(kReads) / SecondsSince(begin);
  }
  begin = Clock::now();
  uint64_t entries = 0, bytes = 0;
  const auto iterator = store->NewIterator({}, "", "", nullptr);
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++entries)
    bytes += iterator->value().size();
  CheckOk(iterator->status());
  if (entries != keys || bytes > plain) Fail("a scan shows other entries than were written");
  measured.scan = static_cast<double>(entries) / SecondsSince(begin);
  CheckOk(store->Close());
  return measured;
}

}  // namespace

std::vector<Point> CompressionExperiment(const ExperimentOptions& options) {
  const auto keys =
      std::max(kLeastKeys, static_cast<uint64_t>(static_cast<double>(kKeys) * options.scale));
  std::vector<Point> points;
  for (const bool json : {true, false}) {
    const std::vector<std::string> values = ValuesOf(json);
    const std::string category = json ? "JSON of 200 to 800 bytes" : "500 random bytes";
    for (const std::string name : {"none", "lz4", "zstd:1", "zstd", "zstd:9"}) {
      const std::string directory =
          fmt::format("{}/{}{}", options.directory, name, json ? "json" : "random");
      const Measured measured = Measure(directory, *ParseCompression(name), keys, values);
      points.push_back({"Bytes on disk | values | per byte of keys and values", name, category, 0,
                        measured.share});
      points.push_back(
          {"Fill in batches of 50 | values | puts/s", name, category, 0, measured.fill});
      points.push_back({"Merge of everything | values | processor seconds for each GB", name,
                        category, 0, measured.merge_seconds});
      points.push_back({"Get | values | gets/s", name, category, 0, measured.get});
      points.push_back({"Scan | values | entries/s", name, category, 0, measured.scan});
    }
  }
  return points;
}

}  // namespace varve::bench
