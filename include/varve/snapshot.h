// A point in the order of writes that stays readable while it is held.
//
// Thread-safety: immutable, so any number of threads may use one.
// Requires: a snapshot is destroyed before the store that gave it, and is used with that store
// alone.
#pragma once

#include <cstdint>

#include "varve/types.h"

namespace varve {

class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual SequenceNumber sequence() const = 0;
  // Returns the clock when the snapshot was taken, in milliseconds since the epoch: what expires
  // later stays visible in it.
  virtual uint64_t instant_ms() const = 0;
  // Returns whether the namespace existed at that point.
  virtual bool HasNamespace(NamespaceId space) const = 0;
};

}  // namespace varve
