// An archive place is a directory that holds what a store was at any time: bases, which are
// backups, and the changes behind each of them.
//
//   DEST/
//     ARCHIVE                     says that this is an archive, and its id; text
//     LOCK                        one run at a time writes here
//     BASE                        while a base is written: when it was begun; text
//     LAST                        how far the archive has come (tools/archive/archive_position.h)
//     FIRST                       where it begins, once something was pruned
//                                 (tools/archive/archive_first.h)
//     SENT                        that files go elsewhere (tools/archive/archive_sender.h); text
//     metrics.prom                figures for Prometheus (tools/archive/archive_metrics.h)
//     base/                       the bases, a place of backups (tools/backup/backup_place.h)
//     changes/0000000001.arc ...  the changes (tools/archive/archive_file.h)
//
// ARCHIVE has two lines: "varve-archive 1", and "id" with 16 hexadecimal digits. BASE has one:
// "varve-archive-base 1" and the second of the server's clock, by which the next run knows what the
// server still holds for one that was killed.
//
// Where files go elsewhere, the place keeps what it needs to go on: ARCHIVE, LAST and the list of
// the newest base. A change file and the files of a base lie here until they were sent.
//
// Thread-safety: one thread at a time uses a place; another one may use bases() and SendBase()
// meanwhile. tools/archive/archive_chain.h reads a place while another process writes to it.
// Invariants: a change file that has its name is whole and on disk, whenever a process is killed.
// Numbers of change files have no gap, also where a base begins another chain. LAST tells of no
// file that was not sent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tools/archive/archive_chain.h"
#include "tools/archive/archive_first.h"
#include "tools/archive/archive_metrics.h"
#include "tools/archive/archive_position.h"
#include "tools/archive/archive_sender.h"
#include "tools/backup/backup_list.h"
#include "tools/backup/backup_place.h"
#include "util/os/file_system.h"
#include "varve/changes.h"

namespace varve {

inline constexpr std::string_view kArchiveName = "ARCHIVE";
inline constexpr std::string_view kArchiveLastName = "LAST";
inline constexpr std::string_view kArchiveSentName = "SENT";
inline constexpr std::string_view kArchiveBases = "base";
inline constexpr std::string_view kArchiveChanges = "changes";

// Returns the id in the file ARCHIVE of the directory. DataLoss: it is damaged. NotFound: there is
// none. FailedPrecondition: a later version of Varve has written it.
[[nodiscard]] absl::StatusOr<std::string> ReadArchiveId(FileSystem* file_system,
                                                        const std::string& directory);

class ArchivePlace {
 public:
  // Opens DEST, which it creates if needed, and finds out how far it has come. `sender`: files go
  // there; null: they stay. FailedPrecondition: another run has it open, or other files are there,
  // or its files stay here and are to be sent, or the other way round.
  // Requires: the sender outlives the place.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<ArchivePlace>> Open(
      FileSystem* file_system, const std::string& directory, ArchiveSender* sender = nullptr);
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
  // Sends the files of a base that lies in bases(), if files are sent. Ends with Cancelled between
  // two files once `stopped` returns true.
  [[nodiscard]] absl::Status SendBase(const BackupDescription& base,
                                      const std::function<bool()>& stopped) const;
  // Goes on from a base that lies in bases() and was sent. Returns once that is on disk.
  [[nodiscard]] absl::Status BeginChain(const BackupDescription& base);
  // Has the next change files stand on a base that lies in bases() and was sent, and goes on where
  // it is. Requires: there is a position of the base's history, and every commit up to the base's
  // version was appended.
  [[nodiscard]] absl::Status JoinBase(const BackupDescription& base);
  // Returns the base that the next change files stand on. Requires: there is a position.
  const BackupDescription& base() const { return base_; }
  // Writes the next change file. Returns once it is on disk. Requires: there is a position and a
  // commit, and the commits ascend from the position.
  [[nodiscard]] absl::Status Append(absl::Span<const Change> commits);
  // Notes that nothing came behind the position until then. Requires: there is a position.
  [[nodiscard]] absl::Status NoteCurrent(uint64_t current_ms);
  // Removes the chains that no restore to the last `keep_ms` milliseconds before the position
  // needs. What is missing or damaged in them does not matter any more. Returns how many bases
  // went.
  // Requires: there is a position, files stay here, and nobody writes a base.
  [[nodiscard]] absl::StatusOr<uint64_t> Prune(uint64_t keep_ms);

 private:
  ArchivePlace(FileSystem* file_system, std::string directory, ArchiveSender* sender)
      : file_system_(file_system), directory_(std::move(directory)), sender_(sender) {}

  std::string ChangesPath() const;
  std::string PathOf(std::string_view name) const;
  absl::Status Prepare();
  absl::Status CheckNames() const;
  absl::Status MarkSent() const;
  // Removes what was sent, or was not sent and comes again.
  absl::Status RemoveSent() const;
  absl::Status RemoveIncomplete() const;
  // Returns where the archive begins once the chains before `kept` are gone.
  absl::StatusOr<ArchiveFirst> FirstOf(const ArchiveContents& contents, size_t kept) const;
  // Removes what FIRST says is not needed.
  absl::Status RemovePruned(const ArchiveFirst& first) const;
  absl::Status ReadOrWriteMarker();
  absl::Status ReadBegun();
  // Finds the position, and what a killed run had not noted there yet.
  absl::Status FindPosition();
  absl::Status FollowFiles();
  absl::Status CheckNewestFile();
  // Writes the file beside, syncs it, and gives it its name.
  absl::Status WriteFile(const std::string& directory, std::string_view name,
                         std::string_view bytes) const;
  absl::Status WritePosition(const ArchivePosition& position);
  absl::Status SendPosition();
  absl::Status GoOnFrom(const BackupDescription& base, const ArchivePosition& position);
  // A figure that can't be written does not stop the archive.
  void WriteMetrics() const;

  FileSystem* const file_system_;
  const std::string directory_;
  ArchiveSender* const sender_;
  std::unique_ptr<FileLock> lock_;
  std::unique_ptr<BackupPlace> bases_;
  std::string id_;
  std::optional<ArchivePosition> position_;
  BackupDescription base_;  // of the position
  std::string why_base_;
  std::optional<uint64_t> base_began_s_;
  uint64_t newest_number_ = 0;  // of the files that are there, or were
  uint64_t sent_ms_ = 0;        // the `current_ms` of the LAST that was sent; 0: it is to be sent
  ArchiveMetrics metrics_;
};

}  // namespace varve
