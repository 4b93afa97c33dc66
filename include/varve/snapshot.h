// A point in the order of writes that stays readable while it is held. Immutable, thread-safe; must
// go before its store.
#pragma once

#include <optional>

#include "varve/types.h"
#include "varve/types.h"

namespace varve {

class Snapshot {
 public:
  virtual ~Snapshot() = default;
  virtual SequenceNumber sequence() const = 0;
  // The clock when it was taken, in milliseconds since the epoch: what expires later stays visible
  // in it.
  virtual uint64_t instant_ms() const = 0;
  // The stretch of the tree that `space` lived in at that point; null: it did not exist.
  virtual std::optional<NamespaceGeneration> Generation(NamespaceId space) const = 0;
};

}  // namespace varve
