// A backup place is a directory, DEST, that holds backups, each in a directory of its own.
//
//   DEST/
//     LOCK                          one run at a time writes here
//     20261125T193300Z-1234/        a backup (tools/backup/backup_list.h): a store's directory
//       MANIFEST 000010.seg ...     without a log
//       BACKUP                      its list
//     .incomplete-20261125T.../     of a run that was killed, or of a removal; the next run
//                                   removes it
//
// Backups of several stores may lie side by side. Other files and directories are left alone.
//
// Thread-safety: one thread at a time uses a place; ListBackups() may be called on any thread, and
// while another process writes to the place.
// Invariants: a directory whose name is the id of a backup is a whole backup, whenever a process is
// killed.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/backup/backup_list.h"
#include "util/os/file_system.h"

namespace varve {

struct BackupListing {
  std::vector<BackupDescription> backups;  // by the instant of the seal, oldest first
  // Each says what is wrong with the list of another backup: it is damaged, or a later version of
  // Varve has written it.
  std::vector<absl::Status> unreadable;
};

// Returns the backups in `directory`. Takes no lock. NotFound: there is no such directory.
[[nodiscard]] absl::StatusOr<BackupListing> ListBackups(FileSystem* file_system,
                                                        const std::string& directory);

// Removes a directory with the files in it. NotFound counts as done.
[[nodiscard]] absl::Status RemoveDirectoryWithFiles(FileSystem* file_system,
                                                    const std::string& path);

class BackupPlace {
 public:
  // Opens DEST, which it creates if needed, and removes what a killed run left. FailedPrecondition:
  // another run has it open, or it is itself a store, a backup or an archive.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<BackupPlace>> Open(
      FileSystem* file_system, const std::string& directory);
  BackupPlace(const BackupPlace&) = delete;
  BackupPlace& operator=(const BackupPlace&) = delete;

  [[nodiscard]] absl::StatusOr<BackupListing> List() const {
    return ListBackups(file_system_, directory_);
  }
  // Removes a backup. The files that it shares with other backups stay in those. NotFound: there is
  // no such backup.
  [[nodiscard]] absl::Status Remove(const std::string& id);

  FileSystem* file_system() const { return file_system_; }
  const std::string& directory() const { return directory_; }
  // Returns the path of a backup, and the path under which it lies until it is whole.
  std::string PathOf(const std::string& id) const { return directory_ + "/" + id; }
  std::string IncompletePathOf(const std::string& id) const;

 private:
  BackupPlace(FileSystem* file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}

  FileSystem* const file_system_;
  const std::string directory_;
  std::unique_ptr<FileLock> lock_;
};

}  // namespace varve
