// The written keys are what a write changes, as far as caches of clients have to know: keys, ranges
// of keys, and databases or namespaces as a whole. They are noted before the commit, which takes
// the batch away.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/btree_set.h"
#include "type/tree_key.h"
#include "varve/write_batch.h"

namespace varve {

class WrittenKeys {
 public:
  using Key = std::pair<NamespaceId, std::string>;
  struct Range {
    NamespaceId space;
    std::string begin;
    std::string end;  // empty: no end
  };

  // More keys than these count as a change of all keys in their databases and namespaces.
  static constexpr size_t kMostKeys = 65536;
  static constexpr size_t kMostRanges = 1024;

  void AddKey(NamespaceId space, std::string_view key);
  void AddRange(NamespaceId space, std::string_view begin, std::string_view end);
  void AddSpace(NamespaceId space) { spaces_.insert(space); }
  // Adds what the batch changes.
  void AddBatch(const WriteBatch& batch);

  // Sorts the keys and leaves each once.
  void Sort();

  bool empty() const { return keys_.empty() && ranges_.empty() && spaces_.empty(); }
  const std::vector<Key>& keys() const { return keys_; }
  const std::vector<Range>& ranges() const { return ranges_; }
  // All of whose keys may have changed.
  const absl::btree_set<NamespaceId>& spaces() const { return spaces_; }

 private:
  std::vector<Key> keys_;
  std::vector<Range> ranges_;
  absl::btree_set<NamespaceId> spaces_;
};

}  // namespace varve
