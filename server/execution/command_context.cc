#include "server/execution/command_context.h"

#include <optional>

#include "fmt/format.h"
#include "server/execution/request_checks.h"
#include "varve/history_status.h"
#include "varve/namespace_status.h"
#include "varve/replication.h"
#include "varve/store_status.h"

namespace varve {
absl::StatusOr<ReadResult> CommandContext::GetIn(NamespaceId of, std::string_view key,
                                                 std::string* value, bool with_metadata) {
  ReadOptions options = NoWaitReadOptions(of);
  options.with_metadata = with_metadata;
  return Read(options, key, value);
}

absl::StatusOr<ReadResult> CommandContext::LookUp(std::string_view key, bool with_metadata) {
  ReadOptions options = NoWaitReadOptions(space());
  options.without_value = true;
  options.with_metadata = with_metadata;
  std::string none;
  return Read(options, key, &none);
}

absl::StatusOr<ReadResult> CommandContext::Read(ReadOptions options, std::string_view key,
                                                std::string* value) {
  options.max_value_bytes = max_value_bytes_;
  options.deadline = store_deadline_;
  options.expired_too = client.is_primary_link;
  absl::StatusOr<ReadResult> read = store.Get(options, key, value);
  if (!read.ok() || !read->too_large) return read;
  MoveToPool();
  return absl::CancelledError("too large a value for here");
}

void CommandContext::Tell(NamespaceId of, std::string_view event, std::string_view key) {
  if (in_transaction_) {
    events_.push_back({of, event, std::string(key)});
  } else if (server.MayTell()) {
    (void)SliceSpent(server.clients.events.Send(event, of, key, durable_after()));
  }
}

absl::StatusOr<CommitResult> CommandContext::Commit(WriteBatch* batch, bool independent_keys) {
  const bool changes = !batch->empty();
  TrackedWrite own(&server.clients.tracking);
  TrackedWrite& write = tracked_write_ != nullptr ? *tracked_write_ : own;
  write.Note(*batch);
  WriteOptions options = write_options();
  options.independent_keys = independent_keys;
  absl::StatusOr<CommitResult> committed = WriteWithRoom(
      server.evictor.NeedOf(*batch), options, [&] { return store.Submit(options, batch); });
  if (changes && committed.ok()) NoteChange(*committed);
  if (tracked_write_ == nullptr && MayBeVisible(committed.status())) write.Tell(client.id);
  return committed;
}

bool CommandContext::Submit(WriteBatch* batch) {
  const absl::StatusOr<CommitResult> committed = Commit(batch);
  if (!committed.ok()) {
    Fail(committed.status());
    return false;
  }
  Submitted();
  DependOn(committed->durable_after);
  return true;
}

std::string CommandContext::ErrorText(const absl::Status& status) {
  if (IsNoSuchNamespace(status)) {
    return "ERR the namespace in use was dropped: SELECT a database, or NAMESPACE USE another one";
  }
  // The server has become a follower since it looked.
  if (IsFollowsPrimary(status)) return std::string(kReadOnlyReplica);
  if (IsStoreFull(status)) return std::string(kOutOfMemory);
  if (const std::optional<SequenceNumber> first = FirstOfTrimmed(status))
    return fmt::format("TRIMMED first={}", *first);
  // MISCONF is what clients of Redis know as "writes are refused"; DATALOSS is damage that leaves
  // other keys readable.
  const char* code = "ERR";
  if (absl::IsResourceExhausted(status) || absl::IsUnavailable(status)) code = "MISCONF";
  if (absl::IsDataLoss(status)) code = "DATALOSS";
  if (IsNamespaceFull(status)) code = "QUOTA";
  if (IsStoreUnavailable(status)) code = "UNAVAILABLE";
  if (IsCrossGroup(status)) code = "CROSSGROUP";
  std::string text(code);
  text += ' ';
  const absl::string_view message = status.message();
  text.append(message.data(), message.size());
  return text;
}

}  // namespace varve
