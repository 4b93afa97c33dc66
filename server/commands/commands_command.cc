// COMMAND: the server describes its commands.
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/commands/command_traits.h"
#include "server/execution/store_capability.h"
#include "server/execution/syntax_arguments.h"
#include "server/past/past_request.h"
#include "server/requests/undelete_request.h"
#include "util/base/glob.h"

namespace varve {
namespace {

constexpr char kNoKeys[] = "ERR The command has no key arguments";
constexpr char kWrongNumber[] = "ERR Invalid number of arguments specified for command";

void ReplyWords(RespWriter& reply, const Words& words) {
  reply.Set(words.size());
  for (const std::string_view word : words) reply.Simple(word);
}

void ReplyKeySpecification(RespWriter& reply, const KeySpecification& specification) {
  reply.Map(specification.notes.empty() ? 3 : 4);
  if (!specification.notes.empty()) {
    reply.Bulk("notes");
    reply.Bulk(specification.notes);
  }
  reply.Bulk("flags");
  ReplyWords(reply, specification.flags);
  reply.Bulk("begin_search");
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk("index");
  reply.Bulk("spec");
  reply.Map(1);
  reply.Bulk("index");
  reply.Integer(specification.first);
  reply.Bulk("find_keys");
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk("range");
  reply.Bulk("spec");
  reply.Map(3);
  reply.Bulk("lastkey");
  reply.Integer(specification.last);
  reply.Bulk("keystep");
  reply.Integer(specification.step);
  reply.Bulk("limit");
  reply.Integer(0);
}

void ReplyCommandInfo(RespWriter& reply, const NamedCommand& command) {
  const std::vector<KeySpecification> specifications = KeySpecifications(command);
  reply.Array(10);
  reply.Bulk(command.name);
  reply.Integer(command.arity());
  ReplyWords(reply, FlagNames(command));
  const int last = specifications.empty() ? 0 : specifications.back().last;
  reply.Integer(specifications.empty() ? 0 : specifications.front().first);
  reply.Integer(last < 0 || specifications.empty() ? last : last + specifications.back().first);
  reply.Integer(specifications.empty() ? 0 : specifications.front().step);
  ReplyWords(reply, Categories(command));
  const Words tips = Tips(command);
  reply.Set(tips.size());
  for (const std::string_view tip : tips) reply.Bulk(tip);
  reply.Set(specifications.size());
  for (const KeySpecification& specification : specifications)
    ReplyKeySpecification(reply, specification);
  const absl::Span<const Subcommand> subcommands =
      command.subcommand == nullptr ? command.command.subcommands : absl::Span<const Subcommand>();
  if (subcommands.empty()) return reply.Set(0);  // as in Redis
  reply.Array(subcommands.size());
  for (const Subcommand& subcommand : subcommands)
    ReplyCommandInfo(reply, {command.command, subcommand});
}

// `*keys` counts the arguments that are keys: each is found by the specification of its place, the
// last one by what follows, too.
void ReplyArguments(RespWriter& reply, const std::vector<SyntaxArgument>& arguments,
                    size_t specifications, size_t* keys) {
  reply.Array(arguments.size());
  for (const SyntaxArgument& argument : arguments) {
    const bool is_key = argument.type == "key" && specifications > 0;
    const bool has_flags = argument.optional || argument.multiple;
    reply.Map(2u + is_key + !argument.token.empty() + has_flags + !argument.arguments.empty());
    reply.Bulk("name");
    reply.Bulk(argument.name);
    reply.Bulk("type");
    reply.Bulk(argument.type);
    if (is_key) {
      reply.Bulk("key_spec_index");
      reply.Integer(static_cast<int64_t>(std::min((*keys)++, specifications - 1)));
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
      ReplyArguments(reply, argument.arguments, specifications, keys);
    }
  }
}

// Replies with what the command needs of the store, and with what it does without that.
void ReplyNeeds(RespWriter& reply, absl::Span<const CommandNeed> needs) {
  reply.Bulk("store_needs");
  reply.Map(needs.size());
  for (const CommandNeed& need : needs) {
    reply.Bulk(NameOf(need.need));
    reply.Bulk(DescriptionOf(need.without));
  }
}

void ReplyDocs(RespWriter& reply, const NamedCommand& command) {
  const bool is_subcommand = command.subcommand != nullptr;
  const absl::Span<const Subcommand> subcommands =
      is_subcommand ? absl::Span<const Subcommand>() : command.command.subcommands;
  const std::string_view syntax =
      is_subcommand ? command.subcommand->syntax : command.command.syntax;
  // What stands behind a container's name is what its subcommands say.
  const std::vector<SyntaxArgument> arguments =
      subcommands.empty() ? ParseSyntax(syntax) : std::vector<SyntaxArgument>();
  reply.Bulk(command.name);
  const std::string_view complexity =
      is_subcommand ? std::string_view() : command.command.complexity;
  const absl::Span<const CommandNeed> needs = NeedsOf(command.name);
  reply.Map(4u + !complexity.empty() + !needs.empty() + !arguments.empty() + !subcommands.empty());
  reply.Bulk("summary");
  reply.Bulk(is_subcommand ? command.subcommand->summary : command.command.summary);
  reply.Bulk("since");
  reply.Bulk(is_subcommand ? command.subcommand->since : command.command.since);
  reply.Bulk("group");
  reply.Bulk(command.command.group);
  if (!complexity.empty()) {
    reply.Bulk("complexity");
    reply.Bulk(complexity);
  }
  if (!needs.empty()) ReplyNeeds(reply, needs);
  reply.Bulk("syntax");
  reply.Bulk(syntax);
  if (!arguments.empty()) {
    size_t keys = 0;
    reply.Bulk("arguments");
    ReplyArguments(reply, arguments, KeySpecifications(command).size(), &keys);
  }
  if (subcommands.empty()) return;
  reply.Bulk("subcommands");
  reply.Map(subcommands.size());
  for (const Subcommand& subcommand : subcommands) ReplyDocs(reply, {command.command, subcommand});
}

// Of a command or, by its full name, a subcommand.
std::optional<NamedCommand> FindNamed(std::string_view name) {
  const Command* const command = FindCommand(name.substr(0, name.find('|')));
  if (command == nullptr) return std::nullopt;
  if (name.size() == command->name.size()) return NamedCommand(*command);
  const Subcommand* const subcommand = FindSubcommand(name);
  if (subcommand == nullptr) return std::nullopt;
  return NamedCommand(*command, *subcommand);
}

void HandleInfo(RespWriter& reply, Arguments names) {
  reply.Array(names.empty() ? AllCommands().size() : names.size());
  if (names.empty()) {
    for (const Command& command : AllCommands()) ReplyCommandInfo(reply, NamedCommand(command));
  }
  for (const std::string_view name : names) {
    if (const std::optional<NamedCommand> command = FindNamed(name)) {
      ReplyCommandInfo(reply, *command);
    } else {
      reply.Null();
    }
  }
}

void HandleDocs(RespWriter& reply, Arguments names) {
  std::vector<NamedCommand> commands;
  for (const Command& command : AllCommands()) {
    if (names.empty()) commands.emplace_back(command);
  }
  for (const std::string_view name : names) {
    if (const std::optional<NamedCommand> command = FindNamed(name)) commands.push_back(*command);
  }
  reply.Map(commands.size());
  for (const NamedCommand& command : commands) ReplyDocs(reply, command);
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
  return std::any_of(categories.begin(), categories.end(), [&](std::string_view category) {
    return EqualsIgnoreCase(category.substr(1), filter[2]);
  });
}

void HandleCommandList(CommandContext& context, Arguments filter) {
  if (!filter.empty()) {
    const bool known =
        filter.size() == 3 && EqualsIgnoreCase(filter[0], "filterby") &&
        (EqualsIgnoreCase(filter[1], "pattern") || EqualsIgnoreCase(filter[1], "module") ||
         EqualsIgnoreCase(filter[1], "aclcat"));
    if (!known) return ReplySyntaxError(context);
    if (filter[2].size() > kMaxGlobPattern) {
      return context.reply.Error(
          fmt::format("ERR a pattern has at most {} bytes", kMaxGlobPattern));
    }
  }
  Words names;
  for (const Command& command : AllCommands()) {
    if (Chosen(filter, command.name, Categories(NamedCommand(command))))
      names.push_back(command.name);
    for (const Subcommand& subcommand : command.subcommands) {
      if (Chosen(filter, subcommand.name, Categories({command, subcommand})))
        names.push_back(subcommand.name);
    }
  }
  context.reply.Array(names.size());
  for (const std::string_view name : names) context.reply.Bulk(name);
}

// Answers the keys of a request whose number of arguments fits.
void ReplyKeys(RespWriter& reply, const NamedCommand& named, Arguments request, bool with_flags) {
  if (!named.HasKeys()) return reply.Error(kNoKeys);
  reply.Array(KeyCount(named.command, request.size()));
  for (const KeySpecification& specification : KeySpecifications(named)) {
    const auto first = static_cast<size_t>(specification.first);
    const size_t last = specification.last < 0 ? request.size() - 1
                                               : first + static_cast<size_t>(specification.last);
    for (size_t i = first; i <= last; i += static_cast<size_t>(specification.step)) {
      if (with_flags) reply.Array(2);
      reply.Bulk(request[i]);
      if (with_flags) ReplyWords(reply, KeyFlagsOf(specification, named.command, request));
    }
  }
}

// Returns whether the request itself says which of its arguments are keys.
bool FindsOwnKeys(const NamedCommand& named) {
  return named.name == "undelete" || named.name == "ingest|add";
}

// Answers the keys of such a request, if its number of arguments fits.
void ReplyOwnKeys(RespWriter& reply, const NamedCommand& named, Arguments request,
                  bool with_flags) {
  Words keys, flags;
  if (named.name == "undelete") {
    const std::optional<UndeleteRequest> undelete = ParseUndelete(request);
    if (!undelete) return reply.Error(kWrongNumber);
    if (!undelete->is_key) return reply.Error(kNoKeys);
    keys.push_back(request[1]);
    flags = {"RW", "insert"};
  } else {
    const Arguments pairs = request.subspan(3);
    if (pairs.size() % 2 != 0) return reply.Error(kWrongNumber);
    for (size_t i = 0; i < pairs.size(); i += 2) keys.push_back(pairs[i]);
    flags = {"OW", "update"};
  }
  reply.Array(keys.size());
  for (const std::string_view key : keys) {
    if (with_flags) reply.Array(2);
    reply.Bulk(key);
    if (with_flags) ReplyWords(reply, flags);
  }
}

void HandleGetKeys(CommandContext& context, Arguments request, bool with_flags) {
  const Command* const command = FindCommand(request[0]);
  if (command == nullptr) return context.reply.Error("ERR Invalid command specified");
  const std::optional<NamedCommand> named = FindNamed(FullCommandName(*command, request));
  if (request.size() > 1 && named->subcommand == nullptr &&
      (command->flags & kContainerCommand) != 0) {
    return context.reply.Error("ERR Invalid command specified");
  }
  const bool takes_past = TakesPastRequest(*command);
  const bool finds_own = FindsOwnKeys(*named);
  if (!named->HasKeys() && !takes_past && !finds_own) return context.reply.Error(kNoKeys);
  const bool takes = named->subcommand != nullptr ? ArityMatches(named->arity(), request.size())
                                                  : TakesArguments(*command, request);
  if (!takes) {
    return context.reply.Error(kWrongNumber);
  }
  if (finds_own) return ReplyOwnKeys(context.reply, *named, request, with_flags);
  if (!takes_past) return ReplyKeys(context.reply, *named, request, with_flags);
  const std::optional<PastRequest> past = TakePastRequest(context, request);
  if (!past) return;
  const char* const name = FullCommandName(*past->command, past->arguments);
  ReplyKeys(context.reply, *FindNamed(name), past->arguments, with_flags);
}

void HandleCommand(CommandContext& context, Arguments arguments) {
  if (arguments.size() == 1) return HandleInfo(context.reply, {});
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  const Arguments rest = arguments.subspan(2);
  if (what == "count") {
    context.reply.Integer(static_cast<int64_t>(AllCommands().size()));
  } else if (what == "list") {
    HandleCommandList(context, rest);
  } else if (what == "info") {
    if (!TooManyNames(context, rest)) HandleInfo(context.reply, rest);
  } else if (what == "docs") {
    if (!TooManyNames(context, rest)) HandleDocs(context.reply, rest);
  } else {
    HandleGetKeys(context, rest, what == "getkeysandflags");
  }
}

constexpr Command kCommandRows[] = {
    {.name = "command",
     .arity = -1,
     .flags = kSlowCommand | kContainerCommand | kConnectionCommand,
     .handler = HandleCommand,
     .group = "server",
     .summary = "Describes the commands of this server.",
     .syntax = "[COUNT | DOCS | GETKEYS | GETKEYSANDFLAGS | INFO | LIST | HELP]",
     .redis = {.flags = "loading stale",
               .tips = "nondeterministic_output_order",
               .categories = "@connection"}},
};

}  // namespace

absl::Span<const Command> CommandCommands() { return kCommandRows; }

}  // namespace varve
