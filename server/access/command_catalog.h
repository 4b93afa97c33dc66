// The commands and subcommands as rights see them: each has a number, the categories that it
// belongs to, and what it does with which of its arguments. The room of the commands builds the
// catalog from its table; the rights of a user name commands by their numbers.
//
// Thread-safety: a catalog does not change after it was built.
// Invariants: the subcommands of a command have the numbers behind its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "server/requests/command.h"

namespace varve {

// The rights name what a request does with a key, and what a pattern allows to do.
using KeyRights = uint8_t;
inline constexpr KeyRights kMayRead = 1;
inline constexpr KeyRights kMayWrite = 2;
inline constexpr KeyRights kMayBoth = kMayRead | kMayWrite;

// Arguments that are keys and are used alike. `last` is counted from the end where it is negative.
struct KeyUse {
  size_t first = 0;
  int last = 0;
  size_t step = 1;
  KeyRights rights = 0;
  bool varies = false;  // CommandCatalog::rights_of tells what a request does with them
};

enum class ChannelUse : uint8_t { kNone, kFirst, kAll, kAllPatterns };

// The reach says which keys a command reaches beyond those among its arguments.
enum class KeyReach : uint8_t {
  kItsKeys,
  kReadsPart,     // KEYS: shows what the user may read
  kReadsRanges,   // RANGE: the same, where that is ranges of keys
  kReadsRange,    // WATCHRANGE: needs the right to read every key of the range
  kReadsPrefix,   // WATCHPREFIX: needs the right to read every key with the prefix
  kWritesRange,   // DELRANGE: needs the right to write every key of the range
  kWritesPrefix,  // DELPREFIX: needs the right to write every key with the prefix
  kWritesNamed,   // UNDELETE: needs it for the key or for every key of the range that it names
  kReadsAll,      // DBSIZE: needs the right to read all keys
  kWritesAll,     // FLUSHDB: needs the right to write all keys
};

// The places, databases and namespaces, that a request names beside the one in use.
enum class PlaceUse : uint8_t {
  kNone,
  kDatabaseFirst,   // SELECT index
  kDatabaseSecond,  // MOVE key index
  kDatabasesBoth,   // SWAPDB index index
  kDatabaseOption,  // COPY source destination DB index
  kAllDatabases,    // FLUSHALL
  kAllPlaces,       // BACKUP
  kPlaceName,       // NAMESPACE USE name
  kPlaceNames,      // NAMESPACE CLONE source name
  kComparedPlaces,  // DIFF a [AT point] b [AT point]
};

struct CommandEntry {
  std::string_view name;  // full and in lower case
  const Command* command = nullptr;
  const Subcommand* subcommand = nullptr;
  uint32_t categories = 0;  // bit i: kAccessCategories[i]
  std::vector<KeyUse> keys = {};
  ChannelUse channels = ChannelUse::kNone;
  KeyReach reach = KeyReach::kItsKeys;
  PlaceUse places = PlaceUse::kNone;
  bool works_in_place = false;  // it reads or writes in the database or namespace in use
};

// Redis' categories in Redis' order.
inline constexpr std::string_view kAccessCategories[] = {
    "keyspace", "read",   "write",       "set",       "sortedset",  "list",        "hash",
    "string",   "bitmap", "hyperloglog", "geo",       "stream",     "pubsub",      "admin",
    "fast",     "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting"};

// Returns the number of a category, without its @ and in any letter case.
std::optional<size_t> FindCategory(std::string_view name);

class CommandCatalog {
 public:
  using RightsOf = KeyRights (*)(const Command& command, Arguments request);

  // Requires: the entries are in the order of the command table, each command before its
  // subcommands.
  CommandCatalog(std::vector<CommandEntry> entries, RightsOf rights_of);

  size_t size() const { return entries_.size(); }
  size_t command_count() const { return numbers_.size(); }
  const CommandEntry& entry(size_t number) const { return entries_[number]; }
  // Returns the number of a command, or of the subcommand that the request names.
  size_t NumberOf(const Command& command, Arguments request) const;
  // Finds a full name, "get" or "config|get", in any letter case.
  std::optional<size_t> Find(std::string_view name) const;
  // Returns the numbers of the command and of its subcommands; a subcommand's alone.
  absl::Span<const CommandEntry> Family(size_t number) const;
  RightsOf rights_of() const { return rights_of_; }

 private:
  const std::vector<CommandEntry> entries_;
  const RightsOf rights_of_;
  std::vector<size_t> numbers_;  // by Command::index
  absl::flat_hash_map<std::string, size_t> names_;
};

}  // namespace varve
