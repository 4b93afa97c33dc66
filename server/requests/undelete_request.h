// A request of UNDELETE says what is to be brought back:
//
//   UNDELETE key | PREFIX prefix | RANGE min max   [AT version | AT TIME ms | AT AGO seconds]
//
// Thread-safety: plain values; the function is pure.
#pragma once

#include <cstddef>
#include <optional>

#include "server/requests/key_range.h"
#include "server/requests/request_batch.h"

namespace varve {

struct UndeleteRequest {
  bool is_key = false;  // one key, which is the first argument
  KeyRange range;       // of the keys
  size_t words = 0;     // of the request in front of AT
};

// Returns nothing if the request has none of the forms. What stands behind AT is not looked at.
std::optional<UndeleteRequest> ParseUndelete(Arguments request);

}  // namespace varve
