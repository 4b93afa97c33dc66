#include "server/execution/key_update.h"

namespace varve {
namespace {

absl::StatusOr<ReadResult> Read(NamespaceId space, CommandContext& context, std::string_view key,
                                std::string* value, WriteBatch* batch) {
  absl::StatusOr<ReadResult> read = context.GetIn(space, key, value, /*with_metadata=*/true);
  if (read.ok()) {
    if (!read->found) {
      value->clear();
      read->expiry_ms = kUsualExpiry;
    }
    context.DependOn(read->durable_after);
    batch->RequireUnchanged(key, *read, space);
  }
  return read;
}

}  // namespace

WriteBatch& ClearedBatch(const CommandContext& context) {
  thread_local WriteBatch batch;
  batch.Clear();
  context.UseNamespace(&batch);
  return batch;
}

bool Update(CommandContext& context, Arguments keys,
            absl::FunctionRef<absl::Status(WriteBatch*)> decide, SequenceNumber* last) {
  const absl::Status status = TryUpdate(context, keys, decide, last);
  if (!status.ok()) context.Fail(status);
  return status.ok();
}

absl::Status TryUpdate(CommandContext& context, Arguments keys,
                       absl::FunctionRef<absl::Status(WriteBatch*)> decide, SequenceNumber* last) {
  TrackedWrite own(&context.server.clients.tracking);
  TrackedWrite& write = context.in_transaction() ? *context.tracked_write() : own;
  bool changes = false;
  EvictionNeed need;
  const WriteOptions options = context.write_options();
  const auto update = [&] {
    return context.store.Update(options, keys, [&](WriteBatch* batch) {
      context.UseNamespace(batch);
      const absl::Status decided = decide(batch);
      own.Forget();  // what an earlier try would have written
      if (decided.ok()) write.Note(*batch);
      changes = !batch->empty();
      need = context.server.evictor.NeedOf(*batch);
      return decided;
    });
  };
  const absl::StatusOr<CommitResult> committed = context.WriteWithRoom(need, options, update);
  if (!context.in_transaction() && MayBeVisible(committed.status())) write.Tell(context.client.id);
  context.Submitted();
  if (!committed.ok()) return committed.status();
  if (changes) context.NoteChange(*committed);
  context.DependOn(committed->durable_after);
  if (last != nullptr && !context.in_transaction()) *last = committed->sequence;
  return absl::OkStatus();
}

absl::StatusOr<ReadResult> ReadForUpdate(CommandContext& context, std::string_view key,
                                         std::string* value, WriteBatch* batch) {
  return ReadForUpdateIn(context.space(), context, key, value, batch);
}

absl::StatusOr<ReadResult> ReadForUpdateIn(NamespaceId space, CommandContext& context,
                                           std::string_view key, std::string* value,
                                           WriteBatch* batch) {
  absl::StatusOr<ReadResult> read = Read(space, context, key, value, batch);
  // What EXEC has written itself has no version yet.
  if (read.ok() && read->found) context.NoteUse(space, key, read->version);
  return read;
}

absl::StatusOr<ReadResult> ReadForDelete(CommandContext& context, std::string_view key,
                                         std::string* value, WriteBatch* batch) {
  return Read(context.space(), context, key, value, batch);
}

}  // namespace varve
