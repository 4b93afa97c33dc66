// The super version iterator reads a super version as one ascending sequence of keys: it merges the
// write buffers, the segments and, for a clone, the parents that the clone was forked from.
//
// Thread-safety: the function has no state; an iterator belongs to one thread and holds its super
// version.
#pragma once

#include <memory>
#include <string>

#include "db/iterators/store_iterator.h"
#include "db/version/super_version.h"
#include "structure/clock_cache.h"
#include "varve/iterator.h"

namespace varve {

struct SuperVersionRange {
  SequenceNumber at = kNoSequence;  // the iterator shows nothing newer
  std::string lower;                // tree keys: [lower, upper)
  std::string upper;                // empty: no end
  bool fill_cache = false;
  bool with_values = true;
  ClockCache* cache = nullptr;  // for separated values; null: the iterator does not cache them
};

// With a `clock` without an instant the iterator also shows what has expired.
// Requires: the bounds lie in one generation.
std::unique_ptr<Iterator> NewSuperVersionIterator(std::shared_ptr<const SuperVersion> state,
                                                  SuperVersionRange range,
                                                  IteratorClock clock = {});

}  // namespace varve
