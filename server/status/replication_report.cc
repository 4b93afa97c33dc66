#include "server/status/replication_report.h"

#include <algorithm>

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace varve {
namespace {

using Time = std::chrono::steady_clock::time_point;

int64_t SecondsBetween(Time earlier, Time later) {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::max(later - earlier, Time::duration{}))
      .count();
}

class Lines {
 public:
  template <typename Value>
  void Add(std::string_view name, const Value& value) {
    lines_.emplace_back(name, fmt::to_string(value));
  }
  std::vector<std::pair<std::string, std::string>> Take() { return std::move(lines_); }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

// The copy of the primary's store that is being taken.
void AddCopy(const LinkReport& link, Time now, Lines* lines) {
  const uint64_t left = std::max(link.copy_bytes, link.copied_bytes) - link.copied_bytes;
  const double share = link.copy_bytes == 0 ? 0
                                            : 100 * static_cast<double>(link.copied_bytes) /
                                                  static_cast<double>(link.copy_bytes);
  lines->Add("master_sync_total_bytes", link.copy_bytes);
  lines->Add("master_sync_read_bytes", link.copied_bytes);
  lines->Add("master_sync_left_bytes", left);
  lines->Add("master_sync_perc", fmt::format("{:.2f}", std::min(share, 100.0)));
  lines->Add("master_sync_last_io_seconds_ago", SecondsBetween(link.last_io, now));
}

// The text of the primary's error, which is one line of INFO.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\r' || c == '\n'; }, ' ');
  return text;
}

void AddSkipped(const LinkReport& link, Lines* lines) {
  for (const auto& [type, count] : link.skipped) {
    std::string name = fmt::format("redis_skipped_{}", type);
    std::replace(name.begin(), name.end(), ' ', '_');
    lines->Add(name, count);
  }
  if (link.skipped_names.empty()) return;
  lines->Add("redis_skipped_keys", OneLine(fmt::format("{}", fmt::join(link.skipped_names, ","))));
}

void AddPrimary(const ServerState& server, SequenceNumber version, Time now, Lines* lines) {
  const PrimaryAddress primary = server.replication.primary();
  const LinkReport link = server.replication.link();
  const bool is_up = link.phase == LinkPhase::kConnected;
  const bool copies = link.phase == LinkPhase::kSync;
  const bool hears = is_up && link.last_io != Time();
  lines->Add("master_host", primary.host);
  lines->Add("master_port", primary.port);
  lines->Add("master_link_status", is_up ? "up" : "down");
  lines->Add("master_last_io_seconds_ago", hears ? SecondsBetween(link.last_io, now) : -1);
  lines->Add("master_sync_in_progress", copies ? 1 : 0);
  // Of a Redis, bytes of its stream, as it counts them.
  const uint64_t offset = link.is_redis ? static_cast<uint64_t>(link.redis_offset) : version;
  lines->Add("slave_read_repl_offset", offset);
  lines->Add("slave_repl_offset", offset);
  if (copies) AddCopy(link, now, lines);
  if (!is_up) {
    lines->Add("master_link_down_since_seconds", SecondsBetween(link.down_since, now));
    lines->Add("master_link_error", OneLine(link.error));
  }
  const ReplicationOptions options = server.configuration.replication();
  lines->Add("slave_priority", options.priority);
  lines->Add("slave_read_only", 1);
  lines->Add("replica_announced", 1);
  if (!link.is_redis) return;
  lines->Add("redis_replid", link.redis_id);
  AddSkipped(link, lines);
}

void AddFollowers(const ServerState& server, Time now, Lines* lines) {
  const std::vector<Follower> followers = server.replication.followers.List();
  lines->Add("connected_slaves", followers.size());
  const std::chrono::seconds lag = server.live.max_follower_lag;
  if (server.live.min_followers != 0 && lag.count() > 0) {
    lines->Add("min_slaves_good_slaves", server.replication.followers.CountGood(now - lag));
  }
  for (size_t i = 0; i < followers.size(); ++i) {
    const Follower& follower = followers[i];
    lines->Add(
        fmt::format("slave{}", i),
        fmt::format("ip={},port={},state={},offset={},lag={}", follower.address, follower.port,
                    StateOf(follower), follower.applied, LagOf(follower, now)));
  }
}

}  // namespace

SequenceNumber NewestVersion(const ServerState& server) {
  return server.store->GetSnapshot()->sequence();
}

std::string_view NameOf(LinkPhase phase) {
  switch (phase) {
    case LinkPhase::kConnect:
      return "connect";
    case LinkPhase::kConnecting:
      return "connecting";
    case LinkPhase::kSync:
      return "sync";
    case LinkPhase::kConnected:
      return "connected";
  }
  return "unknown";
}

std::string_view NameOf(FailoverPhase phase) {
  switch (phase) {
    case FailoverPhase::kNone:
      return "no-failover";
    case FailoverPhase::kWaitsForSync:
      return "waiting-for-sync";
    case FailoverPhase::kInProgress:
      return "failover-in-progress";
  }
  return "unknown";
}

std::string_view StateOf(const Follower& follower) {
  return follower.online ? "online" : "send_bulk";
}

int64_t LagOf(const Follower& follower, std::chrono::steady_clock::time_point now) {
  return SecondsBetween(follower.told, now);
}

std::vector<std::pair<std::string, std::string>> ReplicationLines(const ServerState& server,
                                                                  std::string_view run_id) {
  const auto now = std::chrono::steady_clock::now();
  const SequenceNumber version = NewestVersion(server);
  const absl::StatusOr<ChangePositions> changes = server.store->GetChangePositions();
  Lines lines;
  lines.Add("role", server.replication.follows() ? "slave" : "master");
  if (server.replication.follows()) AddPrimary(server, version, now, &lines);
  AddFollowers(server, now, &lines);
  lines.Add("master_failover_state", NameOf(server.replication.failover.load()));
  lines.Add("master_replid",
            changes.ok() ? fmt::format("{:040x}", changes->history_id) : std::string(run_id));
  lines.Add("master_replid2", std::string(40, '0'));
  lines.Add("master_repl_offset", version);
  lines.Add("second_repl_offset", -1);
  lines.Add("repl_backlog_active", changes.ok() ? 1 : 0);
  lines.Add("repl_backlog_size", server.options.replication.retention_bytes);
  lines.Add("repl_backlog_first_byte_offset", changes.ok() ? changes->first : 0);
  lines.Add("repl_backlog_histlen", changes.ok() ? changes->count() : 0);
  return lines.Take();
}

}  // namespace varve
