// Functions that tell what the errors of two servers mean for a move between them.
//
// Thread-safety: The functions are pure.
#pragma once

#include "absl/status/status.h"

namespace varve {

// Returns whether the same may succeed later: the connection was lost, the server starts, its
// store or its disk has no answer or no room at present.
bool MayPass(const absl::Status& status);
// Returns whether the server says that it has no namespace of the name.
bool IsNoNamespace(const absl::Status& status);
// Returns whether what comes next in the change feed is no longer retained.
bool IsGap(const absl::Status& status);

}  // namespace varve
