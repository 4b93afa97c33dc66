// The segments of one run read as one cursor. A segment's own cursor is opened when the scan gets
// there, so that a seek touches one segment of a run, however many it has.
//
// Not thread-safe. The segments must outlive the iterator (whoever holds the Version or the plan
// holds them).
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "db/format/internal_iterator.h"
#include "db/segment/segment.h"

namespace varve {

// `segments` ascending and disjoint; `fill_cache` as in Segment::NewIterator.
std::unique_ptr<InternalIterator> NewRunIterator(
    absl::Span<const std::shared_ptr<Segment>> segments, bool fill_cache);

}  // namespace varve
