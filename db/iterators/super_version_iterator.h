// The iterator over a super version: its write buffers, its segments and, for a clone, the parents
// that the clone was forked from, merged into one ascending sequence of keys.
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
  SequenceNumber at = kNoSequence;  // what is newer is not shown
  std::string lower;                // tree keys: [lower, upper)
  std::string upper;                // empty: no end
  bool fill_cache = false;
  bool with_values = true;
  ClockCache* cache = nullptr;  // for values that are kept apart; null: they are not cached
};

// `clock` without an instant: what has expired is shown.
// Requires: the bounds lie in one generation.
std::unique_ptr<Iterator> NewSuperVersionIterator(std::shared_ptr<const SuperVersion> state,
                                                  SuperVersionRange range,
                                                  IteratorClock clock = {});

}  // namespace varve
