#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "benchmark/experiments/apart.h"
#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/workload.h"
#include "benchmark/zipfian.h"

namespace varve::bench {
namespace {

constexpr uint64_t kRatio = 4;  // of data to memory
constexpr double kWarmingSeconds = 5;
constexpr double kSeconds = 5;

// How the store reads its files, and which share of the memory is its block cache. A third is the
// most: the offset tables, two write buffers, the process and the kernel's pages share the rest.
struct Reading {
  const char* title;
  bool mapped;
  uint64_t cache_share;
};

constexpr Reading kReadings[] = {{"mapped, block cache a quarter of the memory", true, 4},
                                 {"not mapped, block cache a quarter of the memory", false, 4},
                                 {"not mapped, block cache a third of the memory", false, 3}};

enum class Choice { kZipfian, kHotSet, kUniform };

constexpr std::pair<Choice, const char*> kChoices[] = {
    {Choice::kZipfian, "zipfian"},
    {Choice::kHotSet, "95 % of a hot set"},
    {Choice::kUniform, "uniform"},
};

// One measurement, as the parent tells it to the process that does it.
struct Part {
  size_t value_size = 0;
  uint64_t entries = 0;
  size_t reading = 0;  // of kReadings
  size_t choice = 0;   // of kChoices
  std::string directory;

  uint64_t memory() const { return entries * (kKeySize + value_size) / kRatio; }

  std::string Encode() const {
    return fmt::format("{}|{}|{}|{}|{}", value_size, entries, reading, choice, directory);
  }
  static Part Decode(const std::string& text) {
    const std::vector<std::string> words = absl::StrSplit(text, '|');
    Part part;
    if (words.size() != 5 || !absl::SimpleAtoi(words[0], &part.value_size) ||
        !absl::SimpleAtoi(words[1], &part.entries) || !absl::SimpleAtoi(words[2], &part.reading) ||
        !absl::SimpleAtoi(words[3], &part.choice) || part.reading >= std::size(kReadings) ||
        part.choice >= std::size(kChoices)) {
      Fail("--apart names nothing: " + text);
    }
    part.directory = words[4];
    return part;
  }
};

size_t WriteBuffer(uint64_t memory) {
  return std::clamp<size_t>(memory / 16, size_t{1} << 20, size_t{64} << 20);
}

EngineOptions OptionsFor(const Part& part) {
  const Reading& reading = kReadings[part.reading];
  EngineOptions options;
  options.sync = Durability::kNone;
  options.write_buffer_size = WriteBuffer(part.memory());
  options.block_cache_size = part.memory() / reading.cache_share;
  // All but a write buffer that is written and one that is flushed.
  if (reading.mapped) options.mapped_read_budget = part.memory() - 2 * options.write_buffer_size;
  return options;
}

// Draws keys. The frequent ones are spread over all keys, but for the hot set: its keys follow each
// other, so that its blocks take half of the smaller block cache.
class Keys {
 public:
  explicit Keys(const Part& part)
      : choice_(kChoices[part.choice].first),
        entries_(part.entries),
        hot_(std::max<uint64_t>(1, part.entries / kRatio / 8)) {
    if (choice_ == Choice::kZipfian) zipfian_.emplace(part.entries);
  }

  uint64_t Draw() {
    constexpr uint64_t kHotPercent = 95;
    if (zipfian_) return Spread(zipfian_->Draw(&random_), entries_);
    const bool hot = choice_ == Choice::kHotSet && random_.Below(100) < kHotPercent;
    return random_.Below(hot ? hot_ : entries_);
  }

 private:
  const Choice choice_;
  const uint64_t entries_;
  const uint64_t hot_;
  std::optional<Zipfian> zipfian_;
  Random random_{1};
};

// Gets until the time is over, and returns how many there were.
uint64_t GetFor(double seconds, Keys* keys, Store* store, Latencies* latencies) {
  Key key;
  std::string value;
  uint64_t gets = 0;
  const Clock::time_point begin = Clock::now();
  latencies->Start();
  for (; SecondsSince(begin) < seconds; ++gets) {
    const uint64_t number = keys->Draw();
    latencies->Time([&] {
      const auto result = store->Get(ReadOptions(), key.Present(number), &value);
      CheckOk(result.status());
      if (!result->found || Value::Number(value) != number) Fail("a get gave a wrong answer");
    });
  }
  return gets;
}

void Fill(const Part& part) {
  EngineOptions options;
  options.sync = Durability::kNone;
  const auto store = OpenStore(part.directory, options);
  Key key;
  Value value(part.value_size);
  for (const uint32_t number : Shuffled(part.entries))
    CheckOk(store->Put(key.Present(number), value.Of(number)));
  CheckOk(store->Flush());
  WaitUntilIdle(kRestSeconds);
  CheckOk(store->Close());
}

// Has a process in a memory cgroup do the part. Returns false if there can be no cgroup.
bool Measure(const Part& part, std::vector<Point>* points) {
  DropFromPageCache(part.directory);
  const std::optional<std::vector<Figure>> figures =
      MeasureApart("zipf_beyond", part.Encode(), part.memory());
  if (!figures) return false;
  for (const Figure& figure : *figures) {
    points->push_back({fmt::format("Gets of {} B, data {} times the memory: {} | | {}",
                                   part.value_size, kRatio, figure.name, figure.name),
                       kReadings[part.reading].title, kChoices[part.choice].second, 0, figure.y});
  }
  return true;
}

}  // namespace

void ZipfBeyondPart(const std::string& what) {
  const Part part = Part::Decode(what);
  const auto store = OpenStore(part.directory, OptionsFor(part));
  Keys keys(part);
  Latencies warming(1), latencies(1);
  GetFor(kWarmingSeconds, &keys, store.get(), &warming);
  const uint64_t reads = DiskReads(part.directory);
  const uint64_t bytes = ProcessUse::Now().disk_read;
  const double cpu = CpuSeconds();
  const Clock::time_point begin = Clock::now();
  const auto gets = static_cast<double>(GetFor(kSeconds, &keys, store.get(), &latencies));
  const double seconds = SecondsSince(begin);
  PrintFigure({"gets a second", gets / seconds});
  PrintFigure({"p50, µs", latencies.histogram().Percentile(0.5) * 1e-3});
  PrintFigure({"p99, µs", latencies.histogram().Percentile(0.99) * 1e-3});
  PrintFigure({"CPU µs a get", (CpuSeconds() - cpu) * 1e6 / gets});
  PrintFigure(
      {"reads of the disk a get", static_cast<double>(DiskReads(part.directory) - reads) / gets});
  PrintFigure(
      {"bytes of the disk a get", static_cast<double>(ProcessUse::Now().disk_read - bytes) / gets});
  CheckOk(store->Close());
}

std::vector<Point> ZipfBeyondExperiment(const ExperimentOptions& options) {
  std::vector<Point> points;
  for (const size_t value_size : {size_t{100}, size_t{1000}}) {
    Part part{.value_size = value_size,
              .entries = std::max<uint64_t>(
                  10'000, static_cast<uint64_t>((value_size == 100 ? 4e6 : 5e5) * options.scale)),
              .directory = fmt::format("{}/zipf_beyond{}", options.directory, value_size)};
    Fill(part);
    for (part.choice = 0; part.choice < std::size(kChoices); ++part.choice) {
      for (part.reading = 0; part.reading < std::size(kReadings); ++part.reading) {
        if (Measure(part, &points)) continue;
        return {};
      }
    }
    RemoveDirectory(part.directory);
  }
  return points;
}

}  // namespace varve::bench
