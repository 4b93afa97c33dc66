// Decides, while records are merged, which of them are dead for reasons of their own (expiry,
// retention rules).
//
// A user of the library may replace it. Called from background threads at the same time:
// implementations are thread-safe.
#pragma once

#include "type/record.h"

namespace varve {

class CompactionFilter {
 public:
  virtual ~CompactionFilter() = default;
  // True: the record is treated as deleted from now on. Only called for the newest version of a key
  // that no snapshot can see differently. Older versions below never come back: where older runs
  // may hold some, a tombstone takes the record's place.
  virtual bool Drop(const RecordView& record) const = 0;
};

}  // namespace varve
