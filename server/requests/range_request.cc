#include "server/requests/range_request.h"

#include <optional>
#include <utility>

#include "server/requests/past_point.h"
#include "util/base/letter_case.h"
#include "util/resp/resp_parser.h"

namespace varve {
namespace {

std::string_view ParseRangeOptions(Arguments arguments, RangeOptions* options) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (EqualsIgnoreCase(arguments[i], "rev")) {
      options->reverse = true;
    } else if (EqualsIgnoreCase(arguments[i], "keys")) {
      options->keys_only = true;
    } else if (EqualsIgnoreCase(arguments[i], "withexpiry")) {
      options->with_expiry = true;
    } else if (EqualsIgnoreCase(arguments[i], "withversion")) {
      options->with_version = true;
    } else if (EqualsIgnoreCase(arguments[i], "withmeta")) {
      options->with_metadata = true;
    } else if (EqualsIgnoreCase(arguments[i], "since") && i + 1 < arguments.size()) {
      const std::optional<uint64_t> version = ParseCount(arguments[++i]);
      if (!version) return "ERR SINCE takes a version, which is an integer";
      options->newer_than = *version;
    } else if (EqualsIgnoreCase(arguments[i], "limit") && i + 2 < arguments.size()) {
      if (!ParseRespInteger(arguments[i + 1], &options->offset) ||
          !ParseRespInteger(arguments[i + 2], &options->limit))
        return "ERR value is not an integer or out of range";
      i += 2;
    } else {
      return "ERR syntax error";
    }
  }
  return "";
}

}  // namespace

std::string_view ParseRangeRequest(Arguments arguments, RangeRequest* request) {
  const std::string_view error = ParseRangeOptions(arguments.subspan(3), &request->options);
  if (!error.empty()) return error;
  // As in Redis' ZRANGE ... BYLEX REV, the larger bound comes first when the order is reversed.
  std::optional<KeyRange> range = request->options.reverse
                                      ? ParseKeyRange(arguments[2], arguments[1])
                                      : ParseKeyRange(arguments[1], arguments[2]);
  if (!range) return kBadBound;
  request->range = *std::move(range);
  return "";
}

std::string_view ParsePrefixRequest(Arguments arguments, RangeRequest* request) {
  request->range = PrefixRange(arguments[1]);
  return ParseRangeOptions(arguments.subspan(2), &request->options);
}

std::string_view ParseRangeRequestOf(CommandKind kind, Arguments arguments, RangeRequest* request) {
  return kind == CommandKind::kRange ? ParseRangeRequest(arguments, request)
                                     : ParsePrefixRequest(arguments, request);
}

}  // namespace varve
