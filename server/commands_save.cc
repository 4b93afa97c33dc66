// Redis' commands about copies on disk and about databases, as far as they mean something here: every write goes to the log, so
// saving is syncing the log; there are no replicas, no functions and one database.
#include <chrono>
#include <ctime>
#include <optional>
#include <string>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_names.h"
#include "server/command_table.h"
#include "server/database_index.h"
#include "util/resp_parser.h"

namespace varve {
namespace {

// Everything is on disk, whatever its mode. False: the error was answered.
bool Sync(CommandContext& context) {
  if (const absl::Status status = context.store.Sync(); !status.ok()) {
    context.Fail(status);
    return false;
  }
  return true;
}

bool Save(CommandContext& context) {
  if (!Sync(context)) return false;
  context.server.last_save = std::time(nullptr);
  context.server.saved_sequence = context.store.durable_sequence();
  return true;
}

void HandleSave(CommandContext& context, Arguments arguments) {
  if (Save(context)) context.reply.Ok();
}

void HandleBgSave(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 2 || (arguments.size() == 2 && !EqualsIgnoreCase(arguments[1], "schedule"))) {
    return ReplySyntaxError(context);
  }
  if (Save(context)) context.reply.Simple("Background saving started");
}

void HandleBgRewriteAof(CommandContext& context, Arguments arguments) {
  if (Save(context)) context.reply.Simple("Background append only file rewriting started");
}

void HandleLastSave(CommandContext& context, Arguments arguments) { context.reply.Integer(context.server.last_save); }

void HandleWait(CommandContext& context, Arguments arguments) {
  int64_t replicas = 0;
  int64_t timeout = 0;
  if (!ParseRespInteger(arguments[1], &replicas)) {
    return context.reply.Error("ERR value is not an integer or out of range");
  }
  if (!ParseRespInteger(arguments[2], &timeout)) {
    return context.reply.Error("ERR timeout is not an integer or out of range");
  }
  if (timeout < 0) return context.reply.Error("ERR timeout is negative");
  if (Sync(context)) context.reply.Integer(0);
}

void HandleShutdown(CommandContext& context, Arguments arguments) {
  bool save = false;
  bool no_save = false;
  bool force = false;
  bool abort = false;
  for (const std::string_view option : arguments.subspan(1)) {
    if (EqualsIgnoreCase(option, "save")) {
      save = true;
    } else if (EqualsIgnoreCase(option, "nosave")) {
      no_save = true;
    } else if (EqualsIgnoreCase(option, "force")) {
      force = true;
    } else if (EqualsIgnoreCase(option, "abort")) {
      abort = true;
    } else if (!EqualsIgnoreCase(option, "now")) {  // there are no replicas to wait for, so it always is now
      return ReplySyntaxError(context);
    }
  }
  if ((abort && arguments.size() > 2) || (save && no_save)) return ReplySyntaxError(context);
  if (abort) return context.reply.Error("ERR No shutdown in progress.");  // one that began reads no more requests
  if (!context.server.shut_down)
    return context.reply.Error("ERR this server is stopped by the program that it is a part of");
  if (!force && !no_save && !context.store.log_status().ok()) {
    return context.reply.Error("ERR Errors trying to SHUTDOWN. Check logs.");
  }
  context.server.shut_down();
  context.CloseWithoutReply();
}

void HandleTime(CommandContext& context, Arguments arguments) {
  const int64_t micros =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  context.reply.Array(2);
  context.reply.Bulk(fmt::to_string(micros / 1'000'000));
  context.reply.Bulk(fmt::to_string(micros % 1'000'000));
}

void HandleFunction(CommandContext& context, Arguments arguments) {
  if (FindSubcommand(FullCommandName(*FindCommand("function"), arguments)) == nullptr) {
    return context.reply.Error("ERR Varve runs no functions: of FUNCTION there are FLUSH and LIST");
  }
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  if (subcommand->word() == "list") return context.reply.Array(0);
  if (arguments.size() > 3) return ReplySubcommandSyntax(context, arguments);
  if (arguments.size() == 3 && !EqualsIgnoreCase(arguments[2], "async") && !EqualsIgnoreCase(arguments[2], "sync")) {
    return context.reply.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  context.reply.Ok();
}

// As a master without replicas; what would be sent to them is counted in sequence numbers.
void HandleRole(CommandContext& context, Arguments arguments) {
  context.reply.Array(3);
  context.reply.Bulk("master");
  context.reply.Integer(static_cast<int64_t>(context.store.durable_sequence()));
  context.reply.Array(0);
}

void HandleSwapDb(CommandContext& context, Arguments arguments) {
  int64_t first = 0;
  int64_t second = 0;
  if (!ParseRespInteger(arguments[1], &first) || first != static_cast<int32_t>(first))
    return context.reply.Error("ERR invalid first DB index");
  if (!ParseRespInteger(arguments[2], &second) || second != static_cast<int32_t>(second))
    return context.reply.Error("ERR invalid second DB index");
  if (first != 0 || second != 0) return context.reply.Error("ERR DB index is out of range");
  context.reply.Ok();
}

void HandleMove(CommandContext& context, Arguments arguments) {
  const std::optional<int32_t> database = ParseDatabaseIndex(context, arguments[2]);
  if (!database) return;
  if (*database != 0) return context.reply.Error("ERR DB index is out of range");
  context.reply.Error("ERR source and destination objects are the same");
}

}  // namespace

absl::Span<const Command> SaveCommands() {
  static constexpr Command kRows[] = {
      {"bgrewriteaof", 1, kAdminCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleBgRewriteAof, "server",
       "The same as SAVE, with another answer: the log is recycled as it goes.", ""},
      {"bgsave", -1, kAdminCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleBgSave, "server",
       "The same as SAVE, with another answer.", "[SCHEDULE]"},
      {"function", -2, kContainerCommand, 0, 0, 0, CommandKind::kOther, HandleFunction, "scripting",
       "There are no functions.", "FLUSH | LIST | HELP"},
      {"lastsave", 1, kFastCommand, 0, 0, 0, CommandKind::kOther, HandleLastSave, "server",
       "Tells when the last SAVE was done, or the start.", ""},
      {"move", 3, kWriteCommand | kFastCommand, 1, 1, 1, CommandKind::kOther, HandleMove, "generic",
       "Answers an error: there is one database.", "key db"},
      {"role", 1, kFastCommand, 0, 0, 0, CommandKind::kOther, HandleRole, "server",
       "Answers that this is a master without replicas.", ""},
      {"save", 1, kAdminCommand | kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleSave, "server",
       "Puts everything written so far on disk, whatever its mode.", ""},
      {"shutdown", -1, kAdminCommand, 0, 0, 0, CommandKind::kOther, HandleShutdown, "server",
       "Stops the server as SIGTERM does.", "[NOSAVE | SAVE] [NOW] [FORCE] | ABORT"},
      {"swapdb", 3, kWriteCommand | kFastCommand, 0, 0, 0, CommandKind::kOther, HandleSwapDb, "server",
       "Accepts 0 and 0, as there is one database.", "index1 index2"},
      {"time", 1, kFastCommand, 0, 0, 0, CommandKind::kOther, HandleTime, "server",
       "Tells the time in seconds, and microseconds of this second.", ""},
      {"wait", 3, kSlowCommand, 0, 0, 0, CommandKind::kOther, HandleWait, "generic",
       "Answers 0, the number of replicas, when everything written so far is on disk.", "numreplicas timeout"},
  };
  return kRows;
}

}  // namespace varve
