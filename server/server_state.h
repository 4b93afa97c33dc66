// What all connections share: the store, the settings in force, and the counters that INFO shows.
// Thread-safe: the options do not change while the server runs, what may change is atomic or has a
// lock of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "server/clients/client_memory.h"
#include "server/clients/client_registry.h"
#include "server/clients/keyspace_events.h"
#include "server/clients/login_guard.h"
#include "server/clients/monitors.h"
#include "server/clients/password.h"
#include "server/clients/pubsub.h"
#include "server/config/configuration.h"
#include "server/config/live_options.h"
#include "server/execution/execution_policy.h"
#include "server/execution/scan_cursors.h"
#include "server/statistics/command_statistics.h"
#include "server/statistics/error_statistics.h"
#include "server/statistics/rate_meter.h"
#include "server/statistics/slow_log.h"
#include "type/server_options.h"
#include "type/version.h"
#include "util/base/sharded_counter.h"
#include "varve/store.h"

namespace varve {

// The protocol level that clients may count on.
inline constexpr const char* kRedisVersion = "7.0.0";

// The program around the server.
struct ServerProgram {
  // Where settings came from, and CONFIG REWRITE writes to; empty: there is none.
  std::string config_file;
  // The settings as they were given, which CONFIG REWRITE writes with the changes since; unset: all
  // that the server is started with.
  std::optional<ServerConfig> given;
  // What SHUTDOWN does: has the server stopped soon, from another thread; may be empty.
  std::function<void()> shut_down;
};

struct ServerState {
  // `settings`: those in force.
  ServerState(Store* the_store, ServerConfig settings, ServerProgram program);

  Store* const store;
  const ServerOptions options;  // as they were at start; what may change stands in `live`
  const bool groups_gather;     // --group-max-delay: a group of the log waits for company
  LiveOptions live;
  Password password;
  LoginGuard login_guard;
  Configuration configuration;
  const std::function<void()> shut_down;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  // When everything was put on disk because somebody asked for it, in seconds since the epoch;
  // before that: the start.
  std::atomic<int64_t> last_save = std::time(nullptr);
  std::atomic<uint64_t> saved_changes;  // Store::ChangeCount() then

  std::atomic<uint64_t> next_client_id{1};
  std::atomic<uint64_t> clients{0};
  std::atomic<uint64_t> connections_received{0};
  std::atomic<uint64_t> connections_rejected{0};
  std::atomic<uint64_t> protocol_errors{0};
  std::atomic<uint64_t> failed_logins{0};
  std::atomic<uint64_t> requests{0};
  std::atomic<uint64_t> batches_inline{0};
  std::atomic<uint64_t> batches_pooled{0};
  std::atomic<uint64_t> bytes_in{0};
  std::atomic<uint64_t> bytes_out{0};

  ScanCursors scan_cursors;
  RateMeter request_rate, input_rate, output_rate;  // of the counters above
  ShardedCounter keyspace_hits;
  ShardedCounter keyspace_misses;
  std::atomic<uint64_t> hits_before_reset{0};
  std::atomic<uint64_t> misses_before_reset{0};

  CommandStatistics command_statistics;
  ErrorStatistics error_statistics;
  SlowLog slow_log;

  ClientMemory client_memory;
  PubSub pubsub{&client_memory};
  KeyspaceEvents events{&pubsub, options.key_events};
  Monitors monitors{&client_memory};
  ClientRegistry registry;

  KeyCost read_cost{400};
  KeyCost write_cost{600};

  // Whether somebody listens, and what was written so far may be told of, each message at its gate.
  bool MayTell() const { return pubsub.Any() && store->PushUnsynced().ok(); }

  // CONFIG RESETSTAT: counts begin anew. Not those of what there is now, such as `clients`.
  void ResetStatistics();
};

}  // namespace varve
