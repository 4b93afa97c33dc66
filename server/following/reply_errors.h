// Finds the errors among the replies of a batch (RESP2), also those inside the reply to EXEC.
//
// Thread-safety: the function is pure.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace varve {

// Calls `visit` with the text of each error in the first reply of `replies`, without "-" and the
// end of the line. Returns the reply's length. Requires: it is complete.
size_t ForEachError(std::string_view replies, absl::FunctionRef<void(std::string_view)> visit);

}  // namespace varve
