// The tracked prefixes are those whose keys clients want to hear of without having read them
// (CLIENT TRACKING ON BCAST PREFIX): for each prefix, the ids of its clients.
//
// Thread-safety: one thread at a time uses an object.
// Invariants: a prefix has a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"

namespace varve {

class TrackedPrefixes {
 public:
  using ClientIds = absl::btree_set<uint64_t>;
  using Visit = absl::FunctionRef<void(const std::string& prefix, const ClientIds& clients)>;

  void Add(std::string_view prefix, uint64_t client);
  void Remove(std::string_view prefix, uint64_t client);

  bool empty() const { return prefixes_.empty(); }
  size_t size() const { return prefixes_.size(); }

  // Calls `visit` for each prefix with which the key begins, the longest first.
  void ForEachOfKey(std::string_view key, Visit visit) const;
  // Calls `visit` for each prefix with which a key in [begin, end) may begin; an empty `end` means
  // no end.
  void ForEachOfRange(std::string_view begin, std::string_view end, Visit visit) const;

 private:
  absl::btree_map<std::string, ClientIds, std::less<>> prefixes_;
};

}  // namespace varve
