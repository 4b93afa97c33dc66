// What a clone stands on, as its iterators and counts see it: records of the base up to the cut,
// under keys of the clone's own generation (db/format/namespace_bases.h).
//
// Not thread-safe. Records of other generations are no part of it, whatever the cursor below
// delivers. A record's key is valid until the next move.
#pragma once

#include <memory>

#include "db/format/internal_iterator.h"
#include "db/format/namespace_bases.h"

namespace varve {

// `records`: at least those of base.base, those that range tombstones hide at the cut left out.
std::unique_ptr<InternalIterator> NewBaseIterator(std::unique_ptr<InternalIterator> records,
                                                  const NamespaceBase& base);

}  // namespace varve
