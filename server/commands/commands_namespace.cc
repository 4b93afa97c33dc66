// NAMESPACE: named namespaces, and what databases may be asked beyond what Redis knows.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/access/permissions.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/config/eviction_policy.h"
#include "server/execution/database_index.h"
#include "server/execution/store_capability.h"
#include "server/past/past_read.h"
#include "util/base/size_text.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr std::string_view kModes[] = {"always", "everysec", "no"};  // Durability
constexpr std::string_view kStoresMode = "default";

bool ParseSync(std::string_view text, std::optional<Durability>* sync) {
  sync->reset();
  if (EqualsIgnoreCase(text, kStoresMode)) return true;
  for (size_t mode = 0; mode < std::size(kModes); ++mode) {
    if (EqualsIgnoreCase(text, kModes[mode])) *sync = static_cast<Durability>(mode);
  }
  return sync->has_value();
}

bool ParseSeconds(std::string_view text, uint64_t* milliseconds) {
  constexpr uint64_t kSecond = 1000;
  uint64_t seconds = 0;
  if (!ParseRespCount(text, &seconds)) return false;
  if (seconds > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / kSecond) return false;
  *milliseconds = seconds * kSecond;
  return true;
}

bool ParseBytes(std::string_view text, uint64_t* bytes) {
  const absl::StatusOr<uint64_t> size = ParseSize(text);
  if (!size.ok() || *size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
    return false;
  *bytes = *size;
  return true;
}

bool ParseKeep(std::string_view text, std::optional<HistoryLimits>* history) {
  if (EqualsIgnoreCase(text, kStoresMode)) {
    history->reset();
    return true;
  }
  const absl::StatusOr<std::chrono::nanoseconds> time = ParseDuration(text);
  if (!time.ok()) return false;
  if (!history->has_value()) history->emplace();
  (*history)->time_ms =
      static_cast<uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(*time).count());
  return true;
}

bool ParseKeepBytes(std::string_view text, std::optional<HistoryLimits>* history) {
  uint64_t bytes = 0;
  if (!ParseBytes(text, &bytes)) return false;
  if (!history->has_value()) history->emplace();
  (*history)->bytes = bytes;
  return true;
}

bool ParseCompress(std::string_view text, std::optional<Compression>* compression) {
  compression->reset();
  if (EqualsIgnoreCase(text, kStoresMode)) return true;
  *compression = ParseCompression(text);
  return compression->has_value();
}

bool ParseEvict(std::string_view text, EvictionRule* rule) {
  const std::optional<EvictionOrder> order = ParseEvictionOrder(text);
  if (!order) return false;
  rule->order = *order;
  if (!rule->on()) rule->volatile_only = false;
  return true;
}

bool ParseEvictable(std::string_view text, EvictionRule* rule) {
  rule->volatile_only = EqualsIgnoreCase(text, "volatile");
  return rule->volatile_only || EqualsIgnoreCase(text, "all");
}

bool IsGroupOption(std::string_view name) {
  return EqualsIgnoreCase(name, "together") || EqualsIgnoreCase(name, "group");
}

// TOGETHER yes|no and GROUP delimiter. False: they make no sense, and the error was answered.
bool ParseGrouping(CommandContext& context, Arguments arguments, KeyGrouping* grouping) {
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::string_view value = arguments[i + 1];
    KeyGrouping given;
    if (!IsGroupOption(arguments[i])) continue;
    if (EqualsIgnoreCase(arguments[i], "group")) {
      if (value.size() != 1) {
        context.reply.Error(fmt::format(
            "ERR GROUP takes a delimiter of one byte, and '{}' has {}: keys that share what stands "
            "before the first delimiter are a group",
            ShownInError(value), value.size()));
        return false;
      }
      given = KeyGrouping::By(value[0]);
    } else if (EqualsIgnoreCase(value, "yes")) {
      given = KeyGrouping::Together();
    } else if (!EqualsIgnoreCase(value, "no")) {
      context.reply.Error(fmt::format("ERR '{}' is no value for TOGETHER: it takes yes or no",
                                      ShownInError(value)));
      return false;
    }
    if (given.declared() && grouping->declared()) {
      context.reply.Error("ERR TOGETHER yes and GROUP exclude each other, and each is given once");
      return false;
    }
    if (given.declared()) *grouping = given;
  }
  return true;
}

// False: it declares groups, which only a new namespace can do, and the error was answered.
bool DeclaresNoGroups(CommandContext& context, Arguments arguments) {
  for (size_t i = 0; i < arguments.size(); i += 2) {
    if (!IsGroupOption(arguments[i])) continue;
    context.reply.Error(
        "ERR TOGETHER and GROUP are given when a namespace is created and never change, as its "
        "keys lie by them; a clone has those of its source");
    return false;
  }
  return true;
}

// Returns whether the store of the server knows the option. If not, the error was answered.
bool StoreTakesOption(CommandContext& context, std::string_view name) {
  constexpr std::pair<std::string_view, StoreNeed> kNeeds[] = {
      {"maxkeys", StoreNeed::kQuotas},    {"maxbytes", StoreNeed::kQuotas},
      {"evict", StoreNeed::kQuotas},      {"evictable", StoreNeed::kQuotas},
      {"keep", StoreNeed::kHistory},      {"keepbytes", StoreNeed::kHistory},
      {"sync", StoreNeed::kOwnFiles},     {"valuesize", StoreNeed::kOwnFiles},
      {"compress", StoreNeed::kOwnFiles},
  };
  const auto* const found =
      std::find_if(std::begin(kNeeds), std::end(kNeeds),
                   [&](const auto& each) { return EqualsIgnoreCase(name, each.first); });
  return found == std::end(kNeeds) || StoreMeets(context, found->second);
}

// Returns the values that an option takes, with commas between; empty where these are numbers.
std::string ChoicesOf(std::string_view option) {
  if (EqualsIgnoreCase(option, "evict")) return EvictionOrders();
  if (EqualsIgnoreCase(option, "evictable")) return "all, volatile";
  if (EqualsIgnoreCase(option, "compress")) return "none, lz4, zstd, zstd:level, default";
  if (EqualsIgnoreCase(option, "sync"))
    return fmt::format("{}, {}", fmt::join(kModes, ", "), kStoresMode);
  return "";
}

// False: the options do not go together, and the error was answered.
bool CheckEviction(CommandContext& context, const NamespaceOptions& options) {
  if (!options.eviction.on()) {
    if (!options.eviction.volatile_only) return true;
    context.reply.Error("ERR EVICTABLE volatile needs EVICT lru, lfu, ttl or random");
    return false;
  }
  if (!options.has_quota()) {
    context.reply.Error("ERR EVICT makes room at a quota: give MAXBYTES or MAXKEYS, or EVICT none");
    return false;
  }
  // A store in the format of an earlier version has no place for the rule.
  const absl::Status times = context.server.store->VersionAt(0).status();
  if (!absl::IsFailedPrecondition(times)) return true;
  context.reply.Error("ERR EVICT needs a store of the present format: see --finalize-upgrade");
  return false;
}

// False: they make no sense, and the error was answered.
bool ParseNamespaceOptions(CommandContext& context, Arguments arguments,
                           NamespaceOptions* options) {
  for (size_t i = 0; i < arguments.size(); i += 2) {
    const std::string_view name = arguments[i];
    const std::string_view value = i + 1 < arguments.size() ? arguments[i + 1] : std::string_view();
    if (!StoreTakesOption(context, name)) return false;
    bool known = true;
    bool fine = false;
    if (EqualsIgnoreCase(name, "maxkeys")) {
      fine = ParseRespCount(value, &options->max_keys);
    } else if (EqualsIgnoreCase(name, "maxbytes")) {
      fine = ParseBytes(value, &options->max_bytes);
    } else if (EqualsIgnoreCase(name, "ex")) {
      fine = ParseSeconds(value, &options->default_expiry_ms);
    } else if (EqualsIgnoreCase(name, "px")) {
      fine = ParseRespCount(value, &options->default_expiry_ms);
    } else if (EqualsIgnoreCase(name, "sync")) {
      fine = ParseSync(value, &options->sync);
    } else if (EqualsIgnoreCase(name, "valuesize")) {
      fine = ParseBytes(value, &options->value_separation_size);
    } else if (EqualsIgnoreCase(name, "keep")) {
      fine = ParseKeep(value, &options->history);
    } else if (EqualsIgnoreCase(name, "keepbytes")) {
      fine = ParseKeepBytes(value, &options->history);
    } else if (EqualsIgnoreCase(name, "compress")) {
      fine = ParseCompress(value, &options->compression);
    } else if (EqualsIgnoreCase(name, "evict")) {
      fine = ParseEvict(value, &options->eviction);
    } else if (EqualsIgnoreCase(name, "evictable")) {
      fine = ParseEvictable(value, &options->eviction);
    } else {
      known = fine = IsGroupOption(name);  // ParseGrouping() has it
    }
    if (!known || i + 1 == arguments.size()) {
      ReplySyntaxError(context);
      return false;
    }
    if (!fine) {
      const std::string choices = ChoicesOf(name);
      context.reply.Error(fmt::format("ERR '{}' is no value for {}{}{}", ShownInError(value),
                                      ShownInError(name),
                                      choices.empty() ? "" : ": it takes one of ", choices));
      return false;
    }
  }
  return CheckEviction(context, *options);
}

// False: it is none for a namespace, and the error was answered.
bool CheckNewName(CommandContext& context, std::string_view name) {
  if (name.empty() || name.size() > kMaxNamespaceName) {
    context.reply.Error(fmt::format("ERR a namespace's name has 1 to {} bytes", kMaxNamespaceName));
    return false;
  }
  if (IsDatabaseNumber(name)) {
    context.reply.Error("ERR a number names a database, which is there when it is used");
    return false;
  }
  return true;
}

// What a namespace is cloned from.
struct CloneSource {
  NamespaceId space = kDefaultNamespace;
  std::optional<SequenceNumber> version;  // nothing: as it is
};

// Makes an empty namespace, or one that holds what `source` holds. A description with the id of its
// source brings that one back; else the namespace gets the next id.
void MakeNamespace(CommandContext& context, NamespaceDescription space,
                   std::optional<CloneSource> source) {
  const bool comes_back = source && source->space == space.id && space.id >= kFirstNamedNamespace;
  for (;;) {
    const absl::StatusOr<NamespaceList> list = context.store.Namespaces();
    if (!list.ok()) return context.Fail(list.status());
    if (!comes_back) space.id = list->next_id;
    WriteBatch batch;
    if (source && source->version) {
      batch.CloneNamespaceAt(source->space, *source->version, space);
    } else {
      source ? batch.CloneNamespace(source->space, space) : batch.CreateNamespace(space);
    }
    const absl::StatusOr<CommitResult> created = context.Commit(&batch);
    // Somebody may have taken the id since; only the name is refused for good.
    if (absl::IsAlreadyExists(created.status()) && !comes_back && list->Find(space.name) == nullptr)
      continue;
    if (!created.ok()) return context.Fail(created.status());
    context.Submitted();
    context.DependOn(created->durable_after);
    context.server.evictor.NoteNamespaces();
    return context.reply.Ok();
  }
}

void CreateNamespace(CommandContext& context, Arguments arguments) {
  NamespaceDescription space{.name = std::string(arguments[2])};
  if (!CheckNewName(context, space.name)) return;
  const Arguments options = arguments.subspan(3);
  if (!ParseGrouping(context, options, &space.options.grouping) ||
      !ParseNamespaceOptions(context, options, &space.options))
    return;
  MakeNamespace(context, std::move(space), std::nullopt);
}

void CloneNamespace(CommandContext& context, Arguments arguments) {
  const std::optional<NamespaceDescription> source = FindNamespace(context, arguments[2]);
  if (!source || !CheckNewName(context, arguments[3])) return;
  CloneSource from{.space = source->id, .version = {}};
  Arguments options = arguments.subspan(4);
  if (const std::optional<size_t> before = FindPastSuffix(arguments); before && *before >= 4) {
    const absl::StatusOr<PastPoint> point = ParsePastPoint(arguments.subspan(*before + 1));
    if (!point.ok()) return context.Fail(point.status());
    const absl::StatusOr<PastVersion> past =
        FindPastVersion(*context.server.store, source->id, *point);
    if (!past.ok()) return context.Fail(past.status());
    from.version = past->version;
    options = options.first(*before - 4);
  }
  NamespaceDescription space{.name = std::string(arguments[3]), .options = source->options};
  if (!DeclaresNoGroups(context, options) ||
      !ParseNamespaceOptions(context, options, &space.options))
    return;
  MakeNamespace(context, std::move(space), from);
}

// Brings back what a namespace held when it was dropped, with its options and its history.
void UndropNamespace(CommandContext& context, Arguments arguments) {
  const std::string_view name = arguments[2];
  if (!CheckNewName(context, name)) return;
  const absl::StatusOr<NamespaceList> list = context.store.Namespaces();
  if (!list.ok()) return context.Fail(list.status());
  context.DependOn(list->durable_after);
  if (list->Find(name) != nullptr) {
    return context.reply.Error(
        fmt::format("ERR namespace '{}' exists already", ShownInError(name)));
  }
  const auto all = context.server.store->DroppedNamespaces();
  if (!all.ok()) return context.Fail(all.status());
  const auto dropped = std::find_if(all->rbegin(), all->rend(), [&](const DroppedNamespace& each) {
    return each.space.name == name;
  });
  if (dropped == all->rend()) {
    return context.reply.Error(
        fmt::format("ERR no namespace '{}' was dropped that is still kept", ShownInError(name)));
  }
  MakeNamespace(context, dropped->space,
                CloneSource{.space = dropped->space.id, .version = dropped->dropped_at - 1});
}

void AlterNamespace(CommandContext& context, Arguments arguments) {
  std::optional<NamespaceDescription> space = FindNamespace(context, arguments[2]);
  if (!space || !DeclaresNoGroups(context, arguments.subspan(3)) ||
      !ParseNamespaceOptions(context, arguments.subspan(3), &space->options))
    return;
  WriteBatch batch;
  batch.AlterNamespace(*space);
  if (!context.Submit(&batch)) return;
  context.server.evictor.NoteNamespaces();
  context.reply.Ok();
}

void DropNamespace(CommandContext& context, Arguments arguments) {
  if (IsDatabaseNumber(arguments[2]))
    return context.reply.Error("ERR a database can't be dropped: FLUSHDB empties it");
  const std::optional<NamespaceDescription> space = FindNamespace(context, arguments[2]);
  if (!space) return;
  WriteBatch batch;
  batch.DropNamespace(space->id);
  if (!context.Submit(&batch)) return;
  context.server.evictor.NoteNamespaces();
  context.reply.Ok();
}

void UseNamespace(CommandContext& context, Arguments arguments) {
  const std::optional<NamespaceDescription> space = FindNamespace(context, arguments[2]);
  if (!space) return;
  context.client.UseNamespace(space->id, space->name);
  context.reply.Ok();
}

void ListNamespaces(CommandContext& context) {
  const absl::StatusOr<NamespaceList> list = context.store.Namespaces();
  if (!list.ok()) return context.Fail(list.status());
  context.DependOn(list->durable_after);
  std::vector<std::string_view> names;
  const User& user = context.client.rights.user();
  for (const NamespaceDescription& space : list->namespaces) {
    const Place place{.database = space.id, .name = space.name};
    if (!space.name.empty() && MayUsePlace(user, place)) names.push_back(space.name);
  }
  std::sort(names.begin(), names.end());
  context.reply.Array(names.size());
  for (const std::string_view name : names) context.reply.Bulk(name);
}

// How the keys are grouped, and what a program that works in the namespace may count on.
constexpr size_t kShownPromises = 4;
void ShowPromises(CommandContext& context, const NamespaceDescription& space) {
  RespWriter& reply = context.reply;
  const KeyGrouping& declared = space.options.grouping;
  const bool by_delimiter = declared.kind == KeyGrouping::Kind::kDelimiter;
  reply.Bulk("together");
  reply.Bulk(declared.kind == KeyGrouping::Kind::kTogether ? "yes" : "no");
  reply.Bulk("group");
  reply.Bulk(by_delimiter ? std::string_view(&declared.delimiter, 1) : std::string_view());
  reply.Bulk("atomicity");
  const bool any_keys = !context.store.GroupsOf(space.id).has_value();
  reply.Bulk(any_keys ? "any keys" : declared.declared() ? "keys of a group" : "single keys");
  std::vector<std::string_view> provided;
  for (size_t i = 0; i < kStoreNeeds; ++i) {
    const auto need = static_cast<StoreNeed>(i);
    const bool is_met = Meets(context.server.store->capabilities(), need);
    if (is_met && (need != StoreNeed::kAnyKeys || any_keys)) provided.push_back(NameOf(need));
  }
  reply.Bulk("provides");
  reply.Array(provided.size());
  for (const std::string_view each : provided) reply.Bulk(each);
}

void ShowNamespace(CommandContext& context, Arguments arguments) {
  const std::optional<NamespaceDescription> space = FindNamespace(context, arguments[2]);
  if (!space) return;
  const absl::StatusOr<CountResult> count =
      context.store.Count(NoWaitReadOptions(space->id), "", "");
  if (!count.ok()) return context.Fail(count.status());
  context.DependOn(count->durable_after);
  const NamespaceOptions& options = space->options;
  const std::pair<std::string_view, uint64_t> figures[] = {
      {"id", space->id},
      {"keys", count->keys},
      {"bytes", count->bytes},
      {"maxkeys", options.max_keys},
      {"maxbytes", options.max_bytes},
      {"default_expiry_ms", options.default_expiry_ms},
      {"value_separation_size", options.value_separation_size},
  };
  const std::optional<HistoryLimits>& keeps = options.history;
  const absl::StatusOr<SequenceNumber> first = context.server.store->FirstVersion(space->id);
  RespWriter& reply = context.reply;
  const bool estimates = context.server.store->capabilities().size_estimates;
  reply.Map(std::size(figures) + 7 + kShownPromises + (estimates ? 2 : 0) + (first.ok() ? 1 : 0));
  reply.Bulk("name");
  reply.Bulk(arguments[2]);
  for (const auto& [name, figure] : figures) {
    reply.Bulk(name);
    reply.Integer(static_cast<int64_t>(figure));
  }
  reply.Bulk("sync");
  reply.Bulk(options.sync ? kModes[static_cast<size_t>(*options.sync)] : kStoresMode);
  reply.Bulk("keep");
  reply.Bulk(keeps ? FormatDuration(std::chrono::milliseconds(keeps->time_ms))
                   : std::string(kStoresMode));
  reply.Bulk("keep_bytes");
  reply.Integer(keeps ? static_cast<int64_t>(keeps->bytes) : 0);
  reply.Bulk("compress");
  reply.Bulk(options.compression ? FormatCompression(*options.compression)
                                 : std::string(kStoresMode));
  if (estimates) {
    const RangeSize size = context.server.store->EstimateSize(space->id, "", "");
    reply.Bulk("plain_value_bytes");
    reply.Integer(static_cast<int64_t>(size.plain_value_bytes));
    reply.Bulk("stored_value_bytes");
    reply.Integer(static_cast<int64_t>(size.stored_value_bytes));
  }
  reply.Bulk("evict");
  reply.Bulk(NameOf(options.eviction.order));
  reply.Bulk("evictable");
  reply.Bulk(options.eviction.volatile_only ? "volatile" : "all");
  ShowPromises(context, *space);
  if (!first.ok()) return;
  reply.Bulk("first_version");
  reply.Integer(static_cast<int64_t>(*first));
}

void HandleNamespace(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "clone") return CloneNamespace(context, arguments);
  if (what == "create") return CreateNamespace(context, arguments);
  if (what == "alter") return AlterNamespace(context, arguments);
  if (what == "drop") return DropNamespace(context, arguments);
  if (what == "use") return UseNamespace(context, arguments);
  if (what == "list") return ListNamespaces(context);
  if (what == "undrop") return UndropNamespace(context, arguments);
  ShowNamespace(context, arguments);  // info
}

constexpr Command kNamespaceRows[] = {
    {.name = "namespace",
     .arity = -2,
     .flags = kContainerCommand | kSlowCommand | kNotInTransactionCommand,
     .handler = HandleNamespace,
     .group = "server",
     .summary = "Creates, clones, alters, shows, drops, brings back and uses named namespaces.",
     .syntax = "CREATE | CLONE | ALTER | DROP | UNDROP | INFO | LIST | USE | HELP"},
};

}  // namespace

absl::Span<const Command> NamespaceCommands() { return kNamespaceRows; }

}  // namespace varve
