// The replica reader reads what the recorder retains for a follower: whole blocks, with the store's
// own operations, as far as they are on disk.
//
// Thread-safety: one thread at a time uses a reader.
// Invariants: position() never falls, and blocks that follow each other were returned up to it.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "db/changes/change_block.h"
#include "db/changes/change_recorder.h"
#include "varve/replication.h"
#include "varve/types.h"

namespace varve {

class ReplicaReader final : public ReplicaFeed {
 public:
  // `durable` returns the newest version that is on disk.
  // Requires: the recorder outlives the reader.
  ReplicaReader(ChangeRecorder* recorder, std::function<SequenceNumber()> durable,
                SequenceNumber since)
      : recorder_(*recorder), durable_(std::move(durable)), position_(since) {}

  absl::StatusOr<std::string> Next(size_t most_bytes) override;
  SequenceNumber position() const override { return position_; }

 private:
  absl::StatusOr<std::string> NextUnguarded(size_t most_bytes);
  // Reads what follows of one block, up to `durable`, into `*block`. Returns false if there is
  // nothing.
  absl::StatusOr<bool> ReadBlock(SequenceNumber durable, ChangeBlock* block);

  ChangeRecorder& recorder_;
  const std::function<SequenceNumber()> durable_;
  SequenceNumber position_;
  ChangeReadPlace place_;
};

}  // namespace varve
