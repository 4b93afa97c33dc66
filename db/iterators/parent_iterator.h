// The parent iterator is a cursor over what a clone inherits: the records of the parent up to the
// fork point, under keys of the clone's own generation (db/format/namespace_forks.h).
//
// It skips the records of other generations that the cursor below it delivers. A record's key is
// valid until the next move.
//
// Thread-safety: an iterator belongs to one thread.
#pragma once

#include <memory>

#include "db/format/internal_iterator.h"
#include "db/format/namespace_forks.h"

namespace varve {

// Requires: `records` delivers at least the records of fork.parent, but none that range tombstones
// hide at the fork point.
std::unique_ptr<InternalIterator> NewParentIterator(std::unique_ptr<InternalIterator> records,
                                                    const NamespaceFork& fork);

}  // namespace varve
