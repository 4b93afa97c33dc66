// INGEST: many sorted keys become visible in one step.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/access/permissions.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/database_index.h"
#include "server/execution/request_checks.h"
#include "server/execution/rights_check.h"
#include "server/requests/key_range.h"

namespace varve {
namespace {

using Opened = std::shared_ptr<OpenIngest>;

constexpr size_t kFirstOption = 3;  // of INGEST BEGIN

bool IsLimited(const CommandContext& context) { return context.client.rights.limited(); }

Place PlaceOf(const OpenIngest& opened) {
  return {.database = opened.options.space, .name = opened.space_name};
}

KeyRange RangeOf(const IngestRange& range) { return {.lower = range.begin, .upper = range.end}; }

// Answers NOPERM and returns true if the user may not work in the place.
bool DeniedPlace(CommandContext& context, const Place& place) {
  if (!IsLimited(context) || MayUsePlace(context.client.rights.user(), place)) return false;
  ReplyDenied(context, {.reason = DenialReason::kDatabase, .object = PlaceText(place)});
  return true;
}

// Answers NOPERM and returns true if the user may not write every key of the range, whose bounds
// are the arguments from `bound` on.
bool DeniedRange(CommandContext& context, const KeyRange& range, const Place& place,
                 Arguments arguments, size_t bound) {
  if (!IsLimited(context) || MayWriteRange(context.client.rights.user(), range, place))
    return false;
  ReplyDenied(context, {.reason = DenialReason::kKey,
                        .object = fmt::format("{} {}", arguments[bound], arguments[bound + 1]),
                        .argument = bound,
                        .is_range = true});
  return true;
}

// Returns the ingest. Null: there is none, and the error was answered.
Opened FindIngest(CommandContext& context, std::string_view id) {
  Opened opened = context.server.ingests.Find(id);
  if (opened == nullptr)
    context.reply.Error(fmt::format("ERR no ingest '{}' is under way", ShownInError(id)));
  return opened;
}

// Returns whether the user may end the ingest: the user made all of it, or may write all that it
// changes.
bool MayEnd(const CommandContext& context, const OpenIngest& opened)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(opened.mutex) {
  if (!IsLimited(context)) return true;
  const User& user = context.client.rights.user();
  const Place place = PlaceOf(opened);
  if (!MayUsePlace(user, place)) return false;
  const std::optional<IngestRange>& replace = opened.options.replace;
  if (replace) return MayWriteRange(user, RangeOf(*replace), place);
  if (user.name == opened.user && !opened.has_others_keys) return true;
  return opened.first_key.empty() && opened.last_key.empty()
             ? user.name == opened.user
             : MayWriteRange(user, {.lower = opened.first_key, .upper = opened.last_key + '\0'},
                             place);
}

// Reads the namespace that an ingest goes to. False: there is none of that name or number, and the
// error was answered.
bool ParseSpace(CommandContext& context, std::string_view name, OpenIngest* opened) {
  const bool is_number = !name.empty() && std::all_of(name.begin(), name.end(),
                                                      [](char c) { return c >= '0' && c <= '9'; });
  if (is_number) {
    const std::optional<NamespaceId> database = ParseDatabase(context, name);
    if (!database) return false;
    opened->options.space = *database;
    opened->space_name.clear();
    return true;
  }
  const absl::StatusOr<NamespaceList> list = context.store.Namespaces();
  if (!list.ok()) {
    context.Fail(list.status());
    return false;
  }
  context.DependOn(list->durable_after);
  const NamespaceDescription* const space = list->Find(name);
  if (space == nullptr) {
    context.reply.Error(fmt::format("ERR there is no namespace '{}'", ShownInError(name)));
    return false;
  }
  opened->options.space = space->id;
  opened->space_name = space->name;
  return true;
}

// Reads the options of INGEST BEGIN. Sets `*bound` to the index of the lower bound of what is
// replaced, if anything is. False: they are wrong, and the error was answered.
bool ParseBegin(CommandContext& context, Arguments arguments, OpenIngest* opened, size_t* bound) {
  for (size_t i = kFirstOption; i < arguments.size();) {
    if (EqualsIgnoreCase(arguments[i], "namespace") && i + 1 < arguments.size()) {
      if (!ParseSpace(context, arguments[i + 1], opened)) return false;
      i += 2;
    } else if (EqualsIgnoreCase(arguments[i], "replace") && i + 2 < arguments.size()) {
      const std::optional<KeyRange> range = ParseKeyRange(arguments[i + 1], arguments[i + 2]);
      if (!range) {
        context.reply.Error(kBadBound);
        return false;
      }
      if (range->empty) {
        context.reply.Error("ERR the range to replace is empty");
        return false;
      }
      opened->options.replace = IngestRange{range->lower, range->upper};
      *bound = i + 1;
      i += 3;
    } else {
      ReplySyntaxError(context);
      return false;
    }
  }
  return true;
}

void BeginIngest(CommandContext& context, Arguments arguments) {
  const auto opened = std::make_shared<OpenIngest>();
  opened->id = arguments[2];
  opened->options.space = context.space();
  opened->space_name = context.client.space_name;
  if (opened->id.empty() || opened->id.size() > IngestTable::kLongestId) {
    return context.reply.Error(
        fmt::format("ERR an ingest's id has 1 to {} bytes", IngestTable::kLongestId));
  }
  size_t bound = 0;
  if (!ParseBegin(context, arguments, opened.get(), &bound)) return;
  const Place place = PlaceOf(*opened);
  if (DeniedPlace(context, place)) return;
  const std::optional<IngestRange>& replace = opened->options.replace;
  if (replace && DeniedRange(context, RangeOf(*replace), place, arguments, bound)) return;
  if (opened->space_name.empty() && !OpenDatabase(context, opened->options.space)) return;
  if (IsLimited(context)) opened->user = context.client.rights.user().name;
  context.server.ingests.EndIdle(std::chrono::steady_clock::now());
  const absl::Status begun = context.server.ingests.Begin(opened);
  begun.ok() ? context.reply.Ok() : context.Fail(begun);
}

void AddToIngest(CommandContext& context, Arguments arguments) {
  const Arguments pairs = arguments.subspan(3);
  if (pairs.size() % 2 != 0) return ReplyWrongArity(context, "ingest|add");
  const Opened opened = FindIngest(context, arguments[2]);
  if (opened == nullptr) return;
  if (IsLimited(context)) {
    const Place place = PlaceOf(*opened);
    if (DeniedPlace(context, place)) return;
    for (size_t i = 0; i < pairs.size(); i += 2) {
      if (MayWriteKey(context.client.rights.user(), pairs[i], place)) continue;
      return ReplyDenied(
          context,
          {.reason = DenialReason::kKey, .object = std::string(pairs[i]), .argument = 3 + i});
    }
  }
  thread_local std::vector<IngestPair> reused;
  reused.clear();
  for (size_t i = 0; i < pairs.size(); i += 2) reused.push_back({pairs[i], pairs[i + 1]});
  absl::Status added;
  {
    absl::MutexLock lock(&opened->mutex);
    if (opened->ingest == nullptr) {
      added = absl::FailedPreconditionError("the ingest has ended");
    } else {
      opened->last_use = std::chrono::steady_clock::now();
      const bool is_first = opened->ingest->progress().keys == 0;
      added = opened->ingest->Add(reused);
      if (added.ok()) {
        if (is_first) opened->first_key = reused.front().key;
        opened->last_key = reused.back().key;
        opened->has_others_keys |= IsLimited(context)
                                       ? context.client.rights.user().name != opened->user
                                       : !opened->user.empty();
      }
    }
  }
  added.ok() ? context.reply.Ok() : context.Fail(added);
}

// Notes what the commit changes, for the clients that cache keys.
void NoteChanges(const OpenIngest& opened, TrackedWrite* write)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(opened.mutex) {
  WriteBatch changes;
  const NamespaceId space = opened.options.space;
  if (const std::optional<IngestRange>& replace = opened.options.replace) {
    changes.DeleteRange(replace->begin, replace->end, space);
  } else if (opened.ingest->progress().keys != 0) {
    changes.DeleteRange(opened.first_key, opened.last_key + '\0', space);
  }
  write->Note(changes);
}

void CommitIngest(CommandContext& context, Arguments arguments) {
  const Opened opened = FindIngest(context, arguments[2]);
  if (opened == nullptr) return;
  TrackedWrite write(&context.server.clients.tracking);
  absl::StatusOr<CommitResult> committed = absl::FailedPreconditionError("the ingest has ended");
  {
    absl::MutexLock lock(&opened->mutex);
    if (opened->ingest != nullptr) {
      if (!MayEnd(context, *opened)) {
        return ReplyDenied(context,
                           {.reason = DenialReason::kKey, .object = opened->id, .argument = 2});
      }
      opened->last_use = std::chrono::steady_clock::now();
      NoteChanges(*opened, &write);
      const IngestProgress progress = opened->ingest->progress();
      committed = context.WriteWithRoom(
          {.bytes = progress.bytes, .keys = progress.keys, .soonest_expiry_ms = kNeverSoon},
          context.write_options(),
          [&]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return opened->ingest->Commit(); });
      // What is full may have room later, or on another thread.
      const bool may_be_tried_again =
          absl::IsResourceExhausted(committed.status()) || absl::IsCancelled(committed.status());
      if (!may_be_tried_again) opened->ingest.reset();
      if (opened->ingest == nullptr) context.server.ingests.Remove(*opened);
    }
  }
  if (MayBeVisible(committed.status())) write.Tell(context.client.id);
  if (!committed.ok()) return context.Fail(committed.status());
  context.Submitted();
  context.DependOn(committed->durable_after);
  context.reply.Integer(static_cast<int64_t>(committed->sequence));
}

void AbortIngest(CommandContext& context, Arguments arguments) {
  const Opened opened = FindIngest(context, arguments[2]);
  if (opened == nullptr) return;
  absl::MutexLock lock(&opened->mutex);
  if (!MayEnd(context, *opened)) {
    return ReplyDenied(context,
                       {.reason = DenialReason::kKey, .object = opened->id, .argument = 2});
  }
  opened->ingest.reset();
  context.server.ingests.Remove(*opened);
  context.reply.Ok();
}

struct Listed {
  Opened opened;
  IngestProgress progress;
  int64_t idle_seconds = 0;
};

// Shows the ingests that the user may end.
void ListIngests(CommandContext& context) {
  const auto now = std::chrono::steady_clock::now();
  context.server.ingests.EndIdle(now);
  std::vector<Listed> shown;
  for (Opened& opened : context.server.ingests.All()) {
    absl::MutexLock lock(&opened->mutex);
    if (opened->ingest == nullptr || !MayEnd(context, *opened)) continue;
    const auto idle = std::chrono::duration_cast<std::chrono::seconds>(now - opened->last_use);
    shown.push_back({opened, opened->ingest->progress(), std::max<int64_t>(idle.count(), 0)});
  }
  RespWriter& reply = context.reply;
  reply.Array(shown.size());
  for (const Listed& each : shown) {
    reply.Map(5);
    reply.Bulk("id");
    reply.Bulk(each.opened->id);
    reply.Bulk("namespace");
    reply.Bulk(each.opened->space_name.empty() ? fmt::to_string(each.opened->options.space)
                                               : each.opened->space_name);
    reply.Bulk("keys");
    reply.Integer(static_cast<int64_t>(each.progress.keys));
    reply.Bulk("bytes");
    reply.Integer(static_cast<int64_t>(each.progress.bytes));
    reply.Bulk("idle_seconds");
    reply.Integer(each.idle_seconds);
  }
}

void HandleIngest(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "add") return AddToIngest(context, arguments);
  if (what == "begin") return BeginIngest(context, arguments);
  if (what == "commit") return CommitIngest(context, arguments);
  if (what == "abort") return AbortIngest(context, arguments);
  ListIngests(context);
}

constexpr Command kIngestRows[] = {
    {.name = "ingest",
     .arity = -2,
     .flags = kContainerCommand | kSlowCommand | kNotInTransactionCommand,
     .handler = HandleIngest,
     .group = "range",
     .summary = "Adds many sorted keys, which become visible in one step under one version.",
     .syntax = "ABORT | ADD | BEGIN | COMMIT | LIST | HELP"},
};

}  // namespace

absl::Span<const Command> IngestCommands() { return kIngestRows; }

}  // namespace varve
