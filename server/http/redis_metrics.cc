#include "server/http/redis_metrics.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_table.h"
#include "server/commands/server_info.h"
#include "server/http/replication_metrics.h"
#include "server/statistics/process_memory.h"
#include "server/status/status_document.h"
#include "util/base/assert.h"

namespace varve {
namespace {

using Type = MetricsText::Type;

double Seconds(uint64_t nanos) { return static_cast<double>(nanos) / 1e9; }

void WriteServer(const ServerState& server, MetricsText* text) {
  text->Only("redis_up", Type::kGauge, "", "The server answers.", uint64_t{1});
  const std::string_view role = server.replication.follows() ? "slave" : "master";
  text->Family("redis_instance", Type::kInfo, "", "What the server is.");
  text->Sample({{"redis_mode", "standalone"}, {"redis_version", kRedisVersion}, {"role", role}},
               uint64_t{1});
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - server.started);
  const auto seconds = static_cast<uint64_t>(uptime.count());
  text->Only("redis_uptime_in_seconds", Type::kGauge, "seconds", "Time since the start.", seconds);
  text->Only("redis_start_time_seconds", Type::kGauge, "seconds", "When the server was started.",
             static_cast<uint64_t>(std::time(nullptr)) - seconds);
  text->Only("redis_slowlog_length", Type::kGauge, "", "Entries of the slow log.",
             uint64_t{server.statistics.slow_log.size()});
}

void WriteRedisClients(const ServerState& server, MetricsText* text) {
  const ServerStatistics& statistics = server.statistics;
  text->Only("redis_connected_clients", Type::kGauge, "", "Open connections.",
             server.clients.connected.load());
  text->Only("redis_blocked_clients", Type::kGauge, "",
             "Clients that wait for the end of CLIENT PAUSE, or for a change.",
             uint64_t{server.clients.pause.waiting() + server.clients.changes.blocked()});
  text->Only("redis_max_clients", Type::kGauge, "", "The most connections that are served.",
             uint64_t{server.live.max_clients.load()});
  text->Only("redis_connections_received", Type::kCounter, "", "Connections that came.",
             statistics.connections_received.load());
  text->Only("redis_rejected_connections", Type::kCounter, "", "Connections that were refused.",
             statistics.connections_rejected.load());
  text->Only("redis_acl_access_denied_auth", Type::kCounter, "", "Wrong passwords.",
             statistics.failed_logins.load());
  text->Only("redis_net_input_bytes", Type::kCounter, "bytes", "What clients sent.",
             statistics.bytes_in.load());
  text->Only("redis_net_output_bytes", Type::kCounter, "bytes", "What was sent to clients.",
             statistics.bytes_out.load());
  text->Only("redis_pubsub_channels", Type::kGauge, "", "Channels with subscribers.",
             uint64_t{server.clients.pubsub.Count(PubSub::Kind::kChannel)});
  text->Only("redis_pubsub_patterns", Type::kGauge, "", "Patterns with subscribers.",
             uint64_t{server.clients.pubsub.Count(PubSub::Kind::kPattern)});
}

void WriteRedisProcess(const ServerState& server, MetricsText* text) {
  const ProcessMemory memory = ReadProcessMemory();
  text->Only("redis_memory_used_bytes", Type::kGauge, "bytes", "Resident memory.", memory.resident);
  text->Only("redis_memory_used_rss_bytes", Type::kGauge, "bytes", "Resident memory.",
             memory.resident);
  text->Only("redis_memory_used_peak_bytes", Type::kGauge, "bytes", "The most resident memory.",
             memory.peak);
  text->Only("redis_memory_max_bytes", Type::kGauge, "bytes",
             "maxmemory, of keys and values; 0: no limit.", uint64_t{server.live.max_memory});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  text->Only("redis_cpu_sys_seconds", Type::kCounter, "seconds", "Processor time in the kernel.",
             seconds(usage.ru_stime));
  text->Only("redis_cpu_user_seconds", Type::kCounter, "seconds",
             "Processor time outside the kernel.", seconds(usage.ru_utime));
}

void WriteRedisCommands(const ServerState& server, MetricsText* text) {
  const std::vector<CommandFigures> figures = server.statistics.commands.Read();
  const auto each = [&](std::string_view name, std::string_view unit, std::string_view help,
                        auto value) {
    text->Family(name, Type::kCounter, unit, help);
    for (const Command& command : AllCommands()) {
      const CommandFigures& of = figures[command.index];
      if (of.calls + of.rejected > 0) text->Sample({{"cmd", command.name}}, value(of));
    }
  };
  text->Only("redis_commands_processed", Type::kCounter, "", "Requests that were executed.",
             server.statistics.requests.load());
  const auto calls = [](const CommandFigures& of) { return of.calls; };
  each("redis_commands", "", "Calls by command.", calls);
  each("redis_command_calls", "", "Calls by command.", calls);
  each("redis_commands_duration_seconds", "seconds", "Time that the calls took.",
       [](const CommandFigures& of) { return Seconds(of.nanos); });
  each("redis_commands_rejected_calls", "", "Calls refused before execution.",
       [](const CommandFigures& of) { return of.rejected; });
  each("redis_commands_failed_calls", "", "Calls that an error answered.",
       [](const CommandFigures& of) { return of.failed; });
  text->Family("redis_errors", Type::kCounter, "", "Error replies by their first word.");
  for (const auto& [code, count] : server.statistics.errors.by_code())
    text->Sample({{"err", code}}, count);
}

void WriteDatabases(const ServerState& server, const StoreObservation& seen, MetricsText* text) {
  std::vector<NamespaceEstimate> databases(static_cast<size_t>(server.options.databases));
  for (const NamespaceEstimate& space : seen.namespaces) {
    if (space.id < databases.size()) databases[space.id] = space;
  }
  const auto each = [&](auto value) {
    for (size_t db = 0; db < databases.size(); ++db)
      text->Sample({{"db", fmt::format("db{}", db)}}, value(databases[db]));
  };
  text->Family("redis_db_keys", Type::kGauge, "", "About how many keys a database holds.");
  each([](const NamespaceEstimate& space) { return space.keys; });
  text->Family("redis_db_keys_expiring", Type::kGauge, "", "About how many of these keys expire.");
  each([](const NamespaceEstimate& space) { return space.expiring; });
  text->Family("redis_db_avg_ttl_seconds", Type::kGauge, "seconds",
               "About how long these keys have left on average.");
  const uint64_t now = server.store->NowMillis();
  each([now](const NamespaceEstimate& space) {
    return static_cast<double>(std::max(space.mean_expiry_ms, now) - now) / 1e3;
  });
}

void WriteKeys(const ServerState& server, const StoreObservation& seen, MetricsText* text) {
  text->Only("redis_keyspace_hits", Type::kCounter, "", "Keys asked for and found.",
             server.statistics.KeyspaceHits());
  text->Only("redis_keyspace_misses", Type::kCounter, "", "Keys asked for and missing.",
             server.statistics.KeyspaceMisses());
  text->Only("redis_expired_keys", Type::kCounter, "", "Keys removed as their time was over.",
             FigureOf(seen, "expired_keys"));
  text->Only("redis_evicted_keys", Type::kCounter, "", "Keys removed to make room.",
             server.evictor.evicted_keys());
  WriteDatabases(server, seen, text);
  const uint64_t saved = server.last_save.changes;
  text->Only("redis_rdb_changes_since_last_save", Type::kGauge, "", "Writes since a SAVE.",
             std::max(server.store->ChangeCount(), saved) - saved);
  text->Only("redis_aof_last_write_status", Type::kGauge, "", "1: the log works.",
             uint64_t{server.store->log_status().ok()});
}

}  // namespace

void WriteRedisMetrics(ServerState& server, MetricsText* text) {
  VARVE_ASSERT(text != nullptr);
  const StoreObservation seen = server.store->Observe();
  WriteServer(server, text);
  WriteRedisReplication(server, text);
  WriteRedisClients(server, text);
  WriteRedisProcess(server, text);
  WriteRedisCommands(server, text);
  WriteKeys(server, seen, text);
}

}  // namespace varve
