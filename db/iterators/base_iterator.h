// The base iterator shows a clone what it was forked from: records of the base up to the cut, under
// keys of the clone's own generation (db/format/namespace_bases.h).
//
// Records of other generations are left out, whatever the cursor below delivers. A record's key is
// valid until the next move.
//
// Thread-safety: an iterator belongs to one thread.
#pragma once

#include <memory>

#include "db/format/internal_iterator.h"
#include "db/format/namespace_bases.h"

namespace varve {

// Requires: `records` delivers at least those of base.base, but none that range tombstones hide at
// the cut.
std::unique_ptr<InternalIterator> NewBaseIterator(std::unique_ptr<InternalIterator> records,
                                                  const NamespaceBase& base);

}  // namespace varve
