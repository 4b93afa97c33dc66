#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "benchmark/experiments/experiments.h"
#include "benchmark/process.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"
#include "tools/archive/archive_place.h"
#include "tools/archive/archive_restore.h"
#include "tools/backup/backup_writer.h"
#include "varve/checkpoint.h"

namespace varve::bench {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kKeys = 5'000'000;
constexpr double kBytes = 1.5e9;  // of keys and values
constexpr size_t kFileBytes = size_t{16} << 20;
constexpr size_t kNoiseBytes = size_t{64} << 20;

// Text of which each byte holds half a byte, so that it compresses as usual data does.
std::string Noise() {
  std::mt19937_64 random(1);
  std::string noise(kNoiseBytes, '\0');
  for (char& byte : noise) byte = "0123456789abcdef"[random() % 16];
  return noise;
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Begins an archive with a small base.
std::unique_ptr<ArchivePlace> BeginArchive(const std::string& directory) {
  EngineOptions options;
  options.sync = Durability::kNone;
  const std::unique_ptr<StorageEngine> store = OpenStore(directory + "/store", options);
  CheckOk(store->Put("base", "value"));
  const std::string sealed = directory + "/sealed";
  const absl::StatusOr<Checkpoint> checkpoint = CreateCheckpoint(store.get(), sealed);
  CheckOk(checkpoint.status());
  auto place = ArchivePlace::Open(PosixFileSystem(), directory + "/archive");
  CheckOk(place.status());
  BackupWriter writer((*place)->bases());
  CheckOk(writer.Begin({.store_id = checkpoint->store_id,
                        .history_id = checkpoint->history_id,
                        .version = checkpoint->version,
                        .instant_ms = checkpoint->instant_ms,
                        .sealed_ms = checkpoint->instant_ms},
                       /*incremental=*/false));
  for (const CheckpointFile& file : checkpoint->files) {
    const std::string bytes = ReadBytes(fmt::format("{}/{}", sealed, file.name));
    CheckOk(writer.BeginFile(file.name, bytes.size()));
    CheckOk(writer.Append(bytes));
    CheckOk(writer.EndFile());
  }
  CheckOk(writer.Seal().status());
  CheckOk((*place)->BeginChain(writer.description()));
  return *std::move(place);
}

// Adds commits of one SET each to keys at random. Returns the bytes of their keys and values.
double AddChanges(ArchivePlace* place, size_t value_size, double wanted) {
  const std::string noise = Noise();
  Random random(7);
  Key key;
  SequenceNumber version = place->position()->version;
  const uint64_t instant_ms = place->position()->instant_ms;
  double written = 0;
  while (written < wanted) {
    std::vector<Change> commits;
    for (size_t bytes = 0; bytes < kFileBytes; bytes += kKeySize + value_size) {
      Change& commit = commits.emplace_back();
      commit.version = ++version;
      commit.instant_ms = instant_ms + version / 1000;
      const size_t at = random.Below(kNoiseBytes - value_size);
      commit.operations.push_back({.name = "0",
                                   .key = std::string(key.Present(random.Below(kKeys))),
                                   .value = noise.substr(at, value_size)});
    }
    written += static_cast<double>(commits.size() * (kKeySize + value_size));
    CheckOk(place->Append(commits));
  }
  return written;
}

double RestoredMegabytesEachSecond(const std::string& directory, SequenceNumber version,
                                   double bytes) {
  const std::string restored = directory + "/restored";
  const Clock::time_point begin = Clock::now();
  CheckOk(RestoreArchive(PosixFileSystem(), directory + "/archive", restored,
                         {.at_version = version}, /*dry_run=*/false, nullptr)
              .status());
  const double seconds = SecondsSince(begin);
  fs::remove_all(restored);
  return bytes / seconds / 1e6;
}

}  // namespace

std::vector<Point> ArchiveRestoreExperiment(const ExperimentOptions& options) {
  std::vector<Point> points;
  for (const size_t size : {size_t{100}, size_t{1000}}) {
    const std::string directory = fmt::format("{}/{}", options.directory, size);
    fs::create_directories(directory);
    const std::unique_ptr<ArchivePlace> place = BeginArchive(directory);
    const double bytes = AddChanges(place.get(), size, kBytes * options.scale);
    std::vector<double> rates;
    for (int i = 0; i < 3; ++i) {
      rates.push_back(RestoredMegabytesEachSecond(directory, place->position()->version, bytes));
    }
    points.push_back({"Restore of an archive | values | MB of keys and values a second", "restore",
                      fmt::format("{} bytes", size), 0, Median(rates)});
  }
  return points;
}

}  // namespace varve::bench
