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
// that it got the right value; a wrong one ends the part.
//
// Parts. The rows of one part run one after the other in one process of the engine, and share its
// store. That process enters a memory cgroup first, which counts the engine's caches, the kernel's
// pages of its files and mapped files together, so that each engine has the same memory in all.
//
// Passes. The rows scan, seek and get of a store that is well inside the engine's cache, as large
// as it, and beyond all memory are measured in five states, each a row (State).
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/engine/peer.h"

namespace varve::bench {

enum class Work {
  kFillInOrder,    // puts in key order into an empty store
  kFillAtRandom,   // puts in a shuffled order into an empty store
  kFillInBatches,  // the same in batches of `group`
  // The rate of kFillInBatches divided by that of a bare write() of the same bytes, which is
  // measured before and after it.
  kBatchesOfWrite,
  kPut,        // puts in a shuffled order into an empty store by `threads`
  kPutSynced,  // puts in a shuffled order, each on disk before it returns
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
  kSpaceOver,       // as kSpaceFilled, after those
  kResidentFilled,  // resident memory after kWrittenFilled, at rest
  kYcsb,            // a workload of YCSB (ycsb.h)
  kOverwrite,       // puts of keys drawn at random; of no row
};

// What was done to the store of a row of passes before it. A pass is the row's scan, seeks or gets.
enum class State {
  kNone,           // no row of passes
  kPendingFirst,   // the first pass after the last put of the fill: merges are pending
  kPendingSecond,  // the pass after it
  kRestFirst,      // the first one after the store came to rest and was closed and opened
  kRestSecond,     // the pass after it
  kCompacted,      // the second one after the engine merged all and came to rest
};

// How much memory a row of passes has beside its data.
enum class Level {
  kInside,  // the data takes half of the engine's cache
  kAt,      // the cache is as large as the data
  kBeyond,  // the data is kColdRatio times all memory
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
inline constexpr const char* kShare = "share_of_write";

struct Row {
  std::string id;     // in benchmark names and --rows
  std::string title;  // in the table
  Work work;
  size_t value_size;
  int threads;
  uint64_t entries;     // of the store it runs on
  uint64_t operations;  // what is counted
  uint64_t group = 1;   // keys a call
  uint64_t seed = 1;    // another one, other random keys
  bool compacted = false;
  std::string part = "";  // rows of the same part share a process
  Budget memory = {};     // of that process
  State state = State::kNone;
  Level level = Level::kInside;   // of a row of passes
  char workload = 0;              // of YCSB
  bool zipfian = false;           // of YCSB: else keys are drawn evenly
  uint64_t first_insert = 0;      // of YCSB: the number of the first key that it inserts
  unsigned needs_processors = 0;  // without them the row is not measured

  // Returns the name of the figure in the table.
  const char* figure() const;
  bool less_is_better() const;
  // Returns whether the row runs on the settled data set of its value size.
  bool reads_data_set() const;
  bool cold() const { return work == Work::kGetCold || work == Work::kMultiGetCold; }
  bool passes() const { return state != State::kNone; }
  // Returns whether the row's store is filled by a process of its own, which has no limit.
  bool prepared() const { return cold() || (passes() && level != Level::kInside); }
  // Returns whether more data than memory is the point of the row.
  bool short_of_memory() const { return cold() || (passes() && level == Level::kBeyond); }
  // Returns whether one process finds out the figures of all rows of the part.
  bool footprint() const {
    return figure() == std::string(kWritten) || figure() == std::string(kSpace) ||
           work == Work::kResidentFilled;
  }
  // Returns whether the row times puts or deletes.
  bool writes() const;
  // Returns the bytes of keys and values in the store.
  uint64_t live_bytes() const;
  // Returns roughly how many seconds the row takes with one engine, what is shared with the other
  // rows of its part aside.
  double seconds() const;
  // Returns n if one operation (or call) in n is timed; 0 if none is.
  uint64_t latency_every() const;
};

// Returns the rows in the order of the table. `scale` shrinks every count.
std::vector<Row> AllRows(double scale);

}  // namespace varve::bench
