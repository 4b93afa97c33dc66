// Every command the server knows: how it is called, what it touches, who handles it. Immutable
// after start, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "server/clients/request_batch.h"
#include "server/execution/command_context.h"

namespace varve {

enum CommandFlags : uint32_t {
  kNoCommandFlags = 0,
  kWriteCommand = 1,
  kReadCommand = 2,
  kFastCommand = 4,
  kAdminCommand = 8,
  kSlowCommand = 16,         // may take long: never where it was read, unless --execution=inline
  kMaintenanceCommand = 32,  // waits for background work
  kConnectionCommand = 64,
  kSecretArguments = 128,     // not to be shown to others
  kBeforeLoginCommand = 256,  // for clients that have not given the password yet
  kSubscriberCommand = 1024,  // allowed to a RESP2 client that is subscribed
  kPubSubCommand = 2048,
  kContainerCommand = 4096,  // has subcommands, see command_names.h
  kTransactionCommand = 8192,
  kInTransactionCommand = 16384,     // executed at once also between MULTI and EXEC
  kNotInTransactionCommand = 32768,  // refused there
};

// How the executor may treat a request without calling its handler.
enum class CommandKind : uint8_t {
  kOther,
  kGet,  // with one key: consecutive ones are read together
  kSet,  // with key and value alone: consecutive ones are committed together
};

using CommandHandler = void (*)(CommandContext& context, Arguments arguments);

struct Command {
  std::string_view name;  // lower case, at most 16 bytes
  // As in Redis (see TakesArguments): exact number with the name, or, negative, at least so many.
  int arity;
  uint32_t flags;
  int first_key;  // 0: no keys
  int last_key;   // negative: from the end
  int key_step;
  CommandKind kind;
  CommandHandler handler;
  std::string_view group;
  std::string_view summary;
  std::string_view syntax;  // of the arguments
};

// All groups (server/commands/command_groups.h), in alphabetic order.
absl::Span<const Command> AllCommands();

// Where the command stands in AllCommands().
size_t CommandIndex(const Command& command);

// Null when there is none. Upper and lower case are the same.
const Command* FindCommand(std::string_view name);

inline bool ArityMatches(int arity, size_t arguments) {
  return arity >= 0 ? arguments == static_cast<size_t>(arity)
                    : arguments >= static_cast<size_t>(-arity);
}

// Whether the command can be executed with so many. GET has Redis' arity, by which libraries go,
// and takes WITHVERSION as well.
bool TakesArguments(const Command& command, Arguments arguments);

// Keys among `arguments` (the name included).
uint32_t KeyCount(const Command& command, size_t arguments);

// Whether such a request tries a password: AUTH, or HELLO with its AUTH.
bool TriesPassword(const Command& command, size_t arguments);

// ASCII case-insensitive comparison.
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

// The replies to a request that can't be handled, worded as Redis 7 does.
void ReplyUnknownCommand(CommandContext& context, Arguments arguments);
void ReplyWrongArity(CommandContext& context, std::string_view name);
void ReplySyntaxError(CommandContext& context);
// As much as an error text repeats of a command's name that a client sent, as in Redis, and of any
// other word, for which Redis knows no limit.
std::string_view NameInError(std::string_view name);
std::string_view ShownInError(std::string_view text);

}  // namespace varve
