// The tombstone filter is a cursor over the records of one source, without those that a range
// tombstone hides from a reader. It seeks past a whole covered stretch if the source holds nothing
// newer there. Scans use it only while there are range tombstones.
//
// Thread-safety: an iterator belongs to one thread.
#pragma once

#include <memory>

#include "db/format/internal_iterator.h"
#include "db/version/super_version.h"

namespace varve {

// Requires: no record of `records` has a sequence above `newest`; `state` outlives the iterator.
std::unique_ptr<InternalIterator> NewTombstoneFilter(std::unique_ptr<InternalIterator> records,
                                                     const SuperVersion* state, SequenceNumber at,
                                                     SequenceNumber newest);

}  // namespace varve
