#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kValueSize = 4096;
constexpr uint64_t kBatchSize = 50;
constexpr int kReaders = 8;

// The process' resident memory, looked at often while a phase of work runs.
class MemoryWatch {
 public:
  MemoryWatch() : begin_(Clock::now()) {}

  // Runs it and adds what was seen, and operations a second.
  void During(const std::string& phase, uint64_t operations, const std::function<void()>& work,
              std::vector<Point>* points) {
    constexpr auto kStep = std::chrono::milliseconds(50);
    const std::string over_time = "4 KiB values: resident memory over time | seconds | MB";
    const std::string rates = "4 KiB values: operations a second | | operations a second";
    std::atomic<bool> ended = false;
    const auto look = [&] {
      points->push_back({over_time, phase, "", SecondsSince(begin_),
                         static_cast<double>(ResidentBytes("self")) / 1e6});
    };
    std::thread watcher([&] {
      for (; !ended; std::this_thread::sleep_for(kStep)) look();
      look();
    });
    const Clock::time_point from = Clock::now();
    work();
    const double seconds = SecondsSince(from);
    ended = true;
    watcher.join();
    if (operations > 0)
      points->push_back({rates, "Varve", phase, 0, static_cast<double>(operations) / seconds});
  }

 private:
  const Clock::time_point begin_;
};

void GetAtRandom(StorageEngine* store, uint64_t entries, uint64_t gets, uint64_t seed) {
  Random random(seed);
  Key key;
  std::string value;
  for (uint64_t i = 0; i < gets; ++i) {
    const uint64_t number = random.Below(entries);
    const auto result = store->Get(ReadOptions(), key.Present(number), &value);
    CheckOk(result.status());
    if (!result->found || Value::Number(value) != number) Fail("a get gave a wrong answer");
  }
}

std::vector<Point> LargeValues(const ExperimentOptions& options) {
  std::vector<Point> points;
  const auto entries = std::max<uint64_t>(1000, static_cast<uint64_t>(3e5 * options.scale));
  EngineOptions engine;
  engine.sync = Durability::kNone;
  const auto store = OpenStore(options.directory + "/large", engine);
  MemoryWatch watch;
  Key key;
  Value value(kValueSize);
  const std::vector<uint32_t> order = Shuffled(entries);
  watch.During(
      "put", entries,
      [&] {
        for (const uint32_t number : order)
          CheckOk(store->Put(key.Present(number), value.Of(number)));
      },
      &points);
  watch.During(
      "get", entries, [&] { GetAtRandom(store.get(), entries, entries, 1); }, &points);
  watch.During(
      "batches of 50", entries,
      [&] {
        WriteBatch batch;
        for (uint64_t i = 0; i < entries; ++i) {
          batch.Put(key.Present(order[i]), value.Of(order[i]));
          if ((i + 1) % kBatchSize != 0 && i + 1 < entries) continue;
          CheckOk(store->Write(WriteOptions(), &batch).status());
          batch.Clear();
        }
      },
      &points);
  watch.During(
      "get by 8 threads", entries,
      [&] {
        std::vector<std::thread> readers;
        for (int i = 0; i < kReaders; ++i) {
          readers.emplace_back([&, i] {
            GetAtRandom(store.get(), entries, entries / kReaders, 100u + static_cast<unsigned>(i));
          });
        }
        for (std::thread& reader : readers) reader.join();
      },
      &points);
  CheckOk(store->Close());
  return points;
}

// Tables come to memory when they are first asked for.
std::vector<Point> IndexOf(const ExperimentOptions& options, const std::string& series,
                           const std::string& prefix, size_t value_size) {
  std::vector<Point> points;
  const auto most = std::max<uint64_t>(10000, static_cast<uint64_t>(1e7 * options.scale));
  EngineOptions engine;
  engine.sync = Durability::kNone;
  engine.block_cache_size = 0;
  const std::string directory = options.directory + "/index";
  MakeEmptyDirectory(directory);
  const auto store = OpenStore(directory, engine);
  std::string key;
  Key digits;
  Value value(value_size);
  const std::vector<uint32_t> order = Shuffled(most);
  uint64_t filled = 0;
  for (const uint64_t entries : {most / 10, most / 4, most / 2, most}) {
    for (; filled < entries; ++filled) {
      key = prefix;
      key += digits.Present(order[filled]);
      CheckOk(store->Put(key, value.Of(order[filled])));
    }
    CheckOk(store->Flush());
    WaitUntilIdle(kRestSeconds);
    std::string read;
    Random random(1);
    for (int i = 0; i < 20000; ++i) {
      key = prefix;
      key += digits.Present(order[random.Below(entries)]);
      CheckOk(store->Get(ReadOptions(), key, &read).status());
    }
    const auto tables = static_cast<double>(Statistic(*store, "offset_table_cache_bytes"));
    const auto keys = static_cast<double>(entries);
    points.push_back(
        {"Memory of the index | million keys | MB", series, "", keys / 1e6, tables / 1e6});
    points.push_back({"Memory of the index for each key | million keys | bytes", series, "",
                      keys / 1e6, tables / keys});
  }
  CheckOk(store->Close());
  return points;
}

}  // namespace

std::vector<Point> MemoryExperiment(const ExperimentOptions& options) {
  std::vector<Point> points = LargeValues(options);
  const auto add = [&](const std::vector<Point>& more) {
    points.insert(points.end(), more.begin(), more.end());
  };
  add(IndexOf(options, "25-byte keys, 100-byte values", "", 100));
  add(IndexOf(options, "100-byte keys, 8-byte values", std::string(100 - kKeySize, 'k'), 8));
  return points;
}

}  // namespace varve::bench
