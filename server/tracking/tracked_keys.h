// The tracked keys are the keys that clients have read and may keep in caches of their own (CLIENT
// TRACKING): for each key of a database or namespace, the ids of those clients. A key that is
// written leaves the table, and its clients are told. The id of a client that has gone stays until
// its key leaves; ids are never used twice.
//
// Thread-safety: one thread at a time uses an object.
// Invariants: keys(), items() and bytes() are the sums over all entries; an entry has a client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "type/tree_key.h"

namespace varve {

class TrackedKeys {
 public:
  using ClientIds = absl::InlinedVector<uint64_t, 1>;  // ascending
  struct Entry {
    std::string key;
    ClientIds clients;
  };
  // The keys of one database or namespace.
  struct Space {
    absl::btree_map<std::string, ClientIds, std::less<>> keys;
    size_t items = 0;
    size_t bytes = 0;
  };

  // Bytes that an entry takes beside its key and the ids beyond the first.
  static constexpr size_t kEntryBytes = 96;

  // Notes that the client may keep the key.
  void Add(NamespaceId space, std::string_view key, uint64_t client);

  // Takes the key from the table and returns its clients, who may be none.
  ClientIds Take(NamespaceId space, std::string_view key);
  // Takes the keys in [begin, end) to `*taken`; an empty `end` means no end. Takes nothing, and
  // returns false, if there are more than `most`.
  [[nodiscard]] bool TakeRange(NamespaceId space, std::string_view begin, std::string_view end,
                               size_t most, std::vector<Entry>* taken);
  // Takes all keys of the database or namespace. The caller destroys them, which may take long.
  Space TakeSpace(NamespaceId space);
  // Takes one key, so that the table gets smaller. Repeated calls go around in the order of keys.
  std::optional<Entry> TakeNext();

  size_t keys() const { return keys_; }
  size_t items() const { return items_; }  // clients of all keys
  size_t bytes() const { return bytes_; }

 private:
  using Keys = decltype(Space::keys);

  // Removes the entry and returns it.
  Entry Remove(Space* space, Keys::iterator entry);

  absl::btree_map<NamespaceId, Space> spaces_;  // those that have a key
  size_t keys_ = 0;
  size_t items_ = 0;
  size_t bytes_ = 0;
  // Behind the key that TakeNext() took last.
  NamespaceId next_space_ = 0;
  std::string next_key_;
};

}  // namespace varve
