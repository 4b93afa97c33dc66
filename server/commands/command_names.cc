#include "server/commands/command_names.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "fmt/format.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

constexpr uint32_t kConnectionAdmin = kConnectionCommand | kAdminCommand;

// In alphabetic order.
constexpr Subcommand kSubcommands[] = {
    {"client|caching", 3, kConnectionCommand, "Answers an error: there is no client-side caching.",
     "YES|NO"},
    {"client|getname", 2, kConnectionCommand, "Answers the name of this connection.", ""},
    {"client|getredir", 2, kConnectionCommand, "Answers -1: there is no client-side caching.", ""},
    {"client|help", 2, kConnectionCommand, "Prints this help.", ""},
    {"client|id", 2, kConnectionCommand, "Answers the number of this connection.", ""},
    {"client|info", 2, kConnectionCommand, "Shows what is known of this connection.", ""},
    {"client|kill", -3, kConnectionAdmin,
     "Closes connections: the one that comes from an address, or those that fit all options.",
     "ip:port | option value [option value ...]"},
    {"client|list", -2, kConnectionAdmin, "Shows what is known of all connections, or of some.",
     "[TYPE type | ID id [id ...]]"},
    {"client|no-evict", 3, kConnectionAdmin,
     "Keeps this connection when others are closed because all hold too much memory.", "ON|OFF"},
    {"client|no-touch", 3, kConnectionCommand, "Accepted: no read changes a record.", "ON|OFF"},
    {"client|pause", -3, kConnectionAdmin, "Answers an error: connections can not be paused.",
     "timeout [WRITE | ALL]"},
    {"client|reply", 3, kConnectionCommand,
     "Tells whether replies are sent, or (SKIP) those to the next command.", "ON|OFF|SKIP"},
    {"client|setinfo", 4, kConnectionCommand,
     "Tells the name or the version of the client's library.", "LIB-NAME name | LIB-VER version"},
    {"client|setname", 3, kConnectionCommand, "Names this connection.", "name"},
    {"client|tracking", -3, kConnectionCommand,
     "Only OFF is accepted: there is no client-side caching.", "ON|OFF"},
    {"client|trackinginfo", 2, kConnectionCommand, "Answers that there is no client-side caching.",
     ""},
    {"client|unblock", -3, kConnectionAdmin, "Answers 0: no command blocks.", "id [TIMEOUT|ERROR]"},
    {"client|unpause", 2, kConnectionAdmin, "Accepted: no connection is paused.", ""},
    {"command|count", 2, kConnectionCommand, "Answers the number of commands.", ""},
    {"command|docs", -2, kConnectionCommand,
     "Tells what commands are for, and how they are written.", "[name ...]"},
    {"command|getkeys", -4, kConnectionCommand, "Answers the keys of a request.",
     "request [argument ...]"},
    {"command|getkeysandflags", -4, kConnectionCommand,
     "Answers the keys of a request, and what it does with them.", "request [argument ...]"},
    {"command|help", 2, kConnectionCommand, "Prints this help.", ""},
    {"command|info", -2, kConnectionCommand, "Tells how commands are called.", "[name ...]"},
    {"command|list", -2, kConnectionCommand, "Lists the names of commands.",
     "[FILTERBY ACLCAT|MODULE|PATTERN value]"},
    {"config|get", -3, kAdminCommand,
     "Answers the settings whose names match a pattern, and their values.",
     "pattern [pattern ...]"},
    {"config|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"config|resetstat", 2, kAdminCommand, "Lets the counts that INFO shows begin anew.", ""},
    {"config|rewrite", 2, kAdminCommand,
     "Writes the settings in force into the configuration file.", ""},
    {"config|set", -4, kAdminCommand, "Changes settings, all or none.",
     "name value [name value ...]"},
    {"function|flush", -2, kWriteCommand, "Accepted: there are no functions.", "[ASYNC | SYNC]"},
    {"function|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"function|list", -2, kNoCommandFlags, "Answers an empty list: there are no functions.",
     "[LIBRARYNAME pattern] [WITHCODE]"},
    {"latency|doctor", 2, kAdminCommand, "Says where to look.", ""},
    {"latency|graph", 3, kAdminCommand, "Answers an error: events are not recorded.", "event"},
    {"latency|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"latency|histogram", -2, kAdminCommand, "Shows how the times of commands are spread.",
     "[command ...]"},
    {"latency|history", 3, kAdminCommand, "Answers an empty list: events are not recorded.",
     "event"},
    {"latency|latest", 2, kAdminCommand, "Answers an empty list: events are not recorded.", ""},
    {"latency|reset", -2, kAdminCommand, "Answers 0: events are not recorded.", "[event ...]"},
    {"memory|doctor", 2, kNoCommandFlags, "Says where the memory is.", ""},
    {"memory|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"memory|malloc-stats", 2, kNoCommandFlags, "Shows what the memory allocator tells of itself.",
     ""},
    {"memory|purge", 2, kNoCommandFlags, "Gives unused memory back to the system.", ""},
    {"memory|stats", 2, kNoCommandFlags, "Shows what the server's memory is used for.", ""},
    {"memory|usage", -3, kReadCommand, "Answers the bytes that a key and its value take.",
     "key [SAMPLES count]"},
    {"namespace|alter", -5, kWriteCommand | kAdminCommand,
     "Changes options of a namespace; 0 takes a limit away.",
     "name MAXKEYS n|MAXBYTES size|EX seconds|PX ms|SYNC mode|VALUESIZE size ..."},
    {"namespace|clone", -4, kWriteCommand | kAdminCommand,
     "Makes a namespace that holds what another one holds, in constant time: they share it until "
     "either changes.",
     "source name [MAXKEYS n] [MAXBYTES size] [EX seconds|PX ms] [SYNC always|everysec|no|default] "
     "[VALUESIZE size]"},
    {"namespace|create", -3, kWriteCommand | kAdminCommand,
     "Makes a namespace: keys of its own, in order.",
     "name [MAXKEYS n] [MAXBYTES size] [EX seconds|PX ms] [SYNC always|everysec|no|default] "
     "[VALUESIZE size]"},
    {"namespace|drop", 3, kWriteCommand | kAdminCommand,
     "Removes a namespace and all it holds, in constant time.", "name"},
    {"namespace|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"namespace|info", 3, kNoCommandFlags, "Shows a namespace's options, and what it holds.",
     "name"},
    {"namespace|list", 2, kNoCommandFlags, "Lists the names of all namespaces.", ""},
    {"namespace|use", 3, kConnectionCommand,
     "Chooses the namespace that the commands of this connection work in.", "name"},
    {"object|encoding", 3, kReadCommand, "Answers how Redis would keep the value of a key.", "key"},
    {"object|freq", 3, kReadCommand, "Answers an error: how often a key is read is not recorded.",
     "key"},
    {"object|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"object|idletime", 3, kReadCommand, "Answers 0: when a key was read is not recorded.", "key"},
    {"object|refcount", 3, kReadCommand,
     "Answers how many references Redis would count for the value of a key.", "key"},
    {"pubsub|channels", -2, kPubSubCommand, "Lists the channels somebody listens to.", "[pattern]"},
    {"pubsub|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"pubsub|numpat", 2, kPubSubCommand, "Answers the number of patterns somebody listens to.", ""},
    {"pubsub|numsub", -2, kPubSubCommand,
     "Answers how many listen to each channel, patterns not counted.", "[channel ...]"},
    {"pubsub|shardchannels", -2, kPubSubCommand, "Lists the shard channels somebody listens to.",
     "[pattern]"},
    {"pubsub|shardnumsub", -2, kPubSubCommand, "Answers how many listen to each shard channel.",
     "[shardchannel ...]"},
    {"slowlog|get", -2, kAdminCommand,
     "Shows the slowest requests lately, newest first: 10 or count, -1 for all.", "[count]"},
    {"slowlog|help", 2, kNoCommandFlags, "Prints this help.", ""},
    {"slowlog|len", 2, kAdminCommand, "Answers how many slow requests are remembered.", ""},
    {"slowlog|reset", 2, kAdminCommand, "Forgets the slow requests.", ""},
};

std::string_view Container(const Subcommand& subcommand) {
  const std::string_view name = subcommand.name;
  return name.substr(0, name.find('|'));
}

// As Redis lays it out: each subcommand, and below it what it does.
void ReplyHelp(RespWriter& reply, const Command& command) {
  const absl::Span<const Subcommand> subcommands = command.subcommands;
  reply.Array(2 * subcommands.size() + 1);
  reply.Simple(UpperCase(command.name) +
               " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  const auto show = [&reply](const Subcommand& subcommand) {
    reply.Simple(fmt::format("{}{}{}", UpperCase(subcommand.word()),
                             subcommand.syntax.empty() ? "" : " ", subcommand.syntax));
    reply.Simple(fmt::format("    {}", subcommand.summary));
  };
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.word() != "help") show(subcommand);
  }
  for (const Subcommand& subcommand : subcommands) {
    if (subcommand.word() == "help") show(subcommand);
  }
}

}  // namespace

absl::Span<const Subcommand> SubcommandsOf(std::string_view container) {
  const auto fits = [&](const Subcommand& subcommand) {
    return Container(subcommand) == container;
  };
  const auto begin = std::find_if(std::begin(kSubcommands), std::end(kSubcommands), fits);
  const auto end = std::find_if_not(begin, std::end(kSubcommands), fits);
  return {begin, static_cast<size_t>(end - begin)};
}

const Subcommand* FindSubcommand(std::string_view full_name) {
  const auto found =
      std::find_if(std::begin(kSubcommands), std::end(kSubcommands),
                   [&](const Subcommand& each) { return EqualsIgnoreCase(each.name, full_name); });
  return found == std::end(kSubcommands) ? nullptr : found;
}

const Subcommand* TakeSubcommand(CommandContext& context, Arguments arguments) {
  const Command& command = *FindCommand(arguments[0]);
  if (!AcceptsSubcommand(context, command, arguments)) return nullptr;
  const Subcommand* const subcommand = FindSubcommand(command, arguments);
  if (subcommand->word() != "help") return subcommand;
  ReplyHelp(context.reply, command);
  return nullptr;
}

void ReplySubcommandSyntax(CommandContext& context, Arguments arguments) {
  context.reply.Error(
      fmt::format("ERR unknown subcommand or wrong number of arguments for '{}'. Try {} HELP.",
                  NameInError(arguments[1]), UpperCase(arguments[0])));
}

bool TooManyNames(CommandContext& context, Arguments names) {
  if (names.size() <= kMaxNamesAsked) return false;
  context.reply.Error(
      fmt::format("ERR at most {} names can be asked about at once", kMaxNamesAsked));
  return true;
}

}  // namespace varve
