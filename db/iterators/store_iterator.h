// The store iterator is what users see of a scan: the newest version of each key of a namespace at
// one sequence, without deleted keys. The engine makes it, and it holds the SuperVersion it reads.
//
// Thread-safety: an iterator belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "db/format/internal_iterator.h"
#include "db/version/super_version.h"
#include "structure/clock_cache.h"
#include "varve/iterator.h"

namespace varve {

// Told of the latest expiry that made an iterator leave a key out; gives the sequence on which that
// depends, as a gate.
using ExpiryWitness = std::function<absl::StatusOr<SequenceNumber>(uint64_t expiry_ms)>;

// The clock of a scan: what has expired at `instant_ms` is left out (0: nothing has), as the
// witness is told.
struct IteratorClock {
  uint64_t instant_ms = 0;
  SequenceNumber durable_after = kNoSequence;  // of the rest
  ExpiryWitness witness;
};

// Says how an iterator reads values that are kept apart.
struct ValueReading {
  bool wanted = true;           // else they are not read
  ClockCache* cache = nullptr;  // in which they are left, and looked for; null: neither
};

// Requires: `records` delivers the versions of all keys, without those covered by range tombstones,
// and reads from `state`. Bounds are tree keys: [lower, upper), an empty `upper` meaning no end.
std::unique_ptr<Iterator> NewStoreIterator(std::shared_ptr<const SuperVersion> state,
                                           std::unique_ptr<InternalIterator> records,
                                           SequenceNumber at, std::string lower, std::string upper,
                                           ValueReading values, IteratorClock clock);

// Returns an iterator that is never valid and says why.
std::unique_ptr<Iterator> NewErrorIterator(absl::Status status);

}  // namespace varve
