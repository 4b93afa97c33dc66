#include "server/status/status_document.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <utility>

#include "server/statistics/process_memory.h"
#include "server/status/server_health.h"
#include "type/version.h"

namespace varve {
namespace {

uint64_t Figure(const StoreObservation& seen, std::string_view name) {
  for (const auto& [figure, value] : seen.figures) {
    if (figure == name) return value;
  }
  return 0;
}

StatusValue Figures(const StoreObservation& seen,
                    std::initializer_list<std::pair<std::string_view, std::string_view>> names) {
  StatusValue map = StatusValue::Map();
  for (const auto& [shown, figure] : names)
    map.Set(shown, StatusValue::Integer(Figure(seen, figure)));
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
    list.Add(std::move(map));
  }
  return list;
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
  status.Set("requests", RequestsPart(server));
  const ProcessMemory memory = ReadProcessMemory();
  status.Set("memory", StatusValue::Map()
                           .Set("resident_bytes", StatusValue::Integer(memory.resident))
                           .Set("peak_bytes", StatusValue::Integer(memory.peak)));
  status.Set("log", Figures(seen, {{"sequence", "sequence"},
                                   {"durable_sequence", "durable_sequence"},
                                   {"live_bytes", "log_live_bytes"},
                                   {"groups", "log_groups"},
                                   {"syncs", "log_syncs"}}));
  status.Set("tree", Figures(seen, {{"levels", "levels"},
                                    {"runs", "runs"},
                                    {"segments", "segments"},
                                    {"segment_bytes", "segment_bytes"},
                                    {"value_bytes", "value_bytes"},
                                    {"write_buffer_bytes", "write_buffer_bytes"},
                                    {"full_write_buffers", "full_write_buffers"},
                                    {"flushes", "flushes"},
                                    {"merges", "compactions"}}));
  status.Set("namespaces", NamespacesPart(seen));
  return status;
}

}  // namespace varve
