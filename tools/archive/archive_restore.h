// The restore of an archive: a store as it was at any version or time that the archive reaches.
//
// The newest base at the point or before it is restored (tools/backup/restore.h), and the commits
// behind it are applied up to the point, before the store has its name. A commit is applied whole
// or not at all. Of several chains that reach the point, that of the newest base counts.
//
// Thread-safety: a function without state of its own.
// Invariants: the new directory is missing or empty, or holds the whole store, whenever the process
// is killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/archive/archive_chain.h"
#include "tools/backup/restore.h"
#include "tools/backup/restore_plan.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

// The point that is wanted; nothing: the newest one.
// Requires: at most one of them.
struct ArchivePoint {
  std::optional<SequenceNumber> at_version;
  std::optional<uint64_t> at_time_ms;
};

struct ArchiveRestoreReport {
  std::string base;
  SequenceNumber version = kNoSequence;  // whose state the store has
  uint64_t instant_ms = 0;               // of the version
  uint64_t commits = 0;                  // behind the base
  uint64_t change_files = 0;             // that they came from
  // The commit that followed, if the archive has one.
  SequenceNumber next_version = kNoSequence;
  uint64_t next_instant_ms = 0;
  SequenceNumber first_new_version = kNoSequence;
  // Namespaces that came behind the base, and so lack the options that they had.
  std::vector<std::string> without_options;
  // Namespaces that were given other names, which the archive does not tell up to here.
  std::vector<std::string> without_names;
};

// Chooses the chain that reaches the point. OutOfRange: none does, as the point lies before the
// first base, in a gap, or behind the end; the message says what can be had. DataLoss: a file is
// missing or damaged that leads there; the message names it. NotFound: there is no base.
[[nodiscard]] absl::StatusOr<const ArchiveChain*> ChooseChain(const ArchiveContents& contents,
                                                              const ArchivePoint& point);

// Restores to `new_directory`, which is missing or empty; errors are those of ReadArchive(),
// ChooseChain() and RestoreBackup(). After an error the new directory is as it was. `dry_run`:
// nothing is written, and the report tells of the base alone.
[[nodiscard]] absl::StatusOr<ArchiveRestoreReport> RestoreArchive(
    FileSystem* file_system, const std::string& directory, const std::string& new_directory,
    const ArchivePoint& point, bool dry_run, const RestoreProgress& on_progress);

}  // namespace varve
