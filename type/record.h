// One version of one key: the plain value that log, write buffer, segments and iterators pass
// around. The bytes it takes on disk are drawn in db/format/record_format.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "varve/types.h"

namespace varve {

// The kind of an operation. On disk as the low 4 bits of a record's first byte: never renumber.
enum class RecordKind : uint8_t {
  kValue = 1,           // key -> value
  kTombstone = 2,       // key is deleted
  kRangeTombstone = 3,  // every key in [key, value) older than this is deleted
  // Log only: namespace (key: 4 bytes) continues in a new generation (value: 4 bytes).
  kSwitchGeneration = 4,
  // Log only: somebody has seen the clock at this instant (value: 8 bytes, ms since the epoch).
  kClockMark = 5,
  // Log only: creates, alters, drops or swaps namespaces (db/format/namespace_change.h).
  kChangeNamespace = 6,
};

// Flags in the high 4 bits of a record's first byte. Each names a field or a meaning that has its
// place from the start.
enum RecordFlags : uint8_t {
  kNoFlags = 0,
  kHasExpiry = 0x10,    // 8 bytes: expiry instant, milliseconds since the epoch
  kHasMetadata = 0x20,  // length-prefixed bytes
  kSoftDeleted = 0x40,  // deleted, but kept for restoring
  // In a segment: the value is a value handle (db/format/value_handle.h). In the log: a large
  // operation (db/format/large_operation.h).
  kSeparatedValue = 0x80,

};

// Views into somebody's memory: valid as long as the source says.
struct RecordView {
  std::string_view key;  // tree key
  std::string_view value;
  std::string_view metadata;
  SequenceNumber sequence = kNoSequence;
  uint64_t expiry_ms = 0;  // 0: never
  RecordKind kind = RecordKind::kValue;
  uint8_t flags = kNoFlags;
  // The place of a large operation in its log block's payload (db/log/log.h). 0: it is none, or
  // that is not known.
  uint32_t log_offset = 0;
};

// The order of the tree: keys ascending as unsigned bytes, versions of one key newest first.
// Negative, zero or positive.
inline int CompareInternal(std::string_view a_key, SequenceNumber a_sequence,
                           std::string_view b_key, SequenceNumber b_sequence) {
  if (const int by_key = a_key.compare(b_key); by_key != 0) return by_key;
  return a_sequence > b_sequence ? -1 : a_sequence < b_sequence ? 1 : 0;
}

}  // namespace varve
