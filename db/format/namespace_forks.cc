#include "db/format/namespace_forks.h"

#include <algorithm>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

constexpr auto kBelow = [](const NamespaceFork& fork, NamespaceGeneration g) {
  return fork.generation < g;
};

}  // namespace

NamespaceForks::NamespaceForks(std::vector<NamespaceFork> forks)
    : forks_(forks.empty() ? nullptr
                           : std::make_shared<const std::vector<NamespaceFork>>(std::move(forks))) {
}

const std::vector<NamespaceFork>& NamespaceForks::all() const {
  static const std::vector<NamespaceFork>* const none = new std::vector<NamespaceFork>();
  return forks_ == nullptr ? *none : *forks_;
}

const NamespaceFork* NamespaceForks::Find(NamespaceGeneration generation) const {
  const auto fork = std::lower_bound(forks_->begin(), forks_->end(), generation, kBelow);
  return fork != forks_->end() && fork->generation == generation ? &*fork : nullptr;
}

void NamespaceForks::Add(const NamespaceFork& fork) {
  VARVE_ASSERT(fork.parent < fork.generation);
  std::vector<NamespaceFork> changed = all();
  changed.insert(std::lower_bound(changed.begin(), changed.end(), fork.generation, kBelow), fork);
  forks_ = std::make_shared<const std::vector<NamespaceFork>>(std::move(changed));
}

size_t NamespaceForks::DepthOf(NamespaceGeneration generation) const {
  size_t depth = 0;
  for (const NamespaceFork* fork = Of(generation); fork != nullptr; fork = Of(fork->parent))
    ++depth;
  return depth;
}

bool NamespaceForks::IsParent(NamespaceGeneration generation) const {
  return std::any_of(all().begin(), all().end(),
                     [&](const NamespaceFork& fork) { return fork.parent == generation; });
}

bool NamespaceForks::IsOrDescendsFrom(NamespaceGeneration generation,
                                      NamespaceGeneration ancestor) const {
  if (generation == ancestor) return true;
  for (const NamespaceFork* fork = Of(generation); fork != nullptr; fork = Of(fork->parent)) {
    if (fork->parent == ancestor) return true;
  }
  return false;
}

NamespaceForks NamespaceForks::AncestryOf(
    const std::vector<NamespaceGeneration>& generations) const {
  if (empty()) return {};
  std::vector<NamespaceFork> forks;
  for (const NamespaceGeneration generation : generations) {
    for (const NamespaceFork* fork = Of(generation); fork != nullptr; fork = Of(fork->parent)) {
      const auto place = std::lower_bound(forks.begin(), forks.end(), fork->generation, kBelow);
      if (place != forks.end() && place->generation == fork->generation) break;
      forks.insert(place, *fork);
    }
  }
  return NamespaceForks(std::move(forks));
}

}  // namespace varve
