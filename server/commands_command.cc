// COMMAND: the server describes its commands.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/command_groups.h"
#include "server/command_names.h"
#include "server/command_table.h"
#include "server/glob.h"
#include "server/syntax_arguments.h"

namespace varve {
namespace {

using Words = std::vector<std::string_view>;

// The words Redis uses for what a command does.
Words FlagNames(uint32_t flags) {
  Words names;
  if (flags & kWriteCommand) names.push_back("write");
  if (flags & kReadCommand) names.push_back("readonly");
  if (flags & kAdminCommand) names.push_back("admin");
  if (flags & kPubSubCommand) names.push_back("pubsub");
  if (flags & kFastCommand) names.push_back("fast");
  if (flags & kBeforeLoginCommand) names.push_back("no_auth");
  return names;
}

// Redis' categories of access control, in its order.
Words Categories(uint32_t flags, std::string_view group) {
  Words names;
  const bool data = (flags & (kReadCommand | kWriteCommand)) != 0;
  if (group == "key" || group == "range" || (group == "server" && data)) names.push_back("@keyspace");
  if (flags & kReadCommand) names.push_back("@read");
  if (flags & kWriteCommand) names.push_back("@write");
  if (group == "string") names.push_back("@string");
  if (group == "bitmap") names.push_back("@bitmap");
  if (flags & kPubSubCommand) names.push_back("@pubsub");
  if (flags & kAdminCommand) names.push_back("@admin");
  names.push_back((flags & kFastCommand) != 0 ? "@fast" : "@slow");
  if (flags & kAdminCommand) names.push_back("@dangerous");
  if (flags & kConnectionCommand) names.push_back("@connection");
  return names;
}

// What a command does with its keys, in Redis' words.
Words KeyFlags(const Command& command) {
  struct Special {
    std::string_view name;
    Words flags;
  };
  static const Special kSpecial[] = {
      {"append", {"RW", "insert"}},
      {"del", {"RM", "delete"}},
      {"delete", {"RM", "delete"}},
      {"exists", {"RO"}},
      {"getdel", {"RW", "access", "delete"}},
      {"mset", {"OW", "update"}},
      {"msetnx", {"OW", "insert"}},
      {"setnx", {"OW", "insert"}},
      {"setrange", {"RW", "update"}},
      {"strlen", {"RO"}},
      {"touch", {"RO"}},
      {"type", {"RO"}},
      {"unlink", {"RM", "delete"}},
  };
  for (const Special& special : kSpecial) {
    if (special.name == command.name) return special.flags;
  }
  if (command.flags & kWriteCommand) return {"RW", "access", "update"};
  return {"RO", "access"};
}

void ReplyWords(RespWriter& reply, const Words& words) {
  reply.Set(words.size());
  for (const std::string_view word : words) reply.Simple(word);
}

void ReplyKeySpecification(RespWriter& reply, const Command& command) {
  if (command.first_key == 0) return reply.Set(0);
  reply.Set(1);
  reply.Map(3);
  reply.Bulk("flags");
  ReplyWords(reply, KeyFlags(command));
  reply.Bulk("begin_search");
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk("index");
  reply.Bulk("spec");
  reply.Map(1);
  reply.Bulk("index");
  reply.Integer(command.first_key);
  reply.Bulk("find_keys");
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk("range");
  reply.Bulk("spec");
  reply.Map(3);
  reply.Bulk("lastkey");  // counted from the first
  reply.Integer(command.last_key < 0 ? command.last_key : command.last_key - command.first_key);
  reply.Bulk("keystep");
  reply.Integer(command.key_step);
  reply.Bulk("limit");
  reply.Integer(0);
}

void ReplySubcommandInfo(RespWriter& reply, const Subcommand& subcommand) {
  reply.Array(10);
  reply.Bulk(subcommand.name);
  reply.Integer(subcommand.arity);
  ReplyWords(reply, FlagNames(subcommand.flags));
  for (int i = 0; i < 3; ++i) reply.Integer(0);  // keys
  ReplyWords(reply, Categories(subcommand.flags, ""));
  for (int i = 0; i < 2; ++i) reply.Set(0);  // tips, key specifications
  reply.Array(0);
}

void ReplyCommandInfo(RespWriter& reply, const Command& command) {
  reply.Array(10);
  reply.Bulk(command.name);
  reply.Integer(command.arity);
  ReplyWords(reply, FlagNames(command.flags));
  reply.Integer(command.first_key);
  reply.Integer(command.last_key);
  reply.Integer(command.key_step);
  ReplyWords(reply, Categories(command.flags, command.group));
  reply.Set(0);  // tips
  ReplyKeySpecification(reply, command);
  const absl::Span<const Subcommand> subcommands = SubcommandsOf(command);
  reply.Array(subcommands.size());
  for (const Subcommand& subcommand : subcommands) ReplySubcommandInfo(reply, subcommand);
}

void ReplyArguments(RespWriter& reply, const std::vector<SyntaxArgument>& arguments) {
  reply.Array(arguments.size());
  for (const SyntaxArgument& argument : arguments) {
    const bool is_key = argument.type == "key";
    const bool has_flags = argument.optional || argument.multiple;
    reply.Map(2u + is_key + !argument.token.empty() + has_flags + !argument.arguments.empty());
    reply.Bulk("name");
    reply.Bulk(argument.name);
    reply.Bulk("type");
    reply.Bulk(argument.type);
    if (is_key) {
      reply.Bulk("key_spec_index");
      reply.Integer(0);
    }
    if (!argument.token.empty()) {
      reply.Bulk("token");
      reply.Bulk(argument.token);
    }
    if (has_flags) {
      reply.Bulk("flags");
      Words flags;
      if (argument.optional) flags.push_back("optional");
      if (argument.multiple) flags.push_back("multiple");
      ReplyWords(reply, flags);
    }
    if (!argument.arguments.empty()) {
      reply.Bulk("arguments");
      ReplyArguments(reply, argument.arguments);
    }
  }
}

void ReplyCommandDocs(RespWriter& reply, const Command& command) {
  const std::vector<SyntaxArgument> arguments = ParseSyntax(command.syntax);
  reply.Bulk(command.name);
  reply.Map(arguments.empty() ? 4 : 5);
  reply.Bulk("summary");
  reply.Bulk(command.summary);
  reply.Bulk("since");
  reply.Bulk(kVarveVersion);
  reply.Bulk("group");
  reply.Bulk(command.group);
  reply.Bulk("syntax");
  reply.Bulk(command.syntax);
  if (arguments.empty()) return;
  reply.Bulk("arguments");
  ReplyArguments(reply, arguments);
}

void ReplyInfo(RespWriter& reply, Arguments names) {
  reply.Array(names.empty() ? AllCommands().size() : names.size());
  if (names.empty()) {
    for (const Command& command : AllCommands()) ReplyCommandInfo(reply, command);
  }
  for (const std::string_view name : names) {
    if (const Command* command = FindCommand(name); command != nullptr) {
      ReplyCommandInfo(reply, *command);
    } else if (const Subcommand* subcommand = FindSubcommand(name); subcommand != nullptr) {
      ReplySubcommandInfo(reply, *subcommand);
    } else {
      reply.Null();
    }
  }
}

void ReplyDocs(RespWriter& reply, Arguments names) {
  std::vector<const Command*> commands;
  for (const Command& command : AllCommands()) {
    if (names.empty()) commands.push_back(&command);
  }
  for (const std::string_view name : names) {
    if (const Command* command = FindCommand(name); command != nullptr) commands.push_back(command);
  }
  reply.Map(commands.size());
  for (const Command* command : commands) ReplyCommandDocs(reply, *command);
}

// What follows COMMAND LIST chooses names; false: it has another form.
bool Chosen(Arguments filter, std::string_view name, const Words& categories) {
  if (filter.empty()) return true;
  if (EqualsIgnoreCase(filter[1], "pattern")) {
    std::string lower(filter[2]);
    for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    return GlobMatches(lower, name);
  }
  if (EqualsIgnoreCase(filter[1], "module")) return false;  // there are none
  return std::any_of(categories.begin(), categories.end(),
                     [&](std::string_view category) { return EqualsIgnoreCase(category.substr(1), filter[2]); });
}

void HandleList(CommandContext& context, Arguments filter) {
  if (!filter.empty()) {
    const bool known = filter.size() == 3 && EqualsIgnoreCase(filter[0], "filterby") &&
                       (EqualsIgnoreCase(filter[1], "pattern") || EqualsIgnoreCase(filter[1], "module") ||
                        EqualsIgnoreCase(filter[1], "aclcat"));
    if (!known) return ReplySyntaxError(context);
    if (filter[2].size() > kMaxGlobPattern) {
      return context.reply.Error(fmt::format("ERR a pattern has at most {} bytes", kMaxGlobPattern));
    }
  }
  Words names;
  for (const Command& command : AllCommands()) {
    if (Chosen(filter, command.name, Categories(command.flags, command.group))) names.push_back(command.name);
    for (const Subcommand& subcommand : SubcommandsOf(command)) {
      if (Chosen(filter, subcommand.name, Categories(subcommand.flags, ""))) names.push_back(subcommand.name);
    }
  }
  context.reply.Array(names.size());
  for (const std::string_view name : names) context.reply.Bulk(name);
}

void HandleGetKeys(CommandContext& context, Arguments request, bool with_flags) {
  const Command* const command = FindCommand(request[0]);
  if (command == nullptr) return context.reply.Error("ERR Invalid command specified");
  if (command->first_key == 0) return context.reply.Error("ERR The command has no key arguments");
  if (!ArityMatches(*command, request.size())) {
    return context.reply.Error("ERR Invalid number of arguments specified for command");
  }
  const uint32_t keys = KeyCount(*command, request.size());
  context.reply.Array(keys);
  for (uint32_t i = 0; i < keys; ++i) {
    if (with_flags) context.reply.Array(2);
    context.reply.Bulk(request[static_cast<size_t>(command->first_key) + i * static_cast<size_t>(command->key_step)]);
    if (with_flags) ReplyWords(context.reply, KeyFlags(*command));
  }
}

void HandleCommand(CommandContext& context, Arguments arguments) {
  if (arguments.size() == 1) return ReplyInfo(context.reply, {});
  const std::string_view full = FullCommandName(*FindCommand("command"), arguments);
  const Subcommand* const subcommand = FindSubcommand(full);
  if (subcommand == nullptr) return ReplyUnknownSubcommand(context, "command", arguments[1]);
  const size_t least = static_cast<size_t>(std::abs(subcommand->arity));
  if (arguments.size() < least || (subcommand->arity > 0 && arguments.size() > least)) {
    return ReplyWrongArity(context, full);
  }
  const std::string_view what = full.substr(full.find('|') + 1);
  const Arguments rest = arguments.subspan(2);
  if (what == "count") {
    context.reply.Integer(static_cast<int64_t>(AllCommands().size()));
  } else if (what == "list") {
    HandleList(context, rest);
  } else if (what == "info") {
    ReplyInfo(context.reply, rest);
  } else if (what == "docs") {
    ReplyDocs(context.reply, rest);
  } else if (what == "getkeys" || what == "getkeysandflags") {
    HandleGetKeys(context, rest, what == "getkeysandflags");
  } else {
    ReplyHelp(
        context, arguments,
        {"(no subcommand)", "    Return how each command is called.", "COUNT", "    Return the number of commands.",
         "DOCS [<command-name> ...]", "    Return what commands are for, and their syntax.", "GETKEYS <full-command>",
         "    Return the keys of a request.", "GETKEYSANDFLAGS <full-command>",
         "    Return them and what the command does with them.", "INFO [<command-name> ...]",
         "    Return how commands are called.", "LIST [FILTERBY (PATTERN <pattern>|ACLCAT <category>|MODULE <name>)]",
         "    Return their names."});
  }
}

}  // namespace

absl::Span<const Command> CommandCommands() {
  static constexpr Command kRows[] = {
      {"command", -1, kSlowCommand | kContainerCommand | kConnectionCommand, 0, 0, 0, CommandKind::kOther,
       HandleCommand, "server", "Describes the commands of this server.",
       "[COUNT | LIST [FILTERBY filter value] | INFO [name ...] | DOCS [name ...] | GETKEYS request ... | "
       "GETKEYSANDFLAGS request ... | HELP]"},
  };
  return kRows;
}

}  // namespace varve
