// A rewind gives the namespaces of a store what they held at an older version, by the engine's own
// means: clones of the past, which take the places of the namespaces.
//
// Thread-safety: a function without state of its own.
#pragma once

#include "absl/status/status.h"
#include "tools/backup/restore_plan.h"
#include "varve/store.h"

namespace varve {

// Carries out the steps of the plan. After an error some of them may be done.
// Requires: nobody else writes to the store.
[[nodiscard]] absl::Status RewindStore(const RestorePlan& plan, Store* store);

}  // namespace varve
