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

// One store whose values are compressed by one method, and the points that are found out about it.
class CompressedStore {
 public:
  CompressedStore(const Method& method, std::string directory, uint64_t entries,
                  std::vector<Point>* points)
      : method_(method), directory_(std::move(directory)), entries_(entries), points_(points) {
    options_.sync = Durability::kNone;
    options_.compression = method.compression;
  }

  void Run() {
    MakeEmptyDirectory(directory_);
    store_ = OpenStore(directory_, options_);
    Fill();
    Merge();
    GetAtRandom("from the files", 0);
    GetAtRandom("from the block cache", 2 * plain_);
  }

 private:
  void Add(const std::string& panel, const std::string& unit, double y) {
    points_->push_back(
        {"Compression of JSON: " + panel + " | | " + unit, "Varve", method_.name, 0, y});
  }

  void Fill() {
    const Clock::time_point begin = Clock::now();
    const double cpu = CpuSeconds();
    for (const uint32_t number : Shuffled(entries_)) {
      const std::string value = Json(number);
      plain_ += kKeySize + value.size();
      CheckOk(store_->Put(key_.Present(number), value));
    }
    const auto count = static_cast<double>(entries_);
    Add("a fill", "puts a second", count / SecondsSince(begin));
    CheckOk(store_->Flush());
    WaitUntilIdle(kRestSeconds);
    Add("a fill with its merges", "µs of processor time a put", (CpuSeconds() - cpu) * 1e6 / count);
  }

  // Merges all into one run, and closes the store.
  void Merge() {
    const Clock::time_point begin = Clock::now();
    CheckOk(store_->Compact("", ""));
    const auto plain = static_cast<double>(plain_);
    Add("a merge of all", "MB of plain entries a second", plain / 1e6 / SecondsSince(begin));
    WaitUntilIdle(kRestSeconds);
    Close();
    Add("on disk", "bytes for each plain byte",
        static_cast<double>(BytesOnDisk(directory_)) / plain);
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
