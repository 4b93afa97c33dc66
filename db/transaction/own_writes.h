// What a transaction has written and not committed: of each key the last write, the ranges that it
// deleted, the namespaces that it created and swapped. It lies over the store's keys at the
// transaction's snapshot; include/varve/transaction.h puts the two together. One thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "structure/range_set.h"
#include "type/tree_key.h"
#include "varve/write_batch.h"

namespace varve {

class OwnWrites {
 public:
  struct Write {
    bool deleted = false;
    std::string value;
    uint64_t expiry_ms = kNoExpiry;

    // Nobody sees it at `instant_ms`.
    bool Hidden(uint64_t instant_ms) const { return deleted || Expired(instant_ms); }
    bool Expired(uint64_t instant_ms) const {
      return expiry_ms != kNoExpiry && expiry_ms <= instant_ms;
    }
  };
  // Of one namespace. What was deleted with its range hides the store's keys; writes behind that
  // stand in `keys`.
  struct Space {
    std::map<std::string, Write, std::less<>> keys;
    RangeSet hidden;
    bool cleared = false;  // hides everything; `hidden` is empty then
    bool created = false;  // and `cleared`

    bool Hides(std::string_view key) const { return cleared || hidden.Find(key).has_value(); }
  };

  void Put(std::string_view key, std::string_view value, NamespaceId space, uint64_t expiry_ms);
  void Delete(std::string_view key, NamespaceId space);
  void DeleteRange(std::string_view begin, std::string_view end, NamespaceId space);
  void ClearNamespace(NamespaceId space);
  void CreateNamespace(const NamespaceDescription& space);
  // Writes go on under the names from before: Origin() tells which.
  void SwapNamespaces(NamespaceId one, NamespaceId other);
  // The namespace whose content `space` has after all swaps, as it is called in the store and
  // above.
  NamespaceId Origin(NamespaceId space) const;

  // Null: nothing was written there.
  const Space* Find(NamespaceId space) const;
  bool empty() const { return spaces_.empty() && swaps_.empty(); }
  const std::vector<NamespaceDescription>& created() const { return created_; }
  // Of keys, values and ranges, each with some more for its place.
  size_t bytes() const { return bytes_; }

  // All of it, so that committing the batch has the same effect.
  void AddTo(WriteBatch* batch) const;

 private:
  static constexpr size_t kBytesPerWrite = 64;

  void Set(std::string_view key, Write write, NamespaceId space);
  static size_t BytesOf(std::string_view key, const Write& write) {
    return key.size() + write.value.size() + kBytesPerWrite;
  }

  std::map<NamespaceId, Space> spaces_;
  std::vector<NamespaceDescription> created_;
  std::vector<std::pair<NamespaceId, NamespaceId>> swaps_;
  std::map<NamespaceId, NamespaceId> origins_;  // of those that were swapped
  size_t bytes_ = 0;
};

}  // namespace varve
