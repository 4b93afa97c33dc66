#include "db/format/namespace_bases.h"

#include <algorithm>
#include <utility>

namespace varve {
namespace {

constexpr auto kBelow = [](const NamespaceBase& base, NamespaceGeneration g) {
  return base.generation < g;
};

}  // namespace

NamespaceBases::NamespaceBases(std::vector<NamespaceBase> bases)
    : bases_(bases.empty() ? nullptr
                           : std::make_shared<const std::vector<NamespaceBase>>(std::move(bases))) {
}

const std::vector<NamespaceBase>& NamespaceBases::all() const {
  static const std::vector<NamespaceBase>* const none = new std::vector<NamespaceBase>();
  return bases_ == nullptr ? *none : *bases_;
}

const NamespaceBase* NamespaceBases::Find(NamespaceGeneration generation) const {
  const auto base = std::lower_bound(bases_->begin(), bases_->end(), generation, kBelow);
  return base != bases_->end() && base->generation == generation ? &*base : nullptr;
}

void NamespaceBases::Add(const NamespaceBase& base) {
  std::vector<NamespaceBase> changed = all();
  changed.insert(std::lower_bound(changed.begin(), changed.end(), base.generation, kBelow), base);
  bases_ = std::make_shared<const std::vector<NamespaceBase>>(std::move(changed));
}

size_t NamespaceBases::DepthOf(NamespaceGeneration generation) const {
  size_t depth = 0;
  for (const NamespaceBase* base = Of(generation); base != nullptr; base = Of(base->base)) ++depth;
  return depth;
}

bool NamespaceBases::IsBase(NamespaceGeneration generation) const {
  return std::any_of(all().begin(), all().end(),
                     [&](const NamespaceBase& base) { return base.base == generation; });
}

bool NamespaceBases::Reaches(NamespaceGeneration generation, NamespaceGeneration below) const {
  if (generation == below) return true;
  for (const NamespaceBase* base = Of(generation); base != nullptr; base = Of(base->base)) {
    if (base->base == below) return true;
  }
  return false;
}

NamespaceBases NamespaceBases::Under(const std::vector<NamespaceGeneration>& generations) const {
  if (empty()) return {};
  std::vector<NamespaceBase> under;
  for (const NamespaceGeneration generation : generations) {
    for (const NamespaceBase* base = Of(generation); base != nullptr; base = Of(base->base)) {
      const auto place = std::lower_bound(under.begin(), under.end(), base->generation, kBelow);
      if (place != under.end() && place->generation == base->generation) break;
      under.insert(place, *base);
    }
  }
  return NamespaceBases(std::move(under));
}

}  // namespace varve
