// Checks of backups: what lies in a directory, and whether every byte of backups is as it was when
// they were made.
//
// Thread-safety: functions without state of their own.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "tools/verify.h"
#include "util/os/file_system.h"

namespace varve {

enum class DirectoryContent : uint8_t {
  kNothing,  // that Varve knows
  kStore,    // a store's directory
  kBackup,   // one backup (tools/backup/backup_list.h)
  kBackups,  // a place with backups (tools/backup/backup_place.h)
  kArchive,  // a file with the name ARCHIVE
};

// Returns what lies in the directory, as its names tell. NotFound: there is no such directory.
[[nodiscard]] absl::StatusOr<DirectoryContent> ContentOf(FileSystem* file_system,
                                                         const std::string& directory);

struct BackupsReport {
  uint64_t backups = 0;
  // The report is that of all backups together; the files of findings are `backup-id/file`. A file
  // that several backups share is read once, and counts for each of them.
  VerifyReport report;
};

// Verifies all backups of a place, or the backup that `directory` is: their lists, the size and the
// checksum of each file, and the store that each backup is (VerifyStore). A file that the list does
// not name is a leftover. NotFound: there is neither a place nor a backup. Damage is no error, nor
// is what the device can't read.
[[nodiscard]] absl::StatusOr<BackupsReport> VerifyBackups(FileSystem* file_system,
                                                          const std::string& directory,
                                                          const VerifyProgress& progress);

}  // namespace varve
