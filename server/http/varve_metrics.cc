#include "server/http/varve_metrics.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "fmt/format.h"
#include "server/commands/command_table.h"
#include "server/http/replication_metrics.h"
#include "server/requests/key_range.h"
#include "server/statistics/process_memory.h"
#include "server/status/server_health.h"
#include "server/status/status_document.h"
#include "server/tls/tls_contexts.h"
#include "type/version.h"
#include "util/base/assert.h"

namespace varve {
namespace {

using Type = MetricsText::Type;

constexpr std::string_view kLimits[] = {"sync",    "flush", "merge", "disk_full", "maxmemory",
                                        "clients", "store", "cpu",   "nothing"};
constexpr std::string_view kMergeFigure = "compactions_";

// A figure of the store as a metric. The metric of a figure in nanoseconds has seconds.
struct FigureMetric {
  std::string_view figure;
  std::string_view name;
  Type type;
  std::string_view unit;
  std::string_view help;
};

constexpr FigureMetric kFigures[] = {
    {"sequence", "varve_visible_sequence", Type::kGauge, "", "The newest write that readers see."},
    {"durable_sequence", "varve_durable_sequence", Type::kGauge, "",
     "The newest write that is on disk with all before it."},
    {"gets", "varve_store_gets", Type::kCounter, "", "Keys that were looked up in the store."},
    {"writes", "varve_store_writes", Type::kCounter, "", "Batches that were committed."},
    {"write_conflicts", "varve_write_conflicts", Type::kCounter, "",
     "Batches whose condition no longer held."},
    {"expired_keys", "varve_expired_keys", Type::kCounter, "",
     "Keys that were removed because their time was over."},
    {"log_groups", "varve_log_groups", Type::kCounter, "", "Groups of writes that were synced."},
    {"log_syncs", "varve_log_syncs", Type::kCounter, "", "Syncs of the log."},
    {"log_bytes_appended", "varve_log_appended_bytes", Type::kCounter, "bytes",
     "Records that were appended to the log."},
    {"log_bytes_written", "varve_log_written_bytes", Type::kCounter, "bytes",
     "What was written to log files, with headers and padding."},
    {"log_files_recycled", "varve_log_files_recycled", Type::kCounter, "",
     "Log files that were used again."},
    {"log_live_bytes", "varve_log_live_bytes", Type::kGauge, "bytes",
     "Log files that a restart would replay."},
    {"data_bytes_counted", "varve_data_counted_bytes", Type::kGauge, "bytes",
     "Keys and values when they were last counted for maxmemory; 0: not counted."},
    {"data_bytes_at_most", "varve_data_at_most_bytes", Type::kGauge, "bytes",
     "The same with all that was written since, overwritten and removed keys included."},
    {"write_buffer_bytes", "varve_write_buffer_bytes", Type::kGauge, "bytes",
     "Memory of all write buffers."},
    {"full_write_buffers", "varve_full_write_buffers", Type::kGauge, "",
     "Write buffers that wait to be flushed."},
    {"runs", "varve_runs", Type::kGauge, "", "Sorted runs that a read may have to look into."},
    {"segment_bytes", "varve_segment_bytes", Type::kGauge, "bytes", "Size of all segments."},
    {"segment_entries", "varve_segment_records", Type::kGauge, "", "Records in all segments."},
    {"value_files", "varve_value_files", Type::kGauge, "", "Files of values kept apart."},
    {"value_bytes", "varve_value_bytes", Type::kGauge, "bytes", "Size of all value files."},
    {"value_garbage_bytes", "varve_value_garbage_bytes", Type::kGauge, "bytes",
     "The part of the value files that no segment points to."},
    {"change_first", "varve_change_first_version", Type::kGauge, "",
     "The oldest position from which the change feed can be read."},
    {"change_files", "varve_change_files", Type::kGauge, "", "Files of retained changes."},
    {"change_bytes", "varve_change_bytes", Type::kGauge, "bytes",
     "Size of the files of retained changes."},
    {"change_memory_bytes", "varve_change_memory_bytes", Type::kGauge, "bytes",
     "Changes in memory that are not in files yet."},
    {"changes_given_up", "varve_changes_given_up", Type::kCounter, "",
     "How often retained changes were given up because their files could not be written."},
    {"feeds", "varve_change_feeds", Type::kGauge, "", "Places of readers of the change feed."},
    {"lost_feeds", "varve_change_feeds_lost", Type::kCounter, "",
     "Places that were lost because they fell behind their bounds."},
    {"flushed_bytes", "varve_flush_written_bytes", Type::kCounter, "bytes",
     "What flushes wrote to segments."},
    {"failed_compactions", "varve_merge_failures", Type::kCounter, "", "Merges that failed."},
    {"compaction_parts", "varve_merge_parts", Type::kCounter, "",
     "Ranges of keys in which merges were made."},
    {"compaction_input_bytes", "varve_merge_read_bytes", Type::kCounter, "bytes",
     "What merges read."},
    {"compacted_bytes", "varve_merge_written_bytes", Type::kCounter, "bytes", "What merges wrote."},
    {"segment_lookups", "varve_segment_lookups", Type::kCounter, "",
     "Segments that were asked for a key."},
    {"record_reads", "varve_record_reads", Type::kCounter, "",
     "Disk reads of records for point reads."},
    {"table_page_reads", "varve_table_page_reads", Type::kCounter, "",
     "Disk reads of pages of offset tables that were not in memory."},
    {"scan_reads", "varve_scan_reads", Type::kCounter, "", "Disk reads of iterators."},
    {"fingerprint_false_positives", "varve_filter_false_positives", Type::kCounter, "",
     "Records that were read for another key."},
    {"block_cache_hits", "varve_cache_hits", Type::kCounter, "",
     "Reads that the block cache answered."},
    {"block_cache_misses", "varve_cache_misses", Type::kCounter, "",
     "Reads that the block cache did not answer."},
    {"block_cache_bytes", "varve_cache_bytes", Type::kGauge, "bytes",
     "Memory that the block cache uses."},
    {"offset_table_loads", "varve_table_loads", Type::kCounter, "",
     "Offset tables that were read into memory."},
    {"offset_table_cache_bytes", "varve_table_cache_bytes", Type::kGauge, "bytes",
     "Memory of the resident offset tables."},
    {"hbase_calls", "varve_hbase_calls", Type::kCounter, "",
     "Reads, commits and scans that the store asked of the cluster of HBase."},
    {"hbase_requests", "varve_hbase_requests", Type::kCounter, "",
     "Requests that these calls took, to all servers of the cluster."},
    {"hbase_retries", "varve_hbase_retries", Type::kCounter, "",
     "How often a part of a call was tried again after a pause."},
    {"hbase_region_lookups", "varve_hbase_region_lookups", Type::kCounter, "",
     "How often the table of regions was asked where a region is."},
    {"hbase_connections_opened", "varve_hbase_connections_opened", Type::kCounter, "",
     "Connections to servers of the cluster that were opened."},
    {"hbase_bytes_sent", "varve_hbase_sent_bytes", Type::kCounter, "bytes",
     "What was sent to the cluster."},
    {"hbase_bytes_received", "varve_hbase_received_bytes", Type::kCounter, "bytes",
     "What came from the cluster."},
    {"hbase_missed_deadlines", "varve_hbase_missed_deadlines", Type::kCounter, "",
     "Calls that were not answered within their deadline."},
    {"hbase_in_flight", "varve_hbase_calls_in_flight", Type::kGauge, "",
     "Calls that are not answered yet."},
    {"hbase_in_flight_bytes", "varve_hbase_calls_in_flight_bytes", Type::kGauge, "bytes",
     "Memory that these calls hold."},
    {"hbase_wait_nanos", "varve_hbase_wait_seconds", Type::kCounter, "seconds",
     "How long calls took until they were answered, all of them together."},
    {"hbase_guessed_versions", "varve_hbase_guessed_versions", Type::kCounter, "",
     "Rows that were written without a read before, on a guess at what they hold."},
    {"hbase_wrong_guesses", "varve_hbase_wrong_guesses", Type::kCounter, "",
     "Guesses that were wrong, after which the row was read and written again."},
    {"hbase_removed_rows", "varve_hbase_removed_rows", Type::kCounter, "",
     "Rows of keys that were gone which this server removed from the cluster."},
    {"hbase_is_remover", "varve_hbase_is_remover", Type::kGauge, "",
     "1: this server is the one that removes such rows."},
    {"hbase_trusts_namespaces", "varve_hbase_trusts_namespaces", Type::kGauge, "",
     "1: this server knows the namespaces; 0: it refuses all keys until it can read them again."},
    {"hbase_floor", "varve_hbase_floor_version", Type::kGauge, "",
     "The version above which every new one is; what was removed for good is not above it."},
};

void WriteBuild(const ServerState& server, MetricsText* text) {
  text->Family("varve_build", Type::kInfo, "",
               "The version of the server, its commit, and the newest manifest that it writes.");
  text->Sample({{"version", kVarveVersion},
                {"commit", kVarveCommit},
                {"format", fmt::to_string(kManifestFormatVersion)}},
               uint64_t{1});
  const std::chrono::duration<double> uptime = std::chrono::steady_clock::now() - server.started;
  text->Only("varve_uptime_in_seconds", Type::kGauge, "seconds", "Time since the server started.",
             uptime.count());
}

void WriteHealth(ServerState& server, const StoreObservation& seen, MetricsText* text) {
  uint64_t problems = 0;
  for (const HealthCheck& check : HealthChecks(server, seen))
    problems += check.problem.empty() ? 0 : 1;
  text->Only("varve_healthy", Type::kGauge, "", "1: every check of /readyz passes.",
             uint64_t{problems == 0});
  const Load load = LookAtLoad(server, seen);
  const Limit limit = LimitOf(load);
  text->Family("varve_limited_by", Type::kGauge, "", "1 at what bounds the server now.");
  for (const std::string_view id : kLimits) text->Sample({{"limit", id}}, uint64_t{id == limit.id});
  text->Only("varve_io_loop_busy_ratio", Type::kGauge, "ratio",
             "The share of the last second or two in which the busiest I/O thread worked.",
             load.loop_busy);
  text->Only("varve_log_sync_busy_ratio", Type::kGauge, "ratio",
             "The share of the last second or two in which a sync was under way.", load.sync_busy);
  text->Only("varve_store_busy_ratio", Type::kGauge, "ratio",
             "The share of the last second or two in which a store on other machines had requests.",
             load.store_busy);
  const StoreWaits::Figures waits = server.store_waits.Look(load.now.at);
  text->Only("varve_store_requests_in_flight", Type::kGauge, "",
             "Requests that a store on other machines has not answered yet.",
             uint64_t{waits.in_flight});
  text->Only("varve_store_waiting_clients", Type::kGauge, "",
             "Connections that wait until a store on other machines has room for their requests.",
             uint64_t{waits.waiting});
  text->Only("varve_store_requests", Type::kCounter, "",
             "Requests for which a store on other machines was asked.", waits.asked);
  text->Only("varve_pressure_ratio", Type::kGauge, "ratio",
             "How far flushes and merges are behind; writers are slowed down above 0.5.",
             server.store->pressure());
}

void WriteClients(const ServerState& server, MetricsText* text) {
  const ServerStatistics& statistics = server.statistics;
  text->Only("varve_connected_clients", Type::kGauge, "", "Open connections.",
             server.clients.connected.load());
  text->Only("varve_max_clients", Type::kGauge, "", "The most connections that are served.",
             uint64_t{server.live.max_clients.load()});
  text->Only("varve_connections_received", Type::kCounter, "", "Connections that came.",
             statistics.connections_received.load());
  text->Only("varve_rejected_connections", Type::kCounter, "", "Connections that were refused.",
             statistics.connections_rejected.load());
  text->Only("varve_evicted_clients", Type::kCounter, "",
             "Connections that were closed because they held too much memory.",
             server.clients.memory.evicted());
  text->Only("varve_clients_memory_bytes", Type::kGauge, "bytes",
             "Memory of requests, replies and messages.", uint64_t{server.clients.memory.bytes()});
  text->Only("varve_protocol_errors", Type::kCounter, "",
             "Connections that sent something else than requests.",
             statistics.protocol_errors.load());
  text->Only("varve_acl_access_denied_auth", Type::kCounter, "", "Wrong passwords.",
             statistics.failed_logins.load());
  text->Only("varve_net_input_bytes", Type::kCounter, "bytes", "What clients sent.",
             statistics.bytes_in.load());
  text->Only("varve_net_output_bytes", Type::kCounter, "bytes", "What was sent to clients.",
             statistics.bytes_out.load());
}

void WriteProcess(const ServerState& server, MetricsText* text) {
  const ProcessMemory memory = ReadProcessMemory();
  text->Only("varve_memory_used_bytes", Type::kGauge, "bytes", "Resident memory of the process.",
             memory.resident);
  text->Only("varve_memory_used_peak_bytes", Type::kGauge, "bytes",
             "The most resident memory that the process had.", memory.peak);
  text->Only("varve_max_data_bytes", Type::kGauge, "bytes",
             "maxmemory, the most bytes of keys and values; 0: no limit.",
             uint64_t{server.live.max_memory});
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  text->Only("varve_cpu_sys_seconds", Type::kCounter, "seconds",
             "Processor time of the process in the kernel.", seconds(usage.ru_stime));
  text->Only("varve_cpu_user_seconds", Type::kCounter, "seconds",
             "Processor time of the process outside the kernel.", seconds(usage.ru_utime));
}

void WriteEviction(const ServerState& server, MetricsText* text) {
  text->Only("varve_evicted_keys", Type::kCounter, "", "Keys that were evicted to make room.",
             server.evictor.evicted_keys());
  text->Only("varve_evicted_bytes", Type::kCounter, "bytes",
             "Bytes of these keys and their values.", server.evictor.evicted_bytes());
  text->Only("varve_eviction_noted_reads", Type::kCounter, "",
             "Reads that the order of evictions has taken.", server.evictor.noted_reads());
  text->Only("varve_eviction_dropped_reads", Type::kCounter, "",
             "Reads that it has not taken for want of memory.", server.evictor.dropped_reads());
  text->Only("varve_max_disk_bytes", Type::kGauge, "bytes",
             "max-disk-bytes, the most that the data directory may take; 0: no limit.",
             server.disk != nullptr ? server.disk->bound().limit : 0);
  text->Only("varve_disk_bytes", Type::kGauge, "bytes",
             "What the data directory takes, where max-disk-bytes bounds it; else 0.",
             server.disk != nullptr ? server.disk->used() : 0);
}

void WriteCommands(const ServerState& server, MetricsText* text) {
  const std::vector<CommandFigures> figures = server.statistics.commands.Read();
  const auto each = [&](auto write) {
    for (const Command& command : AllCommands()) {
      const CommandFigures& of = figures[command.index];
      if (of.calls + of.rejected > 0) write(command.name, of);
    }
  };
  text->Only("varve_commands_processed", Type::kCounter, "", "Requests that were executed.",
             server.statistics.requests.load());
  text->Family("varve_commands", Type::kCounter, "", "Calls by command.");
  each([&](std::string_view name, const CommandFigures& of) {
    text->Sample({{"cmd", name}}, of.calls);
  });
  text->Family("varve_commands_rejected_calls", Type::kCounter, "",
               "Calls that were refused before execution.");
  each([&](std::string_view name, const CommandFigures& of) {
    text->Sample({{"cmd", name}}, of.rejected);
  });
  text->Family("varve_commands_failed_calls", Type::kCounter, "", "Calls that an error answered.");
  each([&](std::string_view name, const CommandFigures& of) {
    text->Sample({{"cmd", name}}, of.failed);
  });
  text->Family("varve_command_duration_seconds", Type::kHistogram, "seconds",
               "How long the executing thread worked on a call; waiting for a sync is not in it.");
  each([&](std::string_view name, const CommandFigures& of) {
    if (of.calls > 0) text->Histogram({{"cmd", name}}, DurationsOf(of));
  });
  text->Family("varve_errors", Type::kCounter, "", "Error replies by their first word.");
  for (const auto& [code, count] : server.statistics.errors.by_code())
    text->Sample({{"err", code}}, count);
  text->Only("varve_keyspace_hits", Type::kCounter, "", "Keys that were asked for and found.",
             server.statistics.KeyspaceHits());
  text->Only("varve_keyspace_misses", Type::kCounter, "", "Keys that were asked for and missing.",
             server.statistics.KeyspaceMisses());
  text->Only("varve_slowlog_length", Type::kGauge, "", "Entries of the slow log.",
             uint64_t{server.statistics.slow_log.size()});
}

void WriteBackups(ServerState& server, MetricsText* text) {
  const BackupReport report = server.backups.Report(/*is_use=*/false);
  const bool holds = server.backups.holds_files();
  text->Only("varve_backup_in_progress", Type::kGauge, "",
             "1 while a backup is begun and not sealed.",
             uint64_t{server.backups.in_progress() ? 1u : 0u});
  text->Only("varve_backup_held_bytes", Type::kGauge, "bytes",
             "Files that a backup keeps until it is cleaned up; the store uses most of them, too.",
             holds ? report.bytes() : 0);
  text->Only("varve_backups_sealed", Type::kCounter, "", "Backups that were sealed.",
             report.totals.sealed);
  text->Only("varve_backups_failed", Type::kCounter, "", "Steps of backups that failed.",
             report.totals.failed);
  text->Only("varve_backup_last_seal_timestamp_seconds", Type::kGauge, "seconds",
             "When the last backup since the start was sealed, in seconds since 1970; 0: none was.",
             static_cast<uint64_t>(std::max<int64_t>(report.totals.last_time, 0)));
  text->Only("varve_backup_last_version", Type::kGauge, "",
             "The version that this backup holds; 0: none was sealed.", report.totals.last_version);
}

void WriteTls(const TlsContexts& tls, MetricsText* text) {
  const TlsStatistics& counts = tls.statistics();
  text->Only("varve_tls_connections", Type::kGauge, "", "Connections over TLS.",
             counts.connections.load(std::memory_order_relaxed));
  text->Only("varve_tls_handshakes", Type::kCounter, "", "TLS handshakes that were completed.",
             counts.handshakes.load(std::memory_order_relaxed));
  text->Only("varve_tls_handshake_failures", Type::kCounter, "",
             "TLS handshakes that failed, or took more than ten seconds.",
             counts.failures.load(std::memory_order_relaxed));
  if (const std::shared_ptr<const TlsContext> context = tls.Get()) {
    text->Only("varve_tls_certificate_expiry_timestamp_seconds", Type::kGauge, "seconds",
               "When the certificate of the server expires, in seconds since 1970.",
               static_cast<uint64_t>(std::max<int64_t>(context->expires_at(), 0)));
  }
}

void WriteStore(const StoreObservation& seen, const StorePositions& positions, MetricsText* text) {
  WriteStoreFigures(seen.figures, text);
  text->Only("varve_write_stall_seconds", Type::kCounter, "seconds",
             "For how long writers were slowed down or waited for room, all of them together.",
             static_cast<double>(positions.stall_nanos) / 1e9);
  text->Only("varve_log_replay_bytes", Type::kGauge, "bytes",
             "Operations of the log that the last start replayed.", positions.replayed_bytes);
  text->Family("varve_merges", Type::kCounter, "", "Merges by their reason.");
  for (const auto& [figure, value] : seen.figures) {
    if (figure.starts_with(kMergeFigure))
      text->Sample({{"reason", std::string_view(figure).substr(kMergeFigure.size())}}, value);
  }
  text->Family("varve_segments", Type::kGauge, "", "Segments by level; 0 is the newest.");
  for (size_t level = 0; level < seen.segments_by_level.size(); ++level)
    text->Sample({{"level", fmt::to_string(level)}}, seen.segments_by_level[level]);
  text->Only("varve_damaged_segments", Type::kGauge, "", "Segments in which damage was found.",
             seen.damaged_segments);
  text->Family("varve_log_sync_duration_seconds", Type::kHistogram, "seconds",
               "How long a sync of the log took.");
  text->Histogram({}, seen.syncs);
  text->Family("varve_flush_duration_seconds", Type::kHistogram, "seconds",
               "How long the flush of a write buffer took.");
  text->Histogram({}, seen.flushes);
  text->Family("varve_merge_duration_seconds", Type::kHistogram, "seconds",
               "How long a merge took.");
  text->Histogram({}, seen.merges);
}

void WriteKeys(const ServerState& server, const StoreObservation& seen,
               const std::vector<std::string>& prefixes, MetricsText* text) {
  const std::vector<NamespaceEstimate> spaces = ShownNamespaces(seen);
  text->Family("varve_namespace_keys", Type::kGauge, "",
               "About how many keys a namespace holds; overwritten ones count until a merge.");
  for (const NamespaceEstimate& space : spaces)
    text->Sample({{"namespace", space.name}}, space.keys);
  text->Family("varve_namespace_bytes", Type::kGauge, "bytes",
               "About how many bytes the keys and values of a namespace take.");
  for (const NamespaceEstimate& space : spaces)
    text->Sample({{"namespace", space.name}}, space.bytes);
  text->Family("varve_namespace_keys_expiring", Type::kGauge, "",
               "About how many of these keys expire.");
  for (const NamespaceEstimate& space : spaces)
    text->Sample({{"namespace", space.name}}, space.expiring);
  if (prefixes.empty() || !server.store->capabilities().size_estimates) return;
  text->Family("varve_prefix_bytes", Type::kGauge, "bytes",
               "About how many bytes of segments the keys with a prefix take.");
  for (const std::string& prefix : prefixes) {
    const KeyRange range = PrefixRange(prefix);
    text->Sample({{"prefix", prefix}},
                 server.store->EstimateBytes(kDefaultNamespace, range.lower, range.upper));
  }
}

}  // namespace

void WriteStoreFigures(const std::vector<std::pair<std::string, uint64_t>>& figures,
                       MetricsText* text) {
  VARVE_ASSERT(text != nullptr);
  for (const FigureMetric& metric : kFigures) {
    const auto found = std::find_if(figures.begin(), figures.end(),
                                    [&](const auto& f) { return f.first == metric.figure; });
    if (found == figures.end()) continue;
    text->Family(metric.name, metric.type, metric.unit, metric.help);
    if (metric.figure.ends_with("_nanos")) {
      text->Sample({}, static_cast<double>(found->second) / 1e9);
    } else {
      text->Sample({}, found->second);
    }
  }
}

void WriteVarveMetrics(ServerState& server, const std::vector<std::string>& prefixes,
                       MetricsText* text) {
  VARVE_ASSERT(text != nullptr);
  const StoreObservation seen = server.store->Observe();
  WriteBuild(server, text);
  WriteHealth(server, seen, text);
  WriteClients(server, text);
  WriteProcess(server, text);
  WriteEviction(server, text);
  WriteCommands(server, text);
  WriteTls(*server.tls, text);
  WriteBackups(server, text);
  WriteVarveReplication(server, text);
  WriteStore(seen, PositionsOf(server), text);
  WriteKeys(server, seen, prefixes, text);
}

}  // namespace varve
