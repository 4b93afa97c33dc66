// The names of the settings and options that say which keys go first where room is made: those of
// Redis for `maxmemory-policy`, and those of NAMESPACE ... EVICT.
//
// Thread-safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "varve/namespace.h"

namespace varve {

// "noeviction", "allkeys-lru", "volatile-ttl", and so on, in any case of letters. Nothing: it is no
// policy.
std::optional<EvictionRule> ParseEvictionPolicy(std::string_view name);
// Returns all names, with commas between.
std::string EvictionPolicies();

// "none", "lru", "lfu", "ttl", "random". Nothing: it is no order.
std::optional<EvictionOrder> ParseEvictionOrder(std::string_view name);
std::string_view NameOf(EvictionOrder order);
// Returns all names of orders, with commas between.
std::string EvictionOrders();

}  // namespace varve
