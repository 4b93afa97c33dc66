// The part of the keys that a user may read or write, as ranges in the order of keys: a command on
// ranges seeks to them and shows nothing else.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "server/access/command_catalog.h"
#include "server/access/permissions.h"
#include "server/access/user.h"
#include "server/requests/key_range.h"

namespace varve {

struct VisibleKeys {
  bool all = false;
  std::vector<KeyRange> ranges;  // ascending, without gaps of nothing between them
  // The patterns are there where one is no prefix: a key of the ranges has to match one of them.
  std::vector<std::string> patterns;
};

// Returns the range of the keys that match, if that is a range: the pattern has no star but at its
// end, and nothing else that stands for several bytes.
std::optional<KeyRange> RangeOfPattern(std::string_view pattern);

// Returns the ranges that hold the same keys, ascending and disjoint, those that touch joined.
std::vector<KeyRange> JoinRanges(std::vector<KeyRange> ranges);
// Returns the keys of `range` that are in `ranges` as well, which JoinRanges() has made.
std::vector<KeyRange> CutRanges(const KeyRange& range, absl::Span<const KeyRange> ranges);

// Returns whether each pattern by which the selector allows to read is a range of keys.
bool ReadsWholeRanges(const Selector& selector);
// Returns whether the selector gives the rights to every key in the range.
bool AllowsRange(const Selector& selector, const KeyRange& range, KeyRights rights);

// Returns the keys that the request shows to the user: those of the selectors that allow it.
VisibleKeys FindVisibleKeys(const CommandCatalog& catalog, const User& user, const Command& command,
                            Arguments request, const Place& place);

}  // namespace varve
