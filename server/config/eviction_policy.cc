#include "server/config/eviction_policy.h"

#include <iterator>

#include "fmt/format.h"
#include "util/base/letter_case.h"

namespace varve {
namespace {

struct Policy {
  std::string_view name;
  EvictionRule rule;
};

constexpr Policy kPolicies[] = {
    {"noeviction", {}},
    {"allkeys-lru", {EvictionOrder::kLru, false}},
    {"volatile-lru", {EvictionOrder::kLru, true}},
    {"allkeys-lfu", {EvictionOrder::kLfu, false}},
    {"volatile-lfu", {EvictionOrder::kLfu, true}},
    {"allkeys-random", {EvictionOrder::kRandom, false}},
    {"volatile-random", {EvictionOrder::kRandom, true}},
    {"volatile-ttl", {EvictionOrder::kTtl, true}},
};

constexpr std::string_view kOrders[] = {"none", "lru", "lfu", "ttl", "random"};  // EvictionOrder

}  // namespace

std::optional<EvictionRule> ParseEvictionPolicy(std::string_view name) {
  for (const Policy& policy : kPolicies) {
    if (EqualsIgnoreCase(name, policy.name)) return policy.rule;
  }
  return std::nullopt;
}

std::string EvictionPolicies() {
  std::string names;
  for (const Policy& policy : kPolicies) {
    if (!names.empty()) names += ", ";
    names += policy.name;
  }
  return names;
}

std::optional<EvictionOrder> ParseEvictionOrder(std::string_view name) {
  for (size_t order = 0; order < std::size(kOrders); ++order) {
    if (EqualsIgnoreCase(name, kOrders[order])) return static_cast<EvictionOrder>(order);
  }
  return std::nullopt;
}

std::string_view NameOf(EvictionOrder order) { return kOrders[static_cast<size_t>(order)]; }

std::string EvictionOrders() { return fmt::format("{}", fmt::join(kOrders, ", ")); }

}  // namespace varve
