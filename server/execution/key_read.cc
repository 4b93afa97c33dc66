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
  context.CountLookup(key, read);
  KeyTracking& tracking = context.server.clients.tracking;
  if (read.expired && tracking.Any()) [[unlikely]]
    tracking.FoundExpired(context.space(), key, context.client.id);
}

std::optional<ReadResult> ReadKey(CommandContext& context, std::string_view key, std::string* value,
                                  bool with_metadata) {
  const std::optional<ReadResult> read =
      Note(context, key, context.GetIn(context.space(), key, value, with_metadata));
  if (read && !read->found) value->clear();
  return read;
}

std::optional<ReadResult> LookUpKey(CommandContext& context, std::string_view key,
                                    bool with_metadata) {
  return Note(context, key, context.LookUp(key, with_metadata));
}

void ReplyMetadata(CommandContext& context, std::string_view metadata) {
  metadata.empty() ? context.reply.Null() : context.reply.Bulk(metadata);
}

void ReplyVersion(CommandContext& context, SequenceNumber version) {
  version == kNoSequence ? context.reply.Null()
                         : context.reply.Integer(static_cast<int64_t>(version));
}

}  // namespace varve
