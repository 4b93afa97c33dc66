#include "server/status/server_health.h"

#include <algorithm>
#include <chrono>

#include "fmt/format.h"

namespace varve {
namespace {

constexpr std::chrono::seconds kLongestSilence{10};
constexpr uint64_t kDiskHangs = 1'000'000'000;  // nanoseconds of one wait

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

// Returns for how long the disk has held up an I/O loop so far.
uint64_t LongestWait(const ServerState& server, std::chrono::steady_clock::time_point now) {
  int64_t longest = 0;
  for (const LoopTimes& loop : server.statistics.loops)
    longest = std::max(longest, loop.disk().PresentNanos(now));
  return static_cast<uint64_t>(longest);
}

std::string LoopsProblem(const ServerState& server, const StoreObservation& seen) {
  // A loop that syncs is a matter of the log.
  const bool syncs = seen.sync_wait_nanos >= kDiskHangs;
  const uint64_t waited = LongestWait(server, std::chrono::steady_clock::now());
  return waited < kDiskHangs || syncs
             ? SilenceProblem(server)
             : fmt::format("the disk: an I/O loop has waited for {} ms so far", waited / 1'000'000);
}

// A follower serves what it has once it had a link, and not while it takes another copy.
std::string FollowingProblem(const ServerState& server) {
  const ReplicationState& replication = server.replication;
  if (!replication.follows()) return "";
  const LinkReport link = replication.link();
  if (link.phase == LinkPhase::kSync) return "the server takes a copy of its primary";
  if (replication.link_was_up()) return "";
  return link.error.empty() ? "there was no link to the primary yet"
                            : fmt::format("there was no link to the primary yet: {}", link.error);
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
  checks.push_back({"io_loops", LoopsProblem(server, seen)});
  checks.push_back({"no_damage", seen.damaged_segments == 0
                                     ? ""
                                     : fmt::format("{} segments are damaged, see the log",
                                                   seen.damaged_segments)});
  checks.push_back({"following", FollowingProblem(server)});
  checks.push_back({"accepting", server.draining ? "the server stops" : ""});
  return checks;
}

std::vector<HealthCheck> ChecksWhileOpening() {
  return {{"recovered", "the store is being opened"}};
}

std::string LivenessProblem(const ServerState& server) {
  std::string silence = SilenceProblem(server);
  if (silence.empty()) return "";
  // A loop that executes writes may wait for room, which only the disk can make.
  const StoreObservation seen = server.store->Observe();
  const bool waits_for_room = seen.disk_is_full || seen.sync_wait_nanos >= kDiskHangs ||
                              seen.flush_pressure >= 1 || !server.store->log_status().ok();
  return waits_for_room ? "" : silence;
}

Load LookAtLoad(ServerState& server, const StoreObservation& seen) {
  LoadSample sample;
  sample.at = std::chrono::steady_clock::now();
  for (const LoopTimes& loop : server.statistics.loops)
    sample.loop_idle_nanos.push_back(loop.IdleNanos(sample.at));
  sample.pool_idle_nanos = server.pool_idle_nanos();
  sample.loop_wait_nanos = LongestWait(server, sample.at);
  sample.sync_busy_nanos = seen.sync_busy_nanos;
  sample.sync_wait_nanos = seen.sync_wait_nanos;
  sample.connections_refused = server.statistics.connections_full;
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
  const StoreWaits::Figures waits = server.store_waits.Look(sample.at);
  sample.store_is_crowded = waits.waiting > 0;
  sample.store_busy_millis = static_cast<uint32_t>(waits.busy_nanos / 1'000'000);
  return server.statistics.load.Look(std::move(sample));
}

}  // namespace varve
