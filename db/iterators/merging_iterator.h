// Several sorted cursors read as one, in the order of the tree: what every scan and every merge
// looks through.
//
// Not thread-safe. Where two children hold the same (key, sequence), as a flush repeated after a
// crash can leave them, both are delivered, the earlier child's first. Once a child has failed the
// iterator is not Valid(), so that nothing of its keys is taken for missing; status() says what
// happened.
#pragma once

#include <memory>
#include <vector>

#include "db/format/internal_iterator.h"

namespace varve {

// `children` newest source first. One child is returned as it is.
std::unique_ptr<InternalIterator> NewMergingIterator(
    std::vector<std::unique_ptr<InternalIterator>> children);

}  // namespace varve
