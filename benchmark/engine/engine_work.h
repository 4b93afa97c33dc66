// Functions that do the work of each row on an open store and time it. engine_rows.h describes the
// rows. They check all that they read; a wrong answer ends the process.
//
// Thread-safety: one call at a time. A call starts the threads that its row asks for and ends them
// before it returns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "benchmark/engine/engine_rows.h"
#include "benchmark/engine/peer.h"
#include "benchmark/latencies.h"
#include "benchmark/workload.h"

namespace varve::bench {

// Ends the process unless `value` is that of the entry `number`, of `size` bytes.
void CheckEntry(std::string_view value, uint64_t number, size_t size);

// Gets the entry `number`, which exists, into `*value`, and checks it.
void GetEntry(const Row& row, uint64_t number, Key* key, Reader* reader, std::string* value);

// Seeks the entry `number`, which exists, steps on so often, and reads all values on the way.
void SeekAndStep(const Row& row, uint64_t number, uint64_t steps, Key* key, Reader* reader);

// Does and times the work of the row. If the row's figure is no rate, this is the fill at random
// before the figure is taken.
Timing DoWork(const Row& row, Peer* peer);

// Does `count` puts of keys drawn at random from the row's entries.
Timing Overwrite(const Row& row, uint64_t count, Peer* peer);

// Gets existing keys, as kReadAtRandom does, with so many threads. The keys depend on `seed`.
Timing ReadAtRandom(const Row& row, int threads, uint64_t count, uint64_t seed, Peer* peer);

// Reads all entries once, in order.
void ReadThrough(const Row& row, Peer* peer);

// Writes the bytes of a kFillInBatches row, each batch with one write() to a file in `directory`.
// No engine that writes to files can be faster.
Timing BareWrite(const Row& row, const std::string& directory);

}  // namespace varve::bench
