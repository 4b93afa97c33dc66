// The change reader is the iterator over the change feed of an engine: it walks the blocks that the
// recorder retains, in files and in memory, and shows what the filter lets through.
//
// It delivers a commit once that is as durable as its writer asked, so no crash takes back what was
// delivered.
//
// Thread-safety: one thread at a time uses a reader.
// Invariants: position() never falls, and everything up to it was shown or filtered out.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/statusor.h"
#include "db/changes/change_block.h"
#include "db/changes/change_recorder.h"
#include "varve/changes.h"
#include "varve/types.h"

namespace varve {

class ChangeReader final : public ChangeIterator {
 public:
  // `deliverable` returns the newest version that may be delivered.
  // Requires: the recorder outlives the reader.
  ChangeReader(ChangeRecorder* recorder, std::function<SequenceNumber()> deliverable,
               SequenceNumber since, ChangeFilter filter)
      : recorder_(*recorder),
        deliverable_(std::move(deliverable)),
        filter_(std::move(filter)),
        position_(since) {}

  absl::StatusOr<bool> Next(size_t most_bytes) override;
  const Change& change() const override { return change_; }
  SequenceNumber position() const override { return position_; }

 private:
  absl::StatusOr<bool> NextUnguarded(size_t most_bytes);
  // Brings the block behind the position into memory. Returns false if nothing of it can be
  // delivered.
  absl::StatusOr<bool> ReadBlock(SequenceNumber deliverable);
  // Fills change_ with what the filter lets through.
  void Show(const ChangeCommit& commit);
  bool LetsThrough(ChangeRecord* record) const;

  ChangeRecorder& recorder_;
  const std::function<SequenceNumber()> deliverable_;
  const ChangeFilter filter_;
  SequenceNumber position_;
  ChangeReadPlace place_;
  size_t offset_ = 0;  // in the commits of the block
  Change change_;
};

}  // namespace varve
