// The checks that a request passes before its command executes, and the replies to a request that
// does not pass them, worded as Redis 7 words them. The replies to unknown names end with the name
// that the client most likely meant.
//
// Thread-safety: the thread that executes for the connection calls these functions.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "server/execution/command_context.h"
#include "server/requests/command.h"

namespace varve {

// Returns true, and has answered the error, if a mode of the client forbids the command.
[[nodiscard]] bool RefusedByModes(CommandContext& context, const Command& command,
                                  Arguments arguments);

// The reply to a write where the server follows another one, in Redis' words.
inline constexpr std::string_view kReadOnlyReplica =
    "READONLY You can't write against a read only replica.";
// The reply to a command that would make the data more than `maxmemory`, in Redis' words.
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
// Returns whether RefusedByBounds() may answer something; costs a few loads.
inline bool MayRefuseByBounds(const ServerState& server) {
  return server.live.max_memory.load(std::memory_order_relaxed) != 0 ||
         (server.disk != nullptr && server.disk->IsTight());
}
// Returns true if the store holds more than `maxmemory`, or the data directory nearly as much as
// `max-disk-bytes` allows, and the command adds data, and has answered the error. Between MULTI and
// EXEC only the commands that end the transaction are allowed then. Where the keys may have to be
// counted for the command, or room made, an I/O thread moves it to the pool and returns true.
[[nodiscard]] bool RefusedByBounds(CommandContext& context, const Command& command,
                                   Arguments arguments);

// The wait of a batch for room on the disk, where evictions and merges may make some: its first
// request that adds data waits in its session for up to a second, and no thread waits with it.
class RoomWait {
 public:
  // A new batch begins.
  void Reset() { *this = RoomWait(); }
  // Returns whether the request waits now, and notes that.
  bool HoldsUp(ServerState& server, const ClientState& client, const RequestBatch& batch,
               const RequestBatch::Request& request) {
    holds_ = false;
    return server.disk != nullptr && server.disk->IsTight() &&
           HoldsUpTight(server, client, batch, request);
  }
  // Returns whether it held up the last request that it was asked about.
  bool holds() const { return holds_; }
  // Returns how long the request waits before it looks again.
  std::chrono::milliseconds Left() const;

 private:
  bool HoldsUpTight(ServerState& server, const ClientState& client, const RequestBatch& batch,
                    const RequestBatch::Request& request);

  std::optional<std::chrono::steady_clock::time_point> until_;
  bool holds_ = false;
};

// Return the error with which the server answers writes of clients at present, and commands that
// need what its primary has written, in Redis' words; empty: it executes them.
std::string_view WriteRefusal(const ServerState& server);
std::string_view StaleRefusal(const ServerState& server);
// Returns whether one of them may answer something; costs two loads.
inline bool MayRefuseForReplication(const ServerState& server) {
  return server.replication.follows() ||
         server.live.min_followers.load(std::memory_order_relaxed) != 0;
}
// Returns true, and has answered the error, if one of them concerns the request.
[[nodiscard]] bool RefusedForReplication(CommandContext& context, const Command& command,
                                         Arguments arguments);

// Returns whether the request may ask the store for what lies on other machines, where the store
// does (StoreCapabilities::remote). What is queued for EXEC asks nothing, nor does what no command
// takes. `command` is null for an unknown one.
bool AsksStore(const ClientState& client, const Command* command, Arguments arguments);

// Returns whether a store on other machines may be asked for the request together with others, for
// which no thread waits (server/remote/remote_run.h): GET, MGET, EXISTS, SET without options, the
// deletion of keys, RANGE and PREFIX, where no mode of the client or of the server concerns each by
// itself, and the client's user may execute it.
bool IsAskedTogether(const ServerState& server, const ClientState& client,
                     const RequestBatch& batch, const RequestBatch::Request& request);

// Returns whether a pause of that kind holds the request up. CLIENT UNPAUSE is never held up, nor
// is what no command takes: its error is told at once.
bool IsHeldUp(const ClientState& client, ClientPause::Kind pause, const Command* command,
              Arguments arguments);

// Returns whether the request names a subcommand of `command` that exists, with a number of
// arguments that fits, or no subcommand at all. If not, the error has been answered.
// Requires: `command` is a container.
[[nodiscard]] bool AcceptsSubcommand(CommandContext& context, const Command& command,
                                     Arguments arguments);

void ReplyUnknownCommand(CommandContext& context, Arguments arguments);
void ReplyWrongArity(CommandContext& context, std::string_view name);
// Answers why the request does not fit the command: by the number of its arguments, or by what
// stands behind AT.
// Requires: TakesArguments() returns false.
void ReplyWrongArguments(CommandContext& context, const Command& command, Arguments arguments);
void ReplySyntaxError(CommandContext& context);

// Returns the part of a command's name, sent by a client, that an error text repeats. The length is
// that of Redis.
std::string_view NameInError(std::string_view name);
// Returns the part of any other word that an error text repeats. Redis knows no limit for it.
std::string_view ShownInError(std::string_view text);

}  // namespace varve
