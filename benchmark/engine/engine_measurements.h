// The measurements provide what each row needs (a fresh store, the settled data set, a process of
// its own, little memory), run its work, and turn the outcome into figures:
//
//   operations_per_second
//   p50_us p99_us p999_us p9999_us   of an operation or call; p9999_us only of writes
//   cpu_us                           processor time of the process for each operation, its
//                                    background threads included
//   writes_per_second                beside the reads of kReadWhileWriting
//   resident_bytes                   memory of the process at the end, pages of mapped files
//                                    included; rows apart
//   disk_bytes, disk_reads           cold rows: bytes that the process read from the disk for each
//                                    operation, and reads that the disk served meanwhile for all
//                                    processes
//   written_per_byte, space_per_byte
//
// Thread-safety: one thread uses an object.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "benchmark/engine/engine_rows.h"
#include "benchmark/engine/peer.h"
#include "benchmark/latencies.h"
#include "benchmark/process_use.h"
#include "benchmark/report.h"

namespace varve::bench {

Figures FiguresOf(const Row& row, const Timing& timing);

struct Settings {
  std::string directory;  // for all data
  bool defaults = false;  // as in PeerOptions
  double rest_seconds = kRestSeconds;
};

// The two steps of a row that runs apart; each runs in a process of its own.
enum class Step { kPrepare, kMeasure };

class Measurements {
 public:
  explicit Measurements(Settings settings) : settings_(std::move(settings)) {}

  // Measures the row in this process. Requires: !row.apart().
  Figures Measure(const Row& row, const Engine& engine);

  // The two steps of a row that runs apart. Prepare() leaves a store behind, which any cold row of
  // that engine may measure.
  // Requires: the process is fresh, and has little memory if the row is cold.
  void Prepare(const Row& row, const Engine& engine);
  Figures MeasureApart(const Row& row, const Engine& engine);

  // Closes the stores of this process, before a step runs in another process.
  void CloseStores() { data_sets_.clear(); }

  std::string ColdDirectory(const Row& row, const Engine& engine) const;

 private:
  struct Store {
    std::string directory;
    std::unique_ptr<Peer> peer;
    bool compacted = false;

    ~Store();
  };

  std::unique_ptr<Store> Open(const Engine& engine, const std::string& name, bool synced = false);
  void CheckOnce(const Engine& engine);
  // Returns the settled store for the read rows of this value size. Fills it first if there is none
  // or another row has changed it.
  Store* DataSet(const Row& row, const Engine& engine);
  void Settle(const Row& row, Peer* peer);
  // Opens the store with the settings for little memory.
  std::unique_ptr<Peer> OpenCold(const Row& row, const Engine& engine) const;
  Figures MeasureCold(const Row& row, const Engine& engine);
  Figures MeasureFootprint(const Row& row, Store* store);

  const Settings settings_;
  std::set<std::string> checked_;
  // The data sets by engine, all of the value size `data_set_value_size_`.
  std::map<std::string, std::unique_ptr<Store>> data_sets_;
  size_t data_set_value_size_ = 0;
};

}  // namespace varve::bench
