// Leaves out of one source's records those that a range tombstone hides from a reader, and seeks
// past whole covered stretches where the source holds nothing newer. Used only while there are
// range tombstones.
#pragma once

#include <memory>

#include "db/format/internal_iterator.h"
#include "db/version/read_state.h"

namespace varve {

// `newest`: no record of `records` has a higher sequence. `state` must outlive the iterator.
std::unique_ptr<InternalIterator> NewTombstoneFilter(std::unique_ptr<InternalIterator> records,
                                                     const ReadState* state, SequenceNumber at,
                                                     SequenceNumber newest);

}  // namespace varve
