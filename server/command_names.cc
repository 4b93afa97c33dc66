#include "server/command_names.h"

#include <algorithm>

namespace varve {
namespace {

constexpr uint32_t kConnectionAdmin = kConnectionCommand | kAdminCommand;

// Grouped by command, in alphabetic order.
constexpr Subcommand kSubcommands[] = {
    {"client|caching", 3, kConnectionCommand},    {"client|getname", 2, kConnectionCommand},
    {"client|getredir", 2, kConnectionCommand},   {"client|help", 2, kConnectionCommand},
    {"client|id", 2, kConnectionCommand},         {"client|info", 2, kConnectionCommand},
    {"client|kill", -3, kConnectionAdmin},        {"client|list", -2, kConnectionAdmin},
    {"client|no-evict", 3, kConnectionAdmin},     {"client|no-touch", 3, kConnectionCommand},
    {"client|pause", -3, kConnectionAdmin},       {"client|reply", 3, kConnectionCommand},
    {"client|setinfo", 4, kConnectionCommand},    {"client|setname", 3, kConnectionCommand},
    {"client|tracking", -3, kConnectionCommand},  {"client|trackinginfo", 2, kConnectionCommand},
    {"client|unblock", -3, kConnectionAdmin},     {"client|unpause", 2, kConnectionAdmin},
    {"command|count", 2, kConnectionCommand},     {"command|docs", -2, kConnectionCommand},
    {"command|getkeys", -4, kConnectionCommand},  {"command|getkeysandflags", -4, kConnectionCommand},
    {"command|help", 2, kConnectionCommand},      {"command|info", -2, kConnectionCommand},
    {"command|list", -2, kConnectionCommand},     {"config|get", -3, kAdminCommand},
    {"config|help", 2, kNoCommandFlags},          {"config|resetstat", 2, kAdminCommand},
    {"config|rewrite", 2, kAdminCommand},         {"config|set", -4, kAdminCommand},
    {"pubsub|channels", -2, kPubSubCommand},      {"pubsub|help", 2, kNoCommandFlags},
    {"pubsub|numpat", 2, kPubSubCommand},         {"pubsub|numsub", -2, kPubSubCommand},
    {"pubsub|shardchannels", -2, kPubSubCommand}, {"pubsub|shardnumsub", -2, kPubSubCommand},
};

std::string_view Container(const Subcommand& subcommand) {
  const std::string_view name = subcommand.name;
  return name.substr(0, name.find('|'));
}

}  // namespace

absl::Span<const Subcommand> SubcommandsOf(const Command& command) {
  const auto fits = [&](const Subcommand& subcommand) { return Container(subcommand) == command.name; };
  const auto begin = std::find_if(std::begin(kSubcommands), std::end(kSubcommands), fits);
  const auto end = std::find_if_not(begin, std::end(kSubcommands), fits);
  return {begin, static_cast<size_t>(end - begin)};
}

const Subcommand* FindSubcommand(std::string_view full_name) {
  const auto found = std::find_if(std::begin(kSubcommands), std::end(kSubcommands),
                                  [&](const Subcommand& each) { return EqualsIgnoreCase(each.name, full_name); });
  return found == std::end(kSubcommands) ? nullptr : found;
}

const char* FullCommandName(const Command& command, Arguments arguments) {
  if ((command.flags & kContainerCommand) != 0 && arguments.size() > 1) {
    for (const Subcommand& subcommand : SubcommandsOf(command)) {
      if (EqualsIgnoreCase(std::string_view(subcommand.name).substr(command.name.size() + 1), arguments[1])) {
        return subcommand.name;
      }
    }
  }
  return command.name.data();  // of a literal, so it ends with a zero
}

}  // namespace varve
