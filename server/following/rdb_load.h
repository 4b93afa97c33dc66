// An RDB load replaces what the store holds by the strings of a Redis' copy. It writes them in
// large batches; the first one also empties all databases, so that a small copy takes the place of
// the old data in one step, and of a large one its beginning does. Named namespaces stay.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "absl/status/status.h"
#include "server/execution/server_state.h"
#include "server/following/skipped_keys.h"
#include "util/redis_format/rdb_reader.h"
#include "varve/write_batch.h"

namespace varve {

class RdbLoad {
 public:
  // Requires: both outlive the load.
  RdbLoad(ServerState* server, SkippedKeys* skipped) : server_(*server), skipped_(*skipped) {}

  // Adds what was read. An error is the store's; then part of the copy is in the store.
  [[nodiscard]] absl::Status Add(const RdbItem& item);
  // The copy is complete: on return all of it is as durable as the store's mode promises.
  [[nodiscard]] absl::Status Finish();

  // Returns how many keys were added, of all types.
  uint64_t keys() const { return keys_; }

 private:
  // Has the first batch empty the databases.
  absl::Status Begin();
  absl::Status Submit();
  // Creates the database if it is not there.
  absl::Status Open(NamespaceId database);
  // Returns nothing if the store has no such database, or the key is too long.
  std::optional<NamespaceId> PlaceOf(const RdbItem& item);

  ServerState& server_;
  SkippedKeys& skipped_;
  WriteBatch batch_;
  std::set<NamespaceId> databases_;  // that exist
  SequenceNumber durable_after_ = kNoSequence;
  uint64_t keys_ = 0;
  bool begun_ = false;
};

}  // namespace varve
