#include "server/access/permissions.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "fmt/format.h"
#include "server/access/visible_keys.h"
#include "server/requests/past_point.h"
#include "server/requests/undelete_request.h"
#include "util/base/assert.h"
#include "util/base/glob.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

// One request beside the catalog's entry for it.
struct Request {
  const CommandCatalog& catalog;
  size_t number;
  Arguments arguments;
  const Place& place;
  bool checks_place;

  const CommandEntry& entry() const { return catalog.entry(number); }
};

Denial Deny(DenialReason reason, std::string_view object, size_t argument) {
  return {reason, std::string(object), argument};
}

bool AllowsKey(const Selector& selector, std::string_view key, KeyRights rights) {
  return std::any_of(selector.keys.begin(), selector.keys.end(), [&](const KeyPattern& pattern) {
    return (pattern.rights & rights) == rights && GlobMatches(pattern.pattern, key);
  });
}

bool AllowsChannelIn(const Selector& selector, std::string_view channel, bool is_pattern) {
  if (selector.all_channels) return true;
  return std::any_of(selector.channels.begin(), selector.channels.end(),
                     [&](const std::string& allowed) {
                       return is_pattern ? allowed == channel : GlobMatches(allowed, channel);
                     });
}

std::optional<Denial> DenyRange(const Selector& selector, const KeyRange& range, std::string shown,
                                size_t argument) {
  if (AllowsRange(selector, range, kMayWrite)) return std::nullopt;
  return Denial{DenialReason::kKey, std::move(shown), argument, /*is_range=*/true};
}

// The keys that UNDELETE names.
std::optional<Denial> DenyUndelete(const Selector& selector, Arguments words) {
  const std::optional<UndeleteRequest> undelete = ParseUndelete(words);
  if (!undelete) return std::nullopt;  // the answer is an error
  if (undelete->is_key) {
    if (AllowsKey(selector, words[1], kMayWrite)) return std::nullopt;
    return Deny(DenialReason::kKey, words[1], 1);
  }
  const bool is_prefix = undelete->words == 3;
  return DenyRange(selector, undelete->range,
                   is_prefix ? std::string(words[2]) : fmt::format("{} {}", words[2], words[3]), 2);
}

// The request reads or writes each key of a range.
std::optional<Denial> DenyWholeRange(const Selector& selector, const Request& request,
                                     KeyRights rights) {
  const bool is_prefix = request.entry().reach == KeyReach::kReadsPrefix ||
                         request.entry().reach == KeyReach::kWritesPrefix;
  const std::string_view first = request.arguments[1];
  const std::optional<KeyRange> range =
      is_prefix ? PrefixRange(first) : ParseKeyRange(first, request.arguments[2]);
  // A wrong bound is an error.
  if (!range || AllowsRange(selector, *range, rights)) return std::nullopt;
  Denial denial = Deny(
      DenialReason::kKey,
      is_prefix ? fmt::format("{}*", first) : fmt::format("{} {}", first, request.arguments[2]), 1);
  denial.is_range = true;
  denial.is_read = rights == kMayRead;
  return denial;
}

// The keys beyond those among the arguments.
std::optional<Denial> DenyReach(const Selector& selector, const Request& request) {
  const Denial all = Deny(DenialReason::kKey, "*", 0);
  switch (request.entry().reach) {
    case KeyReach::kItsKeys:
    case KeyReach::kReadsPart:
      return std::nullopt;
    case KeyReach::kReadsRanges:
      return ReadsWholeRanges(selector) ? std::nullopt : std::optional(all);
    case KeyReach::kReadsAll:
      return AllowsEveryKey(selector, kMayRead) ? std::nullopt : std::optional(all);
    case KeyReach::kWritesAll:
      return AllowsEveryKey(selector, kMayBoth) ? std::nullopt : std::optional(all);
    case KeyReach::kWritesNamed:
      return DenyUndelete(selector, request.arguments);
    case KeyReach::kReadsRange:
    case KeyReach::kReadsPrefix:
      return DenyWholeRange(selector, request, kMayRead);
    case KeyReach::kWritesRange:
    case KeyReach::kWritesPrefix:
      break;
  }
  return DenyWholeRange(selector, request, kMayWrite);
}

std::optional<Denial> DenyKeys(const Selector& selector, const Request& request) {
  if (selector.all_keys) return std::nullopt;
  const CommandEntry& entry = request.entry();
  const size_t count = request.arguments.size();
  for (const KeyUse& use : entry.keys) {
    const KeyRights rights =
        use.varies ? request.catalog.rights_of()(*entry.command, request.arguments) : use.rights;
    const size_t last = use.last < 0 ? count - static_cast<size_t>(-use.last)
                                     : use.first + static_cast<size_t>(use.last);
    VARVE_ASSERT(use.step > 0);
    for (size_t i = use.first; i <= last && i < count; i += use.step) {
      if (!AllowsKey(selector, request.arguments[i], rights))
        return Deny(DenialReason::kKey, request.arguments[i], i);
    }
  }
  return DenyReach(selector, request);
}

std::optional<Denial> DenyChannels(const Selector& selector, const Request& request) {
  const ChannelUse use = request.entry().channels;
  if (use == ChannelUse::kNone || selector.all_channels) return std::nullopt;
  const size_t end = use == ChannelUse::kFirst ? 2 : request.arguments.size();
  for (size_t i = 1; i < end; ++i) {
    if (!AllowsChannelIn(selector, request.arguments[i], use == ChannelUse::kAllPatterns))
      return Deny(DenialReason::kChannel, request.arguments[i], i);
  }
  return std::nullopt;
}

// A word that names a database by its number, or a namespace. A number that no database can have
// is the name of a namespace that does not exist.
Place PlaceOf(std::string_view word) {
  Place place;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  const bool is_number = error == std::errc() && end == word.data() + word.size();
  if (is_number) {
    place.database = number;
  } else {
    place.name = word.empty() ? std::string_view(" ") : word;
  }
  return place;
}

std::optional<Denial> DenyPlace(const Selector& selector, std::string_view word, size_t argument) {
  const Place place = PlaceOf(word);
  if (AllowsPlace(selector, place)) return std::nullopt;
  return Deny(DenialReason::kDatabase, PlaceText(place), argument);
}

// The places that the request names.
std::optional<Denial> DenyNamedPlaces(const Selector& selector, const Request& request) {
  const Arguments& words = request.arguments;
  const auto check = [&](size_t first, size_t last) -> std::optional<Denial> {
    for (size_t i = first; i <= last && i < words.size(); ++i) {
      if (std::optional<Denial> denial = DenyPlace(selector, words[i], i)) return denial;
    }
    return std::nullopt;
  };
  switch (request.entry().places) {
    case PlaceUse::kNone:
      return std::nullopt;
    case PlaceUse::kDatabaseFirst:
      return check(1, 1);
    case PlaceUse::kDatabaseSecond:
    case PlaceUse::kPlaceName:
      return check(2, 2);
    case PlaceUse::kDatabasesBoth:
      return check(1, 2);
    case PlaceUse::kPlaceNames:
      return check(2, 3);
    case PlaceUse::kComparedPlaces: {
      const size_t second = 1 + CountStateWords(words.subspan(1));
      if (std::optional<Denial> denial = check(1, 1)) return denial;
      return check(second, second);
    }
    case PlaceUse::kDatabaseOption:
      for (size_t i = 3; i + 1 < words.size(); ++i) {
        if (!EqualsIgnoreCase(words[i], "db")) continue;
        if (std::optional<Denial> denial = check(i + 1, i + 1)) return denial;
      }
      return std::nullopt;
    case PlaceUse::kAllDatabases:
      if (selector.databases.all) return std::nullopt;
      return Deny(DenialReason::kDatabase, "databases", 0);
    case PlaceUse::kAllPlaces:
      return Deny(DenialReason::kDatabase, "databases and namespaces", 0);
  }
  return std::nullopt;
}

std::optional<Denial> DenyPlaces(const Selector& selector, const Request& request) {
  if (selector.all_places()) return std::nullopt;
  const bool here = request.entry().works_in_place && request.checks_place;
  if (here && !AllowsPlace(selector, request.place))
    return Deny(DenialReason::kDatabase, PlaceText(request.place), 0);
  return DenyNamedPlaces(selector, request);
}

std::optional<Denial> DenyIn(const Selector& selector, const Request& request) {
  const bool login = (request.entry().command->flags & kBeforeLoginCommand) != 0;
  if (!login && !AllowsCommand(request.catalog, selector, request.number, request.arguments))
    return Deny(DenialReason::kCommand, request.entry().name, 0);
  if (std::optional<Denial> denial = DenyKeys(selector, request)) return denial;
  if (std::optional<Denial> denial = DenyPlaces(selector, request)) return denial;
  return DenyChannels(selector, request);
}

}  // namespace

std::string PlaceText(const Place& place) {
  return place.name.empty() ? fmt::format("database '{}'", place.database)
                            : fmt::format("namespace '{}'", place.name);
}

bool SelectorAllows(const CommandCatalog& catalog, const Selector& selector, const Command& command,
                    Arguments request, const Place& place) {
  return !DenyIn(selector, {catalog, catalog.NumberOf(command, request), request, place, true});
}

bool AllowsCommand(const CommandCatalog& catalog, const Selector& selector, size_t number,
                   Arguments request) {
  VARVE_ASSERT(number < selector.commands.size());
  if (selector.all_commands || selector.commands[number]) return true;
  const auto allowed = selector.first_arguments.find(number);
  if (allowed == selector.first_arguments.end() || request.size() < 2) return false;
  return std::any_of(
      allowed->second.begin(), allowed->second.end(),
      [&](const std::string& argument) { return EqualsIgnoreCase(argument, request[1]); });
}

bool AllowsPlace(const Selector& selector, const Place& place) {
  const PlaceRights& rights = place.name.empty() ? selector.databases : selector.namespaces;
  if (rights.all) return true;
  const std::string number = fmt::to_string(place.database);
  return std::any_of(rights.names.begin(), rights.names.end(), [&](const std::string& allowed) {
    return place.name.empty() ? allowed == number : GlobMatches(allowed, place.name);
  });
}

bool MayUsePlace(const User& user, const Place& place) {
  const auto allows = [&](const Selector& selector) { return AllowsPlace(selector, place); };
  return allows(user.root) || std::any_of(user.selectors.begin(), user.selectors.end(), allows);
}

bool AllowsEveryKey(const Selector& selector, KeyRights rights) {
  if (selector.all_keys) return true;
  return std::any_of(selector.keys.begin(), selector.keys.end(), [&](const KeyPattern& pattern) {
    return pattern.pattern == "*" && (pattern.rights & rights) == rights;
  });
}

bool MayReadKey(const User& user, std::string_view key, const Place& place) {
  const auto allows = [&](const Selector& selector) {
    return AllowsPlace(selector, place) &&
           (selector.all_keys || AllowsKey(selector, key, kMayRead));
  };
  return allows(user.root) || std::any_of(user.selectors.begin(), user.selectors.end(), allows);
}

bool MayWriteKey(const User& user, std::string_view key, const Place& place) {
  const auto allows = [&](const Selector& selector) {
    return AllowsPlace(selector, place) &&
           (selector.all_keys || AllowsKey(selector, key, kMayWrite));
  };
  return allows(user.root) || std::any_of(user.selectors.begin(), user.selectors.end(), allows);
}

bool MayWriteRange(const User& user, const KeyRange& range, const Place& place) {
  const auto allows = [&](const Selector& selector) {
    return AllowsPlace(selector, place) && AllowsRange(selector, range, kMayWrite);
  };
  return allows(user.root) || std::any_of(user.selectors.begin(), user.selectors.end(), allows);
}

bool AllowsChannel(const User& user, std::string_view channel, bool is_pattern) {
  const auto allows = [&](const Selector& selector) {
    return AllowsChannelIn(selector, channel, is_pattern);
  };
  return allows(user.root) || std::any_of(user.selectors.begin(), user.selectors.end(), allows);
}

std::optional<Denial> FindDenial(const CommandCatalog& catalog, const User& user,
                                 const Command& command, Arguments request, const Place& place,
                                 CheckPlace check_place) {
  VARVE_ASSERT(!request.empty());
  const Request checked = {catalog, catalog.NumberOf(command, request), request, place,
                           check_place == CheckPlace::kYes};
  std::optional<Denial> denial = DenyIn(user.root, checked);
  if (!denial) return std::nullopt;
  for (const Selector& selector : user.selectors) {
    std::optional<Denial> other = DenyIn(selector, checked);
    if (!other) return std::nullopt;
    // As in Redis, the denial that went furthest is told.
    const auto rank = [](const Denial& one) { return std::pair(one.reason, one.argument); };
    if (rank(*denial) < rank(*other)) denial = std::move(other);
  }
  return denial;
}

}  // namespace varve
