// A user: how it logs in, and what it may do. Its rights are one or more selectors; a request is
// allowed if one selector allows all of it.
//
// Thread-safety: a published user does not change; a change of rights publishes another one.
// Invariants: a selector's bits are as many as the catalog has entries; a user without passwords
// that is not `nopass` can't log in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "server/access/command_catalog.h"
#include "server/access/user_limits.h"

namespace varve {

struct KeyPattern {
  std::string pattern;
  KeyRights rights = kMayBoth;
  bool operator==(const KeyPattern&) const = default;
};

// Which databases, or which named namespaces, a selector allows to work in.
struct PlaceRights {
  bool all = true;
  bool given = false;              // a rule named some, or all
  std::vector<std::string> names;  // numbers of databases, or patterns of namespaces
};

struct CommandRule {
  bool allows = false;
  std::string name;  // "get", "config|get", "@read"
};

struct Selector {
  bool all_commands = false;
  bool later_commands = false;  // also those that a later version brings
  bool all_keys = false;
  bool all_channels = false;
  std::vector<bool> commands;  // by number in the catalog
  // First arguments with which a command is allowed that is not allowed otherwise, by its number.
  std::map<size_t, std::vector<std::string>> first_arguments;
  std::vector<CommandRule> rules;  // what ACL LIST shows behind +@all or -@all
  std::vector<KeyPattern> keys;
  std::vector<std::string> channels;
  PlaceRights databases;
  PlaceRights namespaces;

  bool all_places() const { return databases.all && namespaces.all; }
};

struct User {
  std::string name;
  // Tells a user from another one that later has the same name.
  uint64_t identity = 0;
  bool on = false;
  bool nopass = false;
  // Accepted and shown as in Redis; the store has no payloads to sanitize.
  enum class Payload : uint8_t { kUnsaid, kSanitize, kSkip } payload = Payload::kUnsaid;
  std::vector<std::string> passwords;  // SHA-256 in hexadecimal
  UserLimits limits;
  UserSeats seats = std::make_shared<std::atomic<uint32_t>>(0);
  Selector root;
  std::vector<Selector> selectors;
  bool unrestricted = false;  // one of the selectors allows everything
};

// Returns whether the selector allows everything.
bool AllowsAll(const Selector& selector);

// Returns the selector's rules as ACL LIST writes them: "~app:* resetchannels -@all +get".
std::string DescribeSelector(const Selector& selector);
// Returns the parts of that: "-@all +get", "~app:*", "&news", "resetdbs db=0".
std::string DescribeCommands(const Selector& selector);
std::string DescribeKeys(const Selector& selector);
std::string DescribeChannels(const Selector& selector);
std::string DescribePlaces(const Selector& selector);

// Returns the line of ACL LIST and of the file of users, "user alice on ...".
std::string DescribeUser(const User& user);
// Returns the words of the flags: "on", "nopass".
std::vector<std::string> FlagsOf(const User& user);

}  // namespace varve
