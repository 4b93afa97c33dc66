// The writes of a transaction that has not committed: the last write of each key, the ranges that
// it deleted, the namespaces that it created and swapped. They lie over the store's keys at the
// transaction's snapshot; TransactionStore puts the two together.
//
// Thread-safety: one thread at a time.
// Invariants: a write in `keys` is newer than the ranges that hide its place; where `cleared` is
// set, `hidden` is empty.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "structure/range_set.h"
#include "type/tree_key.h"
#include "varve/read_result.h"
#include "varve/write_batch.h"

namespace varve {

class OwnWrites {
 public:
  struct Write {
    bool deleted = false;
    std::string value;
    std::string metadata;
    uint64_t expiry_ms = kNoExpiry;
    WriteCause cause = WriteCause::kWrite;

    // Returns whether nobody sees it at `instant_ms`.
    bool Hidden(uint64_t instant_ms) const { return deleted || Expired(instant_ms); }
    bool Expired(uint64_t instant_ms) const {
      return expiry_ms != kNoExpiry && expiry_ms <= instant_ms;
    }
  };
  // The writes to one namespace. Ranges that were deleted hide the store's keys; later writes stand
  // in `keys`.
  struct Space {
    std::map<std::string, Write, std::less<>> keys;
    RangeSet hidden;
    bool cleared = false;  // hides everything; `hidden` is empty then
    bool created = false;  // `cleared` is set, too

    bool Hides(std::string_view key) const { return cleared || hidden.Find(key).has_value(); }
  };

  void Put(std::string_view key, std::string_view value, NamespaceId space,
           const PutExtras& extras);
  void Delete(std::string_view key, NamespaceId space, WriteCause cause);
  void DeleteRange(std::string_view begin, std::string_view end, NamespaceId space);
  void ClearNamespace(NamespaceId space);
  // Requires: the transaction has not created one of this id.
  void CreateNamespace(const NamespaceDescription& space);
  // Writes go on under the names from before: Origin() tells which.
  void SwapNamespaces(NamespaceId one, NamespaceId other);
  // Returns the namespace whose content `space` has after all swaps, as it is called in the store
  // and in the functions above.
  NamespaceId Origin(NamespaceId space) const;

  // Returns null if nothing was written there.
  const Space* Find(NamespaceId space) const;
  bool empty() const { return spaces_.empty() && swaps_.empty(); }
  const std::vector<NamespaceDescription>& created() const { return created_; }
  // Returns the bytes of keys, values, metadata and ranges, each with some more for its place.
  size_t bytes() const { return bytes_; }

  // Returns how many keys the puts write, and the bytes of these keys, their values and metadata:
  // in one namespace (as it is called in the functions above), or in all.
  CountResult CountPuts(std::optional<NamespaceId> space) const;

  // Adds all of it to the batch, so that committing the batch has the same effect.
  void AddTo(WriteBatch* batch) const;

 private:
  static constexpr size_t kBytesPerWrite = 64;

  void Set(std::string_view key, Write write, NamespaceId space);
  static size_t BytesOf(std::string_view key, const Write& write) {
    return key.size() + write.value.size() + write.metadata.size() + kBytesPerWrite;
  }

  std::map<NamespaceId, Space> spaces_;
  std::vector<NamespaceDescription> created_;
  std::vector<std::pair<NamespaceId, NamespaceId>> swaps_;
  std::map<NamespaceId, NamespaceId> origins_;  // of those that were swapped
  size_t bytes_ = 0;
};

}  // namespace varve
