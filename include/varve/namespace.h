// What a namespace is called and what its users asked of it. Plain values.
//
// Ids below kFirstNamedNamespace are databases, known by their number alone; the others have a
// name. No id of a named one is given twice, so that whoever holds that of a namespace which was
// dropped never finds another one in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/types.h"
#include "varve/types.h"
#include "varve/options.h"

namespace varve {

inline constexpr size_t kMaxNamespaceName = 256;  // bytes
// Databases that were used once, and named ones, together.
inline constexpr size_t kMaxNamespaces = 2048;
inline constexpr NamespaceId kFirstNamedNamespace = 1u << 16;

struct NamespaceOptions {
  // Of keys and values; 0: any number. db/engine/engine_namespaces.cc has the rule.
  uint64_t max_bytes = 0;
  uint64_t max_keys = 0;               // 0: any number
  uint64_t default_expiry_ms = 0;      // of what is written without one; 0: never
  std::optional<Durability> sync;      // of its writes; nothing: the store's
  uint64_t value_separation_size = 0;  // bytes from which a value is kept apart; 0: the store's

  bool has_quota() const { return max_bytes != 0 || max_keys != 0; }
  friend bool operator==(const NamespaceOptions&, const NamespaceOptions&) = default;
};

struct NamespaceDescription {
  NamespaceId id = kDefaultNamespace;
  std::string name;  // empty: a database
  NamespaceOptions options;

  friend bool operator==(const NamespaceDescription&, const NamespaceDescription&) = default;
};

// All namespaces of a store at one moment.
struct NamespaceList {
  std::vector<NamespaceDescription> namespaces;  // ascending by id
  NamespaceId next_id = kFirstNamedNamespace;    // that the next named one may take
  SequenceNumber durable_after = kNoSequence;    // as in ReadResult

  const NamespaceDescription* Find(std::string_view name) const {
    for (const NamespaceDescription& space : namespaces) {
      if (!space.name.empty() && space.name == name) return &space;
    }
    return nullptr;
  }
  const NamespaceDescription* Find(NamespaceId id) const {
    for (const NamespaceDescription& space : namespaces) {
      if (space.id == id) return &space;
    }
    return nullptr;
  }
};

}  // namespace varve
