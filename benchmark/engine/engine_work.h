// The work of each row, done on an open store and timed. The rows are described in engine_rows.h.
//
// Thread-safety: one call at a time; a call starts the threads that its row asks for, and has ended
// them when it returns. Whatever is read is checked; a wrong answer ends the process.
#pragma once

#include <string>

#include "benchmark/engine/engine_rows.h"
#include "benchmark/engine/peer.h"
#include "benchmark/latencies.h"

namespace varve::bench {

// What the row does; for rows whose figure is no rate, the fill at random that comes before it is
// taken.
Timing DoWork(const Row& row, Peer* peer);

// `count` puts of keys drawn at random from the row's entries.
Timing Overwrite(const Row& row, uint64_t count, Peer* peer);

// Gets of keys that exist, as kReadAtRandom does them, by so many threads; others for another seed.
Timing ReadAtRandom(const Row& row, int threads, uint64_t count, uint64_t seed, Peer* peer);

// All entries once, in order.
void ReadThrough(const Row& row, Peer* peer);

// The bytes of a kFillInBatches row, each batch in one write() to a file in `directory`: what no
// engine can beat that writes to files.
Timing BareWrite(const Row& row, const std::string& directory);

}  // namespace varve::bench
