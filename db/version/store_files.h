// A store's directory as those see it who look into it while no server runs on it (tools/verify.h,
// tools/repair/repair.h). Stateless functions.
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

// The store's own files, by name: manifests, logs, segments and what a crash left of them.
// NotFound: the directory holds no store.
[[nodiscard]] absl::StatusOr<std::vector<StoreFile>> ListStoreFiles(FileSystem* file_system,
                                                                    const std::string& directory);

// Keeps servers away; null where there is no lock file or it can't be opened, as on a disk mounted
// read-only, since then no server can be running. FailedPrecondition: one is.
[[nodiscard]] absl::StatusOr<std::unique_ptr<FileLock>> LockForReading(
    FileSystem* file_system, const std::string& directory);

// The parts of the message of a Corruption() status; `file` has no directory.
struct DamagedPlace {
  std::string file;
  uint64_t offset = 0;
  std::string what;
};
DamagedPlace PlaceOf(const absl::Status& status);

}  // namespace varve
