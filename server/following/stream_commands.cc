#include "server/following/stream_commands.h"

#include <algorithm>
#include <string>

#include "util/base/letter_case.h"
#include "util/redis_format/rdb_reader.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

struct Row {
  std::string_view name;
  StreamCommand command;
};

constexpr std::string_view kHash = "hash", kList = "list", kSet = "set", kSorted = "sorted set",
                           kStream = "stream", kScript = "script", kHyperLogLog = "hyperloglog";

constexpr StreamCommand kRun = {StreamAction::kExecute, {}};
constexpr StreamCommand kAnywhere = {StreamAction::kEverywhere, {}};
constexpr StreamCommand kWithStep = {StreamAction::kReplace, {}};
constexpr StreamCommand kNothing = {StreamAction::kIgnore, {}};

constexpr StreamCommand Overwrites(std::string_view type) {
  return {StreamAction::kOverwrite, type};
}
constexpr StreamCommand Skipped(std::string_view type) { return {StreamAction::kSkip, type}; }

// In alphabetic order.
constexpr Row kCommands[] = {
    {"append", kRun},
    {"bitfield", kRun},
    {"bitop", kRun},
    {"blmove", Skipped(kList)},
    {"blmpop", Skipped(kList)},
    {"blpop", Skipped(kList)},
    {"brpop", Skipped(kList)},
    {"brpoplpush", Skipped(kList)},
    {"bzmpop", Skipped(kSorted)},
    {"bzpopmax", Skipped(kSorted)},
    {"bzpopmin", Skipped(kSorted)},
    {"copy", kWithStep},
    {"decr", kRun},
    {"decrby", kRun},
    {"del", kRun},
    {"delex", kRun},
    {"delifeq", {StreamAction::kDelete, {}}},
    {"eval", Skipped(kScript)},
    {"evalsha", Skipped(kScript)},
    {"exec", {StreamAction::kExec, {}}},
    {"expire", kRun},
    {"expireat", kRun},
    {"fcall", Skipped(kScript)},
    {"flushall", kAnywhere},
    {"flushdb", kRun},
    {"function", Skipped(kScript)},
    {"geoadd", Skipped(kSorted)},
    {"georadius", Overwrites(kSorted)},
    {"georadiusbymember", Overwrites(kSorted)},
    {"geosearchstore", Overwrites(kSorted)},
    {"getdel", kRun},
    {"getex", kRun},
    {"getset", kRun},
    {"incr", kRun},
    {"incrby", kRun},
    {"incrbyfloat", kRun},
    {"linsert", Skipped(kList)},
    {"lmove", Skipped(kList)},
    {"lmpop", Skipped(kList)},
    {"lpop", Skipped(kList)},
    {"lpush", Skipped(kList)},
    {"lpushx", Skipped(kList)},
    {"lrem", Skipped(kList)},
    {"lset", Skipped(kList)},
    {"ltrim", Skipped(kList)},
    {"move", kRun},
    {"mset", kRun},
    {"msetex", {StreamAction::kSetMany, {}}},
    {"msetnx", kRun},
    {"multi", {StreamAction::kMulti, {}}},
    {"persist", kRun},
    {"pexpire", kRun},
    {"pexpireat", kRun},
    {"pfadd", {StreamAction::kForget, kHyperLogLog}},
    {"pfcount", kNothing},  // it may renew the count that is kept in the value
    {"pfmerge", {StreamAction::kForget, kHyperLogLog}},
    {"ping", kNothing},
    {"psetex", kRun},
    {"publish", kAnywhere},
    {"rename", kWithStep},
    {"renamenx", kRun},
    {"replconf", {StreamAction::kReplication, {}}},
    {"restore", {StreamAction::kRestore, {}}},
    {"rpop", Skipped(kList)},
    {"rpoplpush", Skipped(kList)},
    {"rpush", Skipped(kList)},
    {"rpushx", Skipped(kList)},
    {"sadd", Skipped(kSet)},
    {"script", Skipped(kScript)},
    {"sdiffstore", Overwrites(kSet)},
    {"select", {StreamAction::kSelect, {}}},
    {"set", kRun},
    {"setbit", kRun},
    {"setex", kRun},
    {"setnx", kRun},
    {"setrange", kRun},
    {"sinterstore", Overwrites(kSet)},
    {"smove", Skipped(kSet)},
    {"sort", Overwrites(kList)},
    {"spop", Skipped(kSet)},
    {"spublish", kAnywhere},
    {"srem", Skipped(kSet)},
    {"sunionstore", Overwrites(kSet)},
    {"swapdb", kAnywhere},
    {"unlink", kRun},
    {"zadd", Skipped(kSorted)},
    {"zdiffstore", Overwrites(kSorted)},
    {"zincrby", Skipped(kSorted)},
    {"zinterstore", Overwrites(kSorted)},
    {"zmpop", Skipped(kSorted)},
    {"zpopmax", Skipped(kSorted)},
    {"zpopmin", Skipped(kSorted)},
    {"zrangestore", Overwrites(kSorted)},
    {"zrem", Skipped(kSorted)},
    {"zremrangebylex", Skipped(kSorted)},
    {"zremrangebyrank", Skipped(kSorted)},
    {"zremrangebyscore", Skipped(kSorted)},
    {"zunionstore", Overwrites(kSorted)},
};

static_assert(std::is_sorted(std::begin(kCommands), std::end(kCommands),
                             [](const Row& a, const Row& b) { return a.name < b.name; }));

// Commands of later versions of Redis and of modules, whose names tell the type.
std::string_view TypeByName(std::string_view name) {
  if (name.find('.') != std::string_view::npos) return "module type";
  if (name.starts_with("h")) return kHash;
  if (name.starts_with("x")) return kStream;
  if (name.starts_with("z") || name.starts_with("geo")) return kSorted;
  return {};
}

// Returns the word behind STORE or STOREDIST.
std::optional<StreamTarget> StoredTo(Arguments arguments) {
  for (size_t i = 2; i + 1 < arguments.size(); ++i) {
    if (EqualsIgnoreCase(arguments[i], "store") || EqualsIgnoreCase(arguments[i], "storedist"))
      return StreamTarget{arguments[i + 1], {}};
  }
  return std::nullopt;
}

bool Has(Arguments options, std::string_view word) {
  return std::any_of(options.begin(), options.end(),
                     [word](std::string_view option) { return EqualsIgnoreCase(option, word); });
}

std::optional<StreamTarget> CopiedTo(Arguments arguments) {
  if (arguments.size() < 3) return std::nullopt;
  const Arguments options = arguments.subspan(3);
  StreamTarget target{arguments[2], {}};
  bool replaces = false;
  for (size_t i = 0; i < options.size(); ++i) {
    replaces = replaces || EqualsIgnoreCase(options[i], "replace");
    if (EqualsIgnoreCase(options[i], "db") && i + 1 < options.size())
      target.database = options[++i];
  }
  if (!replaces) return std::nullopt;
  return target;
}

}  // namespace

StreamCommand FindStreamCommand(std::string_view name) {
  const std::string lower = LowerCase(name);
  const auto* const found =
      std::lower_bound(std::begin(kCommands), std::end(kCommands), lower,
                       [](const Row& row, std::string_view wanted) { return row.name < wanted; });
  if (found != std::end(kCommands) && found->name == lower) return found->command;
  return Skipped(TypeByName(lower));
}

std::optional<StreamTarget> TargetOf(Arguments arguments) {
  const std::string_view name = arguments[0];
  if (arguments.size() < 2) return std::nullopt;
  if (EqualsIgnoreCase(name, "copy")) return CopiedTo(arguments);
  if (EqualsIgnoreCase(name, "rename")) {
    // A key that gets its own name stays what it is.
    if (arguments.size() < 3 || arguments[1] == arguments[2]) return std::nullopt;
    return StreamTarget{arguments[2], {}};
  }
  if (EqualsIgnoreCase(name, "restore")) {
    if (arguments.size() < 5 || !Has(arguments.subspan(4), "replace")) return std::nullopt;
  } else if (EqualsIgnoreCase(name, "sort") || EqualsIgnoreCase(name, "georadius") ||
             EqualsIgnoreCase(name, "georadiusbymember")) {
    return StoredTo(arguments);
  }
  return StreamTarget{arguments[1], {}};
}

std::string_view RestoredType(Arguments arguments) {
  if (arguments.size() < 4 || arguments[3].empty()) return {};
  return RdbTypeName(static_cast<uint8_t>(arguments[3][0]));
}

SetMany PartsOfSetMany(Arguments arguments) {
  int64_t keys = 0;
  if (arguments.size() < 4 || !ParseRespInteger(arguments[1], &keys) || keys < 1) return {};
  const Arguments rest = arguments.subspan(2);
  if (static_cast<uint64_t>(keys) > rest.size() / 2) return {};
  Arguments options = rest.subspan(2 * static_cast<size_t>(keys));
  // That all keys, or none, were there has been found true.
  while (!options.empty() &&
         (EqualsIgnoreCase(options[0], "nx") || EqualsIgnoreCase(options[0], "xx"))) {
    options.remove_prefix(1);
  }
  return {rest.first(2 * static_cast<size_t>(keys)), options};
}

}  // namespace varve
