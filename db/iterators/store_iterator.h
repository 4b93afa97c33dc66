// The store iterator is the cursor that users get for a scan. It shows the newest version of each
// key of a namespace at one sequence, without deleted keys. The engine makes it, and it holds the
// super version that it reads.
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

// Records that an iterator left out keys that had expired, the latest of them at `expiry_ms`.
// Returns the durable-after sequence of what the iterator then shows.
using ExpiryRecorder = std::function<absl::StatusOr<SequenceNumber>(uint64_t expiry_ms)>;

// The clock of a scan. The iterator leaves out what has expired at `instant_ms` (0: nothing has)
// and calls `record_expiry` for it.
struct IteratorClock {
  uint64_t instant_ms = 0;
  SequenceNumber durable_after = kNoSequence;  // of the records that the iterator shows
  ExpiryRecorder record_expiry;
};

// The versions that an iterator shows: the newest one of each key up to `at`, if it is newer than
// `newer_than`.
struct VersionRange {
  SequenceNumber at = kNoSequence;
  SequenceNumber newer_than = kNoSequence;
};

// Says how an iterator reads separated values.
struct ValueReading {
  bool wanted = true;           // else the iterator does not read them
  ClockCache* cache = nullptr;  // where the iterator looks for them and leaves them; null: nowhere
};

// Requires: `records` delivers the versions of all keys, without those covered by range tombstones,
// and reads from `state`; it may leave out those that are not newer than `versions.newer_than`.
// Bounds are tree keys: [lower, upper), an empty `upper` meaning no end.
std::unique_ptr<Iterator> NewStoreIterator(std::shared_ptr<const SuperVersion> state,
                                           std::unique_ptr<InternalIterator> records,
                                           VersionRange versions, std::string lower,
                                           std::string upper, ValueReading values,
                                           IteratorClock clock);

// Returns an iterator that is never valid and says why.
std::unique_ptr<Iterator> NewErrorIterator(absl::Status status);

}  // namespace varve
