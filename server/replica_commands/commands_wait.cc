// WAIT, WAITAOF and READAFTER: replies that wait until a version is somewhere.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/replica_commands/version_wait.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr std::chrono::milliseconds kUsualTimeout{10'000};           // of READAFTER
constexpr int64_t kLongestWait = int64_t{1000} * 365 * 86400 * 100;  // milliseconds

// Reads an integer. Nothing: it is none, and the error was answered.
std::optional<int64_t> ParseInteger(CommandContext& context, std::string_view text) {
  int64_t integer = 0;
  if (ParseRespInteger(text, &integer)) return integer;
  context.reply.Error(kNoInteger);
  return std::nullopt;
}

// Reads a number of milliseconds. Nothing: it is none, and the error was answered.
std::optional<std::chrono::milliseconds> ParseTimeout(CommandContext& context,
                                                      std::string_view text) {
  int64_t timeout = 0;
  if (!ParseRespInteger(text, &timeout)) {
    context.reply.Error("ERR timeout is not an integer or out of range");
    return std::nullopt;
  }
  if (timeout < 0 || timeout > kLongestWait) {
    context.reply.Error(timeout < 0 ? "ERR timeout is negative" : "ERR timeout is out of range");
    return std::nullopt;
  }
  return std::chrono::milliseconds(timeout);
}

// Has the client's last write put on disk, if its mode does not see to that. False: the error was
// answered.
bool SendToDisk(CommandContext& context) {
  const ClientState& client = context.client;
  if (client.last_write_syncs || client.last_write <= context.server.store->durable_sequence())
    return true;
  if (const absl::Status synced = context.server.store->Sync(); !synced.ok()) {
    context.Fail(synced);
    return false;
  }
  return true;
}

// Has the reply wait for what is wanted of the client's last write.
void BeginWait(CommandContext& context, FollowerWait::Wanted wanted,
               std::chrono::milliseconds timeout) {
  wanted.version = context.client.last_write;
  context.Stream(std::make_unique<FollowerWait>(wanted, timeout));
}

// WAIT numreplicas timeout
void HandleWait(CommandContext& context, Arguments arguments) {
  if (context.server.replication.follows()) {
    return context.reply.Error(
        "ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if "
        "a replica is configured to be writable (which is not the default) writes to replicas are "
        "just local and are not propagated.");
  }
  const std::optional<int64_t> followers = ParseInteger(context, arguments[1]);
  if (!followers) return;
  const std::optional<std::chrono::milliseconds> timeout = ParseTimeout(context, arguments[2]);
  if (!timeout || !SendToDisk(context)) return;
  const ClientState& client = context.client;
  // The reply says that the write is on this disk, too.
  const SequenceNumber durable_after = client.last_write_syncs ? client.last_write : kNoSequence;
  BeginWait(context, {.followers = *followers, .durable_after = durable_after}, *timeout);
}

// WAITAOF numlocal numreplicas timeout
void HandleWaitAof(CommandContext& context, Arguments arguments) {
  const std::optional<int64_t> local = ParseInteger(context, arguments[1]);
  if (!local) return;
  if (*local < 0 || *local > 1)
    return context.reply.Error("ERR value is out of range, value must between 0 and 1");
  const std::optional<int64_t> followers = ParseInteger(context, arguments[2]);
  if (!followers) return;
  if (*followers < 0) return context.reply.Error("ERR value is out of range, must be positive");
  const std::optional<std::chrono::milliseconds> timeout = ParseTimeout(context, arguments[3]);
  if (!timeout) return;
  if (context.server.replication.follows()) {
    return context.reply.Error(
        "ERR WAITAOF cannot be used with replica instances. Please also note that writes to "
        "replicas are just local and are not propagated.");
  }
  if (*local == 1 && !SendToDisk(context)) return;
  BeginWait(context, {.followers = *followers, .local = *local == 1}, *timeout);
}

// READAFTER version [timeout]
void HandleReadAfter(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 3) return ReplyWrongArity(context, "readafter");
  uint64_t version = 0;
  if (!ParseRespCount(arguments[1], &version))
    return context.reply.Error("ERR version is not an integer or out of range");
  std::optional<std::chrono::milliseconds> timeout = kUsualTimeout;
  if (arguments.size() == 3) timeout = ParseTimeout(context, arguments[2]);
  if (timeout) context.Stream(std::make_unique<VisibleWait>(version, *timeout));
}

constexpr RedisTraits kWaitTraits = {.flags = "noscript",
                                     .tips = "request_policy:all_shards response_policy:agg_min",
                                     .categories = "@connection"};
constexpr std::string_view kWaitComplexity =
    "O(F) for F followers, and one sync of the log where sync is not always";

constexpr Command kWaitRows[] = {
    {.name = "readafter",
     .arity = -2,
     .flags = kFastCommand,
     .handler = HandleReadAfter,
     .group = "generic",
     .summary = "Answers once readers of this server see a version, or an error after a time.",
     .syntax = "version [timeout]",
     .complexity = "O(1)",
     .redis = {.flags = "noscript stale", .categories = "@connection"}},
    {.name = "wait",
     .arity = 3,
     .flags = kSlowCommand,
     .handler = HandleWait,
     .group = "generic",
     .summary = "Answers how many followers have the connection's last write on disk, once so many "
                "have it or the time is over.",
     .syntax = "numreplicas timeout",
     .complexity = kWaitComplexity,
     .redis = kWaitTraits},
    {.name = "waitaof",
     .arity = 4,
     .flags = kSlowCommand,
     .handler = HandleWaitAof,
     .group = "generic",
     .summary = "Answers whether the connection's last write is on disk here, and on how many "
                "followers.",
     .syntax = "numlocal numreplicas timeout",
     .complexity = kWaitComplexity,
     .redis = kWaitTraits},
};

}  // namespace

absl::Span<const Command> WaitCommands() { return kWaitRows; }

}  // namespace varve
