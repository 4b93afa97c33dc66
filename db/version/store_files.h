// Functions that list and lock the files of a store that no server has open, for the offline tools
// (tools/verify.h, tools/repair/repair.h).
//
// Thread-safety: stateless functions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/os/file_system.h"

namespace varve {

struct StoreFile {
  std::string name;
  uint64_t size = 0;
};

// Returns the store's own files, ascending by name: manifests, logs, segments, value and time files
// and what a crash left of them. NotFound: the directory holds no store.
[[nodiscard]] absl::StatusOr<std::vector<StoreFile>> ListStoreFiles(FileSystem* file_system,
                                                                    const std::string& directory);

// Locks the store against servers. Returns null if there is no lock file or it can't be opened, as
// on a disk that is mounted read-only: then no server can be running. FailedPrecondition: a server
// is running.
[[nodiscard]] absl::StatusOr<std::unique_ptr<FileLock>> LockForReading(
    FileSystem* file_system, const std::string& directory);

// The parts of the message of a Corruption() status. `file` is a name without directory.
struct DamagedPlace {
  std::string file;
  uint64_t offset = 0;
  std::string what;
};
DamagedPlace PlaceOf(const absl::Status& status);

}  // namespace varve
