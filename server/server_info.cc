#include "server/server_info.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>

#include "fmt/format.h"
#include "server/command_table.h"

namespace varve {
namespace {

// Resident memory of the process in bytes; 0 where the system doesn't tell.
uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long long total = 0;
  unsigned long long resident = 0;
  const int fields = std::fscanf(file, "%llu %llu", &total, &resident);
  std::fclose(file);
  return fields == 2 ? resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) : 0;
}

class InfoText {
 public:
  explicit InfoText(Arguments sections) : sections_(sections) {}

  bool Section(std::string_view name) {
    bool wanted = sections_.empty();
    for (const std::string_view section : sections_) {
      wanted = wanted || EqualsIgnoreCase(section, name) || EqualsIgnoreCase(section, "all") ||
               EqualsIgnoreCase(section, "default") || EqualsIgnoreCase(section, "everything");
    }
    if (wanted) fmt::format_to(std::back_inserter(text_), "{}# {}\r\n", text_.empty() ? "" : "\r\n", name);
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

std::string_view Setting(const ServerState& server, std::string_view name) {
  for (const auto& [key, value] : server.settings) {
    if (key == name) return value;
  }
  return "";
}

void Persistence(const ServerState& server, InfoText* info) {
  const absl::Status log = server.store->log_status();
  info->Line("loading", 0);
  info->Line("async_loading", 0);
  info->Line("aof_enabled", 1);
  info->Line("aof_last_write_status", log.ok() ? "ok" : "err");
  info->Line("sync", Setting(server, "sync"));
  info->Line("durable_sequence", server.store->durable_sequence());
  if (!log.ok()) info->Line("log_error", log.ToString());
}

void Stats(const ServerState& server, InfoText* info) {
  info->Line("total_connections_received", server.connections_received.load());
  info->Line("total_commands_processed", server.requests.load());
  info->Line("total_net_input_bytes", server.bytes_in.load());
  info->Line("total_net_output_bytes", server.bytes_out.load());
  info->Line("rejected_connections", server.connections_rejected.load());
  info->Line("protocol_errors", server.protocol_errors.load());
  info->Line("batches_inline", server.batches_inline.load());
  info->Line("batches_pooled", server.batches_pooled.load());
  info->Line("read_cost_ns", server.read_cost.nanos());
  info->Line("write_cost_ns", server.write_cost.nanos());
}

}  // namespace

std::string ServerInfo(const ServerState& server, Arguments sections, SequenceNumber* gate) {
  *gate = kNoSequence;
  InfoText info(sections);
  if (info.Section("Server")) {
    const auto uptime =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - server.started).count();
    info.Line("redis_version", kRedisVersion);
    info.Line("varve_version", kVarveVersion);
    info.Line("redis_mode", "standalone");
    info.Line("process_id", getpid());
    info.Line("tcp_port", Setting(server, "port"));
    info.Line("uptime_in_seconds", uptime);
    info.Line("uptime_in_days", uptime / 86400);
    info.Line("io_threads_active", server.options.io_threads);
    info.Line("pool_threads", server.options.threads);
  }
  if (info.Section("Clients")) {
    info.Line("connected_clients", server.clients.load());
    info.Line("maxclients", server.options.max_clients);
  }
  if (info.Section("Memory")) {
    const uint64_t resident = ResidentBytes();
    info.Line("used_memory", resident);
    info.Line("used_memory_rss", resident);
    info.Line("maxmemory", 0);
  }
  if (info.Section("Persistence")) Persistence(server, &info);
  if (info.Section("Stats")) Stats(server, &info);
  if (info.Section("Engine")) {
    info.Line("pressure", server.store->pressure());
    for (const auto& [name, value] : server.store->Statistics()) info.Line(name, value);
  }
  if (info.Section("Keyspace")) {
    const absl::StatusOr<CountResult> count = server.store->Count(GatedRead(), "", "");
    if (count.ok()) *gate = count->gate;
    if (count.ok() && count->keys > 0) info.Line("db0", fmt::format("keys={},expires=0,avg_ttl=0", count->keys));
  }
  return info.Take();
}

}  // namespace varve
