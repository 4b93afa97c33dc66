#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "benchmark/experiments/apart.h"
#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;
constexpr double kMostKeys = 1e8;
// What the tables of a key take at most, by docs/formats.md.
constexpr uint64_t kTableBytesPerKey = 12;
// The process, its threads, and the kernel's pages of the reads under way.
constexpr uint64_t kProcessBytes = uint64_t{64} << 20;
// Write buffers, and the kernel's pages of the segments that flushes and merges write.
constexpr uint64_t kMergingBytes = uint64_t{512} << 20;
constexpr uint64_t kWarmingGets = 200'000;
constexpr uint64_t kGets = 300'000;
// The gets beside merges take kMergingSeconds, or longer until the first merge has ended, but at
// most kMostMergingSeconds.
constexpr double kMergingSeconds = 20, kMostMergingSeconds = 300;
constexpr uint64_t kGetsPerLook = 1024;

// One measurement of the filled store, as the parent tells it to the process that does it.
struct Part {
  bool merging = false;
  uint64_t keys = 0;
  std::string directory;

  uint64_t memory() const {
    return keys * kTableBytesPerKey + kProcessBytes + (merging ? kMergingBytes : 0);
  }

  std::string Encode() const {
    return fmt::format("{}|{}|{}", merging ? "merging" : "at_rest", keys, directory);
  }
  static Part Decode(const std::string& text) {
    const std::vector<std::string> words = absl::StrSplit(text, '|');
    Part part;
    if (words.size() != 3 || !absl::SimpleAtoi(words[1], &part.keys))
      Fail("--apart names nothing: " + text);
    part.merging = words[0] == "merging";
    part.directory = words[2];
    return part;
  }
};

EngineOptions OptionsFor(uint64_t keys) {
  EngineOptions options;
  options.sync = Durability::kNone;
  options.block_cache_size = 0;
  options.offset_table_cache_size = keys * kTableBytesPerKey + kProcessBytes;
  return options;
}

// The filled store, in a process that does one part.
class LargeStore {
 public:
  explicit LargeStore(const Part& part) : part_(part) {}

  void Run() {
    Open();
    Random random(2);
    for (uint64_t i = 0; i < kWarmingGets; ++i) Get(&random);  // until the tables are in memory
    part_.merging ? ReadWhileMerging() : ReadAtRandom();
    CheckOk(store_->Close());
  }

 private:
  // With none of its files in memory, until it answered a get.
  void Open() {
    const Clock::time_point begin = Clock::now();
    store_ = OpenStore(part_.directory, OptionsFor(part_.keys));
    Random random(1);
    Get(&random);
    if (!part_.merging) PrintFigure({"seconds to open", SecondsSince(begin)});
  }

  void Get(Random* random) {
    const uint64_t number = random->Below(part_.keys);
    const auto result = store_->Get(ReadOptions(), key_.Present(number), &value_);
    CheckOk(result.status());
    if (!result->found || Value::Number(value_) != number) Fail("a get gave a wrong answer");
  }

  void ReadAtRandom() {
    const auto calls = [&] {
      return Statistic(*store_, "record_reads") + Statistic(*store_, "table_page_reads");
    };
    Random random(3);
    const uint64_t calls_before = calls();
    const uint64_t reads_before = DiskReads(part_.directory);
    Latencies latencies(1);
    latencies.Start();
    const Clock::time_point begin = Clock::now();
    for (uint64_t i = 0; i < kGets; ++i) latencies.Time([&] { Get(&random); });
    const auto gets = static_cast<double>(kGets);
    PrintFigure({"gets a second, 1 thread", gets / SecondsSince(begin)});
    PrintFigure({"reads of files a get", static_cast<double>(calls() - calls_before) / gets});
    PrintFigure({"reads of the disk a get, all processes",
                 static_cast<double>(DiskReads(part_.directory) - reads_before) / gets});
    PrintLatencies("a get at rest", latencies.histogram());
    const auto keys = static_cast<double>(part_.keys);
    PrintFigure({"resident bytes a key, of the process",
                 static_cast<double>(ResidentBytes("self")) / keys});
    PrintFigure({"bytes a key, tables",
                 static_cast<double>(Statistic(*store_, "offset_table_cache_bytes")) / keys});
  }

  static void PrintLatencies(const std::string& of, const Histogram& histogram) {
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}})
      PrintFigure({fmt::format("{}, {}, µs", of, name), histogram.Percentile(share) * 1e-3});
  }

  // A writer overwrites as fast as it can, so that flushes and merges never end.
  void ReadWhileMerging() {
    std::atomic<bool> ended = false;
    uint64_t puts = 0;
    std::thread writer([&] {
      Random random(4);
      Key key;
      Value value(kValueSize);
      for (; !ended; ++puts) {
        const uint64_t number = random.Below(part_.keys);
        CheckOk(store_->Put(key.Present(number), value.Of(number)));
      }
    });
    const uint64_t before = Statistic(*store_, "compactions");
    const auto merged = [&] { return Statistic(*store_, "compactions") - before; };
    Random random(5);
    Latencies latencies(1);
    latencies.Start();
    const Clock::time_point begin = Clock::now();
    while (SecondsSince(begin) < kMergingSeconds ||
           (merged() == 0 && SecondsSince(begin) < kMostMergingSeconds)) {
      for (uint64_t i = 0; i < kGetsPerLook; ++i) latencies.Time([&] { Get(&random); });
    }
    const double seconds = SecondsSince(begin);
    ended = true;
    writer.join();
    PrintLatencies("a get while merges run", latencies.histogram());
    PrintFigure({"puts a second beside them", static_cast<double>(puts) / seconds});
    PrintFigure({"seconds of gets and puts", seconds});
    PrintFigure({"merges that ended meanwhile", static_cast<double>(merged())});
  }

  const Part part_;
  std::unique_ptr<StorageEngine> store_;
  Key key_;
  std::string value_;
};

// Puts each key once, in steps of a stride that meets all: an order that needs no memory. Returns
// what it took.
std::vector<Figure> Fill(const std::string& directory, uint64_t keys) {
  constexpr size_t kBatch = 100;
  const auto live = static_cast<double>(keys * (kKeySize + kValueSize));
  std::vector<Figure> figures;
  std::unique_ptr<StorageEngine> store = OpenStore(directory, OptionsFor(keys));
  uint64_t stride = keys / 2 + 1'234'567;
  while (std::gcd(stride, keys) != 1) ++stride;
  const uint64_t written = ProcessUse::Now().disk_written;
  const Clock::time_point begin = Clock::now();
  Key key;
  Value value(kValueSize);
  WriteBatch batch;
  for (uint64_t i = 0, number = 0; i < keys; ++i, number = (number + stride) % keys) {
    batch.Put(key.Present(number), value.Of(number));
    if (batch.size() < kBatch && i + 1 < keys) continue;
    CheckOk(store->Write(WriteOptions(), &batch).status());
    batch.Clear();
  }
  figures.push_back({"seconds to fill", SecondsSince(begin)});
  CheckOk(store->Flush());
  WaitUntilIdle(kRestSeconds);
  figures.push_back({"seconds to fill, until all merges ended", SecondsSince(begin)});
  CheckOk(store->Close());
  store.reset();  // which removes what is out of use
  const auto bytes = static_cast<double>(ProcessUse::Now().disk_written - written);
  figures.push_back({"bytes written for each live byte", bytes / live});
  figures.push_back(
      {"bytes on disk for each live byte", static_cast<double>(BytesOnDisk(directory)) / live});
  return figures;
}

}  // namespace

void LargePart(const std::string& what) { LargeStore(Part::Decode(what)).Run(); }

std::vector<Point> LargeExperiment(const ExperimentOptions& options) {
  Part part{
      .keys = options.keys > 0
                  ? options.keys
                  : std::max<uint64_t>(10'000, static_cast<uint64_t>(kMostKeys * options.scale)),
      .directory = options.directory + "/large"};
  const std::string series =
      fmt::format("{:g} million keys of 100 B", static_cast<double>(part.keys) / 1e6);
  std::vector<Point> points;
  const auto add = [&](const std::vector<Figure>& figures) {
    for (const Figure& figure : figures)
      points.push_back(
          {fmt::format("Large: {0} | | {0}", figure.name), series, figure.name, 0, figure.y});
  };
  add(Fill(part.directory, part.keys));
  for (part.merging = false;; part.merging = true) {
    DropFromPageCache(part.directory);
    const std::optional<std::vector<Figure>> figures =
        MeasureApart("large", part.Encode(), part.memory());
    if (figures) add(*figures);
    if (!figures || part.merging) return points;
  }
}

}  // namespace varve::bench
