#include "server/execution/store_capability.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/functional/function_ref.h"
#include "fmt/format.h"
#include "server/requests/range_request.h"
#include "util/base/assert.h"
#include "util/resp/resp_parser.h"
#include "varve/key_group.h"

namespace varve {
namespace {

using Need = StoreNeed;
using Without = WithoutNeed;

// The subcommands of a container that has a row need what it needs.
constexpr CommandNeed kNeeds[] = {
    {"at", Need::kHistory, Without::kRefused},
    {"backup", Need::kOwnFiles, Without::kRefused},
    {"bitop", Need::kAnyKeys, Without::kOneGroup},
    {"changes", Need::kHistory, Without::kRefused},
    {"children", Need::kSnapshots, Without::kInParts},
    {"children", Need::kSizeEstimates, Without::kReadsSizes},
    {"compact", Need::kOwnFiles, Without::kLeftToStore},
    {"copy", Need::kAnyKeys, Without::kOneGroup},
    {"count", Need::kSnapshots, Without::kInParts},
    {"dbsize", Need::kExactCounts, Without::kReads},
    {"del", Need::kAnyKeys, Without::kGroupByGroup},
    {"delete", Need::kAnyKeys, Without::kGroupByGroup},
    {"delprefix", Need::kRangeDelete, Without::kInSlices},
    {"delrange", Need::kRangeDelete, Without::kInSlices},
    {"diff", Need::kHistory, Without::kRefused},
    {"exec", Need::kAnyKeys, Without::kOneGroup},
    {"exists", Need::kSnapshots, Without::kGroupByGroup},
    {"explain", Need::kOwnFiles, Without::kRefused},
    {"feed", Need::kHistory, Without::kRefused},
    {"flushall", Need::kAnyKeys, Without::kGroupByGroup},
    {"history", Need::kHistory, Without::kRefused},
    {"info", Need::kExactCounts, Without::kReadsIfAsked},
    {"ingest", Need::kOwnFiles, Without::kRefused},
    {"keys", Need::kSnapshots, Without::kInParts},
    {"memory|stats", Need::kExactCounts, Without::kReads},
    {"mget", Need::kSnapshots, Without::kGroupByGroup},
    {"move", Need::kAnyKeys, Without::kOneGroup},
    {"mset", Need::kAnyKeys, Without::kOneGroup},
    {"msetnx", Need::kAnyKeys, Without::kOneGroup},
    {"namespace|alter", Need::kQuotas, Without::kQuotaOptions},
    {"namespace|alter", Need::kHistory, Without::kKeepOptions},
    {"namespace|alter", Need::kOwnFiles, Without::kFileOptions},
    {"namespace|clone", Need::kClone, Without::kRefused},
    {"namespace|create", Need::kQuotas, Without::kQuotaOptions},
    {"namespace|create", Need::kHistory, Without::kKeepOptions},
    {"namespace|create", Need::kOwnFiles, Without::kFileOptions},
    {"namespace|info", Need::kExactCounts, Without::kReads},
    {"namespace|info", Need::kSizeEstimates, Without::kNoValueSizes},
    {"namespace|undrop", Need::kHistory, Without::kRefused},
    {"prefix", Need::kSnapshots, Without::kInParts},
    {"purge", Need::kOwnFiles, Without::kRefused},
    {"range", Need::kSnapshots, Without::kInParts},
    {"rename", Need::kAnyKeys, Without::kOneGroup},
    {"renamenx", Need::kAnyKeys, Without::kOneGroup},
    {"replicaof", Need::kOwnFiles, Without::kRefused},
    {"scan", Need::kSnapshots, Without::kInParts},
    {"slaveof", Need::kOwnFiles, Without::kRefused},
    {"swapdb", Need::kSwaps, Without::kRefused},
    {"touch", Need::kSnapshots, Without::kGroupByGroup},
    {"tree", Need::kSnapshots, Without::kInParts},
    {"tree", Need::kSizeEstimates, Without::kReadsSizes},
    {"undelete", Need::kHistory, Without::kRefused},
    {"unlink", Need::kAnyKeys, Without::kGroupByGroup},
    {"watchprefix", Need::kSnapshots, Without::kRefused},
    {"watchrange", Need::kSnapshots, Without::kRefused},
    {"xinfo|stream", Need::kHistory, Without::kRefused},
    {"xlen", Need::kHistory, Without::kRefused},
    {"xrange", Need::kHistory, Without::kRefused},
    {"xread", Need::kHistory, Without::kRefused},
    {"xrevrange", Need::kHistory, Without::kRefused},
};

struct NeedWords {
  std::string_view name;
  std::string_view description;
  std::string_view refusal;  // behind "the store of this server"
};

constexpr NeedWords kWords[kStoreNeeds] = {
    {"any-keys", "any keys are written together, all of them or none",
     "writes only the keys of one group together"},
    {"snapshots", "all keys can be read as they are at one moment",
     "has no snapshots over all keys"},
    {"range-delete", "a range of keys is deleted in one step, in constant time",
     "can't delete a range in one step: delete it outside of MULTI, where it goes in slices"},
    {"clone", "a namespace is cloned in constant time", "can't clone a namespace"},
    {"exact-counts", "the keys of a namespace are counted exactly without reading them",
     "keeps no exact count of its keys"},
    {"size-estimates", "the size of a range of keys is estimated without reading them",
     "does not know how large a range of its keys is"},
    {"quotas", "what a namespace holds can be limited", "keeps no quotas of namespaces"},
    {"history", "past states and the changes between them can be read",
     "keeps neither old versions nor a feed of changes"},
    {"swaps", "two databases exchange what they hold in one step",
     "can't exchange what two databases hold"},
    {"own-files", "the data lies in files of this server",
     "keeps its data on other machines, whose own tools do this"},
};

const NeedWords& WordsOf(StoreNeed need) {
  const auto place = static_cast<size_t>(need);
  VARVE_ASSERT(place < kStoreNeeds);
  return kWords[place];
}

// Change a range of keys or a whole namespace, and so more than one group.
constexpr std::string_view kWholeCommands[] = {"delprefix", "delrange", "flushall", "flushdb"};

bool ChangesWhole(const Command& command) {
  return std::find(std::begin(kWholeCommands), std::end(kWholeCommands), command.name) !=
         std::end(kWholeCommands);
}

void ForEachKey(const Command& command, Arguments arguments,
                absl::FunctionRef<void(std::string_view key)> take) {
  const size_t count = KeyCount(command, arguments.size());
  for (size_t i = 0; i < count; ++i) {
    const size_t place =
        static_cast<size_t>(command.keys.first) + i * static_cast<size_t>(command.keys.step);
    if (place < arguments.size()) take(arguments[place]);
  }
}

void AddKeys(const Command& command, Arguments arguments, NamespaceId space, GroupCheck* check) {
  ForEachKey(command, arguments, [&](std::string_view key) { check->Key(space, key); });
}

bool Refused(CommandContext& context, const GroupCheck& check) {
  if (!check.status().ok()) context.Fail(check.status());
  return !check.status().ok();
}

// Returns the namespace in use behind the request.
NamespaceId SpaceBehind(const Command& command, Arguments arguments, NamespaceId space) {
  int64_t database = 0;
  if (command.name != "select" || arguments.size() != 2 ||
      !ParseRespInteger(arguments[1], &database) || database < 0)
    return space;
  return static_cast<NamespaceId>(database);
}

bool IsOrdered() {
  return std::is_sorted(
      std::begin(kNeeds), std::end(kNeeds),
      [](const CommandNeed& a, const CommandNeed& b) { return a.command < b.command; });
}

}  // namespace

absl::Span<const CommandNeed> CommandNeeds() { return kNeeds; }

absl::Span<const CommandNeed> NeedsOf(std::string_view command) {
  VARVE_ASSERT(IsOrdered());
  const auto below = [](const CommandNeed& row, std::string_view name) {
    return row.command < name;
  };
  const auto* const first = std::lower_bound(std::begin(kNeeds), std::end(kNeeds), command, below);
  const auto* end = first;
  while (end != std::end(kNeeds) && end->command == command) ++end;
  return {first, static_cast<size_t>(end - first)};
}

std::string_view NameOf(StoreNeed need) { return WordsOf(need).name; }

std::string_view DescriptionOf(StoreNeed need) { return WordsOf(need).description; }

std::string_view DescriptionOf(WithoutNeed without) {
  switch (without) {
    case WithoutNeed::kOneGroup:
      return "refused with CROSSGROUP unless its keys are of one group";
    case WithoutNeed::kGroupByGroup:
      return "goes on group by group";
    case WithoutNeed::kInParts:
      return "reads each part of the keys at a moment of its own";
    case WithoutNeed::kInSlices:
      return "deletes in slices; refused inside MULTI";
    case WithoutNeed::kReads:
      return "reads all keys to count them";
    case WithoutNeed::kReadsIfAsked:
      return "leaves out Keyspace unless asked for it, and then reads all keys";
    case WithoutNeed::kReadsSizes:
      return "with WITHSIZES, reads all keys below the names that it shows";
    case WithoutNeed::kNoValueSizes:
      return "leaves out plain_value_bytes and stored_value_bytes";
    case WithoutNeed::kQuotaOptions:
      return "refused with MAXKEYS, MAXBYTES, EVICT or EVICTABLE";
    case WithoutNeed::kKeepOptions:
      return "refused with KEEP or KEEPBYTES";
    case WithoutNeed::kFileOptions:
      return "refused with SYNC, VALUESIZE or COMPRESS";
    case WithoutNeed::kLeftToStore:
      return "answers OK and does nothing, as the machines that keep the data compact it "
             "by themselves";
    case WithoutNeed::kRefused:
      break;
  }
  return "refused";
}

std::string LackOf(StoreNeed need) {
  return fmt::format("the store of this server {}", WordsOf(need).refusal);
}

bool Meets(const StoreCapabilities& capabilities, StoreNeed need) {
  switch (need) {
    case StoreNeed::kAnyKeys:
      return capabilities.atomicity == StoreCapabilities::Atomicity::kAnyKeys;
    case StoreNeed::kSnapshots:
      return capabilities.snapshots;
    case StoreNeed::kRangeDelete:
      return capabilities.constant_time_range_delete;
    case StoreNeed::kClone:
      return capabilities.constant_time_clone;
    case StoreNeed::kExactCounts:
      return capabilities.exact_counts;
    case StoreNeed::kSizeEstimates:
      return capabilities.size_estimates;
    case StoreNeed::kQuotas:
      return capabilities.quotas;
    case StoreNeed::kHistory:
      return capabilities.history;
    case StoreNeed::kSwaps:
      return capabilities.swaps;
    case StoreNeed::kOwnFiles:
      break;
  }
  return !capabilities.remote;
}

bool StoreMeets(CommandContext& context, StoreNeed need) {
  if (Meets(context.server.store->capabilities(), need)) return true;
  context.reply.Error("ERR " + LackOf(need));
  return false;
}

bool RefusedByStore(CommandContext& context, const Command& command, Arguments arguments) {
  if (MeetsAll(context.server.store->capabilities())) [[likely]]
    return false;
  const bool waits = context.client.modes.transaction.open || context.in_transaction();
  for (const std::string_view name :
       {std::string_view(FullCommandName(command, arguments)), command.name}) {
    for (const CommandNeed& row : NeedsOf(name)) {
      const bool refuses =
          row.without == WithoutNeed::kRefused || (row.without == WithoutNeed::kInSlices && waits);
      if (refuses && !StoreMeets(context, row.need)) return true;
    }
  }
  return false;
}

bool RefusedAcrossGroups(CommandContext& context, const Command& command, Arguments arguments) {
  const NamespaceId space = context.space();
  const std::optional<KeyGrouping> grouping = context.server.store->GroupsOf(space);
  if (!grouping) return false;
  const auto groups_of = [&](NamespaceId) { return grouping; };
  GroupCheck check(groups_of);
  AddKeys(command, arguments, space, &check);
  return Refused(context, check);
}

bool RefusedAcrossGroups(CommandContext& context, std::string_view source, NamespaceId space,
                         std::string_view target) {
  const auto groups_of = [&](NamespaceId of) { return context.server.store->GroupsOf(of); };
  GroupCheck check(groups_of);
  check.Key(context.space(), source);
  check.Key(space, target);
  return Refused(context, check);
}

bool RefusedAcrossGroups(CommandContext& context, const ClientTransaction& transaction) {
  const auto groups_of = [&](NamespaceId of) { return context.server.store->GroupsOf(of); };
  GroupCheck check(groups_of);
  bool is_one_step = !transaction.watched.empty() || !transaction.watched_ranges.empty();
  for (const WatchedKey& watched : transaction.watched) check.Key(watched.space, watched.key);
  for (const WatchedRange& watched : transaction.watched_ranges)
    check.Range(watched.space, watched.lower, watched.upper);
  NamespaceId space = context.space();
  for (const QueuedRequest& request : transaction.requests) {
    const Command& command = request.command();
    const Arguments arguments = request.arguments();
    space = SpaceBehind(command, arguments, space);
    is_one_step = is_one_step || (command.flags & kWriteCommand) != 0;
    AddKeys(command, arguments, space, &check);
    if (!ChangesWhole(command)) continue;
    check.Whole(space);
    check.Whole(space);  // never inside a transaction where keys have groups, also alone
  }
  return is_one_step && Refused(context, check);
}

namespace {

// Returns a key of the region that ends at `upper` or has it inside: the last key below `upper`, or
// one that only keys with more bytes of 0xff lie behind.
std::string KeyBefore(std::string_view upper) {
  std::string key(upper);
  if (key.back() == '\0') {
    key.pop_back();
  } else {
    key.back() = static_cast<char>(static_cast<unsigned char>(key.back()) - 1);
    key.append(8, '\xff');
  }
  return key;
}

// Returns whether the keys at the end of a RANGE or PREFIX where its answer begins are away. An
// answer that begins behind the last key of the namespace counts as one whose keys are not.
bool BeginsWhereKeysAreAway(const ServerState& server, NamespaceId space, CommandKind kind,
                            Arguments arguments) {
  RangeRequest asked;
  const std::string_view error = ParseRangeRequestOf(kind, arguments, &asked);
  if (!error.empty() || asked.range.empty) return false;
  if (!asked.options.reverse) return server.store->IsAway(space, asked.range.lower);
  const std::string& upper = asked.range.upper;
  return !upper.empty() && server.store->IsAway(space, KeyBefore(upper));
}

// Returns whether a key of a request in the namespace is away, or the beginning of its answer.
bool AsksWhatIsAway(const ServerState& server, NamespaceId space, const Command& command,
                    Arguments arguments) {
  if (command.kind == CommandKind::kRange || command.kind == CommandKind::kPrefix)
    return BeginsWhereKeysAreAway(server, space, command.kind, arguments);
  bool is_away = false;
  const auto look = [&](std::string_view key) {
    is_away = is_away || server.store->IsAway(space, key);
  };
  ForEachKey(command, arguments, look);
  return is_away;
}

}  // namespace

bool AsksWhatIsAway(const ServerState& server, const ClientState& client, const Command& command,
                    Arguments arguments) {
  NamespaceId space = client.space;
  if (command.name != "exec") return AsksWhatIsAway(server, space, command, arguments);
  for (const QueuedRequest& request : client.modes.transaction.requests) {
    space = SpaceBehind(request.command(), request.arguments(), space);
    if (AsksWhatIsAway(server, space, request.command(), request.arguments())) return true;
  }
  return false;
}

}  // namespace varve
