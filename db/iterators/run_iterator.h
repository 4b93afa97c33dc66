// The run iterator reads the segments of one run as one cursor. It opens a segment's own cursor
// when the scan gets there, so that a seek touches one segment of a run, however many it has.
//
// Thread-safety: an iterator belongs to one thread.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "db/format/internal_iterator.h"
#include "db/segment/segment.h"

namespace varve {

// `cache_use` is as in Segment::NewIterator.
// Requires: `segments` are ascending and disjoint, and outlive the iterator.
std::unique_ptr<InternalIterator> NewRunIterator(
    absl::Span<const std::shared_ptr<Segment>> segments, CacheUse cache_use);
// Holds the segments in a list of its own.
std::unique_ptr<InternalIterator> NewRunIterator(std::vector<std::shared_ptr<Segment>> segments,
                                                 CacheUse cache_use);

}  // namespace varve
