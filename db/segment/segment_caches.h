// The segment caches are what all segments of a store share: two byte budgets, the files that hold
// separated values, and the counters of what reads cost.
//
// The OffsetTableCache holds whole offset tables and fences. If a table is not resident, a point
// read fetches one page of it, and a later read loads the table once the pages read one by one have
// cost about as much. The block cache holds blocks of records, and larger records by themselves,
// whose checksums were verified once on entry. Both evict by CLOCK. What the block cache holds of a
// segment that is removed stays until the cache needs the room, as nobody asks for it any more.
//
// Thread-safety: all functions may be called by any thread.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "db/segment/offset_table_cache.h"
#include "db/values/value_file.h"
#include "structure/clock_cache.h"
#include "util/base/sharded_counter.h"

namespace varve {

struct SegmentStatistics {
  ShardedCounter lookups;       // point lookups that probed a table
  ShardedCounter record_reads;  // disk reads of point lookups for records or blocks
  // Disk reads of point lookups for pages of a table that was not resident.
  ShardedCounter table_page_reads;
  ShardedCounter false_positives;  // fingerprints that matched another key
  ShardedCounter block_cache_hits;
  ShardedCounter block_cache_misses;
  ShardedCounter table_loads;  // disk reads of footers, whole tables and fences
  ShardedCounter scan_reads;   // disk reads of iterators
};

// The block cache holds a record of up to this size together with its block, and a larger one by
// itself.
inline constexpr uint64_t kMaxRecordCachedByBlock = 1024;

// The block cache finds an entry by the number of a segment or value file and one of these keys.
// The lowest bit of the key tells blocks from single records and values. The key of a block follows
// from the offset of any record in it; the entry's base is where the block begins.
inline uint64_t BlockKey(uint64_t offset, uint32_t block_size) {
  return offset >> std::countr_zero(block_size) << 1;
}
inline uint64_t RecordKey(uint64_t offset) { return offset << 1 | 1; }

// A scan uses the block cache as this says.
struct CacheUse {
  // NOLINTNEXTLINE(google-explicit-constructor): most scans differ in the first only
  CacheUse(bool fills_it, bool has_values = false, bool value_of_each = false)
      : fills(fills_it), values(fills_it && has_values), reads_values(value_of_each) {}

  bool fills;         // blocks go through the cache
  bool values;        // the reader looks there for the separated value of each record, too
  bool reads_values;  // the reader takes the value of each record, wherever it is
};

struct SegmentCaches {
  SegmentCaches(size_t offset_table_bytes, size_t block_bytes, bool has_mapped_reads = false)
      : tables(offset_table_bytes), blocks(block_bytes), kernel_caches_gets(has_mapped_reads) {}

  OffsetTableCache tables;
  ClockCache blocks;  // a capacity of 0 switches it off
  // Gets leave what they read to the kernel's cache and do not fill the block cache: files have
  // mapped reads (util/os/mapped_reads.h), and the copy of one record costs less than a block.
  const bool kernel_caches_gets;
  ValueFiles values;
  std::atomic<uint64_t> scan_reach{0};  // for segments to come (db/segment/scan_history.h)
  SegmentStatistics statistics;
};

}  // namespace varve
