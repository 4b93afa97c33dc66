// The list of a backup: which store the backup is of, as of which version, and which files with
// which checksums belong to it.
//
// It lies as the file BACKUP in the backup's directory, and is written last. It is text, a line for
// each entry:
//
//   varve-backup 1
//   id 20261125T193300Z-1234
//   store <16 hexadecimal digits>
//   history <16 hexadecimal digits>
//   version 1234
//   instant_ms 1764099180000
//   sealed_ms 1764099181000
//   new_bytes 4096
//   shared_bytes 0
//   file <name> <size> <16 hexadecimal digits: XXH3-64 of the content>    ascending by name
//   checksum <16 hexadecimal digits: XXH3-64 of everything before this line>
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "util/os/file_system.h"
#include "varve/types.h"

namespace varve {

struct BackupFile {
  std::string name;
  uint64_t size = 0;
  uint64_t checksum = 0;  // XXH3-64 of the content

  friend bool operator==(const BackupFile&, const BackupFile&) = default;
};

struct BackupDescription {
  std::string id;
  uint64_t store_id = 0;
  uint64_t history_id = 0;
  SequenceNumber version = kNoSequence;
  uint64_t instant_ms = 0;        // of the version
  uint64_t sealed_ms = 0;         // when the server sealed the backup; nothing later is in it
  uint64_t new_bytes = 0;         // of the files that were copied
  uint64_t shared_bytes = 0;      // of those that an earlier backup had
  std::vector<BackupFile> files;  // ascending by name; MANIFEST is among them

  // Returns null if the backup has no such file. Requires: the files ascend by name.
  const BackupFile* Find(std::string_view name) const;
  friend bool operator==(const BackupDescription&, const BackupDescription&) = default;
};

inline constexpr std::string_view kBackupListName = "BACKUP";

// Returns the id of a backup that was sealed then: the second in UTC, and the version.
std::string BackupIdOf(uint64_t sealed_ms, SequenceNumber version);
// Returns whether a backup may have the id. One that BackupIdOf() gave to an earlier backup may
// have "-2", "-3" and so on behind it.
bool IsBackupId(std::string_view id);
// Returns whether a file of a backup may have the name: that of the manifest, of a segment, a value
// file, a time file or a change file.
bool IsBackupFileName(std::string_view name);

std::string EncodeBackupList(const BackupDescription& backup);
// Returns DataLoss, with `path`, the offset and the line, for whatever EncodeBackupList() does not
// write, and FailedPrecondition if a later version of Varve has written the list.
[[nodiscard]] absl::StatusOr<BackupDescription> DecodeBackupList(std::string_view text,
                                                                 const std::string& path);
// Reads the list of the backup in `directory`. Returns NotFound if there is none, and what
// DecodeBackupList() returns.
[[nodiscard]] absl::StatusOr<BackupDescription> ReadBackupList(FileSystem* file_system,
                                                               const std::string& directory);

}  // namespace varve
