// A compression policy says how the values of each generation are compressed: as its namespace says
// (NamespaceOptions::compression), else as the store does (EngineOptions::compression).
//
// Thread-safety: a plain value.
#pragma once

#include <utility>
#include <vector>

#include "db/namespaces/namespace_table.h"
#include "type/tree_key.h"
#include "varve/compression.h"

namespace varve {

class CompressionPolicy {
 public:
  // Compresses nothing.
  CompressionPolicy() = default;
  // Compresses nothing in a store whose format has no place for it (keeps_history()).
  CompressionPolicy(const NamespaceTable& namespaces, const Compression& usual);

  // Returns whether some values are compressed.
  bool any() const;
  Compression Of(NamespaceGeneration generation) const;

 private:
  Compression usual_;
  std::vector<std::pair<NamespaceGeneration, Compression>> own_;  // ascending by generation
};

}  // namespace varve
