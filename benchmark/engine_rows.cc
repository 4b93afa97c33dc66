#include "benchmark/engine_rows.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <latch>
#include <thread>

#include "benchmark/process.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Splits `operations` among threads that start together; returns the seconds from the first start to the last end.
double TimeThreads(int threads, uint64_t operations, const std::function<void(int, uint64_t, uint64_t)>& body) {
  std::vector<Clock::time_point> starts(static_cast<size_t>(threads));
  std::vector<Clock::time_point> ends(static_cast<size_t>(threads));
  std::latch ready(threads);
  const auto run = [&](int thread) {
    const auto at = static_cast<uint64_t>(thread);
    const auto count = static_cast<uint64_t>(threads);
    ready.arrive_and_wait();
    starts[at] = Clock::now();
    body(thread, operations * at / count, operations * (at + 1) / count);
    ends[at] = Clock::now();
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others) other.join();
  const auto first = *std::min_element(starts.begin(), starts.end());
  const auto last = *std::max_element(ends.begin(), ends.end());
  return std::chrono::duration<double>(last - first).count();
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Bytes that this process has passed to write calls so far.
uint64_t WrittenBytes() {
  std::ifstream io("/proc/self/io");
  std::string name;
  for (uint64_t value = 0; io >> name >> value;) {
    if (name == "wchar:") return value;
  }
  Fail("cannot read /proc/self/io");
}

void WaitUntilIdle() {
  constexpr auto kStep = std::chrono::milliseconds(100);
  constexpr int kQuietSteps = 6;
  constexpr int kMaxSteps = 6000;
  int quiet = 0;
  double cpu = CpuSeconds();
  uint64_t written = WrittenBytes();
  for (int step = 0; step < kMaxSteps; ++step) {
    std::this_thread::sleep_for(kStep);
    const double cpu_now = CpuSeconds();
    const uint64_t written_now = WrittenBytes();
    quiet = cpu_now - cpu < 0.005 && written_now - written < 65536 ? quiet + 1 : 0;
    if (quiet == kQuietSteps) return;
    cpu = cpu_now;
    written = written_now;
  }
  Fail("a store does not come to rest: still busy 10 minutes after its fill");
}

void CheckEntry(std::string_view value, uint64_t number, size_t size) {
  if (value.size() != size || Value::Number(value) != number) {
    Fail(fmt::format("entry {} was read as entry {} with {} bytes", number, Value::Number(value), value.size()));
  }
}

// From wherever the reader stands to the end; returns how many entries there were.
uint64_t ReadThrough(const Row& row, Reader* reader) {
  uint64_t count = 0;
  for (bool more = reader->Seek(""); more; more = reader->Next()) {
    CheckEntry(reader->value(), count, row.value_size);
    ++count;
  }
  if (count != row.entries) Fail(fmt::format("{} of {} entries were read in order", count, row.entries));
  return count;
}

void SeekAndStep(const Row& row, uint64_t number, std::string_view key, Reader* reader) {
  if (!reader->Seek(key) || reader->key() != key) Fail(fmt::format("a seek did not find entry {}", number));
  CheckEntry(reader->value(), number, row.value_size);
  for (int64_t step = 0; step < kSeekSteps && reader->Next(); ++step) {
    CheckEntry(reader->value(), ++number, row.value_size);
  }
}

double Fill(const Row& row, Peer* peer) {
  const bool in_order = row.work == Work::kFillInOrder;
  const std::vector<uint32_t> order = in_order ? std::vector<uint32_t>() : Shuffled(row.entries);
  const int threads = row.reads_data_set() ? 1 : row.threads;
  return TimeThreads(threads, row.entries, [&](int, uint64_t begin, uint64_t end) {
    Key key;
    Value value(row.value_size);
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t number = in_order ? i : order[i];
      peer->Put(key.Present(number), value.Of(number));
    }
  });
}

double FillInBatches(const Row& row, Peer* peer) {
  const std::vector<uint32_t> order = Shuffled(row.entries);
  return TimeThreads(1, row.entries, [&](int, uint64_t begin, uint64_t end) {
    std::vector<Key> keys(kBatchSize);
    std::vector<Value> values(kBatchSize, Value(row.value_size));
    std::vector<KeyValue> batch;
    for (uint64_t i = begin; i < end; ++i) {
      batch.emplace_back(keys[batch.size()].Present(order[i]), values[batch.size()].Of(order[i]));
      if (batch.size() < kBatchSize && i + 1 < end) continue;
      peer->WriteBatch(batch);
      batch.clear();
    }
  });
}

double Read(const Row& row, Peer* peer) {
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < row.threads; ++i) readers.push_back(peer->NewReader());
  return TimeThreads(row.threads, row.operations, [&](int thread, uint64_t begin, uint64_t end) {
    Reader* const reader = readers[static_cast<size_t>(thread)].get();
    Random random(static_cast<uint64_t>(thread) + 1);
    Key key;
    std::string value;
    if (row.work == Work::kReadInOrder) {
      for (uint64_t read = begin; read < end;) read += ReadThrough(row, reader);
      return;
    }
    for (uint64_t i = begin; i < end; ++i) {
      const uint64_t number = random.Below(row.entries);
      if (row.work == Work::kSeek) {
        SeekAndStep(row, number, key.Present(number), reader);
      } else if (row.work == Work::kReadMissing) {
        if (reader->Get(key.Missing(number), &value)) Fail("a missing key was found");
      } else {
        if (!reader->Get(key.Present(number), &value)) Fail(fmt::format("entry {} was not found", number));
        CheckEntry(value, number, row.value_size);
      }
    }
  });
}

}  // namespace

std::vector<Row> AllRows(double scale) {
  const auto scaled = [scale](double count) { return std::max<uint64_t>(200, static_cast<uint64_t>(count * scale)); };
  std::vector<Row> rows;
  const auto add = [&](const std::string& name, const std::string& title, Work work, size_t size, int threads,
                       uint64_t entries, uint64_t operations) {
    rows.push_back({fmt::format("{}/{}B/{}", name, size, threads), title, work, size, threads, entries, operations});
  };
  for (const size_t size : {size_t{100}, size_t{1000}}) {
    const uint64_t n = scaled(size == 100 ? 1e6 : 3e5);
    const std::string bytes = fmt::format("{} B", size);
    add("fill_in_order", "fill in order, " + bytes, Work::kFillInOrder, size, 1, n, n);
    add("fill_at_random", "fill at random, " + bytes, Work::kFillAtRandom, size, 1, n, n);
    add("read_in_order", "read in order (iterator), " + bytes, Work::kReadInOrder, size, 1, n, n * kScanPasses);
    add("read_at_random", "read at random, " + bytes + ", 1 thread", Work::kReadAtRandom, size, 1, n, n);
    add("read_at_random", "read at random, " + bytes + ", 2 threads", Work::kReadAtRandom, size, 2, n, n);
    add("seek", "seek + 50 next, " + bytes, Work::kSeek, size, 1, n, n / 10);
    if (size == 100) add("read_missing", "read missing keys, " + bytes, Work::kReadMissing, size, 1, n, n);
  }
  const uint64_t n = scaled(3e5);
  add("put", "put 4 KiB", Work::kFillAtRandom, 4096, 1, n, n);
  add("put_batch", "put 4 KiB, batches of 50", Work::kFillInBatches, 4096, 1, n, n);
  add("get", "get 4 KiB at random, 1 thread", Work::kReadAtRandom, 4096, 1, n, n);
  add("get", "get 4 KiB, 8 threads", Work::kReadAtRandom, 4096, 8, n, n);
  for (const int threads : {1, 8, 32, 64}) {
    const uint64_t synced = scaled(threads == 1 ? 1e4 : threads == 8 ? 2e4 : 4e4);
    add("put_synced", fmt::format("fsync before every ack, 100 B, {} thread{}", threads, threads == 1 ? "" : "s"),
        Work::kFillSynced, 100, threads, synced, synced);
  }
  const std::string after = "resident memory after " + FormatBytes(static_cast<double>(n) * 4096) + " of 4 KiB values";
  add("memory_filled", after, Work::kMemoryFilled, 4096, 1, n, n);
  add("memory_read", after + ", then as many gets", Work::kMemoryRead, 4096, 1, n, n);
  return rows;
}

Measurements::Store::~Store() {
  peer.reset();
  RemoveDirectory(directory);
}

std::unique_ptr<Measurements::Store> Measurements::Open(const Engine& engine, const std::string& name, bool synced) {
  CheckOnce(engine);
  auto store = std::make_unique<Store>();
  store->directory = fmt::format("{}/{}-{}", directory_, engine.id, name);
  MakeEmptyDirectory(store->directory);
  store->peer = engine.open({.dir = store->directory, .synced = synced});
  return store;
}

// That the adapter does what peer.h says, before its figures are believed.
void Measurements::CheckOnce(const Engine& engine) {
  if (checked_[engine.id]) return;
  checked_[engine.id] = true;
  const std::unique_ptr<Store> store = Open(engine, "check");
  const auto expect = [&](bool good, std::string_view what) {
    if (!good) Fail(fmt::format("{} failed its check: {}", engine.title, what));
  };
  Peer& peer = *store->peer;
  const std::unique_ptr<Reader> reader = peer.NewReader();
  std::string value;
  const std::vector<KeyValue> batch = {{"c", "3"}, {"a", "1"}};
  peer.Put("b", "old");
  peer.WriteBatch(batch);
  peer.Put("b", "2");
  peer.Put("d", "");
  peer.Flush();
  peer.Delete("a");
  expect(!reader->Get("a", &value), "a deleted key is gone");
  expect(reader->Get("b", &value) && value == "2", "the last value wins");
  expect(reader->Get("d", &value) && value.empty(), "an empty value is a value");
  expect(reader->Seek("") && reader->key() == "b" && reader->value() == "2", "the first entry");
  expect(reader->Next() && reader->key() == "c" && reader->Next() && !reader->Next(), "entries in order to the end");
  peer.Put("cc", "4");
  expect(reader->Seek("ca") && reader->key() == "cc", "a seek sees what was written before it");
}

void Measurements::Settle(const Row& row, Peer* peer) {
  peer->Flush();
  WaitUntilIdle();
  const int descriptor = open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0 || syncfs(descriptor) != 0) Fail("cannot sync the file system of " + directory_);
  close(descriptor);
  ReadThrough(row, peer->NewReader().get());
}

Peer* Measurements::DataSet(const Row& row, const Engine& engine) {
  std::unique_ptr<Store>& store = data_sets_[engine.id];
  if (store == nullptr) {
    store = Open(engine, "data");
    Fill(row, store->peer.get());
    Settle(row, store->peer.get());
  }
  return store->peer.get();
}

double Measurements::Seconds(const Row& row, const Engine& engine) {
  const bool needs_data_sets =
      row.reads_data_set() || row.work == Work::kFillAtRandom || row.work == Work::kFillInBatches;
  if (!needs_data_sets || row.value_size != data_set_value_size_) data_sets_.clear();
  data_set_value_size_ = row.value_size;
  if (row.reads_data_set()) return Read(row, DataSet(row, engine));

  data_sets_.erase(row.work == Work::kFillAtRandom ? engine.id : "");
  std::unique_ptr<Store> store =
      Open(engine, row.work == Work::kFillAtRandom ? "data" : "fresh", row.work == Work::kFillSynced);
  if (row.work == Work::kFillInBatches) return FillInBatches(row, store->peer.get());
  const double seconds = Fill(row, store->peer.get());
  if (row.work == Work::kFillAtRandom) {
    Settle(row, store->peer.get());
    data_sets_[engine.id] = std::move(store);
  }
  return seconds;
}

double Measurements::MemoryBytes(const Row& row, const Engine& engine) {
  const std::unique_ptr<Store> store = Open(engine, "fresh");
  Fill(row, store->peer.get());
  store->peer->Flush();
  WaitUntilIdle();
  if (row.work == Work::kMemoryRead) {
    Row reads = row;
    reads.work = Work::kReadAtRandom;
    Read(reads, store->peer.get());
  }
  return static_cast<double>(ResidentBytes("self"));
}

}  // namespace varve::bench
