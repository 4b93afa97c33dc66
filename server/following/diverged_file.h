// A diverged file keeps the commits of a former primary that no other server has, so that a
// failover loses nothing silently. It is text in the protocol's plain form of requests, which
// `client_main` and `nc` execute: people decide what to do with it.
//
//   diverged-<history>-<version>.resp      versions behind <version> of that history
//
// Each commit begins with a comment line (an ECHO) of its version and instant; SELECT or NAMESPACE
// USE say where the requests that follow belong.
//
// Thread-safety: a stateless function.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "util/os/file_system.h"
#include "varve/replication.h"
#include "varve/types.h"

namespace varve {

struct DivergedFile {
  std::string path;  // empty: there was nothing to write
  uint64_t commits = 0;
  uint64_t operations = 0;
};

// Writes all commits behind `fork` into a file in `directory`, and puts it on disk. Trimmed: the
// store doesn't retain them. DataLoss: they are damaged.
// Requires: nobody writes to the store meanwhile, and all of it is on disk.
[[nodiscard]] absl::StatusOr<DivergedFile> WriteDivergedFile(FileSystem* file_system,
                                                             const std::string& directory,
                                                             ReplicatedStore* store,
                                                             uint64_t history_id,
                                                             SequenceNumber fork);

}  // namespace varve
