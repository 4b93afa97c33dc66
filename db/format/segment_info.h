// A segment info is the description of one segment in the manifest. With it a store opens without
// reading its segments.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "db/format/key_counts.h"
#include "type/tree_key.h"
#include "varve/compression.h"
#include "varve/types.h"

namespace varve {

// A reference of a segment to one file with values (db/values/value_file.h).
struct ValueReference {
  uint64_t file_number = 0;
  uint64_t bytes = 0;  // size of the operations pointed to

  friend bool operator==(const ValueReference&, const ValueReference&) = default;
};

// The compressed bytes say what the values of one generation in a segment take, if its writer had
// to decide how they are compressed.
struct CompressedBytes {
  NamespaceGeneration generation = kNoGeneration;
  // How its records are compressed; of a segment that a flush wrote they are not.
  Compression compression;
  uint64_t plain_bytes = 0;   // of values, those kept apart among them
  uint64_t stored_bytes = 0;  // what they take on disk

  friend bool operator==(const CompressedBytes&, const CompressedBytes&) = default;
};

struct SegmentInfo {
  uint64_t number = 0;
  uint64_t file_size = 0;
  uint64_t entries = 0;     // records
  uint64_t tombstones = 0;  // point tombstones among them
  uint64_t range_tombstones = 0;
  // The version of the ingest that built the segment: every record of it reads as this sequence,
  // and every range tombstone as the one before it, whatever the file says, which was complete
  // before the commit gave them a number. kNoSequence: the segment is of a flush or a merge.
  SequenceNumber ingested_at = kNoSequence;
  std::string smallest;  // tree keys; range tombstones count: [smallest, largest] covers them
  // Inclusive for records; the exclusive end of a range tombstone may equal it (then
  // largest_is_exclusive).
  std::string largest;
  bool largest_is_exclusive = false;
  SequenceNumber smallest_sequence = kMaxSequence;
  SequenceNumber largest_sequence = kNoSequence;
  // The number of keys whose newest version in the segment is a value that no range tombstone of
  // the segment hides. The writer of the segment counts them; only the manifest holds the numbers.
  GenerationKeyCounts live;
  // `live` says how many of the keys expire. A manifest before version 4 did not.
  bool expiry_is_counted = true;
  // The segment holds something of a generation that was forked from another one, so `live` does
  // not say what the segment changes, whatever lies below it.
  bool of_clones = false;
  // The files with its separated values, in the order in which their records come;
  // db/segment/segment_values.h gives them addresses.
  std::vector<ValueReference> value_files;
  // Ascending by generation; only those whose namespace says that values are compressed. The writer
  // of the segment counts them; only the manifest holds the numbers.
  std::vector<CompressedBytes> compressed;

  uint64_t referenced_bytes() const {
    uint64_t bytes = 0;
    for (const ValueReference& reference : value_files) bytes += reference.bytes;
    return bytes;
  }
};

// Returns whether the segment may hold keys at or behind `key`.
inline bool ReachesTo(const SegmentInfo& segment, std::string_view key) {
  return segment.largest_is_exclusive ? key < segment.largest : key <= segment.largest;
}

}  // namespace varve
