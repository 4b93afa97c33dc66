// An archive place is a directory that holds what a store was at any time: bases, which are
// backups, and the changes behind each of them.
//
//   DEST/
//     ARCHIVE                     says that this is an archive, and its id; text
//     LOCK                        one run at a time writes here
//     BASE                        while a base is written: when it was begun; text
//     LAST                        how far the archive has come (tools/archive/archive_position.h)
//     base/                       the bases, a place of backups (tools/backup/backup_place.h)
//     changes/0000000001.arc ...  the changes (tools/archive/archive_file.h)
//
// ARCHIVE has two lines: "varve-archive 1", and "id" with 16 hexadecimal digits. BASE has one:
// "varve-archive-base 1" and the second of the server's clock, by which the next run knows what the
// server still holds for one that was killed.
//
// Thread-safety: one thread at a time uses a place; tools/archive/archive_chain.h reads one while
// another process writes to it.
// Invariants: a change file that has its name is whole and on disk, whenever a process is killed.
// Numbers of change files have no gap, also where a base begins another chain.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/archive/archive_position.h"
#include "tools/backup/backup_list.h"
#include "tools/backup/backup_place.h"
#include "util/os/file_system.h"
#include "varve/changes.h"

namespace varve {

inline constexpr std::string_view kArchiveName = "ARCHIVE";
inline constexpr std::string_view kArchiveLastName = "LAST";
inline constexpr std::string_view kArchiveBases = "base";
inline constexpr std::string_view kArchiveChanges = "changes";

// Returns the id in the file ARCHIVE of the directory. DataLoss: it is damaged. NotFound: there is
// none. FailedPrecondition: a later version of Varve has written it.
[[nodiscard]] absl::StatusOr<std::string> ReadArchiveId(FileSystem* file_system,
                                                        const std::string& directory);

class ArchivePlace {
 public:
  // Opens DEST, which it creates if needed, and finds out how far it has come. FailedPrecondition:
  // another run has it open, or other files are there.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ArchivePlace>> Open(
      FileSystem* file_system, const std::string& directory);
  ArchivePlace(const ArchivePlace&) = delete;
  ArchivePlace& operator=(const ArchivePlace&) = delete;

  // Returns how far the archive has come; nothing: it needs a base, for the reason of why_base().
  const std::optional<ArchivePosition>& position() const { return position_; }
  const std::string& why_base() const { return why_base_; }
  const std::string& id() const { return id_; }
  // Returns the place where bases are written.
  BackupPlace* bases() { return bases_.get(); }

  // The changes behind the position can't be had, or not be replayed: it is one no more.
  void NeedBase(std::string_view why);
  // Notes that a base is begun at that second of the server's clock; BeginChain() takes it back.
  [[nodiscard]] absl::Status NoteBaseBegins(uint64_t server_s);
  // Takes it back.
  [[nodiscard]] absl::Status ForgetBaseBegun();
  // Returns what was noted, and not taken back, by this run or one before.
  std::optional<uint64_t> base_began_s() const { return base_began_s_; }
  // Goes on from a base that lies in bases(). Returns once that is on disk.
  [[nodiscard]] absl::Status BeginChain(const BackupDescription& base);
  // Writes the next change file. Returns once it is on disk. Requires: there is a position and a
  // commit, and the commits ascend from the position.
  [[nodiscard]] absl::Status Append(absl::Span<const Change> commits);
  // Notes that nothing came behind the position until then. Requires: there is a position.
  [[nodiscard]] absl::Status NoteCurrent(uint64_t current_ms);

 private:
  ArchivePlace(FileSystem* file_system, std::string directory)
      : file_system_(file_system), directory_(std::move(directory)) {}

  std::string ChangesPath() const;
  absl::Status Prepare();
  absl::Status ReadOrWriteMarker();
  absl::Status ReadBegun();
  // Finds the position, and what a killed run had not noted there yet.
  absl::Status FindPosition();
  absl::Status FollowFiles();
  absl::Status CheckNewestFile() const;
  // Writes the file beside, syncs it, and gives it its name.
  absl::Status WriteFile(const std::string& directory, std::string_view name,
                         std::string_view bytes) const;
  absl::Status WritePosition(const ArchivePosition& position);

  FileSystem* const file_system_;
  const std::string directory_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<BackupPlace> bases_;
  std::string id_;
  std::optional<ArchivePosition> position_;
  std::string why_base_;
  std::optional<uint64_t> base_began_s_;
  uint64_t newest_number_ = 0;  // of the files that are there, or were
};

}  // namespace varve
