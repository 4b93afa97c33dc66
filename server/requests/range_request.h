// A request for a range of keys, RANGE or PREFIX, as its arguments say it.
//
// Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/requests/command.h"
#include "server/requests/key_range.h"
#include "server/requests/request_batch.h"
#include "varve/types.h"

namespace varve {

struct RangeOptions {
  bool reverse = false;
  bool keys_only = false;
  bool with_expiry = false;  // with the instant at which each expires
  bool with_version = false;
  bool with_metadata = false;
  SequenceNumber newer_than = kNoSequence;  // keys that were written later
  int64_t offset = 0;                       // negative: nothing
  int64_t limit = -1;                       // negative: all
  std::string_view pattern = "*";           // keys match it; stays in place until the batch is done
};

struct RangeRequest {
  KeyRange range;
  RangeOptions options;
};

// Parse the arguments of a request, its name among them: RANGE min max ..., PREFIX prefix ..., with
// [REV] [LIMIT offset count] [KEYS] [WITHEXPIRY] [WITHVERSION] [WITHMETA] [SINCE version] in any
// order behind it. Return the error that answers the request; empty: `*request` is set.
// Requires: the command takes so many arguments.
std::string_view ParseRangeRequest(Arguments arguments, RangeRequest* request);
std::string_view ParsePrefixRequest(Arguments arguments, RangeRequest* request);
// Parses the arguments as one of the two does. Requires: the kind is kRange or kPrefix.
std::string_view ParseRangeRequestOf(CommandKind kind, Arguments arguments, RangeRequest* request);

}  // namespace varve
