#include "benchmark/engine/engine_measurements.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "benchmark/engine/engine_work.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"

namespace varve::bench {
namespace {

// That the adapter does what peer.h says, before its figures are believed.
void CheckPeer(const Engine& engine, Peer* peer) {
  const auto expect = [&](bool good, std::string_view what) {
    if (!good) Fail(fmt::format("{} failed its check: {}", engine.title, what));
  };
  const std::unique_ptr<Reader> reader = peer->NewReader();
  std::string value;
  const std::vector<KeyValue> batch = {{"c", "3"}, {"a", "1"}};
  peer->Put("b", "old");
  peer->WriteBatch(batch);
  peer->Put("b", "2");
  peer->Put("d", "");
  peer->Flush();
  peer->Delete("a");
  expect(!reader->Get("a", &value), "a deleted key is gone");
  expect(reader->Get("b", &value) && value == "2", "the last value wins");
  expect(reader->Get("d", &value) && value.empty(), "an empty value is a value");
  const std::vector<std::string_view> keys = {"d", "a", "c"};
  std::vector<const std::string*> values(keys.size());
  reader->MultiGet(keys, values);
  expect(values[0] != nullptr && values[0]->empty() && values[1] == nullptr &&
             values[2] != nullptr && *values[2] == "3",
         "several keys at once");
  expect(reader->Seek("") && reader->key() == "b" && reader->value() == "2", "the first entry");
  expect(reader->Next() && reader->key() == "c" && reader->Next() && !reader->Next(),
         "entries in order to the end");
  peer->Put("cc", "4");
  expect(reader->Seek("ca") && reader->key() == "cc", "a seek sees what was written before it");
  peer->Compact();
  expect(reader->Get("cc", &value) && value == "4" && !reader->Get("a", &value),
         "a compaction changes nothing");
}

void SyncFileSystem(const std::string& directory) {
  const int descriptor = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || syncfs(descriptor) != 0)
    Fail("cannot sync the file system of " + directory);
  close(descriptor);
}

}  // namespace

Figures FiguresOf(const Row& row, const Timing& timing) {
  const auto operations = static_cast<double>(row.operations);
  Figures figures = {{kRate, operations / timing.seconds},
                     {"cpu_us", timing.cpu_seconds * 1e6 / operations}};
  if (timing.latencies.total() > 0) {
    const auto percentile = [&](double share) { return timing.latencies.Percentile(share) * 1e-3; };
    figures["p50_us"] = percentile(0.5);
    figures["p99_us"] = percentile(0.99);
    figures["p999_us"] = percentile(0.999);
    if (row.writes()) figures["p9999_us"] = percentile(0.9999);
  }
  if (timing.writes > 0) figures["writes_per_second"] = timing.writes / timing.seconds;
  return figures;
}

Measurements::Store::~Store() {
  peer.reset();
  RemoveDirectory(directory);
}

std::unique_ptr<Measurements::Store> Measurements::Open(const Engine& engine,
                                                        const std::string& name, bool synced) {
  CheckOnce(engine);
  auto store = std::make_unique<Store>();
  store->directory = fmt::format("{}/{}-{}", settings_.directory, engine.id, name);
  MakeEmptyDirectory(store->directory);
  store->peer =
      engine.open({.dir = store->directory, .synced = synced, .defaults = settings_.defaults});
  return store;
}

void Measurements::CheckOnce(const Engine& engine) {
  if (checked_.insert(engine.id).second) CheckPeer(engine, Open(engine, "check")->peer.get());
}

void Measurements::Settle(const Row& row, Peer* peer) {
  peer->Flush();
  WaitUntilIdle(settings_.rest_seconds);
  SyncFileSystem(settings_.directory);
  ReadThrough(row, peer);
}

Measurements::Store* Measurements::DataSet(const Row& row, const Engine& engine) {
  std::unique_ptr<Store>& store = data_sets_[engine.id];
  // Nothing undoes a compaction.
  if (store != nullptr && store->compacted && !row.compacted) store.reset();
  if (store == nullptr) {
    Row fill = row;
    fill.work = Work::kFillAtRandom;
    store = Open(engine, "data");
    DoWork(fill, store->peer.get());
    Settle(row, store->peer.get());
  }
  if (row.compacted && !store->compacted) {
    store->peer->Compact();
    Settle(row, store->peer.get());
    store->compacted = true;
  }
  return store.get();
}

Figures Measurements::Measure(const Row& row, const Engine& engine) {
  const bool needs_data_sets =
      row.reads_data_set() || row.work == Work::kFillAtRandom || row.work == Work::kFillInBatches;
  if (!needs_data_sets || row.value_size != data_set_value_size_) data_sets_.clear();
  data_set_value_size_ = row.value_size;
  if (row.reads_data_set()) {
    const Figures figures = FiguresOf(row, DoWork(row, DataSet(row, engine)->peer.get()));
    if (row.work == Work::kReadWhileWriting || row.work == Work::kDelete)
      data_sets_.erase(engine.id);
    return figures;
  }
  const bool fills_data_set = row.work == Work::kFillAtRandom;
  if (fills_data_set) data_sets_.erase(engine.id);
  std::unique_ptr<Store> store = Open(engine, fills_data_set ? "data" : "fresh",
                                      row.work == Work::kPutSynced || row.work == Work::kPutAsync);
  const Figures figures = FiguresOf(row, DoWork(row, store->peer.get()));
  if (fills_data_set) {
    Settle(row, store->peer.get());
    data_sets_[engine.id] = std::move(store);
  }
  return figures;
}

std::string Measurements::ColdDirectory(const Row& row, const Engine& engine) const {
  return fmt::format("{}/{}-cold-{}", settings_.directory, engine.id, row.value_size);
}

std::unique_ptr<Peer> Measurements::OpenCold(const Row& row, const Engine& engine) const {
  return engine.open({.dir = ColdDirectory(row, engine),
                      .defaults = settings_.defaults,
                      .memory_limit = static_cast<size_t>(row.memory_limit())});
}

void Measurements::Prepare(const Row& row, const Engine& engine) {
  MakeEmptyDirectory(ColdDirectory(row, engine));
  const std::unique_ptr<Peer> peer = OpenCold(row, engine);
  DoWork({.work = Work::kFillAtRandom,
          .value_size = row.value_size,
          .threads = 1,
          .entries = row.entries},
         peer.get());
  peer->Flush();
  WaitUntilIdle(settings_.rest_seconds);
}

// The caches are filled by random reads, as they will be used, of other keys than those that are
// counted: as many as there is room for, or for some seconds.
Figures Measurements::MeasureCold(const Row& row, const Engine& engine) {
  constexpr int kWarmingThreads = 8;
  constexpr uint64_t kWarmingSteps = 32;
  constexpr double kWarmingSeconds = 8;
  const std::string directory = ColdDirectory(row, engine);
  const std::unique_ptr<Peer> peer = OpenCold(row, engine);
  double warmed = 0;
  for (uint64_t step = 1; step <= kWarmingSteps && warmed < kWarmingSeconds; ++step) {
    warmed += ReadAtRandom(row, kWarmingThreads, row.entries / kColdRatio / kWarmingSteps,
                           1000 * step, peer.get())
                  .seconds;
  }
  const uint64_t bytes = ProcessUse::Now().disk_read;
  const uint64_t reads = DiskReads(directory);
  Figures figures = FiguresOf(row, DoWork(row, peer.get()));
  const auto operations = static_cast<double>(row.operations);
  figures["disk_bytes"] = static_cast<double>(ProcessUse::Now().disk_read - bytes) / operations;
  figures["disk_reads"] = static_cast<double>(DiskReads(directory) - reads) / operations;
  figures[kResident] = static_cast<double>(ResidentBytes("self"));
  return figures;
}

Figures Measurements::MeasureFootprint(const Row& row, Store* store) {
  Peer* const peer = store->peer.get();
  const bool over = row.work == Work::kWrittenOver || row.work == Work::kSpaceOver;
  const auto settle = [&] {
    peer->Flush();
    WaitUntilIdle(settings_.rest_seconds);
    SyncFileSystem(settings_.directory);
  };
  const auto live = static_cast<double>(row.live_bytes());
  uint64_t before = ProcessUse::Now().disk_written;
  Timing timing = DoWork(row, peer);
  settle();
  if (over) {
    before = ProcessUse::Now().disk_written;
    timing = Overwrite(row, row.operations, peer);
    settle();
  }
  Figures figures = FiguresOf(row, timing);
  const double put = live * static_cast<double>(row.operations) / static_cast<double>(row.entries);
  figures[kWritten] = static_cast<double>(ProcessUse::Now().disk_written - before) / put;
  figures[kSpace] = static_cast<double>(BytesOnDisk(store->directory)) / live;
  return figures;
}

Figures Measurements::MeasureApart(const Row& row, const Engine& engine) {
  if (row.cold()) return MeasureCold(row, engine);
  const std::unique_ptr<Store> store = Open(engine, "fresh");
  Figures figures;
  if (row.footprint()) {
    figures = MeasureFootprint(row, store.get());
  } else {
    figures = FiguresOf(row, DoWork(row, store->peer.get()));
    store->peer->Flush();
    WaitUntilIdle(settings_.rest_seconds);
    if (row.work == Work::kMemoryRead) {
      figures = FiguresOf(row, ReadAtRandom(row, 1, row.operations, 1, store->peer.get()));
    }
  }
  figures[kResident] = static_cast<double>(ResidentBytes("self"));
  return figures;
}

}  // namespace varve::bench
