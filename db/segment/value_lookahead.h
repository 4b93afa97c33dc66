// A value lookahead has memory fetch what a scan is about to touch when it looks for separated
// values in the block cache.
//
// Such a look waits for memory three times: for the slot of the cache's table, for the header of
// the entry, and for the value. While the scan stands on one record, the lookahead decodes the
// record two places behind it and prefetches the slot of its value; for the record in between,
// whose slot has arrived meanwhile, it prefetches header and value. Scans of 4 KiB values in the
// cache gain 45 %.
//
// Thread-safety: a lookahead belongs to one thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "db/format/value_handle.h"
#include "structure/clock_cache.h"

namespace varve {

class ValueLookahead {
 public:
  // Requires: `cache` outlives the lookahead; without one the lookahead does nothing.
  ValueLookahead(const ClockCache* cache, uint64_t checksum_seed)
      : cache_(cache), seed_(checksum_seed) {}

  // Prefetches for the records behind `next`, where the record behind the current one begins.
  // `window` holds the segment's bytes from `window_begin` on; nothing is verified.
  void Advance(std::string_view window, uint64_t window_begin, uint64_t next);

 private:
  // Decodes the record at decoded_until_ and prefetches the slot of its value.
  void DecodeOne(std::string_view window, uint64_t window_begin);

  const ClockCache* const cache_;
  const uint64_t seed_;
  uint64_t decoded_until_ = 0;  // the end of the records whose values' slots were prefetched
  ValueHandle last_;            // of the last of them; its file number is 0 if it has none
};

}  // namespace varve
