// The answers of a primary to its follower (server/replica_commands/commands_replica.cc) as values.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/replication/lineage.h"
#include "type/reply.h"
#include "varve/types.h"

namespace varve {

// REPLICA HELLO
struct PrimaryHello {
  std::string id;
  uint64_t store_id = 0;
  Lineage lineage;  // `newest` is the newest version on the primary's disk
  SequenceNumber first_retained = kMaxSequence;
  std::vector<std::string> upstream;
};

// REPLICA PULL
struct PulledChanges {
  SequenceNumber newest = kNoSequence;
  uint64_t history_id = 0;
  SequenceNumber position = kNoSequence;  // up to which the blocks go
  std::string blocks;
};

// REPLICA ACK
struct AckAnswer {
  SequenceNumber newest = kNoSequence;
  std::vector<std::string> upstream;
};

// REPLICA COPY
struct CopyFile {
  std::string name;
  uint64_t size = 0;
};
struct CopyAnswer {
  SequenceNumber version = kNoSequence;
  uint64_t store_id = 0;
  uint64_t history_id = 0;
  std::vector<CopyFile> files;  // MANIFEST is the last one
};

// DataLoss: the reply makes no sense.
[[nodiscard]] absl::StatusOr<PrimaryHello> ParseHello(const Reply& reply);
[[nodiscard]] absl::StatusOr<PulledChanges> ParsePull(Reply reply);
[[nodiscard]] absl::StatusOr<AckAnswer> ParseAck(const Reply& reply);
[[nodiscard]] absl::StatusOr<CopyAnswer> ParseCopy(const Reply& reply);

}  // namespace varve
