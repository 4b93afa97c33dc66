#include "server/status/status_document.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "fmt/format.h"
#include "server/statistics/process_memory.h"
#include "server/status/replication_report.h"
#include "server/status/server_health.h"
#include "server/tls/tls_contexts.h"
#include "type/version.h"

namespace varve {
namespace {

StatusValue Figures(const StoreObservation& seen,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> names) {
  StatusValue map = StatusValue::Map();
  for (const auto& [shown, figure] : names)
    map.Set(shown, StatusValue::Integer(FigureOf(seen, figure)));
  return map;
}

StatusValue ClientsPart(const ServerState& server) {
  StatusValue map = StatusValue::Map();
  map.Set("connected", StatusValue::Integer(server.clients.connected));
  map.Set("max", StatusValue::Integer(server.live.max_clients));
  map.Set("rejected", StatusValue::Integer(server.statistics.connections_rejected));
  map.Set("memory_bytes", StatusValue::Integer(server.clients.memory.bytes()));
  return map;
}

StatusValue TlsPart(const TlsContexts& tls) {
  static constexpr std::string_view kModes[] = {"off", "optional", "required"};
  StatusValue map = StatusValue::Map();
  map.Set("mode", StatusValue::Text(kModes[static_cast<size_t>(tls.mode())]));
  map.Set("connections", StatusValue::Integer(tls.statistics().connections));
  map.Set("handshakes", StatusValue::Integer(tls.statistics().handshakes));
  map.Set("handshake_failures", StatusValue::Integer(tls.statistics().failures));
  if (const std::shared_ptr<const TlsContext> context = tls.Get()) {
    map.Set("certificate_serial", StatusValue::Text(context->serial()));
    map.Set(
        "certificate_expires_at",
        StatusValue::Integer(static_cast<uint64_t>(std::max<int64_t>(context->expires_at(), 0))));
  }
  return map;
}

std::string AddressOf(const Follower& follower) {
  return fmt::format("{}:{}", follower.address, follower.port);
}

// The positions in the log, as sequences, of which each write has one. `backup` is that of the last
// backup; kNoSequence: there is none.
StatusValue TimelinePart(const ServerState& server, const StorePositions& positions,
                         SequenceNumber backup) {
  const auto mark = [](std::string_view id, uint64_t sequence, std::string_view text) {
    return StatusValue::Map()
        .Set("id", StatusValue::Text(id))
        .Set("sequence", StatusValue::Integer(sequence))
        .Set("text", StatusValue::Text(text));
  };
  StatusValue marks = StatusValue::List();
  if (backup != kNoSequence)
    marks.Add(
        mark("backup", backup, "The last backup since the start holds every write up to here."));
  for (const Follower& follower : server.replication.followers.List()) {
    marks.Add(mark("follower " + AddressOf(follower), follower.applied,
                   follower.online ? "A follower has every write up to here."
                                   : "A follower, which takes no changes yet, has this at least."));
  }
  if (server.replication.follows()) {
    marks.Add(mark("primary", server.replication.link().primary_version,
                   "The primary has every write up to here, as it told last."));
  }
  marks.Add(mark("flushed", positions.flushed, "Segments hold every write up to here."));
  marks.Add(mark("durable", positions.durable, "Every write up to here is on disk."));
  marks.Add(mark("visible", positions.visible, "Readers see every write up to here."));
  return marks;
}

// What is gone if the power fails now, by the mode of the writes. Where writes of several modes are
// mixed, each mode is said to have all of them.
StatusValue PowerCutPart(const StorePositions& positions) {
  const uint64_t durable = positions.durable;
  const uint64_t visible = positions.visible;
  const uint64_t undurable = visible - std::min(visible, durable);
  StatusValue modes = StatusValue::List();
  uint64_t acknowledged = 0;
  for (const auto& [name, mode] :
       {std::pair("always", Durability::kAlways), std::pair("everysec", Durability::kEverySecond),
        std::pair("no", Durability::kNone)}) {
    const bool is_behind = positions.newest_by_durability[static_cast<size_t>(mode)] > durable;
    if (is_behind && mode != Durability::kAlways) acknowledged = undurable;
    modes.Add(StatusValue::Map()
                  .Set("mode", StatusValue::Text(name))
                  .Set("acknowledged", StatusValue::Truth(mode != Durability::kAlways))
                  .Set("writes_at_most", StatusValue::Integer(is_behind ? undurable : 0)));
  }
  return StatusValue::Map()
      .Set("undurable_writes", StatusValue::Integer(undurable))
      .Set("acknowledged_writes_at_most", StatusValue::Integer(acknowledged))
      .Set("modes", std::move(modes));
}

StatusValue LoadPart(const Load& load) {
  StatusValue map = StatusValue::Map();
  map.Set("seconds", StatusValue::Number(load.seconds));
  map.Set("io_loop_busy", StatusValue::Number(load.loop_busy));
  map.Set("sync_busy", StatusValue::Number(load.sync_busy));
  map.Set("flush_pressure", StatusValue::Number(load.now.flush_pressure));
  map.Set("merge_pressure", StatusValue::Number(load.now.merge_pressure));
  return map;
}

StatusValue NamespacesPart(const StoreObservation& seen) {
  StatusValue list = StatusValue::List();
  for (const NamespaceEstimate& space : ShownNamespaces(seen)) {
    StatusValue map = StatusValue::Map();
    map.Set("name", StatusValue::Text(space.name));
    map.Set("keys_estimate", StatusValue::Integer(space.keys));
    map.Set("bytes_estimate", StatusValue::Integer(space.bytes));
    map.Set("expiring_estimate", StatusValue::Integer(space.expiring));
    list.Add(std::move(map));
  }
  return list;
}

StatusValue BackupPart(const BackupReport& report) {
  return StatusValue::Map()
      .Set("state", StatusValue::Text(NameOf(report.state)))
      .Set("error", StatusValue::Text(report.error))
      .Set("held_bytes", StatusValue::Integer(report.bytes()))
      .Set("sealed", StatusValue::Integer(report.totals.sealed))
      .Set("failed", StatusValue::Integer(report.totals.failed))
      .Set("last_seal_unix_seconds", StatusValue::Integer(static_cast<uint64_t>(
                                         std::max<int64_t>(report.totals.last_time, 0))))
      .Set("last_version", StatusValue::Integer(report.totals.last_version));
}

StatusValue FollowersPart(const ServerState& server) {
  const auto now = std::chrono::steady_clock::now();
  StatusValue list = StatusValue::List();
  for (const Follower& follower : server.replication.followers.List()) {
    list.Add(StatusValue::Map()
                 .Set("id", StatusValue::Text(follower.id))
                 .Set("address", StatusValue::Text(AddressOf(follower)))
                 .Set("state", StatusValue::Text(StateOf(follower)))
                 .Set("version", StatusValue::Integer(follower.applied))
                 .Set("durable_version", StatusValue::Integer(follower.durable))
                 .Set("silent_seconds",
                      StatusValue::Integer(static_cast<uint64_t>(LagOf(follower, now)))));
  }
  return list;
}

StatusValue ReplicationPart(const ServerState& server) {
  const ReplicationState& replication = server.replication;
  const LinkReport link = replication.link();
  return StatusValue::Map()
      .Set("follows", StatusValue::Truth(replication.follows()))
      .Set("primary", StatusValue::Text(PrimaryText(replication.primary())))
      .Set("link", StatusValue::Text(replication.follows() ? NameOf(link.phase) : ""))
      .Set("link_error", StatusValue::Text(link.error))
      .Set("primary_version", StatusValue::Integer(link.primary_version))
      .Set("copied_bytes", StatusValue::Integer(link.copied_bytes))
      .Set("copy_bytes", StatusValue::Integer(link.copy_bytes))
      .Set("followers", FollowersPart(server))
      .Set("syncs_full", StatusValue::Integer(replication.counts.full))
      .Set("syncs_partial", StatusValue::Integer(replication.counts.partial_ok))
      .Set("syncs_refused", StatusValue::Integer(replication.counts.partial_err))
      .Set("diverged_operations", StatusValue::Integer(replication.counts.diverged))
      .Set("failover", StatusValue::Text(NameOf(replication.failover.load())));
}

StatusValue RequestsPart(const ServerState& server) {
  StatusValue map = StatusValue::Map();
  map.Set("total", StatusValue::Integer(server.statistics.requests));
  map.Set("errors", StatusValue::Integer(server.statistics.errors.total()));
  map.Set("keyspace_hits", StatusValue::Integer(server.statistics.KeyspaceHits()));
  map.Set("keyspace_misses", StatusValue::Integer(server.statistics.KeyspaceMisses()));
  map.Set("net_input_bytes", StatusValue::Integer(server.statistics.bytes_in));
  map.Set("net_output_bytes", StatusValue::Integer(server.statistics.bytes_out));
  return map;
}

}  // namespace

uint64_t FigureOf(const StoreObservation& seen, std::string_view name) {
  for (const auto& [figure, value] : seen.figures) {
    if (figure == name) return value;
  }
  return 0;
}

StorePositions PositionsOf(const ServerState& server) {
  const SurveyedStore* const survey = SurveyOf(server.store);
  return survey == nullptr ? StorePositions() : survey->Positions();
}

std::vector<NamespaceEstimate> ShownNamespaces(const StoreObservation& seen) {
  std::vector<NamespaceEstimate> shown;
  for (const NamespaceEstimate& space : seen.namespaces) {
    if (shown.size() < kMostShownNamespaces) {
      shown.push_back(space);
      continue;
    }
    if (shown.size() == kMostShownNamespaces) shown.push_back({.name = "_other"});
    shown.back().keys += space.keys;
    shown.back().bytes += space.bytes;
    shown.back().expiring += space.expiring;
  }
  return shown;
}

StatusValue StatusDocument(ServerState& server) {
  const StoreObservation seen = server.store->Observe();
  const Load load = LookAtLoad(server, seen);
  const Limit limit = LimitOf(load);
  StatusValue messages = StatusValue::List();
  for (const HealthCheck& check : HealthChecks(server, seen)) {
    if (!check.problem.empty()) {
      messages.Add(StatusValue::Map()
                       .Set("check", StatusValue::Text(check.name))
                       .Set("text", StatusValue::Text(check.problem)));
    }
  }
  const auto uptime = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::steady_clock::now() - server.started);
  StatusValue status = StatusValue::Map();
  status.Set("version", StatusValue::Text(kVarveVersion));
  status.Set("process_id", StatusValue::Integer(static_cast<uint64_t>(getpid())));
  status.Set("uptime_seconds", StatusValue::Integer(static_cast<uint64_t>(uptime.count())));
  status.Set("healthy", StatusValue::Truth(messages.members().empty()));
  status.Set("limited_by", StatusValue::Map()
                               .Set("id", StatusValue::Text(limit.id))
                               .Set("text", StatusValue::Text(limit.text)));
  status.Set("messages", std::move(messages));
  status.Set("load", LoadPart(load));
  status.Set("clients", ClientsPart(server));
  status.Set("tls", TlsPart(*server.tls));
  status.Set("requests", RequestsPart(server));
  const ProcessMemory memory = ReadProcessMemory();
  status.Set("memory", StatusValue::Map()
                           .Set("resident_bytes", StatusValue::Integer(memory.resident))
                           .Set("peak_bytes", StatusValue::Integer(memory.peak))
                           .Set("max_data_bytes", StatusValue::Integer(server.live.max_memory)));
  status.Set("log", Figures(seen, {{"sequence", "sequence"},
                                   {"durable_sequence", "durable_sequence"},
                                   {"live_bytes", "log_live_bytes"},
                                   {"groups", "log_groups"},
                                   {"syncs", "log_syncs"}}));
  const StorePositions positions = PositionsOf(server);
  const BackupReport backup = server.backups.Report(/*is_use=*/false);
  status.Set("timeline", TimelinePart(server, positions, backup.totals.last_version));
  status.Set("power_cut", PowerCutPart(positions));
  status.Set("tree", Figures(seen, {{"levels", "levels"},
                                    {"runs", "runs"},
                                    {"segments", "segments"},
                                    {"segment_bytes", "segment_bytes"},
                                    {"value_bytes", "value_bytes"},
                                    {"write_buffer_bytes", "write_buffer_bytes"},
                                    {"full_write_buffers", "full_write_buffers"},
                                    {"flushes", "flushes"},
                                    {"merges", "compactions"}}));
  status.Set("backup", BackupPart(backup));
  status.Set("replication", ReplicationPart(server));
  status.Set("namespaces", NamespacesPart(seen));
  return status;
}

}  // namespace varve
