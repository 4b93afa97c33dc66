#include "server/http/replication_metrics.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/status/replication_report.h"

namespace varve {
namespace {

using Type = MetricsText::Type;
using Time = std::chrono::steady_clock::time_point;

uint64_t SecondsSince(Time earlier, Time now) {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::max(now - earlier, Time::duration{}))
          .count());
}

uint64_t Behind(SequenceNumber newest, SequenceNumber version) {
  return newest - std::min(newest, version);
}

// A family with a sample for each follower.
template <typename Value>
void EachFollower(const std::vector<Follower>& followers, std::string_view name,
                  std::string_view unit, std::string_view help, MetricsText* text, Value value) {
  text->Family(name, Type::kGauge, unit, help);
  for (const Follower& follower : followers) {
    text->Sample({{"address", fmt::format("{}:{}", follower.address, follower.port)},
                  {"follower", follower.id}},
                 value(follower));
  }
}

void WriteVarveFollowers(const ServerState& server, MetricsText* text) {
  const std::vector<Follower> followers = server.replication.followers.List();
  const SequenceNumber newest = NewestVersion(server);
  const Time now = std::chrono::steady_clock::now();
  text->Only("varve_followers", Type::kGauge, "", "Followers that are connected.",
             uint64_t{followers.size()});
  EachFollower(followers, "varve_follower_version", "", "The newest version that a follower has.",
               text, [](const Follower& follower) { return follower.applied; });
  EachFollower(followers, "varve_follower_durable_version", "",
               "The newest version that a follower has on disk.", text,
               [](const Follower& follower) { return follower.durable; });
  EachFollower(followers, "varve_follower_versions_behind", "",
               "How many versions a follower does not have yet.", text,
               [newest](const Follower& follower) { return Behind(newest, follower.applied); });
  EachFollower(followers, "varve_follower_silent_seconds", "seconds",
               "Time since a follower was heard of.", text,
               [now](const Follower& follower) { return SecondsSince(follower.told, now); });
  EachFollower(followers, "varve_follower_online", "",
               "1: a follower takes changes; 0: it takes a copy, or is about to begin.", text,
               [](const Follower& follower) { return uint64_t{follower.online}; });
  const SyncCounts& counts = server.replication.counts;
  text->Family("varve_follower_syncs", Type::kCounter, "",
               "How followers began: with a copy (full), where they were (partial), or with a copy "
               "though they asked for the rest alone (refused).");
  text->Sample({{"kind", "full"}}, counts.full.load());
  text->Sample({{"kind", "partial"}}, counts.partial_ok.load());
  text->Sample({{"kind", "refused"}}, counts.partial_err.load());
}

}  // namespace

void WriteVarveReplication(const ServerState& server, MetricsText* text) {
  WriteVarveFollowers(server, text);
  const LinkReport link = server.replication.link();
  const bool follows = server.replication.follows();
  const bool is_up = follows && link.phase == LinkPhase::kConnected;
  const uint64_t behind = follows ? Behind(link.primary_version, NewestVersion(server)) : 0;
  const Time now = std::chrono::steady_clock::now();
  text->Only("varve_follows", Type::kGauge, "", "1: this server follows another one.",
             uint64_t{follows});
  text->Only("varve_primary_link_up", Type::kGauge, "", "1: the link to the primary is up.",
             uint64_t{is_up});
  text->Only("varve_primary_link_down_seconds", Type::kGauge, "seconds",
             "For how long the link to the primary has been down; 0: it is up, or there is none.",
             follows && !is_up ? SecondsSince(link.down_since, now) : uint64_t{0});
  text->Only("varve_primary_version", Type::kGauge, "",
             "The newest version of the primary, as it told last.",
             follows ? link.primary_version : uint64_t{0});
  text->Only("varve_primary_versions_behind", Type::kGauge, "",
             "How many versions of the primary this server does not have yet.", behind);
  text->Only("varve_primary_copy_bytes", Type::kGauge, "bytes",
             "Size of the copy of the primary that is being taken; 0: none is.",
             follows ? link.copy_bytes : uint64_t{0});
  text->Only("varve_primary_copied_bytes", Type::kGauge, "bytes", "How much of it has come.",
             follows ? link.copied_bytes : uint64_t{0});
  text->Only("varve_diverged_operations", Type::kCounter, "",
             "Operations of this server alone, written to a file before it followed.",
             server.replication.counts.diverged.load());
  text->Family("varve_redis_skipped_keys", Type::kGauge, "",
               "Keys of the primary, a Redis, that are no strings and were left out, by type.");
  for (const auto& [type, count] : link.skipped) text->Sample({{"type", type}}, count);
}

void WriteRedisReplication(const ServerState& server, MetricsText* text) {
  const std::vector<Follower> followers = server.replication.followers.List();
  const Time now = std::chrono::steady_clock::now();
  const SequenceNumber version = NewestVersion(server);
  text->Only("redis_connected_slaves", Type::kGauge, "", "Followers that are connected.",
             uint64_t{followers.size()});
  text->Only("redis_master_repl_offset", Type::kGauge, "", "The newest version.", version);
  const auto each = [&](std::string_view name, std::string_view unit, std::string_view help,
                        auto value) {
    text->Family(name, Type::kGauge, unit, help);
    for (const Follower& follower : followers) {
      text->Sample({{"slave_ip", follower.address},
                    {"slave_port", fmt::to_string(follower.port)},
                    {"slave_state", StateOf(follower)}},
                   value(follower));
    }
  };
  each("redis_connected_slave_offset_bytes", "bytes", "The newest version of a follower.",
       [](const Follower& follower) { return follower.applied; });
  each("redis_connected_slave_lag_seconds", "seconds", "Time since a follower was heard of.",
       [now](const Follower& follower) { return SecondsSince(follower.told, now); });
  const SyncCounts& counts = server.replication.counts;
  text->Only("redis_replica_resyncs_full", Type::kGauge, "", "Followers that took a copy.",
             counts.full.load());
  text->Only("redis_replica_partial_resync_accepted", Type::kGauge, "",
             "Followers that went on where they were.", counts.partial_ok.load());
  text->Only("redis_replica_partial_resync_denied", Type::kGauge, "",
             "Followers that asked for that and could not.", counts.partial_err.load());
  if (!server.replication.follows()) return;
  const PrimaryAddress primary = server.replication.primary();
  const LinkReport link = server.replication.link();
  const bool is_up = link.phase == LinkPhase::kConnected;
  const std::string port = fmt::to_string(primary.port);
  const auto of_link = [&](std::string_view name, std::string_view help, double value) {
    text->Family(name, Type::kGauge, "", help);
    text->Sample({{"master_host", primary.host}, {"master_port", port}}, value);
  };
  of_link("redis_master_link_up", "1: the link to the primary is up.", is_up ? 1 : 0);
  of_link("redis_master_last_io_seconds_ago", "Time since the primary was heard of; -1: it is not.",
          is_up ? static_cast<double>(SecondsSince(link.last_io, now)) : -1);
  of_link("redis_master_sync_in_progress", "1: this server takes a copy of the primary.",
          link.phase == LinkPhase::kSync ? 1 : 0);
  of_link("redis_slave_repl_offset", "The newest version of this server.",
          static_cast<double>(version));
  text->Only("redis_slave_priority", Type::kGauge, "", "The setting replica-priority.",
             static_cast<uint64_t>(server.configuration.replication().priority));
  text->Family("redis_slave_info", Type::kGauge, "", "The primary of this server.");
  text->Sample({{"master_host", primary.host}, {"master_port", port}, {"read_only", "1"}},
               uint64_t{1});
}

}  // namespace varve
