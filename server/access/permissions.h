// The check of one request against the rights of a user.
//
// Thread-safety: the functions are pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "server/access/command_catalog.h"
#include "server/access/user.h"
#include "server/requests/key_range.h"

namespace varve {

// A place is where a request works: a database, or a named namespace.
struct Place {
  uint32_t database = 0;
  std::string_view name = {};  // of the namespace; empty: the database
};

// The later reasons outweigh the earlier ones where selectors deny for several.
enum class DenialReason : uint8_t { kCommand, kKey, kDatabase, kChannel };

struct Denial {
  DenialReason reason = DenialReason::kCommand;
  std::string object;     // the command's full name, the key, the channel, or the place
  size_t argument = 0;    // its position among the arguments
  bool is_range = false;  // `object` is the bounds of a range of keys, or a prefix with a star
  bool is_read = false;   // of the range, rather than written
};

// How much of a request is checked.
enum class CheckPlace : uint8_t { kYes, kNo };

// Returns why the user may not execute the request. Nothing: it may. Requires: the number of
// arguments fits the command.
std::optional<Denial> FindDenial(const CommandCatalog& catalog, const User& user,
                                 const Command& command, Arguments request, const Place& place,
                                 CheckPlace check_place = CheckPlace::kYes);

// Returns whether the selector allows the command of that number with its first argument.
bool AllowsCommand(const CommandCatalog& catalog, const Selector& selector, size_t number,
                   Arguments request);
// Returns whether the selector allows the request; the place is checked, too.
bool SelectorAllows(const CommandCatalog& catalog, const Selector& selector, const Command& command,
                    Arguments request, const Place& place);
bool AllowsPlace(const Selector& selector, const Place& place);
// Returns whether a selector of the user allows the place.
bool MayUsePlace(const User& user, const Place& place);
// Returns whether the selector allows all of `rights` on every key.
bool AllowsEveryKey(const Selector& selector, KeyRights rights);
// Returns whether a selector of the user allows to read the key at that place.
bool MayReadKey(const User& user, std::string_view key, const Place& place);
// Return whether a selector of the user allows to write the key, or every key of the range, at that
// place.
bool MayWriteKey(const User& user, std::string_view key, const Place& place);
bool MayWriteRange(const User& user, const KeyRange& range, const Place& place);
// Returns whether a selector of the user allows to listen to the channel, or, literally, to the
// pattern.
bool AllowsChannel(const User& user, std::string_view channel, bool is_pattern);

// Returns "database '3'" or "namespace 'app'".
std::string PlaceText(const Place& place);

}  // namespace varve
