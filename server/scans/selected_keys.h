// The keys that a reply is about: ranges of them, cut to what the client's user may read.
//
// Thread-safety: plain values; the functions are pure.
// Invariants: the ranges are ascending and disjoint, and none is empty.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/execution/command_context.h"
#include "server/requests/key_range.h"

namespace varve {

struct SelectedKeys {
  // All keys of the range.
  SelectedKeys(KeyRange range);  // NOLINT(google-explicit-constructor)

  std::vector<KeyRange> ranges;
  // A key is meant only if it matches one of the patterns, where there are any.
  std::vector<std::string> patterns;

  // Returns whether a key of the ranges is meant.
  bool Shows(std::string_view key) const;
};

// Returns the keys of the range that the client's user may read. Requires: the request has passed
// the check of rights.
SelectedKeys SelectVisible(const CommandContext& context, Arguments request, KeyRange range);

}  // namespace varve
