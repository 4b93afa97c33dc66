#include "server/commands/command_traits.h"

#include <algorithm>
#include <iterator>

namespace varve {
namespace {

constexpr size_t kMetaSetArguments = 4;  // META SET key bytes, without IFVERSION

// In Redis' order.
constexpr std::string_view kFlagOrder[] = {
    "write",    "readonly",         "denyoom",  "admin",      "pubsub",
    "noscript", "blocking",         "loading",  "stale",      "fast",
    "no_auth",  "no_async_loading", "no_multi", "allow_busy", "skip_slowlog"};
constexpr std::string_view kCategoryOrder[] = {
    "@keyspace", "@read",      "@write",      "@string",      "@bitmap",
    "@stream",   "@pubsub",    "@admin",      "@fast",        "@slow",
    "@blocking", "@dangerous", "@connection", "@transaction", "@scripting"};

bool Contains(const Words& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Words are separated by blanks.
void AppendWords(std::string_view text, Words* words) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words->push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

template <size_t kSize>
Words InOrder(const std::string_view (&order)[kSize], const Words& words) {
  Words ordered;
  std::copy_if(std::begin(order), std::end(order), std::back_inserter(ordered),
               [&](std::string_view word) { return Contains(words, word); });
  return ordered;
}

// Commands whose keys are of more than one kind, or come with a note, or are channels.
struct SpecialKeys {
  std::string_view name;
  std::vector<KeySpecification> specifications;
};

const std::vector<SpecialKeys>& AllSpecialKeys() {
  static const std::vector<SpecialKeys> kSpecial = {
      {"bitfield",
       {{"This command allows both access and modification of the key",
         {"RW", "access", "update", "variable_flags"},
         1,
         0,
         1}}},
      {"bitop", {{"", {"OW", "update"}, 2, 0, 1}, {"", {"RO", "access"}, 3, -1, 1}}},
      {"copy", {{"", {"RO", "access"}, 1, 0, 1}, {"", {"OW", "update"}, 2, 0, 1}}},
      {"getex",
       {{"RW and UPDATE because it changes the TTL", {"RW", "access", "update"}, 1, 0, 1}}},
      {"meta|set",
       {{"RW and ACCESS due to the optional `IFVERSION` argument",
         {"RW", "access", "update", "variable_flags"},
         2,
         0,
         1}}},
      {"put",
       {{"RW and ACCESS due to the optional `GET` argument",
         {"RW", "access", "update", "variable_flags"},
         1,
         0,
         1}}},
      {"rename", {{"", {"RW", "access", "delete"}, 1, 0, 1}, {"", {"OW", "update"}, 2, 0, 1}}},
      {"renamenx", {{"", {"RW", "access", "delete"}, 1, 0, 1}, {"", {"OW", "insert"}, 2, 0, 1}}},
      {"set",
       {{"RW and ACCESS due to the optional `GET` argument",
         {"RW", "access", "update", "variable_flags"},
         1,
         0,
         1}}},
      {"spublish", {{"", {"not_key"}, 1, 0, 1}}},
      {"ssubscribe", {{"", {"not_key"}, 1, -1, 1}}},
      {"sunsubscribe", {{"", {"not_key"}, 1, -1, 1}}},
  };
  return kSpecial;
}

// BITFIELD with `operations` is sure to write nothing.
bool OnlyReadsBits(Arguments operations) {
  while (!operations.empty()) {
    const size_t taken = EqualsIgnoreCase(operations[0], "get")        ? 3
                         : EqualsIgnoreCase(operations[0], "overflow") ? 2
                                                                       : 0;
    if (taken == 0 || operations.size() < taken) return false;
    operations.remove_prefix(taken);
  }
  return true;
}

// Returns whether the option of SET or PUT makes the reply depend on the value or on the version
// that the key has, and not only on whether there is a key.
bool TellsOfOldValue(std::string_view option) {
  constexpr std::string_view kOptions[] = {"get", "ifeq", "ifne", "ifdeq", "ifdne", "ifversion"};
  return std::any_of(std::begin(kOptions), std::end(kOptions), [option](std::string_view telling) {
    return EqualsIgnoreCase(option, telling);
  });
}

}  // namespace

bool NamedCommand::HasKeys() const {
  if (command.keys.first == 0) return false;
  if (subcommand != nullptr) return (subcommand->flags & (kReadCommand | kWriteCommand)) != 0;
  return (command.flags & kContainerCommand) == 0;
}

Words FlagNames(const NamedCommand& command) {
  const uint32_t flags = command.flags();
  Words names;
  AppendWords(command.redis().flags, &names);
  const bool container = command.subcommand == nullptr && (flags & kContainerCommand) != 0;
  if (!container) {
    if (flags & kWriteCommand) names.push_back("write");
    if (flags & kReadCommand) names.push_back("readonly");
    if (flags & kAdminCommand) names.push_back("admin");
    if (flags & kPubSubCommand) names.push_back("pubsub");
    if (flags & kFastCommand) names.push_back("fast");
    if (flags & kBeforeLoginCommand) names.push_back("no_auth");
  }
  return InOrder(kFlagOrder, names);
}

Words Categories(const NamedCommand& command) {
  const uint32_t flags = command.flags();
  const std::string_view group = command.command.group;
  const bool container = command.subcommand == nullptr && (flags & kContainerCommand) != 0;
  Words names;
  names.push_back((flags & kFastCommand) != 0 ? "@fast" : "@slow");
  if (!container) {
    const bool data = (flags & (kReadCommand | kWriteCommand)) != 0;
    if ((group == "generic" || group == "range") && data) names.push_back("@keyspace");
    if (flags & kReadCommand) names.push_back("@read");
    if (flags & kWriteCommand) names.push_back("@write");
    if (group == "string") names.push_back("@string");
    if (group == "bitmap") names.push_back("@bitmap");
    if (group == "stream") names.push_back("@stream");
    if (flags & kPubSubCommand) names.push_back("@pubsub");
    if (flags & kAdminCommand) AppendWords("@admin @dangerous", &names);
    if (flags & kConnectionCommand) names.push_back("@connection");
    if (flags & kTransactionCommand) names.push_back("@transaction");
    if (group == "scripting") names.push_back("@scripting");
  }
  AppendWords(command.redis().categories, &names);
  return InOrder(kCategoryOrder, names);
}

Words Tips(const NamedCommand& command) {
  Words tips;
  AppendWords(command.redis().tips, &tips);
  return tips;
}

std::vector<KeySpecification> KeySpecifications(const NamedCommand& command) {
  for (const SpecialKeys& special : AllSpecialKeys()) {
    if (special.name == command.name) return special.specifications;
  }
  if (!command.HasKeys()) return {};
  const bool writes = (command.flags() & kWriteCommand) != 0;
  std::string_view uses = command.redis().key_flags;
  if (uses.empty()) uses = writes ? "RW access update" : "RO access";
  Words flags;
  AppendWords(uses, &flags);
  const auto [first, last, step] = command.command.keys;
  return {{"", flags, first, last < 0 ? last : last - first, step}};
}

Words KeyFlagsOf(const KeySpecification& specification, const Command& command, Arguments request) {
  if (!Contains(specification.flags, "variable_flags")) return specification.flags;
  if (command.kind == CommandKind::kSet) {
    // Its reply tells something about the value that the key had.
    return std::any_of(request.begin() + 3, request.end(), TellsOfOldValue)
               ? Words{"RW", "access", "update"}
               : Words{"OW", "update"};
  }
  if (command.name == "meta") {
    return request.size() > kMetaSetArguments ? Words{"RW", "access", "update"}
                                              : Words{"RW", "update"};
  }
  return OnlyReadsBits(request.subspan(2)) ? Words{"RO", "access"}
                                           : Words{"RW", "access", "update"};
}

}  // namespace varve
