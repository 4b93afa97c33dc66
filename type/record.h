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
  // On disk only: kValue and kTombstone with a cause of their own (WriteCause). What reads the log
  // or a segment sees the kinds kValue and kTombstone, and the cause beside them.
  kValueForExpiry = 7,
  kValueForMetadata = 8,
  kTombstoneOfExpired = 9,
  kTombstoneOfEvicted = 10,
  // Log only: a place of a reader of the change feed is made, moved or dropped.
  kChangeFeed = 11,
  // Log only: sorted segments became part of a namespace in one step.
  kIngest = 12,
  // 13 and 14 stand in segments alone, for kValue and kTombstone (db/format/record_format.h).
};

// Returns the kind that a store acts on: those with a cause of their own are kValue or kTombstone.
constexpr RecordKind KindWithoutCause(RecordKind kind) {
  switch (kind) {
    case RecordKind::kValueForExpiry:
    case RecordKind::kValueForMetadata:
      return RecordKind::kValue;
    case RecordKind::kTombstoneOfExpired:
    case RecordKind::kTombstoneOfEvicted:
      return RecordKind::kTombstone;
    default:
      return kind;
  }
}

// Returns the cause that a kind on disk says.
constexpr WriteCause CauseOf(RecordKind kind) {
  switch (kind) {
    case RecordKind::kValueForExpiry:
      return WriteCause::kExpiryChange;
    case RecordKind::kValueForMetadata:
      return WriteCause::kMetadataChange;
    case RecordKind::kTombstoneOfExpired:
      return WriteCause::kExpired;
    case RecordKind::kTombstoneOfEvicted:
      return WriteCause::kEvicted;
    default:
      return WriteCause::kWrite;
  }
}

// Returns the kind on disk of a put or a delete of this cause.
constexpr RecordKind KindOf(RecordKind kind, WriteCause cause) {
  switch (cause) {
    case WriteCause::kExpiryChange:
      return RecordKind::kValueForExpiry;
    case WriteCause::kMetadataChange:
      return RecordKind::kValueForMetadata;
    case WriteCause::kExpired:
      return RecordKind::kTombstoneOfExpired;
    case WriteCause::kEvicted:
      return RecordKind::kTombstoneOfEvicted;
    case WriteCause::kWrite:
      return kind;
  }
  return kind;
}

// Flags in the high 4 bits of a record's first byte. Each names a field or a meaning that has its
// place from the start.
enum RecordFlags : uint8_t {
  kNoFlags = 0,
  kHasExpiry = 0x10,    // 8 bytes: expiry instant, milliseconds since the epoch
  kHasMetadata = 0x20,  // length-prefixed bytes
  // In a segment or a value file: the value is compressed (db/format/compressed_value.h); beside
  // kSeparatedValue, the one that the handle leads to. The log never has it.
  kCompressed = 0x40,
  // In a segment: the value is a value handle (db/format/value_handle.h). In the log: a large
  // operation (db/format/large_operation.h).
  kSeparatedValue = 0x80,
};

class ValueDecoder;  // db/compression/value_decoder.h

// Views into somebody's memory: valid as long as the source says.
struct RecordView {
  std::string_view key;  // tree key
  std::string_view value;
  std::string_view metadata;
  SequenceNumber sequence = kNoSequence;
  uint64_t expiry_ms = 0;  // 0: never
  RecordKind kind = RecordKind::kValue;
  uint8_t flags = kNoFlags;
  WriteCause cause = WriteCause::kWrite;
  // The place of a large operation in its log block's payload (db/log/log.h). 0: it is none, or
  // that is not known.
  uint32_t log_offset = 0;
  // Reads the value where the flags have kCompressed. Set by iterators over segments, and as long
  // valid as the segment; null: the record is of no segment, or the value needs no dictionary.
  ValueDecoder* decoder = nullptr;
};

// The order of the tree: keys ascending as unsigned bytes, versions of one key newest first.
// Negative, zero or positive.
inline int CompareInternal(std::string_view a_key, SequenceNumber a_sequence,
                           std::string_view b_key, SequenceNumber b_sequence) {
  if (const int by_key = a_key.compare(b_key); by_key != 0) return by_key;
  return a_sequence > b_sequence ? -1 : a_sequence < b_sequence ? 1 : 0;
}

}  // namespace varve
