// Which generation each namespace lives in at one moment. A plain value.
#pragma once

#include <optional>
#include <vector>

#include "db/manifest.h"
#include "type/tree_key.h"

namespace varve {

class NamespaceTable {
 public:
  NamespaceTable() = default;
  explicit NamespaceTable(std::vector<ManifestNamespace> entries) : entries_(std::move(entries)) {}

  // Null: there is no such namespace.
  std::optional<NamespaceGeneration> Generation(NamespaceId id) const {
    for (const ManifestNamespace& entry : entries_) {
      if (entry.id == id) return entry.generation;
    }
    if (id == kExpirySpace) return kExpiryGeneration;
    return std::nullopt;
  }

  // The namespace that lives in it; null: none does.
  std::optional<NamespaceId> SpaceOf(NamespaceGeneration generation) const {
    for (const ManifestNamespace& entry : entries_) {
      if (entry.generation == generation) return entry.id;
    }
    return std::nullopt;
  }

  void Set(NamespaceId id, NamespaceGeneration generation) {
    for (ManifestNamespace& entry : entries_) {
      if (entry.id == id) {
        entry.generation = generation;
        return;
      }
    }
    entries_.push_back({id, generation});
  }

  bool Holds(NamespaceGeneration generation) const {
    for (const ManifestNamespace& entry : entries_) {
      if (entry.generation == generation) return true;
    }
    return false;
  }

  const std::vector<ManifestNamespace>& entries() const { return entries_; }

 private:
  std::vector<ManifestNamespace> entries_;  // a handful: searched in order
};

}  // namespace varve
