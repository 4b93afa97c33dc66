#include <fmt/format.h>
#include <malloc.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 100;
constexpr double kMostKeys = 1e8;
// The tables take less, by docs/formats.md.
constexpr uint64_t kTableBytesPerKey = 12;
constexpr uint64_t kWarmingGets = 200'000;
constexpr uint64_t kGets = 1'000'000;
constexpr double kMergingSeconds = 20;

// One store of many keys, and the points that are found out about it.
class LargeStore {
 public:
  LargeStore(std::string directory, uint64_t keys)
      : directory_(std::move(directory)),
        keys_(keys),
        live_(static_cast<double>(keys * (kKeySize + kValueSize))),
        series_(fmt::format("{:g} million keys of 100 B", static_cast<double>(keys) / 1e6)) {
    options_.sync = Durability::kNone;
    options_.block_cache_size = 0;
    options_.offset_table_cache_size = (uint64_t{64} << 20) + keys * kTableBytesPerKey;
  }

  std::vector<Point> Run() {
    Fill();
    Open();
    ReadAtRandom();
    ReadWhileMerging();
    CheckOk(store_->Close());
    return std::move(points_);
  }

 private:
  void Add(const std::string& panel, const std::string& unit, const std::string& what, double y) {
    points_.push_back({"Large: " + panel + " | | " + unit, series_, what, 0, y});
  }

  // Each key once, in steps of a stride that meets all: an order that needs no memory.
  void Fill() {
    constexpr size_t kBatch = 100;
    store_ = OpenStore(directory_, options_);
    uint64_t stride = keys_ / 2 + 1'234'567;
    while (std::gcd(stride, keys_) != 1) ++stride;
    const uint64_t written = ProcessUse::Now().disk_written;
    const Clock::time_point begin = Clock::now();
    Key key;
    Value value(kValueSize);
    WriteBatch batch;
    for (uint64_t i = 0, number = 0; i < keys_; ++i, number = (number + stride) % keys_) {
      batch.Put(key.Present(number), value.Of(number));
      if (batch.size() < kBatch && i + 1 < keys_) continue;
      CheckOk(store_->Write(WriteOptions(), &batch).status());
      batch.Clear();
    }
    Add("time", "seconds", "fill", SecondsSince(begin));
    CheckOk(store_->Flush());
    WaitUntilIdle(kRestSeconds);
    Add("time", "seconds", "fill, until all merges ended", SecondsSince(begin));
    CheckOk(store_->Close());
    store_.reset();
    DropFromPageCache(directory_);
    const auto bytes = static_cast<double>(ProcessUse::Now().disk_written - written);
    Add("bytes", "bytes for each live byte", "written", bytes / live_);
    Add("bytes", "bytes for each live byte", "on disk",
        static_cast<double>(BytesOnDisk(directory_)) / live_);
  }

  // With none of its files in memory, until it answered a get.
  void Open() {
    malloc_trim(0);  // so that what the fill had doesn't count
    const Clock::time_point begin = Clock::now();
    store_ = OpenStore(directory_, options_);
    Random random(1);
    Get(&random);
    Add("time", "seconds", "open", SecondsSince(begin));
  }

  void Get(Random* random) {
    const uint64_t number = random->Below(keys_);
    const auto result = store_->Get(ReadOptions(), key_.Present(number), &value_);
    CheckOk(result.status());
    if (!result->found || Value::Number(value_) != number) Fail("a get gave a wrong answer");
  }

  void ReadAtRandom() {
    Random random(2);
    for (uint64_t i = 0; i < kWarmingGets; ++i) Get(&random);  // until the tables are in memory
    const auto reads = [&] {
      return Statistic(*store_, "record_reads") + Statistic(*store_, "table_page_reads");
    };
    const uint64_t before = reads();
    Latencies latencies(1);
    latencies.Start();
    const Clock::time_point begin = Clock::now();
    for (uint64_t i = 0; i < kGets; ++i) latencies.Time([&] { Get(&random); });
    const double rate = static_cast<double>(kGets) / SecondsSince(begin);
    Add("random gets", "gets a second", "1 thread", rate);
    // Calls, which the kernel answers from its cache where it has the page: no cgroup limits it.
    Add("reads of files of a random get", "calls", "for records and table pages",
        static_cast<double>(reads() - before) / static_cast<double>(kGets));
    AddLatencies("at rest", latencies.histogram());
    const auto keys = static_cast<double>(keys_);
    Add("memory of a key", "bytes", "resident, of the process",
        static_cast<double>(ResidentBytes("self")) / keys);
    Add("memory of a key", "bytes", "tables",
        static_cast<double>(Statistic(*store_, "offset_table_cache_bytes")) / keys);
  }

  void AddLatencies(const std::string& when, const Histogram& histogram) {
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}}) {
      Add("time of a random get, " + when, "µs", name, histogram.Percentile(share) * 1e-3);
    }
  }

  // A writer overwrites as fast as it can, so that flushes and merges never end.
  void ReadWhileMerging() {
    std::atomic<bool> ended = false;
    uint64_t puts = 0;
    std::thread writer([&] {
      Random random(3);
      Key key;
      Value value(kValueSize);
      for (; !ended; ++puts) {
        const uint64_t number = random.Below(keys_);
        CheckOk(store_->Put(key.Present(number), value.Of(number)));
      }
    });
    const uint64_t merged = Statistic(*store_, "compactions");
    Random random(4);
    Latencies latencies(1);
    latencies.Start();
    const Clock::time_point begin = Clock::now();
    while (SecondsSince(begin) < kMergingSeconds) latencies.Time([&] { Get(&random); });
    const double seconds = SecondsSince(begin);
    ended = true;
    writer.join();
    AddLatencies("while merges run", latencies.histogram());
    Add("meanwhile", "a second", "puts", static_cast<double>(puts) / seconds);
    Add("meanwhile", "a second", "merges",
        static_cast<double>(Statistic(*store_, "compactions") - merged) / seconds);
  }

  const std::string directory_;
  const uint64_t keys_;
  const double live_;  // bytes
  const std::string series_;
  EngineOptions options_;
  std::unique_ptr<StorageEngine> store_;
  Key key_;
  std::string value_;
  std::vector<Point> points_;
};

}  // namespace

std::vector<Point> LargeExperiment(const ExperimentOptions& options) {
  const uint64_t keys =
      options.keys > 0
          ? options.keys
          : std::max<uint64_t>(10'000, static_cast<uint64_t>(kMostKeys * options.scale));
  return LargeStore(options.directory + "/large", keys).Run();
}

}  // namespace varve::bench
