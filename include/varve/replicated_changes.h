// The operations of what a primary sends its followers, for whoever has to know which keys change:
// caches of clients, listeners.
//
// Thread-safety: a stateless function.
#pragma once

#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "varve/changes.h"

namespace varve {

// Calls `visit` with each operation that readers of the change feed would see of `blocks`, which
// ReplicaFeed::Next() returned. DataLoss: they are damaged.
[[nodiscard]] absl::Status ForEachReplicated(
    std::string_view blocks, absl::FunctionRef<void(const ChangeOperation& operation)> visit);

}  // namespace varve
