// The needs of commands say what they need of the store, and what becomes of them on a store that
// does not provide it (StoreCapabilities). The table here is the only source: requests are refused
// by it, COMMAND DOCS and docs/scale.md show it. The embedded engine provides everything.
//
// Thread-safety: one thread at a time uses a context; the store answers locally.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "server/clients/client_transaction.h"
#include "server/execution/command_context.h"
#include "server/requests/command.h"

namespace varve {

enum class StoreNeed : uint8_t {
  kAnyKeys,      // any keys are committed together
  kSnapshots,    // one moment of all keys can be read
  kRangeDelete,  // a range is deleted in one step
  kClone,
  kExactCounts,
  kSizeEstimates,
  kQuotas,
  kHistory,
  kSwaps,
  kOwnFiles,  // the data lies in files of this server
};
inline constexpr size_t kStoreNeeds = 10;

// A command does this on a store that doesn't meet its need.
enum class WithoutNeed : uint8_t {
  kRefused,
  kOneGroup,      // refused unless its keys are of one group (varve/key_group.h)
  kGroupByGroup,  // it goes on group by group
  kInParts,       // it reads each part of the keys at a moment of its own
  kInSlices,      // it deletes in slices; inside MULTI it is refused
  kReads,         // it reads all keys to count them
  kReadsIfAsked,  // INFO: it leaves out what takes a read of all keys, unless asked for it
  kReadsSizes,    // with WITHSIZES, it reads all keys below the names that it shows
  kNoValueSizes,  // it leaves out what values take
  kQuotaOptions,  // the options of a namespace that need it are refused
  kKeepOptions,
  kFileOptions,
  kLeftToStore,  // it answers OK, and the machines of the store do by themselves what it asks for
};

struct CommandNeed {
  std::string_view command;  // its full name: "namespace|clone"
  StoreNeed need;
  WithoutNeed without;
};

// Ascending by command.
absl::Span<const CommandNeed> CommandNeeds();
// Returns the needs of the command, or subcommand, of this full name.
absl::Span<const CommandNeed> NeedsOf(std::string_view command);
// Return the words that people see: "snapshots", and "refused".
std::string_view NameOf(StoreNeed need);
std::string_view DescriptionOf(StoreNeed need);
std::string_view DescriptionOf(WithoutNeed without);
// Returns what is said of a store that does not meet the need.
std::string LackOf(StoreNeed need);

bool Meets(const StoreCapabilities& capabilities, StoreNeed need);
inline bool MeetsAll(const StoreCapabilities& capabilities) {
  return capabilities.atomicity == StoreCapabilities::Atomicity::kAnyKeys &&
         capabilities.snapshots && capabilities.constant_time_range_delete &&
         capabilities.constant_time_clone && capabilities.exact_counts &&
         capabilities.size_estimates && capabilities.quotas && capabilities.history &&
         capabilities.swaps && !capabilities.remote;
}

// Returns whether the server's store meets the need. If not, the command was answered with an error
// that names the need, and has to end.
[[nodiscard]] bool StoreMeets(CommandContext& context, StoreNeed need);

// Returns true, and has answered the error, if the table refuses the request. One that is to wait
// for EXEC is refused where it would be inside a transaction.
[[nodiscard]] bool RefusedByStore(CommandContext& context, const Command& command,
                                  Arguments arguments);

// --- Groups of keys ------------------------------------------------------------------------------
// Requests that would write keys of several groups as one step (varve/key_group.h) are refused by
// their keys, before anything is read or written. What their keys don't tell, the store refuses at
// the commit with the same words.

// Returns whether the command writes several keys as one step, by its row.
inline bool WritesTogether(const Command& command) {
  return (command.flags & (kWriteCommand | kKeyByKeyCommand)) == kWriteCommand &&
         command.keys.first != 0 && command.keys.last != command.keys.first;
}

// Each returns true if the keys are not of one group, and then has answered CROSSGROUP with the
// reason and what to do.
// The keys of a request that WritesTogether().
[[nodiscard]] bool RefusedAcrossGroups(CommandContext& context, const Command& command,
                                       Arguments arguments);
// Two keys, which may be in two namespaces.
[[nodiscard]] bool RefusedAcrossGroups(CommandContext& context, std::string_view source,
                                       NamespaceId space, std::string_view target);
// All that EXEC would read and write, if it would write or something is watched. A database that
// the transaction selects counts from there on.
[[nodiscard]] bool RefusedAcrossGroups(CommandContext& context,
                                       const ClientTransaction& transaction);

// --- Machines that do not answer -----------------------------------------------------------------
// Returns whether a key of the request, or of what EXEC would execute, is away
// (StoreReads::IsAway). Of a RANGE or PREFIX it is the key where the answer begins.
bool AsksWhatIsAway(const ServerState& server, const ClientState& client, const Command& command,
                    Arguments arguments);

}  // namespace varve
