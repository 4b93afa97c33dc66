// FUNCTION, as far as it means something where nothing can be run.
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"

namespace varve {
namespace {

void HandleFunction(CommandContext& context, Arguments arguments) {
  if (FindSubcommand(FullCommandName(*FindCommand("function"), arguments)) == nullptr) {
    return context.reply.Error("ERR Varve runs no functions: of FUNCTION there are FLUSH and LIST");
  }
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  if (subcommand->word() == "list") return context.reply.Array(0);
  if (arguments.size() > 3) return ReplySubcommandSyntax(context, arguments);
  if (arguments.size() == 3 && !EqualsIgnoreCase(arguments[2], "async") &&
      !EqualsIgnoreCase(arguments[2], "sync")) {
    return context.reply.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  context.reply.Ok();
}

constexpr Command kFunctionRows[] = {
    {.name = "function",
     .arity = -2,
     .flags = kContainerCommand,
     .handler = HandleFunction,
     .group = "scripting",
     .summary = "There are no functions.",
     .syntax = "FLUSH | LIST | HELP"},
};

}  // namespace

absl::Span<const Command> FunctionCommands() { return kFunctionRows; }

}  // namespace varve
