// The target of a backup is where a copy of a server's files goes. The copying knows the wire and
// the target knows the files, so that the client's library stays free of the engine.
//
// Thread-safety: One thread at a time uses a target.
// Invariants: A copy has a name only once Seal() has verified it; a target that goes away before
// leaves nothing that could be taken for a backup.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace varve {

// The backup that a server holds, in its own words.
struct BackupSource {
  uint64_t store_id = 0;
  uint64_t history_id = 0;
  uint64_t version = 0;     // the last one that the backup has
  uint64_t instant_ms = 0;  // when that version was written, since the epoch
  // When the server sealed the backup, since the epoch: to a second, and not before instant_ms.
  uint64_t sealed_ms = 0;
};

class BackupTarget {
 public:
  virtual ~BackupTarget() = default;

  // Begins the copy. Fails where the target cannot take it: locked, foreign, not writable.
  [[nodiscard]] virtual absl::Status Begin(const BackupSource& source) = 0;
  // Returns whether an earlier backup has the file, which then need not be sent.
  [[nodiscard]] virtual absl::StatusOr<bool> Share(const std::string& name, uint64_t size) = 0;
  // Begins a file, which Append() is then given from its first byte to its last.
  [[nodiscard]] virtual absl::Status BeginFile(const std::string& name, uint64_t size) = 0;
  [[nodiscard]] virtual absl::Status Append(std::string_view bytes) = 0;
  // Returns once the file is on disk.
  [[nodiscard]] virtual absl::Status EndFile() = 0;
  // Verifies what was copied, writes the list of it, and gives the backup its name. Returns its id.
  [[nodiscard]] virtual absl::StatusOr<std::string> Seal() = 0;
};

}  // namespace varve
