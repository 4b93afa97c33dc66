// The commits of what a primary sends its followers, for whoever has to know which keys change:
// caches of clients, listeners.
//
// Thread-safety: a stateless function.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "varve/changes.h"

namespace varve {

// Calls `visit` with each commit of `blocks`, which ReplicaFeed::Next() returned, as far as readers
// of the change feed see it. DataLoss: the blocks are damaged.
[[nodiscard]] absl::Status ForEachReplicated(std::string_view blocks,
                                             absl::FunctionRef<void(const Change& commit)> visit);

}  // namespace varve
