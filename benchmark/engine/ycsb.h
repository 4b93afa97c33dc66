// The core workloads of YCSB (Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010)
// on an engine, by the keys and values of workload.h:
//
//   a  50 % reads, 50 % updates
//   b  95 % reads, 5 % updates
//   c  reads
//   d  95 % reads, 5 % inserts; zipfian reads prefer keys that were inserted late
//   e  95 % scans of 1 to 100 entries, 5 % inserts
//   f  50 % reads, 50 % read-modify-writes, which count as one operation
//
// Keys are drawn by zipfian.h, spread over all keys, or evenly. A thread reads, of the inserted
// keys, those that it inserted itself, whose writes are acknowledged.
//
// Thread-safety: one call at a time.
#pragma once

#include <cstdint>

#include "benchmark/engine/engine_rows.h"
#include "benchmark/engine/peer.h"
#include "benchmark/latencies.h"

namespace varve::bench {

// Does and times the workload of the row on a store with the row's entries.
Timing RunYcsb(const Row& row, Peer* peer);

}  // namespace varve::bench
