#include "benchmark/engine/engine_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "benchmark/process_use.h"
#include "benchmark/report.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

constexpr size_t kSizes[] = {100, 1000, 4096};
constexpr int kMostScaledThreads = 16;

std::string Bytes(size_t size) { return size == 4096 ? "4 KiB" : fmt::format("{} B", size); }

std::string Threads(int threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

class RowList {
 public:
  explicit RowList(double scale) : scale_(scale) {}

  uint64_t Scaled(double count) const {
    return std::max<uint64_t>(200, static_cast<uint64_t>(count * scale_));
  }

  // Returns the number of entries of that size in the rows that read.
  uint64_t Entries(size_t size) const { return Scaled(size == 100 ? 1e6 : 3e5); }

  // Returns the number of entries in the passes with data beyond the memory, whose limit has to
  // leave room for what any engine's process takes as such, and for the tables of its keys. Small
  // values have more keys in the same memory.
  uint64_t EntriesBeyond(size_t size) const { return Scaled(size == 100 ? 4e6 : 3e5); }

  // The row joins the part; an empty part makes one of the row alone.
  Row& Add(const std::string& part, const std::string& name, const std::string& title, Work work,
           size_t size, int threads, uint64_t entries, uint64_t operations) {
    const std::string id = fmt::format("{}/{}B/{}", name, size, threads);
    return rows_.emplace_back(Row{.id = id,
                                  .title = title,
                                  .work = work,
                                  .value_size = size,
                                  .threads = threads,
                                  .entries = entries,
                                  .operations = operations,
                                  .part = part.empty() ? id : part});
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  const double scale_;
  std::vector<Row> rows_;
};

// Fills, reads, scans, writes beside reads and deletes of 100 and 1000 bytes. What changes the data
// set comes last.
void AddSmallValues(size_t size, RowList* list) {
  const uint64_t n = list->Entries(size);
  const std::string bytes = Bytes(size);
  const auto add = [&](const std::string& name, const std::string& title, Work work, int threads,
                       uint64_t operations) -> Row& {
    return list->Add(fmt::format("data/{}B", size), name, title, work, size, threads, n,
                     operations);
  };
  add("fill_in_order", "fill in order, " + bytes, Work::kFillInOrder, 1, n);
  add("fill_at_random", "fill at random, " + bytes, Work::kFillAtRandom, 1, n);
  add("read_in_order", "read in order (iterator), " + bytes, Work::kReadInOrder, 1,
      n * kScanPasses);
  for (const int threads : {1, 2})
    add("read_at_random", "read at random, " + bytes + ", " + Threads(threads), Work::kReadAtRandom,
        threads, n);
  for (const uint64_t group : {16, 100}) {
    add(fmt::format("multiget{}", group), fmt::format("MultiGet of {}, {} (keys/s)", group, bytes),
        Work::kMultiGet, 1, n)
        .group = group;
  }
  add("seek", "seek + 50 next, " + bytes, Work::kSeek, 1, n / 10);
  if (size == 100) add("read_missing", "read missing keys, " + bytes, Work::kReadMissing, 1, n);
  add("read_in_order_compacted", "read in order, compacted, " + bytes, Work::kReadInOrder, 1,
      n * kScanPasses)
      .compacted = true;
  add("seek_compacted", "seek + 50 next, compacted, " + bytes, Work::kSeek, 1, n / 10).compacted =
      true;
  add("read_while_writing", "read at random, " + bytes + ", 1 thread, while 1 writes",
      Work::kReadWhileWriting, 1, n);
  add("delete", "delete at random, " + bytes, Work::kDelete, 1, n);
  if (size != 100) return;
  for (const int threads : {1, 2})
    list->Add("put", "put", "put at random, 100 B, not synced, " + Threads(threads), Work::kPut,
              size, threads, n, n);
}

void AddLargeValues(RowList* list) {
  const size_t size = 4096;
  const uint64_t n = list->Entries(size);
  const auto add = [&](const std::string& name, const std::string& title, Work work,
                       int threads) -> Row& {
    return list->Add("data/4096B", name, title, work, size, threads, n, n);
  };
  add("put", "put 4 KiB", Work::kFillAtRandom, 1);
  add("get", "get 4 KiB at random, 1 thread", Work::kReadAtRandom, 1);
  add("get", "get 4 KiB, 8 threads", Work::kReadAtRandom, 8);
  add("put_batch", "put 4 KiB, batches of 50", Work::kFillInBatches, 1).group = 50;
  add("put_batch_of_write", "put 4 KiB, batches of 50: share of a bare write() of the same bytes",
      Work::kBatchesOfWrite, 1)
      .group = 50;
}

Budget BudgetFor(Level level, uint64_t live_bytes) {
  constexpr uint64_t kMegabyte = uint64_t{1} << 20;
  // A program and its libraries need some memory, however small --scale makes the data.
  constexpr uint64_t kLeastTotal = 128 * kMegabyte;
  Budget budget;
  if (level == Level::kBeyond) {
    budget.total = live_bytes / kColdRatio;
    budget.block_cache = budget.total / 4;
  } else {
    budget.block_cache = live_bytes * (level == Level::kInside ? 2 : 1);
    budget.total = std::max(kLeastTotal, 2 * budget.block_cache);
  }
  budget.write_buffer = std::clamp(budget.total / 16, kMegabyte, 64 * kMegabyte);
  return budget;
}

const char* NameOf(State state) {
  constexpr const char* kNames[] = {"",           "pending_first", "pending_second",
                                    "rest_first", "rest_second",   "compacted"};
  return kNames[static_cast<size_t>(state)];
}

const char* TitleOf(State state) {
  constexpr const char* kTitles[] = {"",
                                     "first pass, merges pending",
                                     "second pass, merges pending",
                                     "first pass, at rest",
                                     "second pass, at rest",
                                     "second pass, compacted"};
  return kTitles[static_cast<size_t>(state)];
}

struct PassKind {
  Work work;
  const char* name;
  const char* title;
  uint64_t entries_an_operation;  // of the data set
};

constexpr PassKind kPasses[] = {{Work::kReadInOrder, "scan", "scan", 1},
                                {Work::kSeek, "seek", "seek + 50 next", 20},
                                {Work::kReadAtRandom, "get", "get", 1}};
constexpr std::pair<Level, const char*> kLevels[] = {
    {Level::kInside, "inside"}, {Level::kAt, "at"}, {Level::kBeyond, "beyond"}};
constexpr const char* kLevelTitles[] = {"cache twice the data", "cache as large as the data",
                                        "data 4 times the memory"};

void AddPasses(RowList* list) {
  constexpr uint64_t kMostBeyond = 2'000;  // each is reads of the disk, for some engines many
  for (const size_t size : kSizes) {
    for (const auto& [level, level_name] : kLevels) {
      const uint64_t n = level == Level::kBeyond ? list->EntriesBeyond(size) : list->Entries(size);
      for (const PassKind& pass : kPasses) {
        uint64_t operations = n / pass.entries_an_operation;
        if (level == Level::kBeyond && pass.work != Work::kReadInOrder)
          operations = std::min(operations, kMostBeyond);
        for (int state = 1; state <= static_cast<int>(State::kCompacted); ++state) {
          const std::string part = fmt::format("{}/{}B/{}", pass.name, size, level_name);
          Row& row =
              list->Add(part, "", "", pass.work, size, 1, n, std::max<uint64_t>(operations, 10));
          row.state = static_cast<State>(state);
          row.level = level;
          row.id = fmt::format("{}/{}", part, NameOf(row.state));
          row.title = fmt::format("{} {}, {}, {}", pass.title, Bytes(size),
                                  kLevelTitles[static_cast<size_t>(level)], TitleOf(row.state));
          row.memory = BudgetFor(level, row.live_bytes());
        }
      }
    }
  }
}

void AddSynced(RowList* list) {
  for (const int threads : {1, 8, 32, 64}) {
    const uint64_t n = list->Scaled(threads == 1 ? 1e4 : threads == 8 ? 2e4 : 4e4);
    list->Add("synced", "put_synced", "fsync before every ack, 100 B, " + Threads(threads),
              Work::kPutSynced, 100, threads, n, n);
  }
  const uint64_t n = list->Scaled(4e4);
  list->Add("synced", "put_async", "fsynced, 64 in flight (Varve: WriteAsync, peers: 64 threads)",
            Work::kPutAsync, 100, 64, n, n);
}

void AddCold(RowList* list) {
  const uint64_t n = list->Scaled(1.2e6);
  const uint64_t gets = std::max<uint64_t>(2000, list->Scaled(2e4));
  const std::string when = fmt::format(", 1000 B, data {} times the memory", kColdRatio);
  const auto add = [&](const std::string& name, const std::string& title, Work work,
                       int threads) -> Row& {
    Row& row = list->Add("", name, title, work, 1000, threads, n, gets);
    row.memory = BudgetFor(Level::kBeyond, row.live_bytes());
    return row;
  };
  add("get_cold", "read at random" + when + ", 1 thread", Work::kGetCold, 1);
  add("get_cold", "read at random" + when + ", 8 threads", Work::kGetCold, 8);
  add("multiget100_cold", "MultiGet of 100" + when + " (keys/s)", Work::kMultiGetCold, 1).group =
      100;
}

// YCSB's core workloads, with 1000 bytes a record as it has them.
void AddYcsb(RowList* list) {
  constexpr std::pair<char, const char*> kWorkloads[] = {
      {'c', "reads"},
      {'b', "95 % reads, 5 % updates"},
      {'a', "50 % reads, 50 % updates"},
      {'f', "50 % reads, 50 % read-modify-writes"},
      {'d', "95 % reads of late keys, 5 % inserts"},
      {'e', "95 % scans of 1 to 100, 5 % inserts"},
  };
  const uint64_t n = list->Entries(1000);
  for (const bool zipfian : {true, false}) {
    const std::string keys = zipfian ? "zipfian" : "uniform";
    uint64_t first_insert = n;
    for (const auto& [workload, what] : kWorkloads) {
      const uint64_t operations = workload == 'e' ? n : 4 * n;
      Row& row = list->Add("ycsb/" + keys, "", "", Work::kYcsb, 1000, 2, n, operations);
      row.id = fmt::format("ycsb/{}/{}", workload, keys);
      row.title = fmt::format("YCSB {} ({}), {}, 2 threads",
                              static_cast<char>(workload - 'a' + 'A'), what, keys);
      row.workload = workload;
      row.zipfian = zipfian;
      row.first_insert = first_insert;
      first_insert += operations;  // more than it inserts
    }
  }
}

void AddScaling(RowList* list) {
  const uint64_t n = list->Entries(100);
  const uint64_t synced = list->Scaled(2e4);
  struct Scaled {
    const char* name;
    const char* title;
    Work work;
    uint64_t entries;
    uint64_t operations;
  };
  for (const Scaled& scaled :
       {Scaled{"scaling_get", "get 100 B", Work::kReadAtRandom, n, 4 * n},
        Scaled{"scaling_put", "put 100 B, not synced", Work::kPut, n, n},
        Scaled{"scaling_put_synced", "put 100 B, synced", Work::kPutSynced, synced, synced}}) {
    for (int threads = 1; threads <= kMostScaledThreads; threads *= 2) {
      list->Add("scaling/100B", scaled.name,
                fmt::format("scaling: {}, {}", scaled.title, Threads(threads)), scaled.work, 100,
                threads, scaled.entries, scaled.operations)
          .needs_processors = static_cast<unsigned>(threads);
    }
  }
}

// Each of these fills its store by itself.
void AddFootprints(RowList* list) {
  const uint64_t n = list->Scaled(3e5);
  const std::string after =
      "resident memory after " + FormatBytes(static_cast<double>(n) * 4096) + " of 4 KiB values";
  list->Add("", "memory_filled", after, Work::kMemoryFilled, 4096, 1, n, n);
  list->Add("", "memory_read", after + ", then as many gets", Work::kMemoryRead, 4096, 1, n, n);
  for (const size_t size : {size_t{100}, size_t{4096}}) {
    const uint64_t entries = list->Scaled(size == 100 ? 1e7 : 3e5);
    const std::string filled = fmt::format(", filled at random, {} × {}",
                                           FormatRate(static_cast<double>(entries)), Bytes(size));
    const std::string part = fmt::format("footprint/filled/{}B", size);
    list->Add(part, "written_filled", "written to disk per byte put" + filled, Work::kWrittenFilled,
              size, 1, entries, entries);
    list->Add(part, "space_filled", "on disk per live byte" + filled, Work::kSpaceFilled, size, 1,
              entries, entries);
    list->Add(part, "resident_filled", "resident memory at rest" + filled, Work::kResidentFilled,
              size, 1, entries, entries);
    const uint64_t fewer = list->Scaled(size == 100 ? 2e6 : 3e5);
    const uint64_t over = kOverwrites * fewer;
    const std::string part_over = fmt::format("footprint/over/{}B", size);
    const std::string overwritten =
        fmt::format(", overwritten {}× at random, {}", kOverwrites, Bytes(size));
    list->Add(part_over, "written_over", "written to disk per byte put" + overwritten,
              Work::kWrittenOver, size, 1, fewer, over);
    list->Add(part_over, "space_over", "on disk per live byte" + overwritten, Work::kSpaceOver,
              size, 1, fewer, over);
  }
}

}  // namespace

const char* Row::figure() const {
  switch (work) {
    case Work::kMemoryFilled:
    case Work::kMemoryRead:
    case Work::kResidentFilled:
      return kResident;
    case Work::kWrittenFilled:
    case Work::kWrittenOver:
      return kWritten;
    case Work::kSpaceFilled:
    case Work::kSpaceOver:
      return kSpace;
    case Work::kBatchesOfWrite:
      return kShare;
    default:
      return kRate;
  }
}

bool Row::less_is_better() const {
  const std::string name = figure();
  return name != kRate && name != kShare;
}

bool Row::reads_data_set() const {
  switch (work) {
    case Work::kReadInOrder:
    case Work::kReadAtRandom:
    case Work::kMultiGet:
    case Work::kReadMissing:
    case Work::kSeek:
    case Work::kReadWhileWriting:
    case Work::kDelete:
    case Work::kYcsb:
      return true;
    default:
      return false;
  }
}

bool Row::writes() const {
  if (work == Work::kDelete) return true;
  return !reads_data_set() && !cold() && work != Work::kMemoryRead;
}

uint64_t Row::live_bytes() const { return entries * (kKeySize + value_size); }

uint64_t Row::latency_every() const {
  constexpr uint64_t kOfFastReads = 16;
  switch (work) {
    case Work::kReadInOrder:
      return 0;
    case Work::kReadAtRandom:
    case Work::kReadMissing:
    case Work::kReadWhileWriting:
      return kOfFastReads;
    default:
      return 1;
  }
}

double Row::seconds() const {
  // Of a mean engine on two cores with a virtual disk.
  const double a_put = value_size <= 100 ? 4e-6 : value_size <= 1000 ? 7e-6 : 13e-6;
  constexpr double kRest = 4;
  constexpr double kFootprintRest = kRest + kFootprintRestSeconds - kRestSeconds;
  const auto puts = static_cast<double>(entries) * a_put;
  const auto count = static_cast<double>(operations);
  if (passes()) {  // a fifth of its part: a fill or a copy, rests, five passes
    const double a_pass = work == Work::kReadInOrder ? 4e-7 : work == Work::kSeek ? 2e-5 : 3e-6;
    const double when_beyond = work == Work::kReadInOrder ? 10 : work == Work::kSeek ? 50 : 500;
    const double slower = level == Level::kBeyond ? when_beyond : 1;
    const double pass = count * slower * a_pass;
    // In a quarter of the memory the copy, the opens and the merges wait for the disk: the rows of
    // 100 bytes took a minute each.
    const double a_merge = level == Level::kBeyond ? 6e-5 : 0;
    return (puts + 3 * kRest + static_cast<double>(entries) * a_merge) / 5 + pass;
  }
  switch (work) {
    case Work::kPutSynced:
    case Work::kPutAsync:
      return count * 2e-4 / std::min(threads, 8) + 1;
    case Work::kReadInOrder:
      return count * 3e-7 + (compacted ? 2 * kRest : 0);
    case Work::kReadAtRandom:
    case Work::kMultiGet:
    case Work::kReadMissing:
      return count * 2e-6;
    case Work::kSeek:
      return count * 2e-5;
    case Work::kReadWhileWriting:
      return puts + count * 5e-6 + kRest;
    case Work::kGetCold:
    case Work::kMultiGetCold:
      return puts / 3 + 25;
    case Work::kMemoryRead:
      return puts + count * 4e-6 + kFootprintRest;
    case Work::kWrittenOver:
      return 3 * puts + 2 * kFootprintRest;
    case Work::kMemoryFilled:
    case Work::kWrittenFilled:
      return puts + kFootprintRest;
    case Work::kSpaceFilled:
    case Work::kResidentFilled:
    case Work::kSpaceOver:
      return 0;
    case Work::kYcsb:
      return count * (workload == 'e' ? 3e-5 : 5e-6) + kRest;
    default:
      return puts + kRest;
  }
}

std::vector<Row> AllRows(double scale) {
  RowList list(scale);
  AddSmallValues(100, &list);
  AddSmallValues(1000, &list);
  AddLargeValues(&list);
  AddPasses(&list);
  AddYcsb(&list);
  AddSynced(&list);
  AddScaling(&list);
  AddCold(&list);
  AddFootprints(&list);
  return list.Take();
}

}  // namespace varve::bench
