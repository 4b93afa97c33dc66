// A restore makes a store of a backup.
//
// The new store has a store id and a history id of its own, and all of its versions are beyond
// those that the old one had, so that nobody who holds a version or a place of a feed takes the one
// for the other. Feeds and retained changes stay behind. Files are copied, and their checksums are
// verified meanwhile.
//
// A backup of which namespaces keep a history can be restored as of an older version: each
// namespace then holds exactly what it held once that version had been written, less what has
// expired since. Namespaces that were not there yet go, and those that were dropped since come
// back. What was written behind the version is still found in the history of the restored store, as
// far as that is kept. Options that namespaces were given since then stay: the store does not
// remember older ones. Of a namespace that kept no history and was dropped since, nobody knows.
//
// The store is built beside the new directory, in PARENT/.incomplete-NAME, where the engine opens
// it once, and is then renamed.
//
// Thread-safety: functions without state of their own.
// Invariants: the new directory is missing or empty, or holds the whole store, whenever the process
// is killed. The next restore to the same directory removes what a killed one left.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/backup/backup_place.h"
#include "tools/backup/restore_plan.h"
#include "util/os/file_system.h"
#include "varve/store.h"
#include "varve/types.h"

namespace varve {

// A replay writes what came behind a backup to the store that is being restored.
//
// Thread-safety: any thread may call NowMillis(), also while Run() runs.
class RestoreReplay {
 public:
  virtual ~RestoreReplay() = default;

  // Called once, before the store has its name. Requires: nobody else writes to the store.
  [[nodiscard]] virtual absl::Status Run(Store* store) = 0;
  // Returns the instant, in milliseconds since the epoch, of what is being written. 0: that of the
  // backup.
  virtual uint64_t NowMillis() const = 0;
};

struct RestoreOptions {
  RestoreTarget target;
  bool dry_run = false;             // nothing is written; the report says what would be
  RestoreReplay* replay = nullptr;  // null: nothing is written behind the backup
};

struct RestoreReport {
  std::string backup_id;
  SequenceNumber version = kNoSequence;            // whose state the store has
  uint64_t instant_ms = 0;                         // of the version
  SequenceNumber first_new_version = kNoSequence;  // of the restored store's own
  uint64_t files = 0;
  uint64_t bytes = 0;
  // The names of namespaces, or the numbers of databases, that a restore as of an older version
  // changed.
  std::vector<std::string> rewound;
  std::vector<std::string> brought_back;
  std::vector<std::string> dropped;
};

// The restoring thread calls it now and then with the bytes that were copied, and of how many.
using RestoreProgress = std::function<void(uint64_t done, uint64_t total)>;

// Restores the backup in `backup_directory` to `new_directory`, which is missing or empty.
// FailedPrecondition: the new directory is not empty, or another restore works there. DataLoss
// names the file of the backup that is damaged. NotFound: there is no backup. OutOfRange and others
// as PlanRestore(). ResourceExhausted: the disk is full. After an error the new directory is as it
// was.
[[nodiscard]] absl::StatusOr<RestoreReport> RestoreBackup(FileSystem* file_system,
                                                          const std::string& backup_directory,
                                                          const std::string& new_directory,
                                                          const RestoreOptions& options,
                                                          const RestoreProgress& on_progress);

// Returns the id of the backup to restore: the newest one, or the oldest one that reaches to what
// is wanted, of the store and the history of the newest one. NotFound: there is no backup.
// OutOfRange: none reaches so far.
[[nodiscard]] absl::StatusOr<std::string> ChooseBackup(const BackupListing& listing,
                                                       const RestoreTarget& target);

}  // namespace varve
