// The refusals that concern one namespace and no other, or one write and no smaller one: a writer
// that joins the writes of several clients tells them from other errors by these functions.
//
// Thread-safety: all functions are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "varve/types.h"

namespace varve {

// InvalidArgument: the namespace was dropped, or never created.
absl::Status NoSuchNamespace(NamespaceId id);
bool IsNoSuchNamespace(const absl::Status& status);

// A quota of a namespace, of its keys or of their bytes.
struct NamespaceQuota {
  enum class Of : uint8_t { kKeys, kBytes };

  NamespaceId space = kDefaultNamespace;
  Of of = Of::kKeys;

  friend bool operator==(const NamespaceQuota&, const NamespaceQuota&) = default;
};

// ResourceExhausted: the write doesn't fit into this quota of the namespace.
absl::Status NamespaceIsFull(const NamespaceQuota& quota, const std::string& message);
bool IsNamespaceFull(const absl::Status& status);
// Returns which quota is full; nothing: the status says something else.
std::optional<NamespaceQuota> FullQuota(const absl::Status& status);

// ResourceExhausted: the write doesn't fit into what all namespaces together may hold
// (StoreUpkeep::SetDataLimit).
absl::Status StoreIsFull(const std::string& message);
bool IsStoreFull(const absl::Status& status);

// FailedPrecondition: the write is not within one group of keys (varve/key_group.h).
absl::Status CrossGroup(const std::string& message);
bool IsCrossGroup(const absl::Status& status);

// Returns whether another write may succeed where this one was refused.
inline bool ConcernsSomeWrites(const absl::Status& status) {
  return !status.ok() &&
         (IsNoSuchNamespace(status) || IsNamespaceFull(status) || IsStoreFull(status));
}

}  // namespace varve
