// Functions that count by how much a layer changes the number of live keys below it. A layer is a
// set of records and range tombstones that are newer than a super version: those of a segment, of
// several runs or of a write buffer.
//
// They take the cheaper of two ways. The first looks up what each record replaced; mostly a
// fingerprint answers "nothing" without a read. The second walks the layer and the keys below it
// side by side in key order, as a merge join does. Ranges that range tombstones cover are always
// walked.
//
// Thread-safety: stateless functions; a BufferProgress belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "db/counting/segment_key_counts.h"
#include "db/format/key_counts.h"
#include "db/version/super_version.h"
#include "db/write_buffer/write_buffer.h"

namespace varve {

// How far a write buffer was counted, and what that part of it changes.
struct BufferProgress {
  std::shared_ptr<WriteBuffer> buffer;
  SequenceNumber at = kNoSequence;
  WriteBuffer::Position position;
  uint64_t walked = 0;  // records
  GenerationKeyCounts change;
  uint64_t epoch = 0;  // the key counter's, when the walk began
};

// A layer of the records and range tombstones with a sequence in (after, to], and the super version
// below it.
struct Layer {
  std::shared_ptr<const SuperVersion> below;  // read at below_at
  SequenceNumber below_at = kMaxSequence;
  SequenceNumber after = kNoSequence;
  SequenceNumber to = kMaxSequence;
  RangeTombstoneList tombstones;
};

// Returns the cost of counting one segment, in units of one record that is walked.
uint64_t CostOfChange(const Version& version, const SegmentKeyCounts::UncountedSegment& uncounted);

// Returns what one segment of `state` changes. Calls `keep_on` now and then, and returns Aborted
// when it returns false.
[[nodiscard]] absl::StatusOr<GenerationKeyCounts> ChangeOfSegment(
    const SuperVersion& state, const SegmentKeyCounts::UncountedSegment& uncounted,
    absl::FunctionRef<bool()> keep_on);

// Returns what the newest `runs` runs of `state` change together. Calls `keep_on` as above.
[[nodiscard]] absl::StatusOr<GenerationKeyCounts> ChangeOfNewestRuns(
    const SuperVersion& state, size_t runs, absl::FunctionRef<bool()> keep_on);

// Adds to `progress->change` what the records of `buffer` in the layer change.
// Requires: progress->position is behind the records up to layer.after.
[[nodiscard]] absl::Status AddChangeOfBuffer(const Layer& layer, const WriteBuffer& buffer,
                                             BufferProgress* progress);

}  // namespace varve
