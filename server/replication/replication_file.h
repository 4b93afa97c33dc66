// The replication file, REPLICATION in the store's directory, keeps what a server is to others
// across restarts: whom it follows, whether it has had followers, and the lineage of its store.
//
//   varve-replication 1
//   id <40 hex digits>            by which other servers know this one
//   primary <host> <port>         or: primary none; without the line, nobody has said yet
//   retains <0|1>                 changes are retained for followers
//   diverged <n>                  operations that went into diverged files
//   history <16 hex digits> <n>   a past history and its last version, oldest first
//   current <16 hex digits>       the history that goes on
//   checksum <16 hex digits>      XXH3-64 of everything before the line
//
// A promotion writes the file before the manifest: a store whose manifest has another history than
// `current` is given that one when it is opened.
//
// Thread-safety: stateless functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/replication/lineage.h"
#include "server/replication/replication_state.h"
#include "util/os/file_system.h"

namespace varve {

inline constexpr std::string_view kReplicationFile = "REPLICATION";

struct ReplicationRecord {
  std::string id;                         // empty: none was given yet
  std::optional<PrimaryAddress> primary;  // nothing: REPLICAOF was never given
  bool retains = false;
  uint64_t diverged = 0;
  Lineage lineage;  // without `newest`

  friend bool operator==(const ReplicationRecord& a, const ReplicationRecord& b) {
    return a.id == b.id && a.primary == b.primary && a.retains == b.retains &&
           a.diverged == b.diverged && a.lineage.past == b.lineage.past &&
           a.lineage.current == b.lineage.current;
  }
};

// Returns an empty record if there is no file. DataLoss: the file is damaged; the message says what
// to do.
[[nodiscard]] absl::StatusOr<ReplicationRecord> ReadReplicationFile(FileSystem* file_system,
                                                                    const std::string& directory);
// Replaces the file. It is on disk on return; after an error it is the old one or the new one.
[[nodiscard]] absl::Status WriteReplicationFile(FileSystem* file_system,
                                                const std::string& directory,
                                                const ReplicationRecord& record);

}  // namespace varve
