// BACKUP: the files of a backup, which the server makes while it goes on.
#include <optional>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "util/base/status.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

void ReplyStatus(CommandContext& context) {
  const BackupReport report = context.server.backups.Report(/*is_use=*/false);
  const bool is_sealed = report.state == BackupState::kSealed;
  const Checkpoint& checkpoint = report.checkpoint;
  const std::pair<std::string_view, std::string> fields[] = {
      {"state", std::string(NameOf(report.state))},
      {"error", report.error},
      {"start_time", fmt::to_string(report.start_time)},
      {"end_time", fmt::to_string(report.end_time)},
      {"version", fmt::to_string(is_sealed ? checkpoint.version : kNoSequence)},
      {"instant_ms", fmt::to_string(is_sealed ? checkpoint.instant_ms : 0)},
      {"store_id", fmt::format("{:016x}", checkpoint.store_id)},
      {"history_id", fmt::format("{:016x}", checkpoint.history_id)},
      {"files", fmt::to_string(checkpoint.files.size())},
      {"bytes", fmt::to_string(report.bytes())}};
  context.reply.Map(std::size(fields));
  for (const auto& [name, value] : fields) {
    context.reply.Bulk(name);
    context.reply.Bulk(value);
  }
}

void ReplyList(CommandContext& context, Arguments arguments) {
  const bool sizes = arguments.size() == 3 && EqualsIgnoreCase(arguments[2], "sizes");
  if (arguments.size() > 2 && !sizes) return ReplySyntaxError(context);
  const BackupReport report = context.server.backups.Report(/*is_use=*/true);
  context.reply.Array(report.checkpoint.files.size());
  for (const CheckpointFile& file : report.checkpoint.files) {
    if (sizes) {
      context.reply.Array(2);
      context.reply.Bulk(file.name);
      context.reply.Integer(static_cast<int64_t>(file.size));
    } else {
      context.reply.Bulk(fmt::format("{}/{}", report.directory, file.name));
    }
  }
}

void Fetch(CommandContext& context, Arguments arguments) {
  int64_t offset = 0, length = 0;
  if (!ParseRespInteger(arguments[3], &offset) || !ParseRespInteger(arguments[4], &length) ||
      offset < 0 || length < 0)
    return context.reply.Error(kNoInteger);
  if (static_cast<uint64_t>(length) > BackupService::kLongestFetch) {
    return context.reply.Error(
        fmt::format("ERR at most {} bytes are fetched at once", BackupService::kLongestFetch));
  }
  const absl::StatusOr<std::string> bytes = context.server.backups.Fetch(
      arguments[2], static_cast<uint64_t>(offset), static_cast<uint64_t>(length));
  bytes.ok() ? context.reply.Bulk(*bytes) : context.Fail(bytes.status());
}

void HandleBackup(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  BackupService& backups = context.server.backups;
  const std::string_view what = subcommand->word();
  if (what == "status") return ReplyStatus(context);
  if (what == "list") return ReplyList(context, arguments);
  if (what == "fetch") return Fetch(context, arguments);
  const absl::Status done = what == "start"   ? backups.Start()
                            : what == "seal"  ? backups.Seal()
                            : what == "abort" ? backups.Abort()
                                              : backups.Cleanup();
  done.ok() ? context.reply.Ok() : context.Fail(done);
}

constexpr Command kBackupRows[] = {
    {.name = "backup",
     .arity = -2,
     .flags = kContainerCommand | kAdminCommand | kSlowCommand,
     .handler = HandleBackup,
     .group = "server",
     .summary = "Makes the files of a backup while the server goes on.",
     .syntax = "ABORT | CLEANUP | FETCH | LIST | SEAL | START | STATUS | HELP"},
};

}  // namespace

absl::Span<const Command> BackupCommands() { return kBackupRows; }

}  // namespace varve
