// The merging iterator reads several sorted cursors as one, in the order of the tree: every scan
// and every merge looks through it.
//
// If two children hold the same (key, sequence), as a flush repeated after a crash can leave them,
// the iterator delivers both, the earlier child's first. Once a child has failed the iterator is
// not Valid(), so that no reader takes the child's keys for missing; status() says what happened.
//
// Thread-safety: an iterator belongs to one thread.
#pragma once

#include <memory>
#include <vector>

#include "db/format/internal_iterator.h"

namespace varve {

// Returns the merged cursor; if there is one child, returns that child.
// Requires: `children` come newest source first.
std::unique_ptr<InternalIterator> NewMergingIterator(
    std::vector<std::unique_ptr<InternalIterator>> children);

}  // namespace varve
