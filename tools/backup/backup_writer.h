// A backup writer makes one backup in a place: it takes the files of a sealed copy of a store as
// they come, verifies them, and gives the backup its name only once all of it is on disk.
//
//   writer.Begin(origin, incremental)
//   for each file:   if (!*writer.Share(name, size)) { BeginFile(name, size), Append ..., EndFile }
//   writer.Seal()
//
// Verified is every byte of every file that was sent, and that the manifest, the segments and the
// files with values fit each other. A file that is shared with an earlier backup was verified when
// it was copied; it must still have its size, and a segment the footer that the manifest expects.
//
// Thread-safety: one thread at a time uses a writer.
// Invariants: until Seal() returns OK, the place holds the backups that it held before. After an
// error, and when a writer goes that has not sealed its backup, nothing of the backup is left.
// Requires: the place outlives the writer, and nobody else changes the place.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/backup/backup_list.h"
#include "tools/backup/backup_place.h"
#include "tools/verify.h"
#include "util/base/file_checksum.h"
#include "util/os/file_writer.h"
#include "varve/types.h"

namespace varve {

// The sealed copy of a store that a backup is made of.
struct BackupOrigin {
  uint64_t store_id = 0;
  uint64_t history_id = 0;
  SequenceNumber version = kNoSequence;
  uint64_t instant_ms = 0;
  uint64_t sealed_ms = 0;
};

class BackupWriter {
 public:
  // `progress` is told how far Seal() has come with verifying; empty: nobody is.
  explicit BackupWriter(BackupPlace* place, VerifyProgress progress = nullptr);
  ~BackupWriter();
  BackupWriter(const BackupWriter&) = delete;
  BackupWriter& operator=(const BackupWriter&) = delete;

  // Begins the backup. `incremental`: files that earlier backups have may be shared.
  [[nodiscard]] absl::Status Begin(const BackupOrigin& origin, bool incremental);
  // Returns whether the backup has the file now, because an earlier backup of the same store and
  // history has it: it need not be sent. InvalidArgument: no backup has a file of this name, or
  // this one has it already.
  [[nodiscard]] absl::StatusOr<bool> Share(const std::string& name, uint64_t size);
  // Begins a file of `size` bytes; InvalidArgument as for Share().
  [[nodiscard]] absl::Status BeginFile(const std::string& name, uint64_t size);
  [[nodiscard]] absl::Status Append(std::string_view bytes);
  // Puts the file on disk. DataLoss: it has not come whole.
  [[nodiscard]] absl::Status EndFile();
  // Verifies the backup, writes its list and gives it its name. Returns its id. DataLoss names the
  // file and the offset of what is damaged.
  [[nodiscard]] absl::StatusOr<std::string> Seal();

  // Returns what is known of the backup; all of it after Seal().
  const BackupDescription& description() const { return backup_; }

 private:
  enum class State : uint8_t { kNew, kBegun, kInFile, kSealed, kBroken };

  std::string Path() const { return place_.IncompletePathOf(backup_.id); }
  // Removes what there is of the backup if the status is an error, and returns it.
  absl::Status After(absl::Status status);
  absl::Status CheckState(State wanted) const;
  absl::Status TryBegin(const BackupOrigin& origin, bool incremental);
  absl::Status CheckName(const std::string& name) const;
  absl::StatusOr<bool> TryShare(const std::string& name, uint64_t size);
  absl::StatusOr<bool> LinkFrom(const BackupDescription& earlier, const BackupFile& file);
  absl::Status TryEndFile();
  absl::Status TrySeal();
  absl::Status Verify() const;
  absl::Status CheckManifest() const;
  absl::Status WriteList() const;
  absl::Status GiveName();

  BackupPlace& place_;
  const VerifyProgress progress_;
  State state_ = State::kNew;
  BackupDescription backup_;
  BackupListing earlier_;         // that files may be shared with
  std::set<std::string> names_;   // of the files so far
  std::set<std::string> shared_;  // those of them that earlier backups have
  // The file at hand.
  BackupFile file_;
  std::unique_ptr<FileWriter> writer_;
  FileChecksum checksum_;
};

}  // namespace varve
