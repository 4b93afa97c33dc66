#include "db/segment/segment_blocks.h"

#include <algorithm>
#include <utility>

#include "db/format/record_format.h"
#include "db/segment/block_guide.h"
#include "db/segment/segment.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Verifies the records of the block, flags it if one is damaged, and gives it to the cache. Returns
// what the cache then has.
ClockCache::Handle Keep(const Segment& segment, uint64_t key, ClockCache::Handle block) {
  RecordView record;
  uint32_t shared = 0;
  const std::string_view base = segment.loaded_footer()->key_base;
  BlockGuideBuilder guide(base);
  for (std::string_view rest = block.data(); !rest.empty();) {
    const size_t size =
        DecodeRecord(rest, segment.number(), ChecksumMode::kVerify, &record, &shared);
    if (size == 0 || shared > base.size()) {
      block.set_flagged();
      break;
    }
    guide.Add(shared, record.key, block.data().size() - rest.size());
    rest.remove_prefix(size);
  }
  guide.Write(block.notes().size(), block.mutable_notes());
  return segment.caches().blocks.Insert(segment.number(), key, std::move(block));
}

}  // namespace

absl::StatusOr<ClockCache::Handle> CachedBlock(const Segment& segment, BlockSpan span,
                                               uint32_t block_size, ShardedCounter* reads) {
  SegmentCaches& caches = segment.caches();
  const uint64_t key = BlockKey(span.begin, block_size);
  if (ClockCache::Handle block = caches.blocks.Lookup(segment.number(), key, span.begin)) {
    caches.statistics.block_cache_hits.Add(1);
    return block;
  }
  VARVE_ASSERT(span.begin < span.end);
  caches.statistics.block_cache_misses.Add(1);
  ClockCache::Handle block =
      caches.blocks.New(span.end - span.begin, BlockGuideSize(span.end - span.begin));
  block.set_base(span.begin);
  reads->Add(1);
  VARVE_RETURN_IF_ERROR(segment.ReadExactly(span.begin, block.data().size(), block.mutable_data()));
  return Keep(segment, key, std::move(block));
}

void CacheBlocks(const Segment& segment, const SegmentFences& fences, size_t first, size_t last,
                 std::string_view bytes, uint32_t block_size) {
  ClockCache& blocks = segment.caches().blocks;
  for (size_t i = first; i < last; ++i)
    blocks.PrefetchSlot(segment.number(), BlockKey(fences.Span(i).begin, block_size));
  const uint64_t begin = fences.Span(first).begin;
  for (size_t i = first; i < last; ++i) {
    const BlockSpan span = fences.Span(i);
    if (!fences.IsCacheable(span)) continue;
    ClockCache::Handle block =
        blocks.New(span.end - span.begin, BlockGuideSize(span.end - span.begin));
    block.set_base(span.begin);
    const std::string_view content = bytes.substr(span.begin - begin, span.end - span.begin);
    std::copy(content.begin(), content.end(), block.mutable_data());
    Keep(segment, BlockKey(span.begin, block_size), std::move(block));
  }
}

}  // namespace varve
