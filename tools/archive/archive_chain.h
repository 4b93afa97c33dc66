// The chains of an archive: what can be restored from it, and what is missing or damaged. A chain
// is a base with the change files behind it.
//
// Change files form runs: each file names the checksum of the one before, and the first file of a
// run that of the list of its base. Another base of the same history that was taken while a run
// went on joins the run where it has come to: its chain begins with the file that holds what
// follows its version. Between two runs there is a gap.
//
// Thread-safety: functions without state of their own. Another process may write to the archive
// meanwhile.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/archive/archive_file.h"
#include "tools/archive/archive_first.h"
#include "tools/archive/archive_position.h"
#include "tools/backup/backup_list.h"
#include "tools/verify.h"
#include "util/os/file_system.h"

namespace varve {

struct ArchiveChain {
  BackupDescription base;
  uint64_t list_checksum = 0;  // of the base's list
  // Those that can be applied, in order. The first one may begin before the version of the base.
  std::vector<ArchiveFileHeader> files;
  // The first file that is missing or damaged while later ones of the chain are there; the name
  // begins with that of its directory.
  std::string broken_at;
  bool is_newest = false;  // the archive goes on behind it

  // Return the version, and its instant, with which the chain ends.
  SequenceNumber last() const { return files.empty() ? base.version : files.back().last; }
  uint64_t last_instant_ms() const {
    return files.empty() ? base.instant_ms : files.back().last_instant_ms;
  }
  // Returns whether a base of that history and version has what the chain has there, so that
  // nothing is missing between the two.
  bool Holds(uint64_t history_id, SequenceNumber version) const {
    return history_id == base.history_id && version >= base.version && version <= last();
  }
};

struct ArchiveContents {
  std::string id;
  std::vector<ArchiveChain> chains;         // in the order of their bases
  std::vector<StoreFinding> findings;       // damage, and files that nobody needs
  std::optional<ArchivePosition> position;  // nothing: LAST is missing or damaged
  ArchiveFirst first;                       // what was pruned
  uint64_t files = 0;                       // of changes
  uint64_t bytes = 0;                       // of them; only where all of them are read

  // Returns the instant up to which the chain tells what there was.
  uint64_t ReachOf(const ArchiveChain& chain) const;
  bool is_damaged() const;
};

// Reads the lists of bases and the headers of change files; `every_byte`: all of each change file.
// NotFound: there is no archive. FailedPrecondition: a later version of Varve has written it.
// Damage is no error.
[[nodiscard]] absl::StatusOr<ArchiveContents> ReadArchive(FileSystem* file_system,
                                                          const std::string& directory,
                                                          bool every_byte);

// Reads all of the archive, bases and all, and returns what ReadArchive() does with everything that
// is damaged.
[[nodiscard]] absl::StatusOr<ArchiveContents> CheckArchive(FileSystem* file_system,
                                                           const std::string& directory,
                                                           const VerifyProgress& progress);

}  // namespace varve
