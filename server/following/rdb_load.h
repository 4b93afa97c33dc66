// An RDB load replaces what the databases hold by the strings of a Redis' copy, in one step at its
// end: until then the strings go to namespaces of their own, "redis-copy-0" for database 0, and
// clients read what was there before. Where the copy is not completed, nothing has changed. Named
// namespaces of users stay.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/execution/server_state.h"
#include "server/following/skipped_keys.h"
#include "util/redis_format/rdb_reader.h"
#include "varve/write_batch.h"

namespace varve {

class RdbLoad {
 public:
  // Requires: both outlive the load.
  RdbLoad(ServerState* server, SkippedKeys* skipped) : server_(*server), skipped_(*skipped) {}
  // Removes a copy that was not completed.
  ~RdbLoad();
  RdbLoad(const RdbLoad&) = delete;
  RdbLoad& operator=(const RdbLoad&) = delete;

  // Adds what was read. An error is the store's.
  [[nodiscard]] absl::Status Add(const RdbItem& item);
  // The copy is complete and takes the place of what the databases held. On return that is as
  // durable as the store's mode promises. After an error nothing, or all of it, may have happened.
  [[nodiscard]] absl::Status Finish();

  // Returns how many keys were added, of all types.
  uint64_t keys() const { return keys_; }

  // Removes what the copies of earlier processes have left.
  [[nodiscard]] static absl::Status RemoveLeftovers(Store* store);

 private:
  // Returns whether the store can hold the key; if not, that is noted.
  bool Fits(const RdbItem& item);
  // Returns the namespace for the keys of the database, and creates it if it is not there.
  absl::StatusOr<NamespaceId> StagingOf(NamespaceId database);
  absl::Status Submit();

  ServerState& server_;
  SkippedKeys& skipped_;
  WriteBatch batch_;
  std::map<NamespaceId, NamespaceId> staging_;  // of each database
  uint64_t keys_ = 0;
};

}  // namespace varve
