// ACL: users and what they may do.
#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "server/access/password_hash.h"
#include "server/access/permissions.h"
#include "server/access/user.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_names.h"
#include "server/commands/command_table.h"
#include "server/execution/rights_check.h"
#include "server/past/past_request.h"
#include "server/user_commands/user_connections.h"
#include "spdlog/spdlog.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

constexpr int64_t kUsualPassword = 256, kLongestPassword = 4096;  // bits
constexpr size_t kUsualLog = 10;                                  // entries

UserTable& Users(CommandContext& context) { return context.server.clients.users; }

std::string Message(const absl::Status& status) {
  const absl::string_view text = status.message();
  return "ERR " + std::string(text.data(), text.size());
}

void SetUser(CommandContext& context, Arguments arguments) {
  const std::string_view name = arguments[2];
  if (!IsUserName(name))
    return context.reply.Error("ERR Usernames can't contain spaces or null characters");
  const absl::Status set = Users(context).Set(name, arguments.subspan(3));
  if (!set.ok()) return context.reply.Error(Message(set));
  CloseForbiddenListeners(&context.server.clients, &context.client, name);
  context.reply.Ok();
}

void DeleteUsers(CommandContext& context, Arguments names) {
  if (std::find(names.begin(), names.end(), "default") != names.end())
    return context.reply.Error("ERR The 'default' user cannot be removed");
  std::vector<std::string_view> removed;
  for (const std::string_view name : names) {
    if (Users(context).Remove(name)) removed.push_back(name);
  }
  CloseConnections(&context.server.clients, &context.client, [&](std::string_view name) {
    return std::find(removed.begin(), removed.end(), name) != removed.end();
  });
  context.reply.Integer(static_cast<int64_t>(removed.size()));
}

// --- Showing users -------------------------------------------------------------------------------

void ReplyField(RespWriter& reply, std::string_view name, std::string_view value) {
  reply.Bulk(name);
  reply.Bulk(value);
}

// The fields of a selector. One that may not work everywhere has a field more.
void ReplySelector(RespWriter& reply, const Selector& selector) {
  ReplyField(reply, "commands", DescribeCommands(selector));
  ReplyField(reply, "keys", DescribeKeys(selector));
  ReplyField(reply, "channels", DescribeChannels(selector));
  if (!selector.all_places()) ReplyField(reply, "places", DescribePlaces(selector));
}

void GetUser(CommandContext& context, std::string_view name) {
  const UserPointer user = Users(context).Find(name);
  if (user == nullptr) return context.reply.Null();
  RespWriter& reply = context.reply;
  const std::string limits = DescribeLimits(user->limits);
  reply.Map(6 + (user->root.all_places() ? 0 : 1) + (limits.empty() ? 0 : 1));
  reply.Bulk("flags");
  const std::vector<std::string> flags = FlagsOf(*user);
  reply.Set(flags.size());
  for (const std::string& flag : flags) reply.Bulk(flag);
  reply.Bulk("passwords");
  reply.Array(user->passwords.size());
  for (const std::string& password : user->passwords) reply.Bulk(password);
  if (!limits.empty()) ReplyField(reply, "limits", limits);
  ReplySelector(reply, user->root);
  reply.Bulk("selectors");
  reply.Array(user->selectors.size());
  for (const Selector& selector : user->selectors) {
    reply.Map(selector.all_places() ? 3 : 4);
    ReplySelector(reply, selector);
  }
}

void ListUsers(CommandContext& context, bool with_rights) {
  const std::vector<UserPointer> users = Users(context).All();
  context.reply.Array(users.size());
  for (const UserPointer& user : users)
    context.reply.Bulk(with_rights ? DescribeUser(*user) : user->name);
}

void ListCategory(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 3) return ReplySubcommandSyntax(context, arguments);
  if (arguments.size() == 2) {
    context.reply.Array(std::size(kAccessCategories));
    for (const std::string_view category : kAccessCategories) context.reply.Bulk(category);
    return;
  }
  const std::optional<size_t> category = FindCategory(arguments[2]);
  if (!category) {
    return context.reply.Error(
        fmt::format("ERR Unknown category '{}'", ShownInError(arguments[2])));
  }
  const CommandCatalog& catalog = Users(context).catalog();
  std::vector<std::string_view> names;
  for (size_t number = 0; number < catalog.size(); ++number) {
    if ((catalog.entry(number).categories >> *category & 1) != 0)
      names.push_back(catalog.entry(number).name);
  }
  context.reply.Array(names.size());
  for (const std::string_view name : names) context.reply.Bulk(name);
}

void GeneratePassword(CommandContext& context, Arguments arguments) {
  int64_t bits = kUsualPassword;
  if (arguments.size() > 3) return ReplySubcommandSyntax(context, arguments);
  if (arguments.size() == 3 && !ParseRespInteger(arguments[2], &bits))
    return context.reply.Error(kNoInteger);
  if (bits <= 0 || bits > kLongestPassword) {
    return context.reply.Error(
        fmt::format("ERR ACL GENPASS argument must be the number of bits for the output password, "
                    "a positive number up to {}",
                    kLongestPassword));
  }
  const std::string password = RandomHex(static_cast<size_t>(bits));
  if (password.empty()) return context.reply.Error("ERR the system gives no random bytes");
  context.reply.Bulk(password);
}

// --- The log, and trying out ---------------------------------------------------------------------

void ReplyEntry(RespWriter& reply, const AclLog::Entry& entry, int64_t now_ms) {
  reply.Map(10);
  reply.Bulk("count");
  reply.Integer(static_cast<int64_t>(entry.count));
  ReplyField(reply, "reason", entry.reason);
  ReplyField(reply, "context", entry.context);
  ReplyField(reply, "object", entry.object);
  ReplyField(reply, "username", entry.username);
  const int64_t age_ms = std::max<int64_t>(0, now_ms - entry.updated_ms);
  ReplyField(reply, "age-seconds", fmt::format("{}.{:03}", age_ms / 1000, age_ms % 1000));
  ReplyField(reply, "client-info", entry.client);
  reply.Bulk("entry-id");
  reply.Integer(static_cast<int64_t>(entry.id));
  reply.Bulk("timestamp-created");
  reply.Integer(entry.created_ms);
  reply.Bulk("timestamp-last-updated");
  reply.Integer(entry.updated_ms);
}

void ShowLog(CommandContext& context, Arguments arguments) {
  AclLog& log = context.server.clients.denials;
  int64_t count = kUsualLog;
  if (arguments.size() > 3) return ReplySubcommandSyntax(context, arguments);
  if (arguments.size() == 3) {
    if (EqualsIgnoreCase(arguments[2], "reset")) {
      log.Clear();
      return context.reply.Ok();
    }
    if (!ParseRespInteger(arguments[2], &count)) return context.reply.Error(kNoInteger);
  }
  const std::vector<AclLog::Entry> entries =
      log.Newest(static_cast<size_t>(std::max<int64_t>(0, count)));
  const int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                             std::chrono::system_clock::now().time_since_epoch())
                             .count();
  context.reply.Array(entries.size());
  for (const AclLog::Entry& entry : entries) ReplyEntry(context.reply, entry, now_ms);
}

// In the words of Redis 7.0.
std::string DryRunText(const Denial& denial) {
  const std::string begin = "This user has no permissions to ";
  switch (denial.reason) {
    case DenialReason::kCommand:
      return fmt::format("{}run the '{}' command", begin, denial.object);
    case DenialReason::kKey:
      if (denial.argument == 0) return begin + "access all keys, which the command needs";
      if (denial.is_range)
        return fmt::format("{}{} every key in the range {}", begin,
                           denial.is_read ? "read" : "write", denial.object);
      return fmt::format("{}access the '{}' key", begin, denial.object);
    case DenialReason::kChannel:
      return fmt::format("{}access the '{}' channel", begin, denial.object);
    case DenialReason::kDatabase:
      break;
  }
  return fmt::format("{}access the {}", begin, denial.object);
}

// Returns why the user may not execute the request where the client works. Nothing: it may.
std::optional<Denial> DenialOf(CommandContext& context, const User& user, const Command& command,
                               Arguments request) {
  if (user.unrestricted) return std::nullopt;
  return FindDenial(Users(context).catalog(), user, command, request,
                    PlaceOfClient(context.client));
}

void DryRun(CommandContext& context, Arguments arguments) {
  const UserPointer user = Users(context).Find(arguments[2]);
  if (user == nullptr) {
    return context.reply.Error(fmt::format("ERR User '{}' not found", ShownInError(arguments[2])));
  }
  const Arguments request = arguments.subspan(3);
  const Command* const command = FindCommand(request[0]);
  const Subcommand* const subcommand =
      command != nullptr ? FindSubcommand(*command, request) : nullptr;
  const bool unknown = command == nullptr || (subcommand == nullptr && request.size() > 1 &&
                                              (command->flags & kContainerCommand) != 0);
  if (unknown) {
    return context.reply.Error(fmt::format("ERR Command '{}' not found", ShownInError(request[0])));
  }
  const bool takes = subcommand != nullptr ? ArityMatches(subcommand->arity, request.size())
                                           : TakesArguments(*command, request);
  if (!takes && subcommand != nullptr) return ReplyWrongArity(context, subcommand->name);
  if (!takes) return ReplyWrongArguments(context, *command, request);
  std::optional<Denial> denial = DenialOf(context, *user, *command, request);
  if (!denial && TakesPastRequest(*command)) {
    // The rights hold for what stands behind AT, too.
    const std::optional<PastRequest> past = TakePastRequest(context, request);
    if (!past) return;
    denial = DenialOf(context, *user, *past->command, past->arguments);
  }
  if (!denial) return context.reply.Ok();
  context.reply.Bulk(DryRunText(*denial));
}

// --- The file of users ---------------------------------------------------------------------------

void LoadUsers(CommandContext& context) {
  const std::vector<UserPointer> before = Users(context).All();
  const absl::Status loaded = context.server.clients.acl_file.Load(&Users(context));
  if (!loaded.ok()) {
    return context.reply.Error(Message(loaded) +
                               " WARNING: ACL errors detected, no change to the previously active "
                               "ACL rules was performed");
  }
  Clients& clients = context.server.clients;
  CloseConnections(&clients, &context.client,
                   [&](std::string_view name) { return clients.users.Find(name) == nullptr; });
  for (const UserPointer& user : before)
    CloseForbiddenListeners(&clients, &context.client, user->name);
  context.reply.Ok();
}

void SaveUsers(CommandContext& context) {
  const absl::Status saved = context.server.clients.acl_file.Save(Users(context));
  if (saved.ok()) return context.reply.Ok();
  spdlog::error("ACL SAVE: the file of users stays as it is: {}", saved.ToString());
  context.reply.Error("ERR There was an error trying to save the ACLs: " +
                      Message(saved).substr(4));
}

void LoadOrSave(CommandContext& context, bool loads) {
  if (!context.server.clients.acl_file.named()) {
    return context.reply.Error(
        "ERR This Redis instance is not configured to use an ACL file. Name one with the setting "
        "aclfile.");
  }
  loads ? LoadUsers(context) : SaveUsers(context);
}

void HandleAcl(CommandContext& context, Arguments arguments) {
  const Subcommand* const subcommand = TakeSubcommand(context, arguments);
  if (subcommand == nullptr) return;
  const std::string_view what = subcommand->word();
  if (what == "setuser") return SetUser(context, arguments);
  if (what == "deluser") return DeleteUsers(context, arguments.subspan(2));
  if (what == "getuser") return GetUser(context, arguments[2]);
  if (what == "list" || what == "users") return ListUsers(context, what == "list");
  if (what == "cat") return ListCategory(context, arguments);
  if (what == "genpass") return GeneratePassword(context, arguments);
  if (what == "log") return ShowLog(context, arguments);
  if (what == "dryrun") return DryRun(context, arguments);
  if (what == "load" || what == "save") return LoadOrSave(context, what == "load");
  context.reply.Bulk(context.client.user_name);  // whoami
}

constexpr Command kAclRows[] = {
    {.name = "acl",
     .arity = -2,
     .flags = kSlowCommand | kSecretArguments | kContainerCommand,
     .handler = HandleAcl,
     .group = "server",
     .summary = "Shows and changes users and what they may do.",
     .syntax = "CAT | DELUSER | DRYRUN | GENPASS | GETUSER | LIST | LOAD | LOG | SAVE | SETUSER | "
               "USERS | WHOAMI | HELP"},
};

}  // namespace

absl::Span<const Command> AclCommands() { return kAclRows; }

}  // namespace varve
