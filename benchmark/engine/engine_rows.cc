#include "benchmark/engine/engine_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "benchmark/report.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

class RowList {
 public:
  explicit RowList(double scale) : scale_(scale) {}

  uint64_t Scaled(double count) const {
    return std::max<uint64_t>(200, static_cast<uint64_t>(count * scale_));
  }

  Row& Add(const std::string& name, const std::string& title, Work work, size_t size, int threads,
           uint64_t entries, uint64_t operations) {
    return rows_.emplace_back(Row{.id = fmt::format("{}/{}B/{}", name, size, threads),
                                  .title = title,
                                  .work = work,
                                  .value_size = size,
                                  .threads = threads,
                                  .entries = entries,
                                  .operations = operations});
  }

  std::vector<Row> Take() { return std::move(rows_); }

 private:
  const double scale_;
  std::vector<Row> rows_;
};

// Fills, reads, scans, writes beside reads and deletes of 100 and 1000 bytes. What changes the data
// set comes last.
void AddSmallValues(size_t size, RowList* list) {
  const uint64_t n = list->Scaled(size == 100 ? 1e6 : 3e5);
  const std::string bytes = fmt::format("{} B", size);
  list->Add("fill_in_order", "fill in order, " + bytes, Work::kFillInOrder, size, 1, n, n);
  list->Add("fill_at_random", "fill at random, " + bytes, Work::kFillAtRandom, size, 1, n, n);
  list->Add("read_in_order", "read in order (iterator), " + bytes, Work::kReadInOrder, size, 1, n,
            n * kScanPasses);
  list->Add("read_at_random", "read at random, " + bytes + ", 1 thread", Work::kReadAtRandom, size,
            1, n, n);
  list->Add("read_at_random", "read at random, " + bytes + ", 2 threads", Work::kReadAtRandom, size,
            2, n, n);
  for (const uint64_t group : {16, 100}) {
    list->Add(fmt::format("multiget{}", group),
              fmt::format("MultiGet of {}, {} (keys/s)", group, bytes), Work::kMultiGet, size, 1, n,
              n)
        .group = group;
  }
  list->Add("seek", "seek + 50 next, " + bytes, Work::kSeek, size, 1, n, n / 10);
  if (size == 100)
    list->Add("read_missing", "read missing keys, " + bytes, Work::kReadMissing, size, 1, n, n);
  list->Add("read_in_order_compacted", "read in order, compacted, " + bytes, Work::kReadInOrder,
            size, 1, n, n * kScanPasses)
      .compacted = true;
  list->Add("seek_compacted", "seek + 50 next, compacted, " + bytes, Work::kSeek, size, 1, n,
            n / 10)
      .compacted = true;
  list->Add("read_while_writing", "read at random, " + bytes + ", 1 thread, while 1 writes",
            Work::kReadWhileWriting, size, 1, n, n);
  list->Add("delete", "delete at random, " + bytes, Work::kDelete, size, 1, n, n);
}

void AddSynced(RowList* list) {
  for (const int threads : {1, 8, 32, 64}) {
    const uint64_t n = list->Scaled(threads == 1 ? 1e4 : threads == 8 ? 2e4 : 4e4);
    list->Add(
        "put_synced",
        fmt::format("fsync before every ack, 100 B, {} thread{}", threads, threads == 1 ? "" : "s"),
        Work::kPutSynced, 100, threads, n, n);
  }
  const uint64_t n = list->Scaled(4e4);
  list->Add("put_async", "fsynced, 64 in flight (Varve: WriteAsync, peers: 64 threads)",
            Work::kPutAsync, 100, 64, n, n);
}

void AddCold(RowList* list) {
  const uint64_t n = list->Scaled(1.2e6);
  const uint64_t gets = std::max<uint64_t>(2000, list->Scaled(2e4));
  const std::string when = fmt::format(", 1000 B, data {} times the memory", kColdRatio);
  list->Add("get_cold", "read at random" + when + ", 1 thread", Work::kGetCold, 1000, 1, n, gets);
  list->Add("get_cold", "read at random" + when + ", 8 threads", Work::kGetCold, 1000, 8, n, gets);
  list->Add("multiget100_cold", "MultiGet of 100" + when + " (keys/s)", Work::kMultiGetCold, 1000,
            1, n, gets)
      .group = 100;
}

// Each of these fills its store by itself.
void AddFootprints(RowList* list) {
  const uint64_t n = list->Scaled(3e5);
  const std::string after =
      "resident memory after " + FormatBytes(static_cast<double>(n) * 4096) + " of 4 KiB values";
  list->Add("memory_filled", after, Work::kMemoryFilled, 4096, 1, n, n);
  list->Add("memory_read", after + ", then as many gets", Work::kMemoryRead, 4096, 1, n, n);
  for (const size_t size : {size_t{100}, size_t{4096}}) {
    const uint64_t entries = list->Scaled(size == 100 ? 2e6 : 3e5);
    const uint64_t over = kOverwrites * entries;
    const std::string bytes = size == 100 ? "100 B" : "4 KiB";
    const std::string filled = ", filled at random, " + bytes;
    const std::string overwritten =
        fmt::format(", overwritten {}× at random, {}", kOverwrites, bytes);
    list->Add("written_filled", "written to disk per byte put" + filled, Work::kWrittenFilled, size,
              1, entries, entries);
    list->Add("space_filled", "on disk per live byte" + filled, Work::kSpaceFilled, size, 1,
              entries, entries);
    list->Add("written_over", "written to disk per byte put" + overwritten, Work::kWrittenOver,
              size, 1, entries, over);
    list->Add("space_over", "on disk per live byte" + overwritten, Work::kSpaceOver, size, 1,
              entries, over);
  }
}

}  // namespace

const char* Row::figure() const {
  switch (work) {
    case Work::kMemoryFilled:
    case Work::kMemoryRead:
      return kResident;
    case Work::kWrittenFilled:
    case Work::kWrittenOver:
      return kWritten;
    case Work::kSpaceFilled:
    case Work::kSpaceOver:
      return kSpace;
    default:
      return kRate;
  }
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

std::vector<Row> AllRows(double scale) {
  RowList list(scale);
  AddSmallValues(100, &list);
  AddSmallValues(1000, &list);
  const uint64_t n = list.Scaled(3e5);
  list.Add("put", "put 4 KiB", Work::kFillAtRandom, 4096, 1, n, n);
  list.Add("put_batch", "put 4 KiB, batches of 50", Work::kFillInBatches, 4096, 1, n, n).group = 50;
  list.Add("get", "get 4 KiB at random, 1 thread", Work::kReadAtRandom, 4096, 1, n, n);
  list.Add("get", "get 4 KiB, 8 threads", Work::kReadAtRandom, 4096, 8, n, n);
  AddSynced(&list);
  AddCold(&list);
  AddFootprints(&list);
  return list.Take();
}

}  // namespace varve::bench
