// The refusals that concern one namespace and no other: whoever joins writes of several tells them
// from the rest by these. Thread-safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "varve/types.h"

namespace varve {

// InvalidArgument. It was dropped, or never created.
absl::Status NoSuchNamespace(NamespaceId id);
bool IsNoSuchNamespace(const absl::Status& status);

// ResourceExhausted: what is to be written doesn't fit into the namespace's quota.
absl::Status NamespaceIsFull(const std::string& message);
bool IsNamespaceFull(const absl::Status& status);

inline bool ConcernsOneNamespace(const absl::Status& status) {
  return !status.ok() && (IsNoSuchNamespace(status) || IsNamespaceFull(status));
}

}  // namespace varve
