// META: the metadata of a value, and what the store knows of it besides.
#include <optional>
#include <string>

#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/key_read.h"
#include "server/execution/key_update.h"
#include "server/execution/value_condition.h"

namespace varve {
namespace {

// Writes when the version was committed; null where the store does not know, and for what EXEC has
// written itself.
void ReplyInstant(CommandContext& context, SequenceNumber version) {
  absl::StatusOr<uint64_t> instant_ms = absl::NotFoundError("");
  if (version != kNoSequence) instant_ms = context.server.store->InstantOf(version);
  instant_ms.ok() ? context.reply.Integer(static_cast<int64_t>(*instant_ms)) : context.reply.Null();
}

void HandleMetaGet(CommandContext& context, Arguments arguments) {
  const std::optional<ReadResult> read = PeekAtKey(context, arguments[2], /*with_metadata=*/true);
  if (!read) return;
  if (!read->found) return context.reply.Null();
  context.reply.Map(5);
  context.reply.Bulk("version");
  ReplyVersion(context, read->version);
  context.reply.Bulk("modified_ms");
  ReplyInstant(context, read->version);
  context.reply.Bulk("expires_ms");
  context.reply.Integer(read->expiry_ms == kNoExpiry ? -1 : static_cast<int64_t>(read->expiry_ms));
  context.reply.Bulk("bytes");
  context.reply.Integer(static_cast<int64_t>(read->value_size));
  context.reply.Bulk("meta");
  ReplyMetadata(context, read->MetadataView());
}

void HandleMetaSet(CommandContext& context, Arguments arguments) {
  const std::string_view key = arguments[2];
  const std::string_view metadata = arguments[3];
  ValueCondition condition;
  if (arguments.size() != 4) {
    if (arguments.size() != 6 || !condition.SetComparison(arguments[4], arguments[5]) ||
        !condition.ComparesVersion()) {
      return ReplySyntaxError(context);
    }
  }
  if (const std::string_view defect = condition.Defect(); !defect.empty())
    return context.reply.Error(defect);
  if (metadata.size() > kMaxMetadataSize) return context.reply.Error(kMetadataTooLong);
  bool written = false;
  std::string value;
  SequenceNumber version = kNoSequence;
  const auto decide = [&](WriteBatch* batch) -> absl::Status {
    const absl::StatusOr<ReadResult> read = ReadForUpdate(context, key, &value, batch);
    if (!read.ok()) return read.status();
    written = read->found && condition.Holds(*read, value);
    if (!written) return absl::OkStatus();
    batch->Put(
        key, value,
        {.expiry_ms = read->expiry_ms, .metadata = metadata, .cause = WriteCause::kMetadataChange});
    return absl::OkStatus();
  };
  if (!Update(context, {&key, 1}, decide, &version)) return;
  if (!written) return context.reply.Null();
  context.Notify(kGenericEvent, "meta", key);
  // Inside EXEC it is not known yet.
  version == kNoSequence ? context.reply.Ok() : ReplyVersion(context, version);
}

void HandleMeta(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  subcommand->word() == "get" ? HandleMetaGet(context, arguments)
                              : HandleMetaSet(context, arguments);
}

constexpr Command kMetadataRows[] = {
    {.name = "meta",
     .arity = -2,
     .flags = kContainerCommand,
     .keys = {.first = 2, .last = 2, .step = 1},
     .handler = HandleMeta,
     .group = "generic",
     .summary = "The metadata of values.",
     .syntax = "GET | SET | HELP"},
};

}  // namespace

absl::Span<const Command> MetadataCommands() { return kMetadataRows; }

}  // namespace varve
