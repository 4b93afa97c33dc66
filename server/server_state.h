// What all connections share: the store, the settings in force, and the counters that INFO shows. Thread-safe: the settings do
// not change while the server runs, counters are atomic.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "db/store.h"
#include "server/client_registry.h"
#include "server/command_statistics.h"
#include "server/error_statistics.h"
#include "server/execution_policy.h"
#include "server/monitors.h"
#include "server/pubsub.h"
#include "server/rate_meter.h"
#include "server/scan_cursors.h"
#include "server/slow_log.h"
#include "type/server_options.h"
#include "util/sharded_counter.h"

namespace varve {

inline constexpr const char* kVarveVersion = "0.1.0";
inline constexpr const char* kRedisVersion = "7.0.0";  // the protocol level that clients may count on

struct ServerState {
  ServerState(Store* the_store, ServerOptions the_options,
              std::vector<std::pair<std::string, std::string>> the_settings);

  Store* const store;
  const ServerOptions options;
  // Name and value of what CONFIG GET answers.
  std::vector<std::pair<std::string, std::string>> settings;  // fixed before the first connection is accepted
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();

  std::atomic<uint64_t> next_client_id{1};
  std::atomic<uint64_t> clients{0};
  std::atomic<uint64_t> connections_received{0};
  std::atomic<uint64_t> connections_rejected{0};
  std::atomic<uint64_t> protocol_errors{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> batches_inline{0};
  std::atomic<uint64_t> batches_pooled{0};
  std::atomic<uint64_t> bytes_in{0};
  std::atomic<uint64_t> bytes_out{0};

  ScanCursors scan_cursors;
  RateMeter request_rate, input_rate, output_rate;  // of the counters above
  ShardedCounter keyspace_hits;
  ShardedCounter keyspace_misses;

  CommandStatistics command_statistics;
  ErrorStatistics error_statistics;
  SlowLog slow_log;

  PubSub pubsub;
  Monitors monitors;
  ClientRegistry registry;

  KeyCost read_cost{400};
  KeyCost write_cost{600};
};

}  // namespace varve
