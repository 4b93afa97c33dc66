// FAILOVER: a follower becomes the primary, and this server follows it.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr int64_t kLastPortOfTarget = 65535;
constexpr int64_t kLongestTimeout = int64_t{1000} * 365 * 86400 * 100;  // milliseconds

struct Options {
  std::optional<std::string> host;
  int64_t port = 0;
  std::optional<int64_t> timeout;
  bool force = false;
};

// Reads the options as Redis does. False: they are wrong, and the error was answered.
bool ParseOptions(CommandContext& context, Arguments words, Options* options) {
  for (size_t i = 1; i < words.size(); ++i) {
    if (EqualsIgnoreCase(words[i], "timeout") && i + 1 < words.size() && !options->timeout) {
      int64_t timeout = 0;
      if (!ParseRespInteger(words[++i], &timeout)) {
        context.reply.Error(kNoInteger);
        return false;
      }
      if (timeout <= 0) {
        context.reply.Error("ERR FAILOVER timeout must be greater than 0");
        return false;
      }
      options->timeout = std::min(timeout, kLongestTimeout);
    } else if (EqualsIgnoreCase(words[i], "to") && i + 2 < words.size() && !options->host) {
      if (!ParseRespInteger(words[i + 2], &options->port)) {
        context.reply.Error(kNoInteger);
        return false;
      }
      options->host = std::string(words[i + 1]);
      i += 2;
    } else if (EqualsIgnoreCase(words[i], "force") && !options->force) {
      options->force = true;
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

// Returns why there can't be a failover, in Redis' words; empty: there can.
std::string_view Objection(const ReplicationState& replication, const Options& options) {
  if (replication.failover.load() != FailoverPhase::kNone)
    return "ERR FAILOVER already in progress.";
  if (replication.follows()) return "ERR FAILOVER is not valid when server is a replica.";
  std::vector<Follower> followers = replication.followers.List();
  if (followers.empty()) return "ERR FAILOVER requires connected replicas.";
  if (options.force && (!options.timeout || !options.host)) {
    return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
  }
  if (!options.host) return "";
  // A follower that began anew may be there twice for a while.
  std::erase_if(followers, [&](const Follower& follower) {
    return follower.port != options.port || !EqualsIgnoreCase(follower.address, *options.host);
  });
  if (followers.empty() || options.port <= 0 || options.port > kLastPortOfTarget)
    return "ERR FAILOVER target HOST and PORT is not a replica.";
  const bool is_online = std::any_of(followers.begin(), followers.end(),
                                     [](const Follower& follower) { return follower.online; });
  return is_online ? "" : "ERR FAILOVER target replica is not online.";
}

void Abort(CommandContext& context) {
  if (context.server.replication.failover.load() == FailoverPhase::kNone)
    return context.reply.Error("ERR No failover in progress.");
  const absl::Status aborted = context.server.calls.fail_over({.abort = true});
  aborted.ok() ? context.reply.Ok() : context.Fail(aborted);
}

// FAILOVER [TO host port [FORCE]] [TIMEOUT milliseconds] | ABORT
void HandleFailover(CommandContext& context, Arguments arguments) {
  if (arguments.size() == 2 && EqualsIgnoreCase(arguments[1], "abort")) return Abort(context);
  Options options;
  if (!ParseOptions(context, arguments, &options)) return;
  if (const std::string_view objection = Objection(context.server.replication, options);
      !objection.empty())
    return context.reply.Error(objection);
  FailoverRequest request;
  if (options.host) request.target = {*options.host, static_cast<uint16_t>(options.port)};
  request.force = options.force;
  request.timeout = std::chrono::milliseconds(options.timeout.value_or(0));
  const absl::Status begun = context.server.calls.fail_over(request);
  begun.ok() ? context.reply.Ok() : context.Fail(begun);
}

constexpr Command kFailoverRows[] = {
    {.name = "failover",
     .arity = -1,
     .flags = kAdminCommand | kSlowCommand,
     .handler = HandleFailover,
     .group = "server",
     .summary = "Makes a follower that has everything the primary, and follows it.",
     .syntax = "[TO host port [FORCE]] [TIMEOUT milliseconds] | ABORT",
     .complexity = "O(1)",
     .redis = {.flags = "noscript stale"}},
};

}  // namespace

absl::Span<const Command> FailoverCommands() { return kFailoverRows; }

}  // namespace varve
