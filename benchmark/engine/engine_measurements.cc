#include "benchmark/engine/engine_measurements.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

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

int64_t ResidentBytesOf(const Peer* peer) {
  return ResidentBytes(peer->process() == 0 ? "self" : std::to_string(peer->process()));
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

std::string PreparedDirectory(const std::string& directory, const Row& row, const Engine& engine) {
  return fmt::format("{}/{}-prepared-{}-{}", directory, engine.id, row.value_size,
                     row.cold() ? "cold" : std::to_string(static_cast<int>(row.level)));
}

std::string UsedDirectory(const std::string& directory, const Row& row, const Engine& engine) {
  if (row.cold()) return PreparedDirectory(directory, row, engine);
  return fmt::format("{}/{}-passes", directory, engine.id);
}

Measurements::Store::~Store() {
  peer.reset();
  RemoveDirectory(directory);
}

std::unique_ptr<Peer> Measurements::OpenAt(const Row& row, const std::string& directory) const {
  return engine_.open({.dir = directory,
                       .synced = row.work == Work::kPutSynced || row.work == Work::kPutAsync,
                       .defaults = settings_.defaults,
                       .memory = row.memory,
                       .short_of_memory = row.short_of_memory()});
}

std::unique_ptr<Measurements::Store> Measurements::Open(const Row& row, const std::string& name) {
  CheckOnce();
  auto store = std::make_unique<Store>();
  store->directory = fmt::format("{}/{}-{}", settings_.directory, engine_.id, name);
  MakeEmptyDirectory(store->directory);
  store->peer = OpenAt(row, store->directory);
  return store;
}

void Measurements::CheckOnce() {
  if (checked_) return;
  checked_ = true;
  CheckPeer(engine_, Open({.work = Work::kPut}, "check")->peer.get());
}

void Measurements::Rest(Peer* peer, double seconds) const {
  peer->Flush();
  WaitUntilIdle(seconds, peer->process());
  SyncFileSystem(settings_.directory);
}

void Measurements::Settle(const Row& row, Peer* peer) const {
  Rest(peer, settings_.rest_seconds);
  ReadThrough(row, peer);
}

Measurements::Store* Measurements::DataSet(const Row& row) {
  // Nothing undoes a compaction.
  if (data_set_ != nullptr && data_set_->compacted && !row.compacted) data_set_.reset();
  if (data_set_ == nullptr) {
    Row fill = row;
    fill.work = Work::kFillAtRandom;
    data_set_ = Open(row, "data");
    DoWork(fill, data_set_->peer.get());
    Settle(row, data_set_->peer.get());
  }
  if (row.compacted && !data_set_->compacted) {
    data_set_->peer->Compact();
    Settle(row, data_set_->peer.get());
    data_set_->compacted = true;
  }
  return data_set_.get();
}

Figures Measurements::MeasureOne(const Row& row) {
  if (row.cold()) return MeasureCold(row);
  if (row.work == Work::kMemoryFilled || row.work == Work::kMemoryRead) return MeasureMemory(row);
  if (row.work == Work::kBatchesOfWrite) return MeasureBatches(row);
  if (row.reads_data_set()) {
    Peer* const peer = DataSet(row)->peer.get();
    if (row.work == Work::kYcsb) Rest(peer, settings_.rest_seconds);  // from the workload before
    const Figures figures = FiguresOf(row, DoWork(row, peer));
    if (row.work == Work::kReadWhileWriting || row.work == Work::kDelete) data_set_.reset();
    return figures;
  }
  const bool fills_data_set = row.work == Work::kFillAtRandom;
  if (fills_data_set || row.work != Work::kFillInBatches) data_set_.reset();
  std::unique_ptr<Store> store = Open(row, fills_data_set ? "data" : "fresh");
  const Figures figures = FiguresOf(row, DoWork(row, store->peer.get()));
  if (fills_data_set) {
    Settle(row, store->peer.get());
    data_set_ = std::move(store);
  }
  return figures;
}

void Measurements::Prepare(const Row& row) {
  CheckOnce();
  const std::string directory = PreparedDirectory(settings_.directory, row, engine_);
  MakeEmptyDirectory(directory);
  const std::unique_ptr<Peer> peer = OpenAt(row, directory);
  Row fill = row;
  fill.work = Work::kFillAtRandom;
  fill.operations = row.entries;
  DoWork(fill, peer.get());
  // Rows of passes begin with what the fill leaves to be done.
  if (row.cold()) Rest(peer.get(), settings_.rest_seconds);
}

// The caches are filled by random reads, as they will be used, of other keys than those that are
// counted: as many as there is room for, or for some seconds.
Figures Measurements::MeasureCold(const Row& row) {
  constexpr int kWarmingThreads = 8;
  constexpr uint64_t kWarmingSteps = 32;
  constexpr double kWarmingSeconds = 8;
  const std::string directory = UsedDirectory(settings_.directory, row, engine_);
  const std::unique_ptr<Peer> peer = OpenAt(row, directory);
  double warmed = 0;
  for (uint64_t step = 1; step <= kWarmingSteps && warmed < kWarmingSeconds; ++step) {
    warmed += ReadAtRandom(row, kWarmingThreads, row.entries / kColdRatio / kWarmingSteps,
                           1000 * step, peer.get())
                  .seconds;
  }
  return MeasurePass(row, directory, peer.get());
}

// Does the row's work once on the open store, and counts what the disk has to give for it.
Figures Measurements::MeasurePass(const Row& row, const std::string& directory, Peer* peer) {
  const uint64_t bytes = ProcessUse::Now(peer->process()).disk_read;
  const uint64_t reads = DiskReads(directory);
  Figures figures = FiguresOf(row, DoWork(row, peer));
  if (!row.short_of_memory()) return figures;
  const auto operations = static_cast<double>(row.operations);
  figures["disk_bytes"] =
      static_cast<double>(ProcessUse::Now(peer->process()).disk_read - bytes) / operations;
  figures["disk_reads"] = static_cast<double>(DiskReads(directory) - reads) / operations;
  figures[kResident] = static_cast<double>(ResidentBytesOf(peer));
  return figures;
}

void Measurements::MeasurePasses(const std::vector<Row>& rows, const Done& done) {
  const Row& any = rows.front();
  const auto wanted = [&](State state) {
    return std::find_if(rows.begin(), rows.end(),
                        [&](const Row& row) { return row.state == state; });
  };
  const State last = rows.back().state;
  Store store{.directory = UsedDirectory(settings_.directory, any, engine_)};
  if (any.prepared()) {
    store.peer = OpenAt(any, store.directory);
  } else {
    CheckOnce();
    MakeEmptyDirectory(store.directory);
    store.peer = OpenAt(any, store.directory);
    Row fill = any;
    fill.work = Work::kFillAtRandom;
    DoWork(fill, store.peer.get());
  }
  const auto pass = [&](State state) {
    // Other random keys in each pass, so that one doesn't find what another left in a cache.
    Row measured = any;
    measured.seed = 1000 * (1 + static_cast<uint64_t>(state));
    const Figures figures = MeasurePass(measured, store.directory, store.peer.get());
    if (const auto row = wanted(state); row != rows.end()) done(*row, figures);
  };
  pass(State::kPendingFirst);
  pass(State::kPendingSecond);
  if (last <= State::kPendingSecond) return;
  Rest(store.peer.get(), settings_.rest_seconds);
  store.peer.reset();
  if (any.short_of_memory()) DropFromPageCache(store.directory);
  store.peer = OpenAt(any, store.directory);
  pass(State::kRestFirst);
  pass(State::kRestSecond);
  if (last <= State::kRestSecond) return;
  store.peer->Compact();
  Rest(store.peer.get(), settings_.rest_seconds);
  DoWork(any, store.peer.get());
  pass(State::kCompacted);
}

Figures Measurements::MeasureFootprint(const Row& row) {
  const std::unique_ptr<Store> store = Open(row, "fresh");
  Peer* const peer = store->peer.get();
  const bool over = row.work == Work::kWrittenOver || row.work == Work::kSpaceOver;
  const auto live = static_cast<double>(row.live_bytes());
  Row fill = row;
  fill.work = Work::kFillAtRandom;
  uint64_t before = ProcessUse::Now(peer->process()).disk_written;
  Timing timing = DoWork(fill, peer);
  Rest(peer, settings_.footprint_rest_seconds());
  if (over) {
    before = ProcessUse::Now(peer->process()).disk_written;
    timing = Overwrite(row, row.operations, peer);
    Rest(peer, settings_.footprint_rest_seconds());
  }
  Figures figures = FiguresOf(row, timing);
  const double put = live * static_cast<double>(row.operations) / static_cast<double>(row.entries);
  figures[kWritten] =
      static_cast<double>(ProcessUse::Now(peer->process()).disk_written - before) / put;
  figures[kSpace] = static_cast<double>(BytesOnDisk(store->directory)) / live;
  figures[kResident] = static_cast<double>(ResidentBytesOf(peer));
  return figures;
}

Figures Measurements::MeasureMemory(const Row& row) {
  const std::unique_ptr<Store> store = Open(row, "fresh");
  Peer* const peer = store->peer.get();
  Row fill = row;
  fill.work = Work::kFillAtRandom;
  Figures figures = FiguresOf(row, DoWork(fill, peer));
  peer->Flush();
  WaitUntilIdle(settings_.footprint_rest_seconds(), peer->process());
  if (row.work == Work::kMemoryRead)
    figures = FiguresOf(row, ReadAtRandom(row, 1, row.operations, 1, peer));
  figures[kResident] = static_cast<double>(ResidentBytesOf(peer));
  return figures;
}

// The disk's mood changes from minute to minute: the bare writes stand on both sides.
Figures Measurements::MeasureBatches(const Row& row) {
  Row batches = row;
  batches.work = Work::kFillInBatches;
  const double before = BareWrite(row, settings_.directory).seconds;
  const std::unique_ptr<Store> store = Open(row, "fresh");
  const Timing timing = DoWork(batches, store->peer.get());
  Rest(store->peer.get(), settings_.rest_seconds);
  const double after = BareWrite(row, settings_.directory).seconds;
  Figures figures = FiguresOf(row, timing);
  const double bare = (before + after) / 2;
  figures[kShare] = bare / timing.seconds;
  figures["write_per_second"] = static_cast<double>(row.operations) / bare;
  return figures;
}

void Measurements::Measure(const std::vector<Row>& rows, const Done& done) {
  if (rows.empty()) return;
  if (rows.front().passes()) return MeasurePasses(rows, done);
  if (rows.front().footprint()) {
    const Figures figures = MeasureFootprint(rows.front());
    for (const Row& row : rows) done(row, figures);
    return;
  }
  for (const Row& row : rows) done(row, MeasureOne(row));
}

}  // namespace varve::bench
