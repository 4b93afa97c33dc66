// Checks that a commit keeps to the groups of keys that its namespaces declare
// (varve/key_group.h).
//
// Thread-safety: a stateless function.
#pragma once

#include "absl/status/status.h"
#include "db/commit/commit.h"
#include "db/namespaces/namespace_table.h"

namespace varve {

// Returns CrossGroup if the operations and conditions are not of one group. Namespaces that declare
// no groups have none.
[[nodiscard]] absl::Status CheckKeyGroups(const NamespaceTable& namespaces, const Commit& commit);

}  // namespace varve
