// The rows of the engine table: the work of each row, the size of its data and its main figure.
// engine_work.cc does the work; engine_measurements.h provides the stores and the processes for it.
//
// Data sets. Reads run on a store that was filled at random (each key once, in a shuffled order) by
// single puts. After the fill, outside of the time taken, every store settles in the same way: it
// flushes its write buffer, the process waits until it has used no CPU and written nothing for a
// while (all compactions that the engine wants to do by itself are done; none is forced), the file
// system is synced, and the store is read through once, so that caches are as warm as their size
// allows. The rows called compacted run once the engine was asked to merge all into one run, and
// came to rest again.
//
// Fills, puts and deletes are timed from the first call to the return of the last one. Flushes and
// merges that an engine still has to do then are not counted, for any engine. Every read checks
// that it got the right value; a wrong one ends the benchmark.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace varve::bench {

enum class Work {
  kFillInOrder,    // puts in key order into an empty store
  kFillAtRandom,   // puts in a shuffled order into an empty store
  kFillInBatches,  // the same in batches of `group`
  kPutSynced,      // puts in a shuffled order, each on disk before it returns
  // The same with `threads` in flight, without a thread for each where the engine can.
  kPutAsync,
  kReadInOrder,       // an iterator over all entries, kScanPasses times
  kReadAtRandom,      // gets of keys that exist
  kMultiGet,          // the same in calls of `group` keys; an operation is a key, a latency a call
  kReadMissing,       // gets of keys that don't
  kSeek,              // a new view, a seek to a key that exists, kSeekSteps times next
  kReadWhileWriting,  // gets while another thread overwrites entries at random as fast as it can
  kDelete,            // deletes of all keys in a shuffled order
  kGetCold,           // gets with kColdRatio times more data than memory
  kMultiGetCold,      // the same in calls of `group` keys
  kMemoryFilled,      // resident memory of a fresh process after a fill at random
  kMemoryRead,        // and after as many random reads
  // Bytes to the disk for each byte of keys and values, filled at random and settled.
  kWrittenFilled,
  kSpaceFilled,  // bytes on disk for each of keys and values, then
  // As kWrittenFilled, for kOverwrites times as many puts of random keys after it.
  kWrittenOver,
  kSpaceOver,  // as kSpaceFilled, after those
};

inline constexpr uint64_t kScanPasses = 3;
inline constexpr uint64_t kSeekSteps = 50;
inline constexpr uint64_t kColdRatio = 4;
inline constexpr uint64_t kOverwrites = 3;

// The figures of a row by name: "operations_per_second", "p99_us", ... (engine_measurements.h lists
// them).
inline constexpr const char* kRate = "operations_per_second";
inline constexpr const char* kResident = "resident_bytes";
inline constexpr const char* kWritten = "written_per_byte";
inline constexpr const char* kSpace = "space_per_byte";

struct Row {
  std::string id;     // in benchmark names and --rows
  std::string title;  // in the table
  Work work;
  size_t value_size;
  int threads;
  uint64_t entries;     // of the store it runs on
  uint64_t operations;  // what is counted
  uint64_t group = 1;   // keys a call
  bool compacted = false;

  // Returns the name of the figure in the table.
  const char* figure() const;
  bool less_is_better() const { return figure() != std::string(kRate); }
  // Returns whether the row runs on the settled data set of its value size.
  bool reads_data_set() const;
  // Returns whether the row runs in processes of its own.
  bool apart() const { return less_is_better() || cold(); }
  bool cold() const { return work == Work::kGetCold || work == Work::kMultiGetCold; }
  bool footprint() const {
    return figure() == std::string(kWritten) || figure() == std::string(kSpace);
  }
  // Returns whether the row times puts or deletes.
  bool writes() const;
  // Returns the bytes of keys and values in the store.
  uint64_t live_bytes() const;
  // Returns the memory that a cold row may use.
  uint64_t memory_limit() const { return live_bytes() / kColdRatio; }
  // Returns n if one operation (or call) in n is timed; 0 if none is.
  uint64_t latency_every() const;
};

// Returns the rows in the order of the table. `scale` shrinks every count.
std::vector<Row> AllRows(double scale);

}  // namespace varve::bench
