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
  std::string text = fmt::format(R"({{"id":{:012},"name":"customer {:x}","city":"{}",)"
                                 R"("active":{},"balance":{}.{:02},"orders":[)",
                                 number, random.Below(UINT32_MAX), kCities[random.Below(6)],
                                 random.Below(2) == 0, random.Below(100'000), random.Below(100));
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

// JSON of 4 KiB, which is kept apart from its key.
std::string LargeJson(uint64_t number) {
  std::string text;
  for (uint64_t part = 0; text.size() < 4096; ++part) text += Json(number * 64 + part);
  return text.substr(0, 4096);
}

std::string RandomBytes(uint64_t number) {
  Random random(number + 1);
  std::string bytes(500, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Below(256));
  return bytes;
}

// Stores whose values are compressed by one method, and the points that are found out about them.
class CompressedStore {
 public:
  // The engine gives back the log's spare files when it has rested for two seconds.
  static constexpr double kRestBeforeBytes = 4;
  using ValueOf = std::string (*)(uint64_t number);

  CompressedStore(const Method& method, std::string directory, uint64_t entries,
                  std::vector<Point>* points)
      : method_(method), directory_(std::move(directory)), entries_(entries), points_(points) {
    options_.sync = Durability::kNone;
  }

  void Run() {
    MergePlain();
    options_ = {.sync = Durability::kNone, .compression = method_.compression};
    MeasureFill("a fill", entries_, Json);
    CheckOk(store_->Compact("", ""));
    AddBytesOnDisk("on disk");
    Close();
    GetAtRandom("from the files", 0);
    GetAtRandom("from the block cache", 2 * plain_);
    Scan();
    MeasureFill("a fill with 4 KiB values", entries_ / 10, LargeJson);
    AddBytesOnDisk("on disk, 4 KiB values");
    Close();
    Fill(entries_ / 10, RandomBytes);
    CheckOk(store_->Compact("", ""));
    AddBytesOnDisk("on disk, random bytes");
    Close();
  }

 private:
  void Add(const std::string& panel, const std::string& unit, double y) {
    points_->push_back(
        {"Compression of JSON: " + panel + " | | " + unit, "Varve", method_.name, 0, y});
  }

  void AddBytesOnDisk(const std::string& panel) {
    WaitUntilIdle(kRestBeforeBytes);
    Add(panel, "bytes for each plain byte",
        static_cast<double>(BytesOnDisk(directory_)) / static_cast<double>(plain_));
  }

  // Fills an empty store.
  void Fill(uint64_t entries, ValueOf value_of) {
    MakeEmptyDirectory(directory_);
    store_ = OpenStore(directory_, options_);
    plain_ = 0;
    for (const uint32_t number : Shuffled(entries)) {
      const std::string value = value_of(number);
      plain_ += kKeySize + value.size();
      CheckOk(store_->Put(key_.Present(number), value));
    }
  }

  void MeasureFill(const std::string& panel, uint64_t entries, ValueOf value_of) {
    const Clock::time_point begin = Clock::now();
    const double cpu = CpuSeconds();
    Fill(entries, value_of);
    const auto count = static_cast<double>(entries);
    Add(panel, "puts a second", count / SecondsSince(begin));
    CheckOk(store_->Flush());
    WaitUntilIdle(kRestSeconds);
    Add(panel + " and its merges", "µs of processor time a put",
        (CpuSeconds() - cpu) * 1e6 / count);
  }

  // Merges all of a store that holds plain values alone, and then once more.
  void MergePlain() {
    options_.runs_per_level = 1000;  // so that the fill merges nothing
    Fill(entries_, Json);
    CheckOk(store_->Flush());
    Close();
    options_.compression = method_.compression;
    store_ = OpenStore(directory_, options_);
    Merge("a merge of plain values");
    Merge("a merge of what was merged before");
    Close();
  }

  void Merge(const std::string& panel) {
    const double megabytes = static_cast<double>(plain_) * 1e-6;
    const Clock::time_point begin = Clock::now();
    const double cpu = CpuSeconds();
    CheckOk(store_->Compact("", ""));
    Add(panel, "MB of plain entries a second", megabytes / SecondsSince(begin));
    Add(panel, "ms of processor time a MB", (CpuSeconds() - cpu) * 1e3 / megabytes);
  }

  void GetAtRandom(const std::string& where, size_t block_cache) {
    options_.block_cache_size = block_cache;
    store_ = OpenStore(directory_, options_);
    Random random(1);
    for (uint64_t i = 0; i < 2 * entries_; ++i) Get(&random);  // fills the caches
    Latencies latencies(1);
    latencies.Start();
    for (uint64_t i = 0; i < entries_; ++i) latencies.Time([&] { Get(&random); });
    for (const auto& [name, share] : {std::pair{"p50", 0.5}, {"p99", 0.99}}) {
      Add(fmt::format("a get {}, {}", where, name), "µs",
          latencies.histogram().Percentile(share) * 1e-3);
    }
    Close();
  }

  void Get(Random* random) {
    const uint64_t number = random->Below(entries_);
    const auto result = store_->Get(ReadOptions(), key_.Present(number), &value_);
    CheckOk(result.status());
    if (!result->found || !value_.starts_with(fmt::format(R"({{"id":{:012},)", number)))
      Fail("a get gave a wrong answer");
  }

  // Walks through all entries, the second time of two.
  void Scan() {
    store_ = OpenStore(directory_, options_);
    double seconds = 0;
    for (int pass = 0; pass < 2; ++pass) {
      const Clock::time_point begin = Clock::now();
      const auto iterator = store_->NewIterator(ReadOptions(), "", "", nullptr);
      uint64_t entries = 0, bytes = 0;
      for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++entries)
        bytes += iterator->key().size() + iterator->value().size();
      CheckOk(iterator->status());
      if (entries != entries_ || bytes != plain_) Fail("a scan gave wrong entries");
      seconds = SecondsSince(begin);
    }
    Add("a scan", "entries a second", static_cast<double>(entries_) / seconds);
    Close();
  }

  void Close() {
    CheckOk(store_->Close());
    store_.reset();
  }

  const Method method_;
  const std::string directory_;
  const uint64_t entries_;
  std::vector<Point>* const points_;
  EngineOptions options_;
  std::unique_ptr<StorageEngine> store_;
  uint64_t plain_ = 0;  // bytes of keys and values
  Key key_;
  std::string value_;
};

}  // namespace

std::vector<Point> CompressionExperiment(const ExperimentOptions& options) {
  const auto entries = std::max<uint64_t>(1000, static_cast<uint64_t>(5e5 * options.scale));
  std::vector<Point> points;
  for (const Method& method : {Method{"none", {}}, Method{"lz4", {CompressionMethod::kLz4, 0}},
                               Method{"zstd 1", {CompressionMethod::kZstd, 1}},
                               Method{"zstd 3", {CompressionMethod::kZstd, kDefaultZstdLevel}}}) {
    CompressedStore(method, options.directory + "/compression", entries, &points).Run();
  }
  return points;
}

}  // namespace varve::bench
