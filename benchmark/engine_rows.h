// The rows of the engine table and how each is measured: the same work for every engine, behind peer.h.
//
// Data sets. Reads run on a store that was filled at random (each key once, in a shuffled order) by single puts. After
// the fill, outside of the time taken, every store settles in the same way: it flushes its write buffer, the process
// waits until it has used no CPU and written nothing for a while (all compactions that the engine wants to do by itself
// are done; none is forced), the file system is synced, and the store is read through once, so that caches are as warm
// as their size allows.
//
// Fills and puts are timed from the first put to the return of the last; what an engine still owes then (flush,
// compaction) is not counted, as it isn't for the others. Every read checks that it got the right value; a wrong one
// ends the benchmark.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "benchmark/peer.h"

namespace varve::bench {

enum class Work {
  kFillInOrder,    // puts in key order into an empty store
  kFillAtRandom,   // puts in a shuffled order into an empty store
  kFillInBatches,  // the same in batches of kBatchSize
  kFillSynced,     // puts in a shuffled order, each on disk before it returns
  kReadInOrder,    // an iterator over all entries, kScanPasses times
  kReadAtRandom,   // gets of keys that exist
  kReadMissing,    // gets of keys that don't
  kSeek,           // a new view, a seek to a key that exists, kSeekSteps times next
  kMemoryFilled,   // resident memory of a fresh process after a fill at random
  kMemoryRead,     // and after as many random reads
};

inline constexpr int64_t kBatchSize = 50;
inline constexpr int64_t kScanPasses = 3;
inline constexpr int64_t kSeekSteps = 50;

struct Row {
  std::string id;     // in benchmark names and --rows
  std::string title;  // in the table
  Work work;
  size_t value_size;
  int threads;
  uint64_t entries;     // of the store it runs on
  uint64_t operations;  // what is counted

  // Bytes instead of operations per second; then less is better.
  bool in_bytes() const { return work == Work::kMemoryFilled || work == Work::kMemoryRead; }
  bool reads_data_set() const {
    return work == Work::kReadInOrder || work == Work::kReadAtRandom || work == Work::kReadMissing ||
           work == Work::kSeek;
  }
};

// In the order of the table. `scale` shrinks every count.
std::vector<Row> AllRows(double scale);

class Measurements {
 public:
  // All data goes below `directory`.
  explicit Measurements(std::string directory) : directory_(std::move(directory)) {}

  // Runs the row's work once; returns the seconds it took. Not for rows in bytes.
  double Seconds(const Row& row, const Engine& engine);

  // Bytes resident in this process after the row's work; wants a fresh process.
  double MemoryBytes(const Row& row, const Engine& engine);

 private:
  struct Store {
    std::string directory;
    std::unique_ptr<Peer> peer;

    ~Store();
  };

  std::unique_ptr<Store> Open(const Engine& engine, const std::string& name, bool synced = false);
  void CheckOnce(const Engine& engine);
  // The settled store for the read rows of this size; filled here where the row that fills it was left out.
  Peer* DataSet(const Row& row, const Engine& engine);
  void Settle(const Row& row, Peer* peer);

  const std::string directory_;
  std::map<std::string, bool> checked_;
  // By engine; all of the value size `data_set_value_size_`.
  std::map<std::string, std::unique_ptr<Store>> data_sets_;
  size_t data_set_value_size_ = 0;
};

}  // namespace varve::bench
