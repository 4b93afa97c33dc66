// A range watch tells whether a range of keys has changed since the watch began.
//
// Thread-safety: all functions may be called on any thread.
// Requires: a watch is destroyed before the store that gave it is closed.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

class RangeWatch {
 public:
  virtual ~RangeWatch() = default;
  // Returns whether, since the watch began, anybody wrote or deleted a key of the range, also one
  // that was not there before or is not there any more; whether a key of the range expired, up to
  // `instant_ms`; or whether the namespace was emptied, swapped or dropped. Looks at what was
  // written since the last call, and at the keys of all namespaces whose time is over but which
  // the store has not removed yet. A key that is written with the value that it had counts as
  // changed. Once true, it stays true. Fails as StoreWrites::Submit does with these options.
  [[nodiscard]] virtual absl::StatusOr<bool> Changed(const WriteOptions& options,
                                                     uint64_t instant_ms) = 0;
};

}  // namespace varve
