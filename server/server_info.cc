#include "server/server_info.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <utility>

#include "fmt/format.h"
#include "server/command_table.h"

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
               EqualsIgnoreCase(section, "everything") || (EqualsIgnoreCase(section, "default") && kind == kDefault);
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

// "1.50M" and the like, as Redis writes sizes for people.
std::string Human(uint64_t bytes) {
  constexpr std::string_view kUnits = "BKMGTP";
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{}B", bytes) : fmt::format("{:.2f}{}", value, kUnits[unit]);
}

// A line of /proc/self/status in bytes; 0 where the system doesn't tell.
uint64_t ProcessStatus(std::string_view field) {
  std::FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 0;
  char line[256];
  unsigned long long kibibytes = 0;
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    if (std::string_view(line).starts_with(field) && line[field.size()] == ':') {
      std::sscanf(line + field.size() + 1, "%llu", &kibibytes);
      break;
    }
  }
  std::fclose(file);
  return kibibytes * 1024;
}

std::string RunId(const ServerState& server) {
  const auto started = static_cast<uint64_t>(server.started.time_since_epoch().count());
  return fmt::format("{:016x}{:016x}{:08x}", started, started * 0x9E3779B97F4A7C15u, static_cast<uint32_t>(getpid()));
}

void Server(const ServerState& server, InfoText* info) {
  utsname system{};
  uname(&system);
  const auto uptime =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - server.started).count();
  info->Line("redis_version", kRedisVersion);
  info->Line("varve_version", kVarveVersion);
  info->Line("redis_mode", "standalone");
  info->Line("os", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  info->Line("arch_bits", 8 * sizeof(void*));
  info->Line("multiplexing_api", "epoll");
  info->Line("process_id", getpid());
  info->Line("run_id", RunId(server));
  info->Line("tcp_port", server.configuration.Get("port"));
  info->Line("server_time_usec",
             std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
                 .count());
  info->Line("uptime_in_seconds", uptime);
  info->Line("uptime_in_days", uptime / 86400);
  info->Line("io_threads_active", server.options.io_threads);
  info->Line("pool_threads", server.options.threads);
}

void Memory(const ServerState& server, InfoText* info) {
  const uint64_t resident = ProcessStatus("VmRSS");
  const uint64_t peak = ProcessStatus("VmHWM");
  const uint64_t system = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  info->Line("used_memory", resident);
  info->Line("used_memory_human", Human(resident));
  info->Line("used_memory_rss", resident);
  info->Line("used_memory_rss_human", Human(resident));
  info->Line("used_memory_peak", peak);
  info->Line("used_memory_peak_human", Human(peak));
  info->Line("mem_clients_normal", server.client_memory.bytes());
  info->Line("total_system_memory", system);
  info->Line("total_system_memory_human", Human(system));
  info->Line("maxmemory", 0);
  info->Line("maxmemory_human", "0B");
  info->Line("maxmemory_policy", "noeviction");
}

void Persistence(const ServerState& server, InfoText* info) {
  const absl::Status log = server.store->log_status();
  info->Line("loading", 0);
  info->Line("async_loading", 0);
  info->Line("rdb_bgsave_in_progress", 0);
  info->Line("rdb_last_bgsave_status", "ok");
  info->Line("aof_enabled", 1);
  info->Line("aof_rewrite_in_progress", 0);
  info->Line("aof_last_write_status", log.ok() ? "ok" : "err");
  info->Line("sync", server.configuration.Get("sync"));
  info->Line("durable_sequence", server.store->durable_sequence());
  if (!log.ok()) info->Line("log_error", log.ToString());
}

void Stats(ServerState& server, InfoText* info) {
  info->Line("total_connections_received", server.connections_received.load());
  info->Line("total_commands_processed", server.requests.load());
  info->Line("instantaneous_ops_per_sec", static_cast<uint64_t>(server.request_rate.Rate(server.requests.load())));
  info->Line("total_net_input_bytes", server.bytes_in.load());
  info->Line("total_net_output_bytes", server.bytes_out.load());
  info->Line("instantaneous_input_kbps", fmt::format("{:.2f}", server.input_rate.Rate(server.bytes_in.load()) / 1024));
  info->Line("instantaneous_output_kbps",
             fmt::format("{:.2f}", server.output_rate.Rate(server.bytes_out.load()) / 1024));
  info->Line("rejected_connections", server.connections_rejected.load());
  info->Line("evicted_clients", server.client_memory.evicted());
  info->Line("expired_keys", 0);
  info->Line("evicted_keys", 0);
  info->Line("keyspace_hits", server.keyspace_hits.Sum() - server.hits_before_reset);
  info->Line("keyspace_misses", server.keyspace_misses.Sum() - server.misses_before_reset);
  info->Line("total_error_replies", server.error_statistics.total());
  info->Line("protocol_errors", server.protocol_errors.load());
  info->Line("slowlog_entries", server.slow_log.size());
  info->Line("batches_inline", server.batches_inline.load());
  info->Line("batches_pooled", server.batches_pooled.load());
  info->Line("read_cost_ns", server.read_cost.nanos());
  info->Line("write_cost_ns", server.write_cost.nanos());
}

void Replication(const ServerState& server, InfoText* info) {
  info->Line("role", "master");
  info->Line("connected_slaves", 0);
  info->Line("master_replid", RunId(server));
  info->Line("master_repl_offset", server.store->durable_sequence());
}

void Cpu(InfoText* info) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return fmt::format("{}.{:06}", time.tv_sec, static_cast<long>(time.tv_usec));
  };
  info->Line("used_cpu_sys", seconds(usage.ru_stime));
  info->Line("used_cpu_user", seconds(usage.ru_utime));
}

void CommandStats(const ServerState& server, InfoText* info) {
  const std::vector<CommandFigures> figures = server.command_statistics.Read();
  for (const Command& command : AllCommands()) {
    const CommandFigures& of = figures[CommandIndex(command)];
    if (of.calls + of.rejected == 0) continue;
    const double each = of.calls == 0 ? 0 : static_cast<double>(of.nanos) / 1000 / static_cast<double>(of.calls);
    info->Line(fmt::format("cmdstat_{}", command.name),
               fmt::format("calls={},usec={},usec_per_call={:.2f},rejected_calls={},failed_calls={}", of.calls,
                           of.nanos / 1000, each, of.rejected, of.failed));
  }
}

void LatencyStats(const ServerState& server, InfoText* info) {
  const std::vector<CommandFigures> figures = server.command_statistics.Read();
  for (const Command& command : AllCommands()) {
    const CommandFigures& of = figures[CommandIndex(command)];
    if (of.calls == 0) continue;
    const auto micros = [&](double quantile) { return static_cast<double>(of.Percentile(quantile)) / 1000; };
    info->Line(fmt::format("latency_percentiles_usec_{}", command.name),
               fmt::format("p50={:.3f},p99={:.3f},p99.9={:.3f}", micros(0.5), micros(0.99), micros(0.999)));
  }
}

}  // namespace

std::string ServerInfo(ServerState& server, Arguments sections, SequenceNumber* gate) {
  *gate = kNoSequence;
  InfoText info(sections);
  if (info.Section("Server")) Server(server, &info);
  if (info.Section("Clients")) {
    info.Line("connected_clients", server.clients.load());
    info.Line("maxclients", server.live.max_clients.load());
    info.Line("blocked_clients", 0);
  }
  if (info.Section("Memory")) Memory(server, &info);
  if (info.Section("Persistence")) Persistence(server, &info);
  if (info.Section("Stats")) Stats(server, &info);
  if (info.Section("Replication")) Replication(server, &info);
  if (info.Section("CPU")) Cpu(&info);
  if (info.Section("Commandstats", InfoText::kOnRequest)) CommandStats(server, &info);
  if (info.Section("Latencystats", InfoText::kOnRequest)) LatencyStats(server, &info);
  if (info.Section("Errorstats")) {
    for (const auto& [code, count] : server.error_statistics.by_code()) {
      info.Line(fmt::format("errorstat_{}", code), fmt::format("count={}", count));
    }
  }
  if (info.Section("Cluster")) info.Line("cluster_enabled", 0);
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
