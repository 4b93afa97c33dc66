#include "server/user_commands/command_rights.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "server/commands/command_table.h"
#include "server/commands/command_traits.h"
#include "util/base/assert.h"

namespace varve {
namespace {

bool Contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

KeyRights RightsIn(const Words& flags) {
  const bool writes =
      Contains(flags, "update") || Contains(flags, "insert") || Contains(flags, "delete");
  return static_cast<KeyRights>((Contains(flags, "access") ? kMayRead : 0) |
                                (writes ? kMayWrite : 0));
}

// What a request of a command with varying flags does with its keys.
KeyRights VaryingRights(const Command& command, Arguments request) {
  KeyRights rights = 0;
  const Subcommand* const subcommand = FindSubcommand(command, request);
  const NamedCommand named =
      subcommand != nullptr ? NamedCommand(command, *subcommand) : NamedCommand(command);
  for (const KeySpecification& specification : KeySpecifications(named))
    rights |= RightsIn(KeyFlagsOf(specification, command, request));
  return rights;
}

uint32_t CategoriesOf(const NamedCommand& command) {
  uint32_t bits = 0;
  for (const std::string_view name : Categories(command)) {
    const std::optional<size_t> category = FindCategory(name.substr(1));
    VARVE_ASSERT(category.has_value());
    bits |= 1u << *category;
  }
  return bits;
}

std::vector<KeyUse> KeysOf(const NamedCommand& command) {
  std::vector<KeyUse> uses;
  for (const KeySpecification& specification : KeySpecifications(command)) {
    if (Contains(specification.flags, "not_key")) continue;
    uses.push_back({.first = static_cast<size_t>(specification.first),
                    .last = specification.last,
                    .step = static_cast<size_t>(specification.step),
                    .rights = RightsIn(specification.flags),
                    .varies = Contains(specification.flags, "variable_flags")});
  }
  return uses;
}

ChannelUse ChannelsOf(std::string_view name) {
  if (name == "publish" || name == "spublish") return ChannelUse::kFirst;
  if (name == "subscribe" || name == "ssubscribe") return ChannelUse::kAll;
  return name == "psubscribe" ? ChannelUse::kAllPatterns : ChannelUse::kNone;
}

KeyReach ReachOf(std::string_view name) {
  constexpr std::pair<std::string_view, KeyReach> kReaches[] = {
      {"backup|abort", KeyReach::kReadsAll},
      {"backup|cleanup", KeyReach::kReadsAll},
      {"backup|fetch", KeyReach::kReadsAll},
      {"backup|list", KeyReach::kReadsAll},
      {"backup|seal", KeyReach::kReadsAll},
      {"backup|start", KeyReach::kReadsAll},
      {"backup|status", KeyReach::kReadsAll},
      {"changes", KeyReach::kReadsPart},
      {"children", KeyReach::kReadsRanges},
      {"compact", KeyReach::kWritesAll},
      {"count", KeyReach::kReadsRanges},
      {"dbsize", KeyReach::kReadsAll},
      {"delprefix", KeyReach::kWritesPrefix},
      {"delrange", KeyReach::kWritesRange},
      {"diff", KeyReach::kReadsRanges},
      {"flushall", KeyReach::kWritesAll},
      {"flushdb", KeyReach::kWritesAll},
      {"keys", KeyReach::kReadsPart},
      {"namespace|alter", KeyReach::kWritesAll},
      {"namespace|clone", KeyReach::kWritesAll},
      {"namespace|create", KeyReach::kWritesAll},
      {"namespace|drop", KeyReach::kWritesAll},
      {"namespace|info", KeyReach::kReadsAll},
      {"namespace|undrop", KeyReach::kWritesAll},
      {"prefix", KeyReach::kReadsRanges},
      {"randomkey", KeyReach::kReadsRanges},
      {"range", KeyReach::kReadsRanges},
      {"replica|checksum", KeyReach::kReadsAll},
      {"replica|ack", KeyReach::kReadsAll},
      {"replica|copy", KeyReach::kReadsAll},
      {"replica|fetch", KeyReach::kReadsAll},
      {"replica|hello", KeyReach::kReadsAll},
      {"replica|pull", KeyReach::kReadsAll},
      {"replica|release", KeyReach::kReadsAll},
      {"failover", KeyReach::kWritesAll},
      {"replicaof", KeyReach::kWritesAll},
      {"scan", KeyReach::kReadsPart},
      {"slaveof", KeyReach::kWritesAll},
      {"swapdb", KeyReach::kWritesAll},
      {"tree", KeyReach::kReadsRanges},
      {"undelete", KeyReach::kWritesNamed},
      {"watchprefix", KeyReach::kReadsPrefix},
      {"watchrange", KeyReach::kReadsRange},
      {"xinfo|groups", KeyReach::kReadsPart},
      {"xinfo|stream", KeyReach::kReadsPart},
      {"xlen", KeyReach::kReadsPart},
      {"xrange", KeyReach::kReadsPart},
      {"xread", KeyReach::kReadsPart},
      {"xrevrange", KeyReach::kReadsPart}};
  for (const auto& [known, reach] : kReaches) {
    if (known == name) return reach;
  }
  return KeyReach::kItsKeys;
}

PlaceUse PlacesOf(std::string_view name) {
  constexpr std::pair<std::string_view, PlaceUse> kPlaces[] = {
      {"copy", PlaceUse::kDatabaseOption},        {"flushall", PlaceUse::kAllDatabases},
      {"diff", PlaceUse::kComparedPlaces},        {"move", PlaceUse::kDatabaseSecond},
      {"namespace|alter", PlaceUse::kPlaceName},  {"namespace|clone", PlaceUse::kPlaceNames},
      {"namespace|create", PlaceUse::kPlaceName}, {"namespace|drop", PlaceUse::kPlaceName},
      {"namespace|info", PlaceUse::kPlaceName},   {"namespace|undrop", PlaceUse::kPlaceName},
      {"namespace|use", PlaceUse::kPlaceName},    {"select", PlaceUse::kDatabaseFirst},
      {"swapdb", PlaceUse::kDatabasesBoth}};
  for (const auto& [known, use] : kPlaces) {
    if (known == name) return use;
  }
  const bool copies = name.starts_with("backup|") || name.starts_with("replica|");
  if (copies && !name.ends_with("|help")) return PlaceUse::kAllPlaces;
  if (name == "replicaof" || name == "slaveof" || name == "failover") return PlaceUse::kAllPlaces;
  return PlaceUse::kNone;
}

CommandEntry EntryOf(const NamedCommand& command) {
  CommandEntry entry;
  entry.name = command.name;
  entry.command = &command.command;
  entry.subcommand = command.subcommand;
  entry.categories = CategoriesOf(command);
  entry.keys = KeysOf(command);
  entry.channels = ChannelsOf(command.name);
  entry.reach = ReachOf(command.name);
  entry.places = PlacesOf(command.name);
  const bool data = (command.flags() & (kReadCommand | kWriteCommand)) != 0;
  const bool elsewhere =
      entry.places == PlaceUse::kPlaceName || entry.places == PlaceUse::kPlaceNames ||
      entry.places == PlaceUse::kComparedPlaces || entry.places == PlaceUse::kDatabasesBoth ||
      entry.places == PlaceUse::kAllDatabases;
  const bool watches =
      entry.reach == KeyReach::kReadsRange || entry.reach == KeyReach::kReadsPrefix;
  entry.works_in_place = (data && !elsewhere) || watches || !entry.keys.empty();
  return entry;
}

std::vector<CommandEntry> AllEntries() {
  std::vector<CommandEntry> entries;
  for (const Command& command : AllCommands()) {
    entries.push_back(EntryOf(NamedCommand(command)));
    for (const Subcommand& subcommand : command.subcommands)
      entries.push_back(EntryOf({command, subcommand}));
  }
  VARVE_ASSERT(entries.size() > AllCommands().size());
  return entries;
}

}  // namespace

const CommandCatalog& AccessCatalog() {
  static const CommandCatalog catalog(AllEntries(), VaryingRights);
  return catalog;
}

}  // namespace varve
