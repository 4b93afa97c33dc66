#include "server/execution/request_checks.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "fmt/format.h"
#include "server/execution/rights_check.h"
#include "server/requests/foreign_commands.h"
#include "server/requests/past_point.h"
#include "util/base/assert.h"
#include "util/base/letter_case.h"
#include "util/base/nearest_text.h"
#include "varve/namespace_status.h"

namespace varve {
namespace {

// The number of bytes sent by a client that an error text repeats.
constexpr size_t kShownOfNames = 128;
constexpr size_t kShownOfWords = 1024;
// How long a batch waits for room on the disk, and how long until it looks again.
constexpr std::chrono::seconds kLongestRoomWait{1};
constexpr std::chrono::milliseconds kRoomLooks{20};

// Returns, for the end of an error text, the known name that the client most likely meant.
std::string Suggestion(std::string_view name, std::span<const std::string_view> known) {
  const std::string_view nearest = NearestText(LowerCase(NameInError(name)), known);
  return nearest.empty() ? std::string() : fmt::format("(did you mean {}?)", UpperCase(nearest));
}

std::string SuggestedCommand(const CommandContext& context, std::string_view name) {
  const CommandCatalog& catalog = context.server.clients.users.catalog();
  std::vector<std::string_view> names;
  for (size_t i = 0; i < catalog.size(); ++i) {
    if (catalog.entry(i).subcommand == nullptr) names.push_back(catalog.entry(i).name);
  }
  return Suggestion(name, names);
}

std::string SuggestedSubcommand(const Command& command, std::string_view word) {
  std::vector<std::string_view> words;
  for (const Subcommand& subcommand : command.subcommands) words.push_back(subcommand.word());
  return Suggestion(word, words);
}

// Returns at most `limit` bytes, for an error text, which ends at a zero like that of Redis.
std::string_view Head(std::string_view text, size_t limit) {
  return text.substr(0, std::min(limit, text.find('\0')));
}

bool RequestAddsData(const Command& command, Arguments arguments) {
  if ((command.flags & kContainerCommand) == 0) return (command.flags & kAddsDataCommand) != 0;
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  return subcommand != nullptr && (subcommand->flags & kAddsDataCommand) != 0;
}

bool AddsData(const ClientTransaction& transaction, const Command& command, Arguments arguments) {
  if (transaction.open) {
    if (command.name == "exec") {
      return std::any_of(transaction.requests.begin(), transaction.requests.end(),
                         [](const QueuedRequest& request) {
                           return RequestAddsData(request.command(), request.arguments());
                         });
    }
    return command.name != "discard" && command.name != "reset" && command.name != "quit";
  }
  return RequestAddsData(command, arguments);
}

bool WritesData(const Command& command, Arguments arguments) {
  if ((command.flags & kWriteCommand) != 0) return true;
  if ((command.flags & kContainerCommand) == 0) return false;
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  return subcommand != nullptr && (subcommand->flags & kWriteCommand) != 0;
}

// What a replica would have to know of, in Redis.
bool IsWrite(const Command& command, Arguments arguments) {
  constexpr uint32_t kListens = kPubSubCommand | kSubscriberCommand;
  return (command.flags & kListens) == kPubSubCommand || WritesData(command, arguments);
}

// Returns whether the command needs what the primary has written.
bool NeedsFreshData(const Command& command, Arguments arguments) {
  const Subcommand* const subcommand =
      (command.flags & kContainerCommand) != 0 ? FindSubcommand(command, arguments) : nullptr;
  const std::string_view flags =
      subcommand != nullptr ? subcommand->redis.flags : command.redis.flags;
  return flags.find("stale") == std::string_view::npos;
}

// Returns whether `is` holds for the request or, if that is EXEC, for one that it executes.
bool Concerns(const ClientTransaction& transaction, const Command& command, Arguments arguments,
              bool (*is)(const Command& command, Arguments arguments)) {
  if (is(command, arguments)) return true;
  return command.name == "exec" &&
         std::any_of(transaction.requests.begin(), transaction.requests.end(),
                     [is](const QueuedRequest& request) {
                       return is(request.command(), request.arguments());
                     });
}

}  // namespace

bool RefusedByBounds(CommandContext& context, const Command& command, Arguments arguments) {
  if (!AddsData(context.client.modes.transaction, command, arguments)) return false;
  const ServerState& server = context.server;
  if (server.disk != nullptr && server.disk->IsTight()) {
    const bool evicts = context.server.evictor.RelieveDisk();
    const absl::Status refused = server.disk->Refusal();
    context.Fail(!evicts ? refused
                         : absl::ResourceExhaustedError(absl::StrCat(
                               refused.message(),
                               "; keys are evicted, whose space comes back with merges, too")));
    return true;
  }
  if (server.live.max_memory.load(std::memory_order_relaxed) == 0) return false;
  Store& store = *context.server.store;
  size_t bytes = 0;
  for (const std::string_view argument : arguments) bytes += argument.size();
  if (store.CheckData(bytes) == DataCheck::kMustCount && context.NeedsPoolFor(SIZE_MAX))
    return true;
  DataCheck check = store.CheckData(/*more=*/0);
  if (check == DataCheck::kMustCount) {
    if (const absl::StatusOr<uint64_t> counted = store.CountData(); !counted.ok()) {
      context.Fail(counted.status());
      return true;
    }
    check = store.CheckData(/*more=*/0);
  }
  // Where others write meanwhile, the store decides at the commit.
  if (check != DataCheck::kOver) return false;
  bool made_room = false;  // then the commit decides
  const auto refuse_once = [&]() -> absl::StatusOr<CommitResult> {
    if (std::exchange(made_room, true)) return CommitResult();
    return StoreIsFull(std::string(kOutOfMemory));
  };
  const absl::Status room =
      context
          .WriteWithRoom({.bytes = bytes, .keys = 1, .soonest_expiry_ms = kNeverSoon},
                         context.write_options(), refuse_once)
          .status();
  if (!room.ok()) context.Fail(room);
  return !room.ok();
}

bool RoomWait::HoldsUpTight(ServerState& server, const ClientState& client,
                            const RequestBatch& batch, const RequestBatch::Request& request) {
  const auto now = std::chrono::steady_clock::now();
  if (until_ && now >= *until_) return false;
  // A stop of the server waits for the requests that were read.
  if (client.is_primary_link || batch.refused || request.command == nullptr ||
      server.draining.load(std::memory_order_relaxed))
    return false;
  const Arguments arguments = batch.ArgumentsOf(request);
  if (!TakesArguments(*request.command, arguments) ||
      !AddsData(client.modes.transaction, *request.command, arguments))
    return false;
  if (!until_) {
    if (!server.evictor.RelieveDisk()) return false;
    until_ = now + kLongestRoomWait;
  }
  holds_ = true;
  return true;
}

std::chrono::milliseconds RoomWait::Left() const { return kRoomLooks; }

std::string_view WriteRefusal(const ServerState& server) {
  if (server.replication.follows()) return kReadOnlyReplica;
  const size_t wanted = server.live.min_followers.load(std::memory_order_relaxed);
  const std::chrono::seconds lag = server.live.max_follower_lag.load(std::memory_order_relaxed);
  if (wanted == 0 || lag.count() == 0) return "";
  const auto since = std::chrono::steady_clock::now() - lag;
  if (server.replication.followers.CountGood(since) >= wanted) return "";
  return "NOREPLICAS Not enough good replicas to write.";
}

std::string_view StaleRefusal(const ServerState& server) {
  const bool serves = !server.replication.follows() || server.replication.link_is_up() ||
                      server.live.serves_stale_data.load(std::memory_order_relaxed);
  return serves ? ""
                : "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to "
                  "'no'.";
}

bool RefusedForReplication(CommandContext& context, const Command& command, Arguments arguments) {
  const ClientTransaction& transaction = context.client.modes.transaction;
  if (context.client.is_primary_link) return false;
  std::string_view error = WriteRefusal(context.server);
  if (!error.empty() && !Concerns(transaction, command, arguments, WritesData)) error = "";
  if (error.empty()) {
    error = StaleRefusal(context.server);
    if (error.empty() || !Concerns(transaction, command, arguments, NeedsFreshData)) return false;
  }
  context.reply.Error(error);
  return true;
}

bool AsksStore(const ClientState& client, const Command* command, Arguments arguments) {
  if (command == nullptr || !TakesArguments(*command, arguments)) return false;
  if ((command->flags & kLocalCommand) != 0) return false;
  return !client.modes.transaction.open || (command->flags & kInTransactionCommand) != 0;
}

bool IsAskedTogether(const ServerState& server, const ClientState& client,
                     const RequestBatch& batch, const RequestBatch::Request& request) {
  if (request.command == nullptr || request.command->kind == CommandKind::kOther) return false;
  if (!TakesArguments(*request.command, batch.ArgumentsOf(request))) return false;
  if (batch.refused || client.RestrictedByModes() || server.clients.pause.Any() ||
      MayRefuseForReplication(server))
    return false;
  // What is refused is told by a thread that executes it.
  if (client.rights.NeedCheck() && !MayExecute(server.clients.users.catalog(), client,
                                               *request.command, batch.ArgumentsOf(request)))
    return false;
  switch (request.command->kind) {
    case CommandKind::kGet:
      return request.count == 2;
    case CommandKind::kSet:
      // Else it has to look whether its key is new, or whether there is room for it.
      return request.count == 3 && !server.clients.events.Tells(kNewEvent) &&
             !MayRefuseByBounds(server);
    case CommandKind::kRange:
    case CommandKind::kPrefix:
      // Else the range is cut to what the user may read.
      return !client.rights.limited();
    default:
      return true;
  }
}

bool IsHeldUp(const ClientState& client, ClientPause::Kind pause, const Command* command,
              Arguments arguments) {
  if (pause == ClientPause::Kind::kNone || command == nullptr ||
      !TakesArguments(*command, arguments))
    return false;
  const bool ends_it = command->name == "client" && arguments.size() > 1 &&
                       EqualsIgnoreCase(arguments[1], "unpause");
  if (ends_it || pause == ClientPause::Kind::kAll) return !ends_it;
  if (command->name != "exec") return IsWrite(*command, arguments);
  const auto& queued = client.modes.transaction.requests;
  return std::any_of(queued.begin(), queued.end(), [](const QueuedRequest& request) {
    return IsWrite(request.command(), request.arguments());
  });
}

bool RefusedByModes(CommandContext& context, const Command& command, Arguments arguments) {
  const ClientState& client = context.client;
  if (client.protocol < 3 && client.modes.Subscribed() &&
      (command.flags & kSubscriberCommand) == 0) {
    context.reply.Error(
        fmt::format("ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT "
                    "/ RESET are allowed in "
                    "this context",
                    FullCommandName(command, arguments)));
    return true;
  }
  if (client.modes.monitoring && (command.flags & (kReadCommand | kWriteCommand)) != 0) {
    // What Redis says to those who monitor.
    context.reply.Error("ERR Replica can't interact with the keyspace");
    return true;
  }
  return false;
}

bool AcceptsSubcommand(CommandContext& context, const Command& command, Arguments arguments) {
  VARVE_ASSERT((command.flags & kContainerCommand) != 0);
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  if (subcommand == nullptr) {
    if (arguments.size() < 2) return true;  // without one it says something, too
    const std::string suggestion = SuggestedSubcommand(command, arguments[1]);
    context.reply.Error(fmt::format("ERR unknown subcommand '{}'. Try {} HELP.{}{}",
                                    NameInError(arguments[1]), UpperCase(command.name),
                                    suggestion.empty() ? "" : " ", suggestion));
    return false;
  }
  if (ArityMatches(subcommand->arity, arguments.size())) return true;
  ReplyWrongArity(context, subcommand->name);
  return false;
}

void ReplyUnknownCommand(CommandContext& context, Arguments arguments) {
  if (const std::string foreign = ForeignCommandError(arguments[0]); !foreign.empty()) {
    return context.reply.Error(foreign);
  }
  std::string shown;
  for (size_t i = 1; i < arguments.size() && shown.size() < kShownOfNames; ++i) {
    shown += fmt::format("'{}' ", Head(arguments[i], kShownOfNames - shown.size()));
  }
  context.reply.Error(fmt::format("ERR unknown command '{}', with args beginning with: {}{}",
                                  NameInError(arguments[0]), shown,
                                  SuggestedCommand(context, arguments[0])));
}

void ReplyWrongArity(CommandContext& context, std::string_view name) {
  context.reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", name));
}

void ReplyWrongArguments(CommandContext& context, const Command& command, Arguments arguments) {
  if (const std::optional<Arguments> point = WrongPastPoint(command, arguments)) {
    if (const absl::Status wrong = ParsePastPoint(*point).status(); !wrong.ok())
      return context.Fail(wrong);
  }
  ReplyWrongArity(context, command.name);
}

void ReplySyntaxError(CommandContext& context) { context.reply.Error("ERR syntax error"); }

std::string_view NameInError(std::string_view name) { return Head(name, kShownOfNames); }

std::string_view ShownInError(std::string_view text) { return Head(text, kShownOfWords); }

}  // namespace varve
