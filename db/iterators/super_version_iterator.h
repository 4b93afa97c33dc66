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
  SequenceNumber at = kNoSequence;          // the iterator shows nothing newer,
  SequenceNumber newer_than = kNoSequence;  // and nothing of this version or an earlier one
  std::string lower;                        // tree keys: [lower, upper)
  std::string upper;                        // empty: no end
  bool fill_cache = false;
  bool with_values = true;
  ClockCache* cache = nullptr;  // for separated values; null: the iterator does not cache them
};

// With a `clock` without an instant the iterator also shows what has expired.
// Requires: the bounds lie in one generation.
std::unique_ptr<Iterator> NewSuperVersionIterator(std::shared_ptr<const SuperVersion> state,
                                                  SuperVersionRange range,
                                                  IteratorClock clock = {});

// Returns a cursor over every version of the keys in [lower, upper), also those that range
// tombstones hide, without what a clone inherits.
// Requires: `state` outlives the iterator; the bounds lie in one generation.
std::unique_ptr<InternalIterator> NewVersionsIterator(const SuperVersion& state, CacheUse cache_use,
                                                      std::string_view lower,
                                                      std::string_view upper);
// Returns a cursor over what the clone in the generation of the bounds inherits, under keys of its
// own generation: the newest record of a key is the first one. What holds nothing newer than
// `newer_than` may be left out.
// Requires: as above; `fork` is that of the generation.
std::unique_ptr<InternalIterator> NewInheritedIterator(const SuperVersion& state,
                                                       const NamespaceFork& fork,
                                                       CacheUse cache_use, std::string_view lower,
                                                       std::string_view upper,
                                                       SequenceNumber newer_than = kNoSequence);

}  // namespace varve
