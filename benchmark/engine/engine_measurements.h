// Brings each row what it needs (a fresh store, the settled data set, a process of its own, little
// memory), has its work done and turns what came of it into figures:
//
//   operations_per_second
//   p50_us p99_us p999_us p9999_us   of an operation or call; p9999_us only of writes
//   cpu_us                           processor time of the process for each operation, its
//                                    background threads included
//   writes_per_second                beside the reads of kReadWhileWriting
//   resident_bytes                   memory of the process at the end, pages of mapped files
//                                    included; rows apart
//   disk_bytes, disk_reads           cold rows: bytes that the process read from the disk for each
//                                    operation, and reads that the disk served meanwhile, for
//                                    whomever
//   written_per_byte, space_per_byte
//
// Not thread-safe.
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

// The two steps of a row that runs apart, each in a process of its own.
enum class Step { kPrepare, kMeasure };

class Measurements {
 public:
  explicit Measurements(Settings settings) : settings_(std::move(settings)) {}

  // In this process; not for rows apart.
  Figures Measure(const Row& row, const Engine& engine);

  // A step of a row apart; wants a fresh process, and little memory where the row is cold. Prepare
  // leaves a store behind, which any cold row of that engine may measure.
  void Prepare(const Row& row, const Engine& engine);
  Figures MeasureApart(const Row& row, const Engine& engine);

  // Before a process apart is started: no store of this one is open.
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
  // The settled store for the read rows of this size; filled here where there is none, or another
  // row changed it.
  Store* DataSet(const Row& row, const Engine& engine);
  void Settle(const Row& row, Peer* peer);
  // With the settings for little memory, also while it is filled.
  std::unique_ptr<Peer> OpenCold(const Row& row, const Engine& engine) const;
  Figures MeasureCold(const Row& row, const Engine& engine);
  Figures MeasureFootprint(const Row& row, Store* store);

  const Settings settings_;
  std::set<std::string> checked_;
  // By engine; all of the value size `data_set_value_size_`.
  std::map<std::string, std::unique_ptr<Store>> data_sets_;
  size_t data_set_value_size_ = 0;
};

}  // namespace varve::bench
