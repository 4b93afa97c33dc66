// Commands that put everything on disk: every write goes to the log, so saving is syncing the log.
#include <ctime>

#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"

namespace varve {
namespace {

// Everything is on disk, whatever its mode. False: the error was answered.
bool Sync(CommandContext& context) {
  if (const absl::Status status = context.server.store->Sync(); !status.ok()) {
    context.Fail(status);
    return false;
  }
  return true;
}

bool Save(CommandContext& context) {
  const uint64_t changes = context.server.store->ChangeCount();
  if (!Sync(context)) return false;
  context.server.last_save.unix_seconds = std::time(nullptr);
  context.server.last_save.changes = changes;
  return true;
}

void HandleSave(CommandContext& context, Arguments arguments) {
  if (Save(context)) context.reply.Ok();
}

void HandleBgSave(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 2 ||
      (arguments.size() == 2 && !EqualsIgnoreCase(arguments[1], "schedule"))) {
    return ReplySyntaxError(context);
  }
  if (Save(context)) context.reply.Simple("Background saving started");
}

void HandleBgRewriteAof(CommandContext& context, Arguments arguments) {
  if (Save(context)) context.reply.Simple("Background append only file rewriting started");
}

void HandleLastSave(CommandContext& context, Arguments arguments) {
  context.reply.Integer(context.server.last_save.unix_seconds);
}

constexpr Command kSaveRows[] = {
    {.name = "bgrewriteaof",
     .arity = 1,
     .flags = kAdminCommand | kSlowCommand,
     .handler = HandleBgRewriteAof,
     .group = "server",
     .summary = "The same as SAVE, with another answer: the log is recycled as it goes.",
     .complexity = "O(1): one sync of the log",
     .redis = {.flags = "noscript no_async_loading"}},
    {.name = "bgsave",
     .arity = -1,
     .flags = kAdminCommand | kSlowCommand,
     .handler = HandleBgSave,
     .group = "server",
     .summary = "The same as SAVE, with another answer.",
     .syntax = "[SCHEDULE]",
     .complexity = "O(1): one sync of the log",
     .redis = {.flags = "noscript no_async_loading"}},
    {.name = "lastsave",
     .arity = 1,
     .flags = kFastCommand,
     .handler = HandleLastSave,
     .group = "server",
     .summary = "Tells when the last SAVE was done, or the start.",
     .complexity = "O(1)",
     .redis = {.flags = "loading stale",
               .tips = "nondeterministic_output",
               .categories = "@admin @dangerous"}},
    {.name = "save",
     .arity = 1,
     .flags = kAdminCommand | kSlowCommand | kNotInTransactionCommand,
     .handler = HandleSave,
     .group = "server",
     .summary = "Puts everything written so far on disk, whatever its mode.",
     .complexity = "O(1): one sync of the log",
     .redis = {.flags = "noscript no_async_loading no_multi"}},
};

}  // namespace

absl::Span<const Command> SaveCommands() { return kSaveRows; }

}  // namespace varve
