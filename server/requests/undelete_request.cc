#include "server/requests/undelete_request.h"

#include <string>

#include "server/requests/past_point.h"
#include "util/base/letter_case.h"

namespace varve {

std::optional<UndeleteRequest> ParseUndelete(Arguments request) {
  UndeleteRequest undelete;
  undelete.words = FindPastSuffix(request).value_or(request.size());
  if (undelete.words == 2) {
    undelete.is_key = true;
    undelete.range = {.lower = std::string(request[1]), .upper = std::string(request[1]) + '\0'};
    return undelete;
  }
  if (undelete.words == 3 && EqualsIgnoreCase(request[1], "prefix")) {
    undelete.range = PrefixRange(request[2]);
    return undelete;
  }
  if (undelete.words == 4 && EqualsIgnoreCase(request[1], "range")) {
    std::optional<KeyRange> range = ParseKeyRange(request[2], request[3]);
    if (!range) return std::nullopt;
    undelete.range = *std::move(range);
    return undelete;
  }
  return std::nullopt;
}

}  // namespace varve
