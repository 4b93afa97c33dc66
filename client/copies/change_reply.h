// The server's replies to CHANGES ... FULL as values.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "type/reply.h"
#include "varve/changes.h"

namespace varve {

struct ChangeReply {
  uint64_t history_id = 0;
  SequenceNumber next = kNoSequence;   // where the next request goes on
  SequenceNumber first = kNoSequence;  // the oldest version from which a reader can start
  std::vector<Change> commits;
};

// DataLoss: the reply makes no sense.
[[nodiscard]] absl::StatusOr<ChangeReply> ParseChangeReply(Reply reply);

}  // namespace varve
