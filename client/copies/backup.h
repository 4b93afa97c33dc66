// The copying of a server's files into a backup, over the ordinary port and with the server's
// BACKUP commands: START and SEAL pin the files, FETCH brings them, MANIFEST last, and CLEANUP ends
// the pins.
//
// Thread-safety: All threads may call the function, each with a client of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/copies/backup_target.h"

namespace varve {

struct BackupCopyOptions {
  uint64_t bytes_per_second = 0;  // 0: as fast as it goes
};

struct BackupResult {
  std::string id;
  uint64_t version = 0;
  uint64_t files = 0;
  uint64_t new_bytes = 0;     // that were sent
  uint64_t shared_bytes = 0;  // that an earlier backup had
  // Not OK: the backup is complete, and the server still holds its files; the words say what to do.
  absl::Status released;
};

// Called with the bytes that are done, and of how many. False: the copying ends with Cancelled.
using BackupProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Takes a backup of the client's server and gives it to the target. FailedPrecondition: the server
// is at another backup, or gave this one up. PermissionDenied: the user lacks rights. Unavailable
// or Unknown: the connection was lost. After an error the server is asked to give up what it holds
// for this backup, and never what it holds for another one.
[[nodiscard]] absl::StatusOr<BackupResult> CopyBackup(Client* client,
                                                      const BackupCopyOptions& options,
                                                      BackupTarget* target,
                                                      const BackupProgress& progress);

}  // namespace varve
