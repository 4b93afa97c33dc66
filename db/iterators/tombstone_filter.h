// Leaves out of one source's records those that a range tombstone hides from a reader, and seeks
// past whole covered stretches where the source holds nothing newer. Used only while there are
// range tombstones.
#pragma once

#include <memory>

#include "db/format/internal_iterator.h"
#include "db/version/super_version.h"

namespace varve {

// `newest`: no record of `records` has a higher sequence. `state` must outlive the iterator.
std::unique_ptr<InternalIterator> NewTombstoneFilter(std::unique_ptr<InternalIterator> records,
                                                     const SuperVersion* state, SequenceNumber at,
                                                     SequenceNumber newest);

}  // namespace varve
