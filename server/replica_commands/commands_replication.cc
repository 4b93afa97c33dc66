// REPLICAOF, SLAVEOF and ROLE: whom this server follows, and who follows it.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/status/replication_report.h"
#include "spdlog/spdlog.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr size_t kLongestHost = 255;
constexpr int64_t kLastPort = 65535;

// Reads the address of a primary. Nothing: the error was answered.
std::optional<PrimaryAddress> ParsePrimary(CommandContext& context, std::string_view host,
                                           std::string_view port) {
  int64_t number = 0;
  if (!ParseRespInteger(port, &number) || number <= 0 || number > kLastPort) {
    context.reply.Error("ERR Invalid master port");
    return std::nullopt;
  }
  const bool fits = !host.empty() && host.size() <= kLongestHost &&
                    host.find_first_of(std::string_view(" \t\r\n\0", 5)) == std::string_view::npos;
  if (!fits) {
    context.reply.Error("ERR Invalid master host");
    return std::nullopt;
  }
  return PrimaryAddress{.host = std::string(host), .port = static_cast<uint16_t>(number)};
}

absl::Status Follow(ServerState& server, const PrimaryAddress& primary) {
  const absl::Status follows = server.calls.follow(primary);
  if (follows.ok()) server.configuration.NotePrimary(PrimaryText(primary));
  return follows;
}

// Inside EXEC the store is held for the transaction: a thread of the pool does it afterwards, as
// soon as it can. Programs that watch over Redis send REPLICAOF so.
void FollowAfterwards(CommandContext& context, PrimaryAddress primary) {
  const bool runs =
      context.server.run_on_pool([server = &context.server, primary = std::move(primary)] {
        if (const absl::Status follows = Follow(*server, primary); !follows.ok())
          spdlog::error("REPLICAOF inside MULTI: {}", follows.ToString());
      });
  runs ? context.reply.Ok()
       : context.reply.Error("ERR too many requests are waiting, or the server stops: try again");
}

// REPLICAOF host port|NO ONE
void HandleReplicaOf(CommandContext& context, Arguments arguments) {
  ServerState& server = context.server;
  if (server.replication.failover.load() != FailoverPhase::kNone)
    return context.reply.Error("ERR REPLICAOF not allowed while failing over.");
  PrimaryAddress wanted;
  if (!EqualsIgnoreCase(arguments[1], "no") || !EqualsIgnoreCase(arguments[2], "one")) {
    std::optional<PrimaryAddress> parsed = ParsePrimary(context, arguments[1], arguments[2]);
    if (!parsed) return;
    wanted = *std::move(parsed);
    const PrimaryAddress present = server.replication.primary();
    if (EqualsIgnoreCase(present.host, wanted.host) && present.port == wanted.port)
      return context.reply.Simple("OK Already connected to specified master");
  } else if (!server.replication.follows()) {
    return context.reply.Ok();
  }
  if (context.in_transaction()) return FollowAfterwards(context, std::move(wanted));
  const absl::Status follows = Follow(server, wanted);
  follows.ok() ? context.reply.Ok() : context.Fail(follows);
}

// ROLE
void HandleRole(CommandContext& context, Arguments /*arguments*/) {
  const ReplicationState& replication = context.server.replication;
  const PrimaryAddress primary = replication.primary();
  const auto version = static_cast<int64_t>(NewestVersion(context.server));
  if (primary.named()) {
    context.reply.Array(5);
    context.reply.Bulk("slave");
    context.reply.Bulk(primary.host);
    context.reply.Integer(primary.port);
    context.reply.Bulk(NameOf(replication.link().phase));
    return context.reply.Integer(version);
  }
  std::vector<Follower> followers = replication.followers.List();
  std::erase_if(followers, [](const Follower& follower) { return !follower.online; });
  context.reply.Array(3);
  context.reply.Bulk("master");
  context.reply.Integer(version);
  context.reply.Array(followers.size());
  for (const Follower& follower : followers) {
    context.reply.Array(3);
    context.reply.Bulk(follower.address);
    context.reply.Bulk(fmt::to_string(follower.port));
    context.reply.Bulk(fmt::to_string(follower.applied));
  }
}

constexpr RedisTraits kReplicaOfTraits = {.flags = "noscript no_async_loading stale"};

constexpr Command kReplicationRows[] = {
    {.name = "replicaof",
     .arity = 3,
     .flags = kAdminCommand | kSlowCommand,
     .handler = HandleReplicaOf,
     .group = "server",
     .summary = "Makes this server the follower of another one, or of none.",
     .syntax = "host port | NO ONE",
     .complexity = "O(1)",
     .redis = kReplicaOfTraits},
    {.name = "role",
     .arity = 1,
     .flags = kFastCommand,
     .handler = HandleRole,
     .group = "server",
     .summary = "Answers whether this server is a primary or a follower, and how far it is.",
     .complexity = "O(F) for F followers",
     .redis = {.flags = "noscript loading stale", .categories = "@admin @dangerous"}},
    {.name = "slaveof",
     .arity = 3,
     .flags = kAdminCommand | kSlowCommand,
     .handler = HandleReplicaOf,
     .group = "server",
     .summary = "The same as REPLICAOF.",
     .syntax = "host port | NO ONE",
     .complexity = "O(1)",
     .redis = kReplicaOfTraits},
};

}  // namespace

absl::Span<const Command> ReplicationCommands() { return kReplicationRows; }

}  // namespace varve
