// TimeThreads does a work by several threads that start together, and takes their time.
//
// Thread-safety: one call at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "benchmark/latencies.h"

namespace varve::bench {

// A thread's part of the work: its number, the operations [begin, end) of all, and where it times
// them.
using ThreadPart = std::function<void(int, uint64_t, uint64_t, Latencies*)>;

// Splits `operations` among the threads. One operation in `latency_every` is timed.
Timing TimeThreads(int threads, uint64_t operations, uint64_t latency_every,
                   const ThreadPart& part);

}  // namespace varve::bench
