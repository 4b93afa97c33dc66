// The keys that a transaction has read of the store, so that its commit can see whether they still
// are what they were: single keys, and ranges (every key between two bounds, keys that were not
// there included).
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "structure/range_set.h"
#include "type/tree_key.h"
#include "varve/store.h"
#include "varve/write_batch.h"

namespace varve {

class ReadSet {
 public:
  // The number of ranges of a namespace beyond which neighbours become one, which is right and
  // finds more conflicts than there are.
  static constexpr size_t kMaxRanges = 256;
  static constexpr size_t kBytesPerKey = 64;  // beside its own

  // Returns false if the key was read with another version before. `read` is nothing where the
  // snapshot says what was read.
  [[nodiscard]] bool AddKey(std::string_view key, NamespaceId space,
                            const std::optional<WriteBatch::ReadPoint>& read = std::nullopt);
  // [begin, end); an empty `end` means no end.
  void AddRange(std::string_view begin, std::string_view end, NamespaceId space);

  bool empty() const { return spaces_.empty(); }
  size_t bytes() const { return bytes_; }

  // Adds conditions on all of it to the batch.
  // Requires: what has no point of its own was read at `sequence`, or was unchanged then.
  void AddTo(WriteBatch* batch, SequenceNumber sequence) const;
  // Returns whether each key that was read has the same version at both snapshots. Reads everything
  // again: for commits of which the store can't tell.
  // Requires: `before` is not newer than `after`.
  [[nodiscard]] absl::StatusOr<bool> SameAt(Store* store, const Snapshot& before,
                                            const Snapshot& after) const;

 private:
  struct Space {
    // Each key has what was read first. Where it is missing, that tells whether others make it and
    // delete it.
    std::map<std::string, std::optional<WriteBatch::ReadPoint>, std::less<>> keys;
    RangeSet ranges;
  };

  static absl::StatusOr<bool> SameRange(Store* store, ReadOptions options, const Snapshot& before,
                                        const Snapshot& after, std::string_view begin,
                                        std::string_view end);

  std::map<NamespaceId, Space> spaces_;
  size_t bytes_ = 0;
};

}  // namespace varve
