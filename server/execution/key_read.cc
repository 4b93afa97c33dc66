#include "server/execution/key_read.h"

namespace varve {
namespace {

void NoteLookup(CommandContext& context, std::string_view key, const ReadResult& read) {
  context.DependOn(read.durable_after);
  context.CountLookup(key, read.found);
  KeyTracking& tracking = context.server.clients.tracking;
  if (read.expired && tracking.Any()) [[unlikely]]
    tracking.FoundExpired(context.space(), key, context.client.id);
}

// Answers an error, or notes what was read by `note`.
std::optional<ReadResult> Noted(CommandContext& context, std::string_view key,
                                const absl::StatusOr<ReadResult>& read,
                                void (*note)(CommandContext&, std::string_view,
                                             const ReadResult&)) {
  if (!read.ok()) {
    context.Fail(read.status());
    return std::nullopt;
  }
  note(context, key, *read);
  return *read;
}

}  // namespace

void NoteRead(CommandContext& context, std::string_view key, const ReadResult& read) {
  NoteLookup(context, key, read);
  if (read.found) context.NoteUse(context.space(), key, read.version);
}

std::optional<ReadResult> ReadKey(CommandContext& context, std::string_view key, std::string* value,
                                  bool with_metadata) {
  const std::optional<ReadResult> read =
      Noted(context, key, context.GetIn(context.space(), key, value, with_metadata), NoteRead);
  if (read && !read->found) value->clear();
  return read;
}

std::optional<ReadResult> LookUpKey(CommandContext& context, std::string_view key,
                                    bool with_metadata) {
  return Noted(context, key, context.LookUp(key, with_metadata), NoteRead);
}

std::optional<ReadResult> PeekAtKey(CommandContext& context, std::string_view key,
                                    bool with_metadata) {
  return Noted(context, key, context.LookUp(key, with_metadata), NoteLookup);
}

void ReplyMetadata(CommandContext& context, std::string_view metadata) {
  metadata.empty() ? context.reply.Null() : context.reply.Bulk(metadata);
}

void ReplyVersion(CommandContext& context, SequenceNumber version) {
  version == kNoSequence ? context.reply.Null()
                         : context.reply.Integer(static_cast<int64_t>(version));
}

}  // namespace varve
