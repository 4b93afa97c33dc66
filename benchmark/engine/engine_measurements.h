// The measurements provide what each row needs (a fresh store, the settled data set, the passes of
// a store), run its work, and turn the outcome into figures:
//
//   operations_per_second
//   p50_us p99_us p999_us p9999_us   of an operation or call; p9999_us only of writes
//   cpu_us                           processor time of the process for each operation, its
//                                    background threads included
//   writes_per_second                beside the reads of kReadWhileWriting
//   share_of_write write_per_second  kBatchesOfWrite: to a bare write(), and that one's rate
//   resident_bytes                   memory of the process at the end, pages of mapped files
//                                    included; rows of memory and space, and cold ones
//   disk_bytes, disk_reads           rows with more data than memory: bytes that the process read
//                                    from the disk for each operation, and reads that the disk
//                                    served meanwhile for all processes
//   written_per_byte, space_per_byte
//
// Thread-safety: one thread uses an object.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

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

  // Returns for how long a process must do nothing before its footprint is taken.
  double footprint_rest_seconds() const {
    return rest_seconds * (kFootprintRestSeconds / kRestSeconds);
  }
};

// Returns the directory of the store that Prepare() leaves for the row.
std::string PreparedDirectory(const std::string& directory, const Row& row, const Engine& engine);
// Returns the directory where the row's process looks for it: a copy, if the row changes it.
std::string UsedDirectory(const std::string& directory, const Row& row, const Engine& engine);

// Measures rows of one part with one engine. Requires: the process is fresh, and has the memory of
// the part.
class Measurements {
 public:
  using Done = std::function<void(const Row&, const Figures&)>;

  Measurements(Settings settings, Engine engine)
      : settings_(std::move(settings)), engine_(std::move(engine)) {}

  // Fills the store of a row that is prepared() and closes it.
  void Prepare(const Row& row);

  // Measures the rows in their order. `done` is told the figures of each.
  // Requires: the rows are of one part, and its store was prepared if they want that.
  void Measure(const std::vector<Row>& rows, const Done& done);

 private:
  struct Store {
    std::string directory;
    std::unique_ptr<Peer> peer;
    bool compacted = false;

    ~Store();
  };

  std::unique_ptr<Store> Open(const Row& row, const std::string& name);
  std::unique_ptr<Peer> OpenAt(const Row& row, const std::string& directory) const;
  void CheckOnce();
  // Returns the settled store for the read rows. Fills it first if there is none or another row has
  // changed it.
  Store* DataSet(const Row& row);
  void Rest(Peer* peer, double seconds) const;
  void Settle(const Row& row, Peer* peer) const;
  Figures MeasureOne(const Row& row);
  Figures MeasureCold(const Row& row);
  Figures MeasureFootprint(const Row& row);
  Figures MeasureMemory(const Row& row);
  Figures MeasureBatches(const Row& row);
  void MeasurePasses(const std::vector<Row>& rows, const Done& done);
  Figures MeasurePass(const Row& row, const std::string& directory, Peer* peer);

  const Settings settings_;
  const Engine engine_;
  bool checked_ = false;
  std::unique_ptr<Store> data_set_;
};

}  // namespace varve::bench
