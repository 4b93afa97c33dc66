// FEED: places of readers of the change feed, which the store keeps by name.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/request_checks.h"
#include "server/execution/rights_check.h"
#include "server/feed/change_stream.h"
#include "server/requests/past_point.h"
#include "util/base/size_text.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Returns whether the client's user may read every key of the range in the namespace.
bool MayReadAll(const CommandContext& context, Arguments arguments, NamespaceId space,
                std::string_view name, std::string_view prefix) {
  const KeyRange range = PrefixRange(prefix);
  VisibleChanges visible = ChangesForClient(context, arguments.first(2), range);
  const VisibleKeys& keys = visible.KeysOf(space, name);
  return keys.patterns.empty() && keys.ranges.size() == 1 && keys.ranges[0].lower == range.lower &&
         keys.ranges[0].upper == range.upper;
}

// Returns the name of the namespace; empty if it has none.
std::string NameOf(const CommandContext& context, NamespaceId space) {
  const absl::StatusOr<NamespaceList> list = context.server.store->Namespaces();
  const NamespaceDescription* const found = list.ok() ? list->Find(space) : nullptr;
  return found == nullptr ? "" : found->name;
}

// Returns whether the client's user may read every key that the feed is about.
bool MayUse(const CommandContext& context, Arguments arguments, const FeedPlace& place) {
  if (!context.client.rights.limited()) return true;
  const NamespaceId space = place.space.value_or(kDefaultNamespace);
  return MayReadAll(context, arguments, space, NameOf(context, space), place.prefix);
}

void ReplyNoRight(CommandContext& context) {
  ReplyDenied(context, {.reason = DenialReason::kKey, .object = "*"});
}

void ReplyNoFeed(CommandContext& context, std::string_view name) {
  context.reply.Error(fmt::format("ERR there is no feed '{}'", ShownInError(name)));
}

// Finds the feed that the request names and the client may use. Nothing: the error was answered.
std::optional<FeedPlace> FindFeed(CommandContext& context, Arguments arguments) {
  const std::string_view name = arguments[2];
  for (FeedPlace& place : context.server.store->Feeds()) {
    if (place.name != name) continue;
    if (MayUse(context, arguments, place)) return std::move(place);
    ReplyNoRight(context);
    return std::nullopt;
  }
  ReplyNoFeed(context, name);
  return std::nullopt;
}

// Reads [FROM version|NOW] [PREFIX p] [MAXBYTES n] [MAXAGE t].
absl::Status ParseFeed(Arguments words, FeedPlace* place) {
  place->position = kMaxSequence;  // the newest version
  for (size_t i = 0; i < words.size(); i += 2) {
    const std::string_view option = words[i];
    if (i + 1 == words.size()) return absl::InvalidArgumentError("syntax error");
    const std::string_view value = words[i + 1];
    if (EqualsIgnoreCase(option, "from")) {
      const std::optional<uint64_t> version = ParseCount(value);
      if (!version && !EqualsIgnoreCase(value, "now"))
        return absl::InvalidArgumentError("FROM takes a version, or NOW");
      place->position = version.value_or(kMaxSequence);
    } else if (EqualsIgnoreCase(option, "prefix")) {
      place->prefix.assign(value);
    } else if (EqualsIgnoreCase(option, "maxbytes")) {
      const absl::StatusOr<uint64_t> size = ParseSize(value);
      if (!size.ok() || *size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
        return absl::InvalidArgumentError("MAXBYTES takes a size, as 1GiB");
      place->most_bytes = *size;
    } else if (EqualsIgnoreCase(option, "maxage")) {
      const absl::StatusOr<std::chrono::nanoseconds> age = ParseDuration(value);
      if (!age.ok()) return absl::InvalidArgumentError("MAXAGE takes a time with its unit, as 1d");
      place->most_age_ms =
          static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(*age).count());
    } else {
      return absl::InvalidArgumentError("syntax error");
    }
  }
  return absl::OkStatus();
}

void CreateFeed(CommandContext& context, Arguments arguments) {
  Store& store = *context.server.store;
  FeedPlace place{.name = std::string(arguments[2]), .space = context.space()};
  const absl::Status parsed = ParseFeed(arguments.subspan(3), &place);
  if (!parsed.ok()) return context.Fail(parsed);
  if (!MayReadAll(context, arguments, context.space(), context.client.space_name, place.prefix))
    return ReplyNoRight(context);
  const absl::Status created = store.CreateFeed(place);
  created.ok() ? context.reply.Ok() : context.Fail(created);
}

void AckFeed(CommandContext& context, Arguments arguments) {
  const std::optional<uint64_t> version = ParseCount(arguments[3]);
  if (!version) return context.reply.Error("ERR FEED ACK takes a version");
  if (!FindFeed(context, arguments)) return;
  const absl::Status done = context.server.store->AckFeed(arguments[2], *version);
  done.ok() ? context.reply.Ok() : context.Fail(done);
}

void DropFeed(CommandContext& context, Arguments arguments) {
  if (!FindFeed(context, arguments)) return;
  const absl::Status done = context.server.store->DropFeed(arguments[2]);
  if (absl::IsNotFound(done)) return ReplyNoFeed(context, arguments[2]);
  done.ok() ? context.reply.Ok() : context.Fail(done);
}

void ListFeeds(CommandContext& context, Arguments arguments) {
  std::vector<FeedPlace> places = context.server.store->Feeds();
  std::erase_if(places, [&](const FeedPlace& place) { return !MayUse(context, arguments, place); });
  context.reply.Array(places.size());
  for (const FeedPlace& place : places) context.reply.Bulk(place.name);
}

void ShowFeed(CommandContext& context, Arguments arguments) {
  const std::optional<FeedPlace> place = FindFeed(context, arguments);
  if (!place) return;
  const absl::StatusOr<ChangePositions> positions = context.server.store->GetChangePositions();
  const SequenceNumber last = positions.ok() ? positions->last : place->position;
  const std::pair<std::string_view, uint64_t> figures[] = {
      {"position", place->position},
      {"lag_versions", last - std::min(last, place->position)},
      {"lag_bytes", place->retained_bytes},
      {"lost", place->lost ? 1 : 0},
      {"maxbytes", place->most_bytes},
      {"maxage_ms", place->most_age_ms},
      {"created_ms", place->created_ms},
      {"acknowledged_ms", place->acknowledged_ms},
  };
  RespWriter& reply = context.reply;
  reply.Map(std::size(figures) + 3);
  reply.Bulk("name");
  reply.Bulk(place->name);
  reply.Bulk("namespace");
  const NamespaceId space = place->space.value_or(kDefaultNamespace);
  reply.Bulk(place->space ? SpaceText(space, NameOf(context, space)) : "ALL");
  reply.Bulk("prefix");
  reply.Bulk(place->prefix);
  for (const auto& [name, figure] : figures) {
    reply.Bulk(name);
    reply.Integer(AsInteger(figure));
  }
}

void HandleFeed(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "create") return CreateFeed(context, arguments);
  if (what == "ack") return AckFeed(context, arguments);
  if (what == "drop") return DropFeed(context, arguments);
  if (what == "list") return ListFeeds(context, arguments);
  ShowFeed(context, arguments);  // info
}

constexpr Command kFeedRows[] = {
    {.name = "feed",
     .arity = -2,
     .flags = kContainerCommand | kSlowCommand | kNotInTransactionCommand,
     .handler = HandleFeed,
     .group = "stream",
     .summary = "Keeps the place of a reader of the change feed under a name.",
     .syntax = "CREATE | ACK | LIST | INFO | DROP | HELP"},
};

}  // namespace

absl::Span<const Command> FeedCommands() { return kFeedRows; }

}  // namespace varve
