// CLIENT TRACKING and what belongs to it.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/clients/client_tracking.h"
#include "server/commands/command_table.h"
#include "server/commands/tracking_commands.h"
#include "util/base/letter_case.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

struct TrackingOptions {
  TrackingMode mode;
  std::vector<std::string_view> prefixes;
};

// False: the error was answered.
bool ReadRedirection(CommandContext& context, std::string_view text, TrackingMode* mode) {
  if (mode->redirect != 0) {
    context.reply.Error("ERR A client can only redirect to a single other client");
    return false;
  }
  int64_t id = 0;
  if (!ParseRespInteger(text, &id)) {
    context.reply.Error(kNoInteger);
    return false;
  }
  const bool exists = id > 0 && context.server.clients.registry.Visit(static_cast<uint64_t>(id),
                                                                      [](ClientState&) {});
  if (!exists) {
    context.reply.Error("ERR The client ID you want redirect to does not exist");
    return false;
  }
  mode->redirect = static_cast<uint64_t>(id);
  return true;
}

// False: the error was answered.
bool ReadTrackingOptions(CommandContext& context, Arguments arguments, TrackingOptions* options) {
  TrackingMode& mode = options->mode;
  for (size_t i = 3; i < arguments.size(); ++i) {
    const auto is = [&](std::string_view word) { return EqualsIgnoreCase(arguments[i], word); };
    const bool has_value = i + 1 < arguments.size();
    if (is("redirect") && has_value) {
      if (!ReadRedirection(context, arguments[++i], &mode)) return false;
    } else if (is("prefix") && has_value) {
      options->prefixes.push_back(arguments[++i]);
    } else if (is("bcast")) {
      mode.broadcast = true;
    } else if (is("optin")) {
      mode.optin = true;
    } else if (is("optout")) {
      mode.optout = true;
    } else if (is("noloop")) {
      mode.noloop = true;
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

// Returns why the options contradict each other or the present mode, or nothing.
std::string_view Contradiction(const TrackingOptions& options, const TrackingMode& now) {
  const TrackingMode& wanted = options.mode;
  if (!wanted.broadcast && !options.prefixes.empty())
    return "ERR PREFIX option requires BCAST mode to be enabled";
  if (now.on && now.broadcast != wanted.broadcast) {
    return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  if (wanted.broadcast && (wanted.optin || wanted.optout))
    return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  if (wanted.optin && wanted.optout) return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  if ((wanted.optin && now.optout) || (wanted.optout && now.optin)) {
    return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  return {};
}

bool Overlap(std::string_view one, std::string_view other) {
  return one.starts_with(other) || other.starts_with(one);
}

// False: prefixes overlap, and the error was answered.
bool CheckOverlaps(CommandContext& context, const std::vector<std::string_view>& prefixes) {
  const std::set<std::string>& known = context.client.modes.tracking.prefixes;
  for (const std::string_view prefix : prefixes) {
    const auto old = std::find_if(known.begin(), known.end(), [&](const std::string& existing) {
      return Overlap(prefix, existing);
    });
    if (old == known.end()) continue;
    context.reply.Error(fmt::format(
        "ERR Prefix '{}' overlaps with an existing prefix '{}'. Prefixes for a single client must "
        "not overlap.",
        ShownInError(prefix), ShownInError(*old)));
    return false;
  }
  for (size_t i = 0; i < prefixes.size(); ++i) {
    for (size_t j = i + 1; j < prefixes.size(); ++j) {
      if (!Overlap(prefixes[i], prefixes[j])) continue;
      context.reply.Error(fmt::format(
          "ERR Prefix '{}' overlaps with another provided prefix '{}'. Prefixes for a single "
          "client must not overlap.",
          ShownInError(prefixes[i]), ShownInError(prefixes[j])));
      return false;
    }
  }
  return true;
}

}  // namespace

void HandleTracking(CommandContext& context, Arguments arguments) {
  TrackingOptions options;
  if (!ReadTrackingOptions(context, arguments, &options)) return;
  if (EqualsIgnoreCase(arguments[2], "off")) {
    StopTracking(&context.server.clients, &context.client);
    return context.reply.Ok();
  }
  if (!EqualsIgnoreCase(arguments[2], "on")) return ReplySyntaxError(context);
  const TrackingMode& now = context.client.modes.tracking;
  if (const std::string_view why = Contradiction(options, now); !why.empty())
    return context.reply.Error(why);
  if (options.mode.broadcast) {
    if (!CheckOverlaps(context, options.prefixes)) return;
    if (options.prefixes.empty()) options.prefixes.push_back("");
  }
  const absl::Status started =
      StartTracking(&context.server.clients, &context.client, options.mode, options.prefixes);
  if (!started.ok()) return context.Fail(started);
  context.reply.Ok();
}

void HandleCaching(CommandContext& context, Arguments arguments) {
  TrackingMode& mode = context.client.modes.tracking;
  if (!mode.on) {
    return context.reply.Error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  const bool yes = EqualsIgnoreCase(arguments[2], "yes");
  if (!yes && !EqualsIgnoreCase(arguments[2], "no")) return ReplySyntaxError(context);
  if (yes && !mode.optin) {
    return context.reply.Error(
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  }
  if (!yes && !mode.optout) {
    return context.reply.Error(
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  mode.caching = true;
  context.reply.Ok();
}

void HandleGetRedir(CommandContext& context) {
  const TrackingMode& mode = context.client.modes.tracking;
  context.reply.Integer(mode.on ? static_cast<int64_t>(mode.redirect) : -1);
}

void HandleTrackingInfo(CommandContext& context) {
  const TrackingMode& mode = context.client.modes.tracking;
  std::vector<std::string_view> flags = {mode.on ? "on" : "off"};
  if (mode.broadcast) flags.push_back("bcast");
  if (mode.optin) flags.push_back("optin");
  if (mode.optin && mode.caching) flags.push_back("caching-yes");
  if (mode.optout) flags.push_back("optout");
  if (mode.optout && mode.caching) flags.push_back("caching-no");
  if (mode.noloop) flags.push_back("noloop");
  if (context.client.link.tracking.load() & ClientLink::kRedirectionBroken)
    flags.push_back("broken_redirect");
  RespWriter& reply = context.reply;
  reply.Map(3);
  reply.Bulk("flags");
  reply.Set(flags.size());
  for (const std::string_view flag : flags) reply.Bulk(flag);
  reply.Bulk("redirect");
  HandleGetRedir(context);
  reply.Bulk("prefixes");
  reply.Array(mode.prefixes.size());
  for (const std::string& prefix : mode.prefixes) reply.Bulk(prefix);
}

}  // namespace varve
