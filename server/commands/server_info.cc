#include "server/commands/server_info.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "server/clients/client_description.h"
#include "server/commands/command_table.h"
#include "server/execution/command_context.h"
#include "server/execution/database_index.h"
#include "server/statistics/process_memory.h"
#include "server/status/replication_report.h"
#include "server/tls/tls_contexts.h"
#include "type/version.h"

namespace varve {
namespace {

class InfoText {
 public:
  // `sections`: names that were asked for; none means the default ones.
  explicit InfoText(Arguments sections) : sections_(sections) {}

  enum Kind { kDefault, kOnRequest };

  // Begins a section if it is wanted.
  bool Section(std::string_view name, Kind kind = kDefault) {
    bool wanted = sections_.empty() && kind == kDefault;
    for (const std::string_view section : sections_) {
      wanted = wanted || EqualsIgnoreCase(section, name) || EqualsIgnoreCase(section, "all") ||
               EqualsIgnoreCase(section, "everything") ||
               (EqualsIgnoreCase(section, "default") && kind == kDefault);
    }
    if (wanted)
      fmt::format_to(std::back_inserter(text_), "{}# {}\r\n", text_.empty() ? "" : "\r\n", name);
    return wanted;
  }

  template <typename Value>
  void Line(std::string_view name, const Value& value) {
    fmt::format_to(std::back_inserter(text_), "{}:{}\r\n", name, value);
  }

  std::string Take() { return std::move(text_); }

 private:
  const Arguments sections_;
  std::string text_;
};

// "1.50M" and the like, as Redis writes sizes for people.
std::string Human(uint64_t bytes) {
  constexpr std::string_view kUnits = "BKMGTP";
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{}B", bytes) : fmt::format("{:.2f}{}", value, kUnits[unit]);
}

std::string RunId(const ServerState& server) {
  const auto started = static_cast<uint64_t>(server.started.time_since_epoch().count());
  return fmt::format("{:016x}{:016x}{:08x}", started, started * 0x9E3779B97F4A7C15u,
                     static_cast<uint32_t>(getpid()));
}

std::string ReadLink(const char* link) {
  char path[4096];
  const ssize_t size = ::readlink(link, path, sizeof(path));
  return size < 0 ? std::string() : std::string(path, static_cast<size_t>(size));
}

void WriteServer(const ServerState& server, InfoText* info) {
  utsname system{};
  uname(&system);
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::steady_clock::now() - server.started)
                          .count();
  info->Line("redis_version", kRedisVersion);
  info->Line("varve_version", kVarveVersion);
  info->Line("varve_commit", kVarveCommit);
  info->Line("varve_manifest_format", kManifestFormatVersion);
  info->Line("redis_mode", "standalone");
  info->Line("os", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  info->Line("arch_bits", 8 * sizeof(void*));
  info->Line("multiplexing_api", "epoll");
  info->Line("process_id", getpid());
  info->Line("run_id", RunId(server));
  info->Line("executable", ReadLink("/proc/self/exe"));
  info->Line("config_file", server.configuration.file());
  info->Line("tcp_port", server.configuration.Get("port"));
  info->Line("server_time_usec", std::chrono::duration_cast<std::chrono::microseconds>(
                                     std::chrono::system_clock::now().time_since_epoch())
                                     .count());
  info->Line("uptime_in_seconds", uptime);
  info->Line("uptime_in_days", uptime / 86400);
  info->Line("io_threads_active", server.options.io_threads);
  info->Line("pool_threads", server.options.threads);
}

void WriteClients(const ServerState& server, InfoText* info) {
  uint64_t listening = 0;
  uint64_t most_input = 0;
  uint64_t most_output = 0;
  server.clients.registry.ForEach([&](const ClientState& client) {
    listening += ClientType(client) == "pubsub" ? 1 : 0;
    most_input = std::max(most_input, client.link.input_bytes.load(std::memory_order_relaxed));
    most_output = std::max(most_output, client.link.output_bytes.load(std::memory_order_relaxed));
  });
  info->Line("connected_clients", server.clients.connected.load());
  info->Line("cluster_connections", 0);
  info->Line("maxclients", server.live.max_clients.load());
  info->Line("client_recent_max_input_buffer", most_input);
  info->Line("client_recent_max_output_buffer", most_output);
  info->Line("blocked_clients", server.clients.pause.waiting() + server.clients.changes.blocked());
  info->Line("tracking_clients", server.clients.tracking.count());
  info->Line("pubsub_clients", listening);
}

void WriteMemory(const ServerState& server, InfoText* info) {
  const auto [resident, peak] = ReadProcessMemory();
  const uint64_t system =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  info->Line("used_memory", resident);
  info->Line("used_memory_human", Human(resident));
  info->Line("used_memory_rss", resident);
  info->Line("used_memory_rss_human", Human(resident));
  info->Line("used_memory_peak", peak);
  info->Line("used_memory_peak_human", Human(peak));
  info->Line("used_memory_peak_perc",
             fmt::format("{:.2f}%", peak == 0 ? 100.0
                                              : 100.0 * static_cast<double>(resident) /
                                                    static_cast<double>(peak)));
  info->Line("mem_clients_normal", server.clients.memory.bytes());
  info->Line("total_system_memory", system);
  info->Line("total_system_memory_human", Human(system));
  info->Line("max_disk_bytes", server.disk != nullptr ? server.disk->bound().limit : 0);
  info->Line("disk_bytes", server.disk != nullptr ? server.disk->used() : 0);
  info->Line("memory_limit", server.configuration.Get("memory-limit"));
  const uint64_t max_memory = server.live.max_memory;
  info->Line("maxmemory", max_memory);
  info->Line("maxmemory_human", Human(max_memory));
  info->Line("maxmemory_policy", server.configuration.Get("maxmemory-policy"));
  info->Line("mem_fragmentation_ratio", "1.00");  // as used_memory is what is resident
  info->Line("mem_allocator", "libc");
}

void WritePersistence(const ServerState& server, InfoText* info) {
  const absl::Status log = server.store->log_status();
  info->Line("loading", 0);
  info->Line("async_loading", 0);
  const uint64_t saved = server.last_save.changes;
  info->Line("rdb_changes_since_last_save", std::max(server.store->ChangeCount(), saved) - saved);
  info->Line("rdb_bgsave_in_progress", 0);
  info->Line("rdb_last_save_time", server.last_save.unix_seconds.load());
  info->Line("rdb_last_bgsave_status", "ok");
  info->Line("aof_enabled", 1);
  info->Line("aof_rewrite_in_progress", 0);
  info->Line("aof_last_bgrewrite_status", "ok");
  info->Line("aof_last_write_status", log.ok() ? "ok" : "err");
  info->Line("backup_in_progress", server.backups.in_progress() ? 1 : 0);
  info->Line("sync", server.configuration.Get("sync"));
  info->Line("sync_backend", server.configuration.Get("sync-backend"));
  info->Line("durable_sequence", server.store->durable_sequence());
  if (!log.ok()) info->Line("log_error", log.ToString());
}

void WriteStats(ServerState& server, InfoText* info) {
  info->Line("total_connections_received", server.statistics.connections_received.load());
  info->Line("total_commands_processed", server.statistics.requests.load());
  info->Line("instantaneous_ops_per_sec", static_cast<uint64_t>(server.statistics.request_rate.Rate(
                                              server.statistics.requests.load())));
  info->Line("total_net_input_bytes", server.statistics.bytes_in.load());
  info->Line("total_net_output_bytes", server.statistics.bytes_out.load());
  info->Line(
      "instantaneous_input_kbps",
      fmt::format("{:.2f}",
                  server.statistics.input_rate.Rate(server.statistics.bytes_in.load()) / 1024));
  info->Line(
      "instantaneous_output_kbps",
      fmt::format("{:.2f}",
                  server.statistics.output_rate.Rate(server.statistics.bytes_out.load()) / 1024));
  info->Line("rejected_connections", server.statistics.connections_rejected.load());
  const SyncCounts& syncs = server.replication.counts;
  info->Line("sync_full", syncs.full.load());
  info->Line("sync_partial_ok", syncs.partial_ok.load());
  info->Line("sync_partial_err", syncs.partial_err.load());
  info->Line("diverged_operations", syncs.diverged.load());
  info->Line("evicted_clients", server.clients.memory.evicted());
  for (const auto& [name, value] : server.store->Statistics()) {
    if (name == "expired_keys") info->Line(name, value);
  }
  info->Line("evicted_keys", server.evictor.evicted_keys());
  info->Line("evicted_bytes", server.evictor.evicted_bytes());
  // No write takes the data above its bound, so that there is no such time as Redis measures.
  info->Line("total_eviction_exceeded_time", 0);
  info->Line("current_eviction_exceeded_time", 0);
  info->Line("eviction_noted_reads", server.evictor.noted_reads());
  info->Line("eviction_dropped_reads", server.evictor.dropped_reads());
  info->Line("keyspace_hits", server.statistics.KeyspaceHits());
  info->Line("keyspace_misses", server.statistics.KeyspaceMisses());
  info->Line("pubsub_channels", server.clients.pubsub.Count(PubSub::Kind::kChannel));
  info->Line("pubsub_patterns", server.clients.pubsub.Count(PubSub::Kind::kPattern));
  info->Line("pubsubshard_channels", server.clients.pubsub.Count(PubSub::Kind::kShard));
  info->Line("latest_fork_usec", 0);
  const KeyTracking::Totals tracked = server.clients.tracking.totals();
  info->Line("tracking_total_keys", tracked.keys);
  info->Line("tracking_total_items", tracked.items);
  info->Line("tracking_total_prefixes", tracked.prefixes);
  info->Line("total_error_replies", server.statistics.errors.total());
  const auto& denied = server.statistics.access_denied;
  info->Line("acl_access_denied_auth", denied[4].load());
  info->Line("acl_access_denied_cmd", denied[0].load());
  info->Line("acl_access_denied_key", denied[1].load());
  info->Line("acl_access_denied_channel", denied[3].load());
  info->Line("acl_access_denied_database", denied[2].load());
  info->Line("protocol_errors", server.statistics.protocol_errors.load());
  info->Line("slowlog_entries", server.statistics.slow_log.size());
  info->Line("batches_inline", server.statistics.batches_inline.load());
  info->Line("batches_pooled", server.statistics.batches_pooled.load());
  info->Line("read_cost_ns", server.key_costs.read.nanos());
  info->Line("write_cost_ns", server.key_costs.write.nanos());
}

void WriteReplication(const ServerState& server, InfoText* info) {
  for (const auto& [name, value] : ReplicationLines(server, RunId(server))) info->Line(name, value);
}

void WriteCpu(InfoText* info) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return fmt::format("{}.{:06}", time.tv_sec, static_cast<long>(time.tv_usec));
  };
  info->Line("used_cpu_sys", seconds(usage.ru_stime));
  info->Line("used_cpu_user", seconds(usage.ru_utime));
}

void WriteCommandStats(const ServerState& server, InfoText* info) {
  const std::vector<CommandFigures> figures = server.statistics.commands.Read();
  for (const Command& command : AllCommands()) {
    const CommandFigures& of = figures[command.index];
    if (of.calls + of.rejected == 0) continue;
    const double each =
        of.calls == 0 ? 0 : static_cast<double>(of.nanos) / 1000 / static_cast<double>(of.calls);
    info->Line(
        fmt::format("cmdstat_{}", command.name),
        fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}",
                    of.calls, of.nanos / 1000, each, of.rejected, of.failed));
  }
}

// Under Valkey's names, where it has them.
void WriteTls(const TlsContexts& tls, InfoText* info) {
  const TlsStatistics& counts = tls.statistics();
  info->Line("tls_connections", counts.connections.load(std::memory_order_relaxed));
  info->Line("tls_handshakes", counts.handshakes.load(std::memory_order_relaxed));
  info->Line("tls_handshake_failures", counts.failures.load(std::memory_order_relaxed));
  const std::shared_ptr<const TlsContext> context = tls.Get();
  if (context == nullptr) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  info->Line("tls_server_cert_serial", context->serial());
  info->Line("tls_server_cert_expires_in_seconds",
             context->expires_at() - std::chrono::duration_cast<std::chrono::seconds>(now).count());
}

void WriteLatencyStats(const ServerState& server, InfoText* info) {
  const std::vector<CommandFigures> figures = server.statistics.commands.Read();
  for (const Command& command : AllCommands()) {
    const CommandFigures& of = figures[command.index];
    if (of.calls == 0) continue;
    const auto micros = [&](double quantile) {
      return static_cast<double>(of.Percentile(quantile)) / 1000;
    };
    info->Line(fmt::format("latency_percentiles_usec_{}", command.name),
               fmt::format("p50={:.3f},p99={:.3f},p99.9={:.3f}", micros(0.5), micros(0.99),
                           micros(0.999)));
  }
}

}  // namespace

std::string ServerInfo(ServerState& server, StoreContents& store, Arguments sections,
                       SequenceNumber* durable_after) {
  *durable_after = kNoSequence;
  InfoText info(sections);
  if (info.Section("Server")) WriteServer(server, &info);
  if (info.Section("Clients")) WriteClients(server, &info);
  if (info.Section("Memory")) WriteMemory(server, &info);
  if (info.Section("Persistence")) WritePersistence(server, &info);
  if (info.Section("Stats")) WriteStats(server, &info);
  if (info.Section("Replication")) WriteReplication(server, &info);
  if (info.Section("CPU")) WriteCpu(&info);
  if (info.Section("TLS")) WriteTls(*server.tls, &info);
  if (info.Section("Commandstats", InfoText::kOnRequest)) WriteCommandStats(server, &info);
  if (info.Section("Latencystats", InfoText::kOnRequest)) WriteLatencyStats(server, &info);
  if (info.Section("Errorstats")) {
    for (const auto& [code, count] : server.statistics.errors.by_code()) {
      info.Line(fmt::format("errorstat_{}", code), fmt::format("count={}", count));
    }
  }
  if (info.Section("Cluster")) info.Line("cluster_enabled", 0);
  if (info.Section("Engine")) {
    info.Line("pressure", server.store->pressure());
    for (const auto& [name, value] : server.store->Statistics()) info.Line(name, value);
  }
  // A store that has to read all keys for it does so for those who ask for it.
  const InfoText::Kind keyspace =
      store.capabilities().exact_counts ? InfoText::kDefault : InfoText::kOnRequest;
  if (info.Section("Keyspace", keyspace)) {
    const absl::StatusOr<std::vector<NamespaceId>> databases = Databases(store);
    for (const NamespaceId database : databases.ok() ? *databases : std::vector<NamespaceId>()) {
      const absl::StatusOr<CountResult> count = store.Count(NoWaitReadOptions(database), "", "");
      if (!count.ok()) continue;
      *durable_after = std::max(*durable_after, count->durable_after);
      if (count->keys == 0) continue;
      const uint64_t now = store.NowMillis();
      info.Line(fmt::format("db{}", database),
                fmt::format("keys={},expires={},avg_ttl={}", count->keys, count->expiring,
                            std::max(count->mean_expiry_ms, now) - now));
    }
  }
  return info.Take();
}

}  // namespace varve
