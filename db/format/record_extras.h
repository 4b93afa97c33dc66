// Record extras are the optional part of a record's header, which the flags kHasExpiry and
// kHasMetadata announce. Records of segments, operations of the log and large operations carry them
// in the same form:
//
//      .   8  expiry in ms since the epoch           (kHasExpiry)
//      .   v  varint32 size and bytes of metadata    (kHasMetadata)
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>

#include "type/record.h"
#include "util/base/coding.h"

namespace varve {

struct RecordExtras {
  uint64_t expiry_ms = 0;
  uint32_t metadata_size = 0;
};

// Decodes the extras that lie at `at` and before `limit`. Returns where the bytes of the metadata
// begin; null if the extras are cut short.
inline const char* DecodeExtras(const char* at, const char* limit, uint8_t flags,
                                RecordExtras* extras) {
  if ((flags & kHasExpiry) != 0) {
    if (limit - at < 8) return nullptr;
    extras->expiry_ms = DecodeFixed64(at);
    at += 8;
  }
  if ((flags & kHasMetadata) != 0) at = DecodeVarint32(at, limit, &extras->metadata_size);
  return at;
}

}  // namespace varve
