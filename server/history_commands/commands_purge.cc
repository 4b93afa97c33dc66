// PURGE: a key goes from all files of the store.
#include "server/commands/command_groups.h"
#include "server/execution/command_context.h"

namespace varve {
namespace {

// PURGE key
void HandlePurge(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[1];
  if (context.server.backups.holds_files()) {
    return context.reply.Error(
        "ERR the files of a backup may hold the key: copy them, then BACKUP CLEANUP, then PURGE");
  }
  if (context.server.for_followers.copies.holds_files()) {
    return context.reply.Error(
        "ERR a follower takes a copy of the store, whose files may hold the key: try again later");
  }
  TrackedWrite write(&context.server.clients.tracking);
  WriteBatch batch;
  batch.Delete(key, context.space());
  write.Note(batch);
  const absl::StatusOr<PurgeResult> purged = context.server.store->Purge(context.space(), key, [&] {
    // Caches and listeners hear of it at once: the files take their time.
    write.Tell(context.client.id);
    context.Notify(kGenericEvent, "del", key);
  });
  if (!purged.ok()) return context.Fail(purged.status());
  // It is no later than what is visible now, and on disk.
  if (purged->existed)
    context.NoteChange({.sequence = context.server.store->GetSnapshot()->sequence()});
  context.reply.Integer(purged->found ? 1 : 0);
}

constexpr Command kPurgeRows[] = {
    {.name = "purge",
     .arity = 2,
     .flags = kWriteCommand | kSlowCommand | kMaintenanceCommand | kNotInTransactionCommand |
              kSecretArguments,
     .keys = kOneKey,
     .handler = HandlePurge,
     .group = "generic",
     .summary = "Removes a key with all of its versions from the store's files; answers when done.",
     .syntax = "key",
     .complexity = "O(N) for N bytes of log files, of one segment a run and of value files with "
                   "garbage, in the background",
     .redis = {.flags = "no_multi", .categories = "@dangerous", .key_flags = "RM delete"}},
};

}  // namespace

absl::Span<const Command> PurgeCommands() { return kPurgeRows; }

}  // namespace varve
