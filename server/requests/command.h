// The description of one command: how a request for it is written, what it touches, and which
// function executes it. The rows of all commands stand in server/commands; a parsed request points
// to its row.
//
// Thread-safety: a Command does not change after the command table was built.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/types/span.h"
#include "server/requests/request_batch.h"

namespace varve {

class CommandContext;

enum CommandFlags : uint32_t {
  kNoCommandFlags = 0,
  kWriteCommand = 1,
  kReadCommand = 2,
  kFastCommand = 4,
  kAdminCommand = 8,
  // The command may take long. It runs on the pool, unless --execution=inline was given.
  kSlowCommand = 16,
  kMaintenanceCommand = 32,  // waits for background work
  kConnectionCommand = 64,
  kSecretArguments = 128,     // the arguments are not shown to other clients
  kBeforeLoginCommand = 256,  // allowed to clients that have not given the password yet
  kSubscriberCommand = 1024,  // allowed to a RESP2 client that is subscribed
  kPubSubCommand = 2048,
  kContainerCommand = 4096,  // has subcommands
  kTransactionCommand = 8192,
  kInTransactionCommand = 16384,     // executed at once also between MULTI and EXEC
  kNotInTransactionCommand = 32768,  // refused between MULTI and EXEC
  // Refused when the store holds more than maxmemory. The command table sets it where Redis says
  // "denyoom"; a subcommand has it in its row.
  kAddsDataCommand = 65536,
  // The request may end with AT and a past point (server/requests/past_point.h).
  kPastCommand = 131072,
  // The command reads what is no part of a past state: AT does not stand in front of it.
  kPresentCommand = 262144,
  // The command asks the store for nothing that lies on other machines where the store does
  // (StoreCapabilities::remote): an I/O thread executes it.
  kLocalCommand = 524288,
  // The keys of a request have nothing to do with each other: where keys have groups
  // (varve/key_group.h) the command goes on group by group.
  kKeyByKeyCommand = 1048576,
};

// How the executor may treat a request without calling its handler.
enum class CommandKind : uint8_t {
  kOther,
  kGet,  // with one key: the executor reads consecutive requests together
  kSet,  // with key and value alone: the executor commits consecutive requests together
  // A store on other machines is asked for the following together with GETs and SETs
  // (server/remote).
  kMGet,
  kExists,
  kDelete,
  kRange,
  kPrefix,
};

// Executes a request. Writes exactly one reply to `context`, or hands over a ReplyStream.
// Requires: `arguments[0]` is the command's name, and their number fits the command's arity.
using CommandHandler = void (*)(CommandContext& context, Arguments arguments);

// The positions of the keys among the arguments, counted from the command's name, which is 0.
struct KeyPositions {
  int first = 0;  // 0: no keys
  int last = 0;   // negative: counted from the end
  int step = 0;
};
inline constexpr KeyPositions kOneKey = {.first = 1, .last = 1, .step = 1};
inline constexpr KeyPositions kAllKeys = {.first = 1, .last = -1, .step = 1};

// The words of Redis that COMMAND INFO tells beyond the rest of the row. Blanks separate them.
struct RedisTraits {
  std::string_view flags = {};       // "denyoom" for a command that makes values longer
  std::string_view tips = {};        // for routers
  std::string_view categories = {};  // beyond those that flags and group tell
  // How the keys are used. Empty: "RW access update" if the command writes, else "RO access".
  std::string_view key_flags = {};
};

// The version of Varve that had commands first: that of every command whose row names no other.
inline constexpr std::string_view kFirstVersion = "0.1.0";

// A row is written with the names of its fields; what it leaves out has the default.
struct Subcommand {
  const char* name = "";  // full and in lower case: "client|list"
  int arity = 0;          // as in Command
  // kReadCommand or kWriteCommand marks the subcommands that use the container's key.
  uint32_t flags = kNoCommandFlags;
  std::string_view summary = {};
  std::string_view syntax = {};  // of what follows the subcommand
  std::string_view since = kFirstVersion;
  RedisTraits redis = {};

  // The name without the container: "list".
  std::string_view word() const {
    return std::string_view(name).substr(std::string_view(name).find('|') + 1);
  }
};

// A row is written with the names of its fields; what it leaves out has the default.
struct Command {
  std::string_view name = {};  // a literal in lower case of at most 16 bytes
  // As in Redis: the exact number of arguments with the name, or, negative, their least number.
  int arity = 0;
  uint32_t flags = kNoCommandFlags;
  KeyPositions keys = {};
  CommandKind kind = CommandKind::kOther;
  CommandHandler handler = nullptr;
  std::string_view group = {};
  std::string_view summary = {};
  std::string_view syntax = {};  // of the arguments
  // How the work grows, where a lookup of a key counts as 1. Empty for a container.
  std::string_view complexity = {};
  std::string_view since = kFirstVersion;
  RedisTraits redis = {};

  // The command table fills in what follows.
  size_t index = 0;  // the command's place in the table
  // In alphabetic order; empty for a command that is no container.
  absl::Span<const Subcommand> subcommands = {};
};

inline bool ArityMatches(int arity, size_t arguments) {
  return arity >= 0 ? arguments == static_cast<size_t>(arity)
                    : arguments >= static_cast<size_t>(-arity);
}

// Returns whether the number of arguments fits the command. GET has the arity that libraries know
// from Redis, and takes WITHVERSION or WITHMETA as well; a command of the past takes AT and a point
// behind its arguments.
bool TakesArguments(const Command& command, Arguments arguments);

// Returns what stands behind the AT of a request that would fit the command without AT and what
// follows it, and does not fit with them. Nothing: the request has another defect.
std::optional<Arguments> WrongPastPoint(const Command& command, Arguments arguments);

// Returns the number of keys among `arguments` arguments, the name included.
uint32_t KeyCount(const Command& command, size_t arguments);

// Returns whether a request with so many arguments tries a password: AUTH, or HELLO with AUTH.
bool TriesPassword(const Command& command, size_t arguments);

// Returns the subcommand that a request for `command` names. Null: it names none that exists.
const Subcommand* FindSubcommand(const Command& command, Arguments arguments);

// Returns the full name "client|list" or "get", which stays valid until the program ends. Where the
// subcommand is unknown it returns the command's name.
const char* FullCommandName(const Command& command, Arguments arguments);

}  // namespace varve
