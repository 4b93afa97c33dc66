// By how much a layer changes the keys that are live below it. A layer is some records and range
// tombstones that are newer than a super version: those of a segment, of several runs or of a write
// buffer.
//
// There are two ways, and the cheaper one is taken: looking up what each record replaced, where
// mostly a fingerprint says "nothing" without a read, or walking the layer and the keys below it
// side by side, which reads both in order. What range tombstones cover is always walked.
//
// Thread-safety: stateless functions; a BufferProgress belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "db/counting/key_ledger.h"
#include "db/format/key_tally.h"
#include "db/version/super_version.h"
#include "db/write_buffer/write_buffer.h"

namespace varve {

// How far a write buffer has been looked through, and what that part of it changes.
struct BufferProgress {
  std::shared_ptr<WriteBuffer> buffer;
  SequenceNumber at = kNoSequence;
  WriteBuffer::Position position;
  uint64_t walked = 0;  // records
  KeyTallies change;
  uint64_t epoch = 0;  // the key counter's, when the walk began
};

// The records and range tombstones of a write buffer with a sequence in (after, to], and what they
// lie upon.
struct Layer {
  std::shared_ptr<const SuperVersion> below;  // read at below_at
  SequenceNumber below_at = kMaxSequence;
  SequenceNumber after = kNoSequence;
  SequenceNumber to = kMaxSequence;
  RangeTombstoneList tombstones;
};

// Returns what finding out the change of one segment costs, in units of one record that is walked.
uint64_t CostOfChange(const Version& version, const KeyLedger::UnsettledSegment& unsettled);

// Returns what one segment of `state` changes. Asks `keep_on` now and then; Aborted when it returns
// false.
[[nodiscard]] absl::StatusOr<KeyTallies> ChangeOfSegment(
    const SuperVersion& state, const KeyLedger::UnsettledSegment& unsettled,
    absl::FunctionRef<bool()> keep_on);

// Returns what the newest `runs` runs of `state` change together. `keep_on` as above.
[[nodiscard]] absl::StatusOr<KeyTallies> ChangeOfNewestRuns(const SuperVersion& state, size_t runs,
                                                            absl::FunctionRef<bool()> keep_on);

// Adds to `progress->change` what the records of `buffer` in the layer change.
// Requires: progress->position is behind the records up to layer.after.
[[nodiscard]] absl::Status AddChangeOfBuffer(const Layer& layer, const WriteBuffer& buffer,
                                             BufferProgress* progress);

}  // namespace varve
