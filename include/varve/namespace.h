// The name of a namespace and the options that its users gave it. Plain values.
//
// Ids below kFirstNamedNamespace are databases, known by their number alone; the others have a
// name. No id of a named namespace is given twice, so that a client that holds the id of a dropped
// namespace never finds another one in its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "varve/compression.h"
#include "varve/key_group.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

inline constexpr size_t kMaxNamespaceName = 256;  // bytes
// Databases that were used once, and named namespaces, together.
inline constexpr size_t kMaxNamespaces = 2048;
inline constexpr NamespaceId kFirstNamedNamespace = 1u << 16;

// Which keys a server removes first where it makes room for new ones. The numbers are on disk and
// never change.
enum class EvictionOrder : uint8_t {
  kNone = 0,    // none: writes are refused when there is no room
  kLru = 1,     // those that were read or written longest ago
  kLfu = 2,     // those that were read or written least often, lately
  kTtl = 3,     // those that expire first
  kRandom = 4,  // any
};

// How a server makes room in a namespace, or in the databases together. The engine keeps the rule
// of a namespace and evicts nothing itself (server/eviction/evictor.h).
struct EvictionRule {
  EvictionOrder order = EvictionOrder::kNone;
  bool volatile_only = false;  // only keys that expire

  bool on() const { return order != EvictionOrder::kNone; }
  friend bool operator==(const EvictionRule&, const EvictionRule&) = default;
};

struct NamespaceOptions {
  // Quotas on what the namespace holds; docs/operations.md says how exactly they are kept.
  uint64_t max_bytes = 0;                  // keys and values together; 0: any number
  uint64_t max_keys = 0;                   // 0: any number
  uint64_t default_expiry_ms = 0;          // of a key that is put without an expiry; 0: never
  std::optional<Durability> sync;          // of its writes; nothing: the store's mode
  EvictionRule eviction;                   // what makes room at a quota
  uint64_t value_separation_size = 0;      // bytes from which a value is kept apart; 0: the store's
  std::optional<HistoryLimits> history;    // nothing: the store's
  std::optional<Compression> compression;  // of its values; nothing: the store's
  KeyGrouping grouping;                    // given when it is created, and never changed

  bool has_quota() const { return max_bytes != 0 || max_keys != 0; }
  friend bool operator==(const NamespaceOptions&, const NamespaceOptions&) = default;
};

struct NamespaceDescription {
  NamespaceId id = kDefaultNamespace;
  std::string name;  // empty: a database
  NamespaceOptions options;

  friend bool operator==(const NamespaceDescription&, const NamespaceDescription&) = default;
};

// A namespace that was dropped, as it was then.
struct DroppedNamespace {
  NamespaceDescription space;
  SequenceNumber dropped_at = kNoSequence;  // the version that dropped it
};

// All namespaces of a store at one moment.
struct NamespaceList {
  std::vector<NamespaceDescription> namespaces;  // ascending by id
  NamespaceId next_id = kFirstNamedNamespace;    // that the next named one may take
  SequenceNumber durable_after = kNoSequence;    // as in ReadResult

  // Return null if there is no such namespace.
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
