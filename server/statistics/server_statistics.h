// The counters that INFO shows and CONFIG RESETSTAT sets back.
//
// Thread-safety: all threads may count and read; a reset may miss what is counted meanwhile.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/statistics/command_statistics.h"
#include "server/statistics/error_statistics.h"
#include "server/statistics/load_sampler.h"
#include "server/statistics/loop_times.h"
#include "server/statistics/rate_meter.h"
#include "server/statistics/slow_log.h"
#include "util/base/sharded_counter.h"

namespace varve {

struct ServerStatistics {
  // The server knows `command_count` commands and has `loop_count` I/O loops.
  ServerStatistics(size_t command_count, size_t loop_count)
      : loops(loop_count), commands(command_count) {}

  // Lets all counts begin anew. The slow log keeps its entries.
  void Reset();

  uint64_t KeyspaceHits() const { return keyspace_hits.Sum() - hits_before_reset; }
  uint64_t KeyspaceMisses() const { return keyspace_misses.Sum() - misses_before_reset; }

  std::atomic<uint64_t> connections_received{0};
  std::atomic<uint64_t> connections_rejected{0};
  std::atomic<uint64_t> connections_full{0};  // of these, because maxclients were connected
  std::atomic<uint64_t> protocol_errors{0};
  std::atomic<uint64_t> failed_logins{0};
  // The counts say what users were denied: commands, keys, databases, channels, logins.
  std::atomic<uint64_t> access_denied[5] = {};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> batches_inline{0};
  std::atomic<uint64_t> batches_pooled{0};
  std::atomic<uint64_t> bytes_in{0};
  std::atomic<uint64_t> bytes_out{0};
  ShardedCounter keyspace_hits;
  ShardedCounter keyspace_misses;
  // The sums of both counters when they were last reset.
  std::atomic<uint64_t> hits_before_reset{0};
  std::atomic<uint64_t> misses_before_reset{0};
  // The rates of `requests`, `bytes_in` and `bytes_out` in events a second.
  RateMeter request_rate, input_rate, output_rate;
  std::vector<LoopTimes> loops;
  LoadSampler load;
  CommandStatistics commands;
  ErrorStatistics errors;
  SlowLog slow_log;
};

}  // namespace varve
