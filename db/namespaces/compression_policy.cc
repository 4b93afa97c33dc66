#include "db/namespaces/compression_policy.h"

#include <algorithm>

namespace varve {

CompressionPolicy::CompressionPolicy(const NamespaceTable& namespaces, const Compression& usual) {
  if (!namespaces.keeps_history()) return;
  usual_ = usual;
  for (const ManifestNamespace& entry : namespaces.entries()) {
    const NamespaceDescription* const space = namespaces.Description(entry.id);
    if (space != nullptr && space->options.compression)
      own_.emplace_back(entry.generation, *space->options.compression);
  }
  std::sort(own_.begin(), own_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
}

bool CompressionPolicy::any() const {
  return usual_.on() ||
         std::any_of(own_.begin(), own_.end(), [](const auto& each) { return each.second.on(); });
}

Compression CompressionPolicy::Of(NamespaceGeneration generation) const {
  if (generation == kExpiryGeneration) return {};  // its entries are a few bytes
  const auto own =
      std::lower_bound(own_.begin(), own_.end(), generation,
                       [](const auto& each, NamespaceGeneration key) { return each.first < key; });
  return own != own_.end() && own->first == generation ? own->second : usual_;
}

}  // namespace varve
