// The answers of a store to reads and commits. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "varve/key_history.h"
#include "varve/types.h"

namespace varve {

// The answer to a point read. A missing key is an answer, not an error.
struct ReadResult {
  bool found = false;
  bool expired = false;                  // not found, because its time is over: at expiry_ms
  uint64_t expiry_ms = 0;                // milliseconds since the epoch; 0: never
  SequenceNumber version = kNoSequence;  // of the value found
  size_t value_size = 0;                 // in bytes
  // The point of the store's order of writes at which the key was read
  // (WriteBatch::RequireUnchanged).
  SequenceNumber read_sequence = kNoSequence;
  // The required durable sequence: durable_sequence() must reach this before the result may be let
  // out.
  SequenceNumber durable_after = kNoSequence;
  // There may be a value of more than ReadOptions::max_value_bytes; the other members mean nothing.
  bool too_large = false;
  // Null: there is none, or ReadOptions::with_metadata did not ask for it. Never empty.
  std::shared_ptr<const std::string> metadata;

  // Returns the bytes of `metadata`, none where it is null.
  std::string_view MetadataView() const {
    return metadata == nullptr ? std::string_view() : std::string_view(*metadata);
  }
};

// One answer of a MultiGet. `value` is reused: its memory is kept between calls.
struct MultiGetResult {
  ReadResult result;
  std::string value;
  absl::Status status;  // a key that can't be read doesn't fail the others
  // false: ReadOptions::max_bytes was reached before this key; the other members mean nothing.
  bool read = true;
};

// The answer to a commit.
struct CommitResult {
  SequenceNumber sequence = kNoSequence;  // of the batch's last operation
  // As in ReadResult; kNoSequence where the mode asks for no sync.
  SequenceNumber durable_after = kNoSequence;
};

// The answer to a count.
struct CountResult {
  uint64_t keys = 0;
  uint64_t bytes = 0;                          // of keys, values and metadata together
  SequenceNumber durable_after = kNoSequence;  // as in ReadResult
  uint64_t expiring = 0;                       // those of the keys that expire
  // The mean of the instants at which these expire, in milliseconds since the epoch.
  uint64_t mean_expiry_ms = kNoExpiry;
};

// One entry of a range that is read in slices (StoreReads::ReadRangeAsync).
struct RangeEntry {
  std::string key;
  std::string value;     // empty with ReadOptions::without_value
  std::string metadata;  // empty without ReadOptions::with_metadata
  uint64_t value_size = 0;
  SequenceNumber version = kNoSequence;
  uint64_t expiry_ms = 0;  // 0: never
};

// One slice of a range, in key order or against it.
struct RangeSlice {
  std::vector<RangeEntry> entries;
  // There may be entries behind the last one, or, if there is none, in the range at all.
  bool more = false;
  SequenceNumber durable_after = kNoSequence;  // as in ReadResult
};

// One step of a read that is explained, and the whole of it (StoreReads::ExplainGet).
struct ExplainedStep {
  std::string what;
  uint64_t nanos = 0;
  uint64_t disk_reads = 0;
};
struct ExplainedRead {
  ReadResult result;
  KeyState state = KeyState::kNeverThere;
  uint64_t value_bytes = 0;
  uint64_t tables_probed = 0;  // segments whose key range covers the key
  uint64_t disk_reads = 0;
  uint64_t cache_hits = 0;
  uint64_t nanos = 0;
  std::vector<ExplainedStep> steps;
};

}  // namespace varve
