#include "server/status/server_health.h"

#include <algorithm>
#include <chrono>

#include "fmt/format.h"

namespace varve {
namespace {

constexpr std::chrono::seconds kLongestSilence{10};
constexpr uint64_t kDiskHangs = 1'000'000'000;  // nanoseconds of one sync

std::chrono::nanoseconds LongestSilence(const ServerState& server) {
  const auto now = std::chrono::steady_clock::now();
  std::chrono::nanoseconds longest{0};
  for (const LoopTimes& loop : server.statistics.loops)
    longest = std::max(longest, loop.SilentFor(now));
  return longest;
}

std::string SilenceProblem(const ServerState& server) {
  const std::chrono::nanoseconds silent = LongestSilence(server);
  if (silent < kLongestSilence) return "";
  return fmt::format("an I/O loop has not come round for {} s",
                     std::chrono::duration_cast<std::chrono::seconds>(silent).count());
}

}  // namespace

std::vector<HealthCheck> HealthChecks(const ServerState& server, const StoreObservation& seen) {
  std::vector<HealthCheck> checks = {{"recovered", ""}};
  const absl::Status log = server.store->log_status();
  std::string log_problem;
  if (!log.ok()) {
    log_problem = log.ToString();
  } else if (seen.disk_is_full) {
    log_problem = "ENOSPC: the disk is full";
  } else if (seen.sync_wait_nanos >= kDiskHangs) {
    log_problem =
        fmt::format("the disk: a sync has taken {} ms so far", seen.sync_wait_nanos / 1'000'000);
  }
  checks.push_back({"log_writable", std::move(log_problem)});
  checks.push_back({"disk_space", seen.disk_is_full ? "ENOSPC: the disk is full" : ""});
  checks.push_back({"io_loops", SilenceProblem(server)});
  checks.push_back({"no_damage", seen.damaged_segments == 0
                                     ? ""
                                     : fmt::format("{} segments are damaged, see the log",
                                                   seen.damaged_segments)});
  checks.push_back({"accepting", server.draining ? "the server stops" : ""});
  return checks;
}

std::vector<HealthCheck> ChecksWhileOpening() {
  return {{"recovered", "the store is being opened"}};
}

std::string LivenessProblem(const ServerState& server) {
  const std::string silence = SilenceProblem(server);
  if (silence.empty()) return "";
  const StoreObservation seen = server.store->Observe();
  const bool waits_for_disk = seen.disk_is_full || seen.sync_wait_nanos >= kDiskHangs ||
                              seen.flush_pressure >= 1 || !server.store->log_status().ok();
  return waits_for_disk ? "" : silence;
}

Load LookAtLoad(ServerState& server, const StoreObservation& seen) {
  LoadSample sample;
  sample.at = std::chrono::steady_clock::now();
  for (const LoopTimes& loop : server.statistics.loops)
    sample.loop_rest_nanos.push_back(loop.RestNanos(sample.at));
  sample.sync_busy_nanos = seen.sync_busy_nanos;
  sample.sync_wait_nanos = seen.sync_wait_nanos;
  sample.connections_refused = server.statistics.connections_rejected;
  const auto errors = server.statistics.errors.by_code();
  if (const auto found = errors.find("OOM"); found != errors.end())
    sample.commands_refused = found->second;
  sample.connections = server.clients.connected;
  sample.max_connections = server.live.max_clients;
  sample.flush_pressure = seen.flush_pressure;
  sample.merge_pressure = seen.merge_pressure;
  sample.disk_is_full = seen.disk_is_full;
  sample.data_is_full = server.store->CheckData(0) == DataCheck::kOver;
  sample.log_failed = !server.store->log_status().ok();
  return server.statistics.load.Look(std::move(sample));
}

}  // namespace varve
