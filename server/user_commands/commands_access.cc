// Who the client is, and how it speaks: AUTH, HELLO.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "fmt/format.h"
#include "server/clients/client_login.h"
#include "server/clients/client_name.h"
#include "server/commands/command_groups.h"
#include "server/commands/command_table.h"
#include "server/commands/server_info.h"
#include "server/execution/rights_check.h"
#include "spdlog/spdlog.h"
#include "type/version.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

// How long the answer to a wrong password takes: doubled with each that follows on the connection.
constexpr std::chrono::milliseconds kFirstPenalty{100};
constexpr std::chrono::milliseconds kLongestPenalty{3200};

// False: the error was answered. After a wrong password it will leave late.
bool LogIn(CommandContext& context, std::string_view verb, std::string_view name,
           std::string_view password) {
  ClientState& client = context.client;
  if (UserPointer user = context.server.clients.users.LogIn(name, password); user != nullptr) {
    const absl::Status become = BecomeUser(&client, std::move(user));
    if (become.ok()) {
      // The messages of a tracker that gets those of prefixes are those of its new user from now
      // on, and not only from its next read.
      const TrackingMode& tracking = client.modes.tracking;
      if (tracking.on && tracking.broadcast) context.server.clients.tracking.NotePlace(&client);
      return true;
    }
    NoteFailedLogin(context, verb, name);
    context.reply.Error(std::string(become.message()));
    return false;
  }
  NoteFailedLogin(context, verb, name);
  context.server.statistics.failed_logins.fetch_add(1, std::memory_order_relaxed);
  const LoginGuard::Report report =
      context.server.clients.login_guard.Failed(client.address, std::chrono::steady_clock::now());
  if (report == LoginGuard::Report::kFirst)
    spdlog::warn("A client at {} gave a wrong password", client.address);
  if (report == LoginGuard::Report::kMany) {
    spdlog::warn(
        "Clients at {} give many wrong passwords: passwords from there are looked at after {} ms "
        "from now on",
        client.address, LoginGuard::kDelay.count());
  }
  client.penalty =
      std::min(kFirstPenalty * (1 << std::min(client.failed_logins, 10u)), kLongestPenalty);
  ++client.failed_logins;
  context.reply.Error("WRONGPASS invalid username-password pair or user is disabled.");
  return false;
}

void HandleAuth(CommandContext& context, Arguments arguments) {
  if (arguments.size() > 3) return ReplySyntaxError(context);
  if (arguments.size() == 2 && context.server.clients.users.default_nopass()) {
    return context.reply.Error(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your "
        "configuration is correct?");
  }
  const std::string_view user = arguments.size() == 3 ? arguments[1] : "default";
  if (LogIn(context, arguments[0], user, arguments.back())) context.reply.Ok();
}

struct HelloOptions {
  int64_t protocol;
  bool logs_in = false;
  std::string_view user;
  std::string_view password;
  bool names = false;
  std::string_view name;
};

// False: the error was answered.
bool ParseHello(CommandContext& context, Arguments arguments, HelloOptions* options) {
  options->protocol = context.client.protocol;
  if (arguments.size() > 1) {
    if (!ParseRespInteger(arguments[1], &options->protocol)) {
      context.reply.Error("ERR Protocol version is not an integer or out of range");
      return false;
    }
    if (options->protocol != 2 && options->protocol != 3) {
      context.reply.Error("NOPROTO unsupported protocol version");
      return false;
    }
  }
  for (size_t i = 2; i < arguments.size(); ++i) {
    if (EqualsIgnoreCase(arguments[i], "auth") && i + 2 < arguments.size()) {
      options->logs_in = true;
      options->user = arguments[i + 1];
      options->password = arguments[i + 2];
      i += 2;
    } else if (EqualsIgnoreCase(arguments[i], "setname") && i + 1 < arguments.size()) {
      options->names = true;
      options->name = arguments[++i];
    } else {
      context.reply.Error(
          fmt::format("ERR Syntax error in HELLO option '{}'", ShownInError(arguments[i])));
      return false;
    }
  }
  return true;
}

void HandleHello(CommandContext& context, Arguments arguments) {
  HelloOptions options;
  if (!ParseHello(context, arguments, &options)) return;
  ClientState& client = context.client;
  if (options.logs_in && !LogIn(context, arguments[0], options.user, options.password)) return;
  if (MustLogIn(client, context.server.clients.users)) {
    return context.reply.Error(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "AUTH <user> <pass> "
        "option can be used to authenticate the client and select the RESP protocol version at the "
        "same time");
  }
  if (options.names) {
    const absl::Status status = CheckClientName("Client names", options.name);
    if (!status.ok()) return context.Fail(status);
    RenameClient(&client, options.name);
  }
  client.Speak(static_cast<int>(options.protocol));
  context.reply.set_protocol(client.protocol);
  RespWriter& reply = context.reply;
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("varve");
  reply.Bulk("version");
  reply.Bulk(kRedisVersion);
  reply.Bulk("proto");
  reply.Integer(options.protocol);
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(client.id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk(context.server.replication.follows() ? "replica" : "master");
  reply.Bulk("modules");
  reply.Array(0);
}

constexpr uint32_t kFlags = kConnectionCommand | kFastCommand | kBeforeLoginCommand | kLocalCommand;
constexpr Command kAccessRows[] = {
    {.name = "auth",
     .arity = -2,
     .flags = kFlags | kSecretArguments,
     .handler = HandleAuth,
     .group = "connection",
     .summary = "Logs in as a user. The answer to a wrong password is delayed.",
     .syntax = "[username] password",
     .complexity = "O(1)",
     .redis = {.flags = "noscript loading stale allow_busy"}},
    {.name = "hello",
     .arity = -1,
     .flags = kFlags | kSecretArguments,
     .handler = HandleHello,
     .group = "connection",
     .summary = "Chooses the version of the protocol.",
     .syntax = "[2 | 3 [AUTH username password] [SETNAME name]]",
     .complexity = "O(1)",
     .redis = {.flags = "noscript loading stale allow_busy"}},
};

}  // namespace

absl::Span<const Command> AccessCommands() { return kAccessRows; }

}  // namespace varve
