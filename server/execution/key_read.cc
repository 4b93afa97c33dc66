#include "server/execution/key_read.h"

namespace varve {
namespace {

// Answers an error.
std::optional<ReadResult> Note(CommandContext& context, std::string_view key,
                               const absl::StatusOr<ReadResult>& read) {
  if (!read.ok()) {
    context.Fail(read.status());
    return std::nullopt;
  }
  NoteRead(context, key, *read);
  return *read;
}

}  // namespace

void NoteRead(CommandContext& context, std::string_view key, const ReadResult& read) {
  context.DependOn(read.durable_after);
  context.CountLookup(key, read.found);
  KeyTracking& tracking = context.server.clients.tracking;
  if (read.expired && tracking.Any()) [[unlikely]]
    tracking.FoundExpired(context.space(), key, context.client.id);
}

std::optional<ReadResult> ReadKey(CommandContext& context, std::string_view key,
                                  std::string* value) {
  const std::optional<ReadResult> read = Note(context, key, context.Get(key, value));
  if (read && !read->found) value->clear();
  return read;
}

std::optional<ReadResult> LookUpKey(CommandContext& context, std::string_view key) {
  return Note(context, key, context.LookUp(key));
}

}  // namespace varve
