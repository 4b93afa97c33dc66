// A segment's blocks in the block cache: how they get there, one by one or many with one read.
//
// A block's records are verified once, on entry. A handle that is flagged has a damaged record in
// its block, so the caller checks each record on use.
//
// Thread-safety: stateless functions, which any thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "db/segment/segment_fences.h"
#include "structure/clock_cache.h"
#include "util/base/sharded_counter.h"

namespace varve {

class Segment;

// Returns a block from the cache, or reads it into the cache and verifies it. `*reads` counts the
// disk reads.
absl::StatusOr<ClockCache::Handle> CachedBlock(const Segment& segment, BlockSpan span,
                                               uint32_t block_size, ShardedCounter* reads);

// Gives the cache the blocks [first, last), which stand in `bytes`. What it has stays.
void CacheBlocks(const Segment& segment, const SegmentFences& fences, size_t first, size_t last,
                 std::string_view bytes, uint32_t block_size);

}  // namespace varve
