// A compaction filter decides, while records are merged, which of them are dead for reasons that
// only the program knows (retention rules and the like). A program may give a store its own.
//
// Thread-safety: background threads call one filter at the same time, those of the parts of one
// merge among them (EngineOptions::max_background_jobs), so an implementation is thread-safe.
// Within one merge the keys need not come in ascending order.
#pragma once

#include <cstdint>
#include <string_view>

#include "varve/types.h"

namespace varve {

// The newest version of a key, as its writer wrote it. Views are valid during the call.
struct FilteredRecord {
  std::string_view key;
  std::string_view value;
  std::string_view metadata;
  SequenceNumber version = kNoSequence;
  uint64_t expiry_ms = kNoExpiry;
};

class CompactionFilter {
 public:
  virtual ~CompactionFilter() = default;
  // Returns true if the record is to be treated as deleted from now on. The engine asks only about
  // the newest version of a key that no snapshot can see differently. Older versions below never
  // come back: where older runs may hold some, a tombstone takes the record's place. A record whose
  // value lies in a value file and can't be read stays, and a later merge asks about it again.
  virtual bool Drop(const FilteredRecord& record) const = 0;
};

}  // namespace varve
