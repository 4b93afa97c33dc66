// The table of what a follower of Redis does with each command of the replication stream. Commands
// on strings are executed as they are, or with a step before them that keeps the two stores the
// same where the key in question may be of another type in Redis. Those on other types are not.
//
// Thread-safety: the functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/requests/request_batch.h"

namespace varve {

enum class StreamAction : uint8_t {
  kExecute,     // as it is
  kEverywhere,  // as it is, whatever database is in use: FLUSHALL
  kReplace,     // the destination goes first, as the source may be no string: RENAME, COPY
  kSetMany,     // MSETEX: several SETs with the same options
  kDelete,      // it was executed, so the key goes: DELIFEQ
  kRestore,     // RESTORE, whose value may be of any type
  kOverwrite,   // the result is no string: what the destination held goes
  kForget,      // it changes a string in a way that is not known here, so the string goes
  kSkip,        // it is about another type
  kIgnore,      // it changes nothing: PING
  kSelect,
  kMulti,
  kExec,
  kReplication,  // REPLCONF
};

struct StreamCommand {
  StreamAction action = StreamAction::kSkip;
  // kOverwrite, kForget and kSkip name the type that the command works on. Empty: it is not known.
  std::string_view type = {};
};

// Returns what becomes of a command of that name, in upper or lower case.
StreamCommand FindStreamCommand(std::string_view name);

// The key that is replaced, overwritten or forgotten. Nothing: there is none.
struct StreamTarget {
  std::string_view key;
  std::string_view database;  // its number, where it is not the one in use
};
// Requires: the command's action is kReplace, kOverwrite, kForget, kDelete or kRestore.
std::optional<StreamTarget> TargetOf(Arguments arguments);

// Returns the type of the value that a RESTORE brings: "string", "hash"; empty: it is not known.
std::string_view RestoredType(Arguments arguments);

// The parts of an MSETEX: keys with values, in turn, and the options of each SET. No keys: it is
// none that is known.
struct SetMany {
  Arguments pairs;
  Arguments options;
};
SetMany PartsOfSetMany(Arguments arguments);

}  // namespace varve
