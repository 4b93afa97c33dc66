#include "server/commands/command_traits.h"

#include <algorithm>
#include <iterator>

namespace varve {
namespace {

// What Redis says of its commands, and so Varve of its own of that name: flags beyond those of the
// table, and tips.
struct Traits {
  std::string_view name;
  std::string_view flags;
  std::string_view tips = {};
};

// In alphabetic order.
constexpr Traits kTraits[] = {
    {"append", "denyoom"},
    {"auth", "noscript loading stale allow_busy"},
    {"bgrewriteaof", "noscript no_async_loading"},
    {"bgsave", "noscript no_async_loading"},
    {"bitfield", "denyoom"},
    {"bitop", "denyoom"},
    {"client|caching", "noscript loading stale"},
    {"client|getname", "noscript loading stale"},
    {"client|getredir", "noscript loading stale"},
    {"client|help", "loading stale"},
    {"client|id", "noscript loading stale"},
    {"client|info", "noscript loading stale", "nondeterministic_output"},
    {"client|kill", "noscript loading stale"},
    {"client|list", "noscript loading stale", "nondeterministic_output"},
    {"client|no-evict", "noscript loading stale"},
    {"client|no-touch", "noscript loading stale"},
    {"client|pause", "noscript loading stale"},
    {"client|reply", "noscript loading stale"},
    {"client|setinfo", "noscript loading stale"},
    {"client|setname", "noscript loading stale"},
    {"client|tracking", "noscript loading stale"},
    {"client|trackinginfo", "noscript loading stale"},
    {"client|unblock", "noscript loading stale"},
    {"client|unpause", "noscript loading stale"},
    {"command", "loading stale", "nondeterministic_output_order"},
    {"command|count", "loading stale"},
    {"command|docs", "loading stale", "nondeterministic_output_order"},
    {"command|getkeys", "loading stale"},
    {"command|getkeysandflags", "loading stale"},
    {"command|help", "loading stale"},
    {"command|info", "loading stale", "nondeterministic_output_order"},
    {"command|list", "loading stale", "nondeterministic_output_order"},
    {"compact", "no_multi"},
    {"config|get", "noscript loading stale"},
    {"config|help", "loading stale"},
    {"config|resetstat", "noscript loading stale"},
    {"config|rewrite", "noscript loading stale"},
    {"config|set", "noscript loading stale",
     "request_policy:all_nodes response_policy:all_succeeded"},
    {"copy", "denyoom"},
    {"dbsize", "", "request_policy:all_shards response_policy:agg_sum"},
    {"decr", "denyoom"},
    {"decrby", "denyoom"},
    {"del", "", "request_policy:multi_shard response_policy:agg_sum"},
    {"delete", "", "request_policy:multi_shard response_policy:agg_sum"},
    {"discard", "noscript loading stale allow_busy"},
    {"dump", "", "nondeterministic_output"},
    {"echo", "loading stale"},
    {"exec", "noscript loading stale skip_slowlog"},
    {"exists", "", "request_policy:multi_shard response_policy:agg_sum"},
    {"flushall", "", "request_policy:all_shards response_policy:all_succeeded"},
    {"flushdb", "", "request_policy:all_shards response_policy:all_succeeded"},
    {"function|flush", "noscript", "request_policy:all_shards response_policy:all_succeeded"},
    {"function|help", "loading stale"},
    {"function|list", "noscript", "nondeterministic_output_order"},
    {"getset", "denyoom"},
    {"hello", "noscript loading stale allow_busy"},
    {"incr", "denyoom"},
    {"incrby", "denyoom"},
    {"incrbyfloat", "denyoom"},
    {"info", "loading stale",
     "nondeterministic_output request_policy:all_shards response_policy:special"},
    {"keys", "", "request_policy:all_shards nondeterministic_output_order"},
    {"lastsave", "loading stale", "nondeterministic_output"},
    {"latency|doctor", "noscript loading stale",
     "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {"latency|graph", "noscript loading stale",
     "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {"latency|help", "loading stale"},
    {"latency|histogram", "noscript loading stale",
     "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {"latency|history", "noscript loading stale",
     "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {"latency|latest", "noscript loading stale",
     "nondeterministic_output request_policy:all_nodes response_policy:special"},
    {"latency|reset", "noscript loading stale",
     "request_policy:all_nodes response_policy:all_succeeded"},
    {"memory|doctor", "",
     "nondeterministic_output request_policy:all_shards response_policy:special"},
    {"memory|help", "loading stale"},
    {"memory|malloc-stats", "",
     "nondeterministic_output request_policy:all_shards response_policy:special"},
    {"memory|purge", "", "request_policy:all_shards response_policy:all_succeeded"},
    {"memory|stats", "",
     "nondeterministic_output request_policy:all_shards response_policy:special"},
    {"mget", "", "request_policy:multi_shard"},
    {"monitor", "noscript loading stale"},
    {"mset", "denyoom", "request_policy:multi_shard response_policy:all_succeeded"},
    {"msetnx", "denyoom", "request_policy:multi_shard response_policy:agg_min"},
    {"multi", "noscript loading stale allow_busy"},
    {"object|encoding", "", "nondeterministic_output"},
    {"object|freq", "", "nondeterministic_output"},
    {"object|help", "loading stale"},
    {"object|idletime", "", "nondeterministic_output"},
    {"object|refcount", "", "nondeterministic_output"},
    {"ping", "", "request_policy:all_shards response_policy:all_succeeded"},
    {"psetex", "denyoom"},
    {"psubscribe", "noscript loading stale"},
    {"pttl", "", "nondeterministic_output"},
    {"publish", "loading stale"},
    {"pubsub|channels", "loading stale"},
    {"pubsub|help", "loading stale"},
    {"pubsub|numpat", "loading stale"},
    {"pubsub|numsub", "loading stale"},
    {"pubsub|shardchannels", "loading stale"},
    {"pubsub|shardnumsub", "loading stale"},
    {"punsubscribe", "noscript loading stale"},
    {"put", "denyoom"},
    {"quit", "noscript loading stale allow_busy"},
    {"randomkey", "", "request_policy:all_shards nondeterministic_output"},
    {"reset", "noscript loading stale allow_busy"},
    {"restore", "denyoom"},
    {"role", "noscript loading stale"},
    {"save", "noscript no_async_loading no_multi"},
    {"scan", "", "nondeterministic_output request_policy:special"},
    {"select", "loading stale"},
    {"set", "denyoom"},
    {"setbit", "denyoom"},
    {"setex", "denyoom"},
    {"setnx", "denyoom"},
    {"setrange", "denyoom"},
    {"shutdown", "noscript loading stale no_multi allow_busy"},
    {"slowlog|get", "loading stale", "request_policy:all_nodes nondeterministic_output"},
    {"slowlog|help", "loading stale"},
    {"slowlog|len", "loading stale",
     "request_policy:all_nodes response_policy:agg_sum nondeterministic_output"},
    {"slowlog|reset", "loading stale", "request_policy:all_nodes response_policy:all_succeeded"},
    {"spublish", "loading stale"},
    {"ssubscribe", "noscript loading stale"},
    {"subscribe", "noscript loading stale"},
    {"sunsubscribe", "noscript loading stale"},
    {"time", "loading stale", "nondeterministic_output"},
    {"touch", "", "request_policy:multi_shard response_policy:agg_sum"},
    {"ttl", "", "nondeterministic_output"},
    {"unlink", "", "request_policy:multi_shard response_policy:agg_sum"},
    {"unsubscribe", "noscript loading stale"},
    {"unwatch", "noscript loading stale allow_busy"},
    {"wait", "noscript", "request_policy:all_shards response_policy:agg_min"},
    {"watch", "noscript loading stale allow_busy"},
};

// Categories beyond those that follow from flags and group.
struct ExtraCategories {
  std::string_view name;
  std::string_view categories;
};
constexpr ExtraCategories kExtraCategories[] = {
    {"command", "@connection"},
    {"dbsize", "@keyspace"},
    {"explain", "@keyspace"},
    {"flushall", "@keyspace @dangerous"},
    {"flushdb", "@keyspace @dangerous"},
    {"info", "@dangerous"},
    {"keys", "@dangerous"},
    {"lastsave", "@admin @dangerous"},
    {"object|help", "@keyspace"},
    {"restore", "@dangerous"},
    {"role", "@admin @dangerous"},
    {"swapdb", "@keyspace @dangerous"},
    {"wait", "@connection"},
};

// In Redis' order.
constexpr std::string_view kFlagOrder[] = {
    "write",      "readonly",    "denyoom", "admin",   "pubsub",           "noscript",
    "loading",    "stale",       "fast",    "no_auth", "no_async_loading", "no_multi",
    "allow_busy", "skip_slowlog"};
constexpr std::string_view kCategoryOrder[] = {
    "@keyspace", "@read", "@write",     "@string",     "@bitmap",      "@pubsub",   "@admin",
    "@fast",     "@slow", "@dangerous", "@connection", "@transaction", "@scripting"};

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

const Traits* FindTraits(std::string_view name) {
  const auto* const found = std::lower_bound(
      std::begin(kTraits), std::end(kTraits), name,
      [](const Traits& traits, std::string_view wanted) { return traits.name < wanted; });
  return found != std::end(kTraits) && found->name == name ? found : nullptr;
}

// Commands whose keys are more than one kind, or not used as the flags of the command let expect.
struct SpecialKeys {
  std::string_view name;
  std::vector<KeySpecification> specifications;
};

const std::vector<SpecialKeys>& AllSpecialKeys() {
  static const std::vector<SpecialKeys> kSpecial = {
      {"append", {{"", {"RW", "insert"}, 1, 0, 1}}},
      {"bitfield",
       {{"This command allows both access and modification of the key",
         {"RW", "access", "update", "variable_flags"},
         1,
         0,
         1}}},
      {"bitop", {{"", {"OW", "update"}, 2, 0, 1}, {"", {"RO", "access"}, 3, -1, 1}}},
      {"copy", {{"", {"RO", "access"}, 1, 0, 1}, {"", {"OW", "update"}, 2, 0, 1}}},
      {"del", {{"", {"RM", "delete"}, 1, -1, 1}}},
      {"delete", {{"", {"RM", "delete"}, 1, -1, 1}}},
      {"delex", {{"", {"RW", "access", "delete"}, 1, 0, 1}}},
      {"exists", {{"", {"RO"}, 1, -1, 1}}},
      {"expire", {{"", {"RW", "update"}, 1, 0, 1}}},
      {"expireat", {{"", {"RW", "update"}, 1, 0, 1}}},
      {"getdel", {{"", {"RW", "access", "delete"}, 1, 0, 1}}},
      {"getex",
       {{"RW and UPDATE because it changes the TTL", {"RW", "access", "update"}, 1, 0, 1}}},
      {"memory|usage", {{"", {"RO"}, 2, 0, 1}}},
      {"mset", {{"", {"OW", "update"}, 1, -1, 2}}},
      {"msetnx", {{"", {"OW", "insert"}, 1, -1, 2}}},
      {"object|encoding", {{"", {"RO"}, 2, 0, 1}}},
      {"object|freq", {{"", {"RO"}, 2, 0, 1}}},
      {"object|idletime", {{"", {"RO"}, 2, 0, 1}}},
      {"object|refcount", {{"", {"RO"}, 2, 0, 1}}},
      {"persist", {{"", {"RW", "update"}, 1, 0, 1}}},
      {"pexpire", {{"", {"RW", "update"}, 1, 0, 1}}},
      {"pexpireat", {{"", {"RW", "update"}, 1, 0, 1}}},
      {"psetex", {{"", {"OW", "update"}, 1, 0, 1}}},
      {"put",
       {{"RW and ACCESS due to the optional `GET` argument",
         {"RW", "access", "update", "variable_flags"},
         1,
         0,
         1}}},
      {"rename", {{"", {"RW", "access", "delete"}, 1, 0, 1}, {"", {"OW", "update"}, 2, 0, 1}}},
      {"renamenx", {{"", {"RW", "access", "delete"}, 1, 0, 1}, {"", {"OW", "insert"}, 2, 0, 1}}},
      {"restore", {{"", {"OW", "update"}, 1, 0, 1}}},
      {"set",
       {{"RW and ACCESS due to the optional `GET` argument",
         {"RW", "access", "update", "variable_flags"},
         1,
         0,
         1}}},
      {"setex", {{"", {"OW", "update"}, 1, 0, 1}}},
      {"setnx", {{"", {"OW", "insert"}, 1, 0, 1}}},
      {"setrange", {{"", {"RW", "update"}, 1, 0, 1}}},
      {"spublish", {{"", {"not_key"}, 1, 0, 1}}},
      {"ssubscribe", {{"", {"not_key"}, 1, -1, 1}}},
      {"strlen", {{"", {"RO"}, 1, 0, 1}}},
      {"sunsubscribe", {{"", {"not_key"}, 1, -1, 1}}},
      {"touch", {{"", {"RO"}, 1, -1, 1}}},
      {"type", {{"", {"RO"}, 1, 0, 1}}},
      {"unlink", {{"", {"RM", "delete"}, 1, -1, 1}}},
      {"watch", {{"", {"RO"}, 1, -1, 1}}},
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

}  // namespace

bool NamedCommand::HasKeys() const {
  if (command.first_key == 0) return false;
  if (subcommand != nullptr) return (subcommand->flags & kReadCommand) != 0;
  return (command.flags & kContainerCommand) == 0;
}

Words FlagNames(const NamedCommand& command) {
  const uint32_t flags = command.flags();
  Words names;
  if (const Traits* traits = FindTraits(command.name); traits != nullptr)
    AppendWords(traits->flags, &names);
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
    if (flags & kPubSubCommand) names.push_back("@pubsub");
    if (flags & kAdminCommand) AppendWords("@admin @dangerous", &names);
    if (flags & kConnectionCommand) names.push_back("@connection");
    if (flags & kTransactionCommand) names.push_back("@transaction");
    if (group == "scripting") names.push_back("@scripting");
  }
  for (const ExtraCategories& extra : kExtraCategories) {
    if (extra.name == command.name) AppendWords(extra.categories, &names);
  }
  return InOrder(kCategoryOrder, names);
}

Words Tips(const NamedCommand& command) {
  Words tips;
  if (const Traits* traits = FindTraits(command.name); traits != nullptr)
    AppendWords(traits->tips, &tips);
  return tips;
}

std::vector<KeySpecification> KeySpecifications(const NamedCommand& command) {
  for (const SpecialKeys& special : AllSpecialKeys()) {
    if (special.name == command.name) return special.specifications;
  }
  if (!command.HasKeys()) return {};
  const Command& row = command.command;
  const bool writes = (command.flags() & kWriteCommand) != 0;
  return {{"", writes ? Words{"RW", "access", "update"} : Words{"RO", "access"}, row.first_key,
           row.last_key < 0 ? row.last_key : row.last_key - row.first_key, row.key_step}};
}

Words KeyFlagsOf(const KeySpecification& specification, const Command& command, Arguments request) {
  if (!Contains(specification.flags, "variable_flags")) return specification.flags;
  if (command.kind == CommandKind::kSet) {
    const bool gets = std::any_of(request.begin() + 3, request.end(), [](std::string_view option) {
      return EqualsIgnoreCase(option, "get");
    });
    return gets ? Words{"RW", "access", "update"} : Words{"OW", "update"};
  }
  return OnlyReadsBits(request.subspan(2)) ? Words{"RO", "access"}
                                           : Words{"RW", "access", "update"};
}

}  // namespace varve
