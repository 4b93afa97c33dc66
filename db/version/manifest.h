// The manifest says what a store consists of: the live segments by level and run, the namespaces
// and the end of each log file.
//
// It is the file `MANIFEST`, some hundred bytes a segment. A writer writes it whole to
// `MANIFEST.tmp`, syncs it, renames it over the old one and syncs the directory, so that a crash
// leaves either the old or the new one. It then writes `MANIFEST.copy` in the same way, before the
// engine removes any file that only the previous manifest named, so that the copy names a whole
// store, too. Only a repair reads the copy, when MANIFEST is damaged.
//
//      0   8  magic "VARVEMAN"
//      8   4  format version: 5 to 7, by the options of namespaces; in a store whose upgrade is not
//             finalized 2, 3 if segments refer to value files, or 4 if keys may expire. Version 1
//             is read, too; it has no clock mark and no descriptions and forks of namespaces
//     12   4  checksum of everything behind byte 16
//     16   8  size of everything behind byte 24
//     24   .  fields, drawn in manifest.cc
//
// Thread-safety: stateless functions; the engine calls WriteManifest() from one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/format/manifest_contents.h"
#include "util/os/file_system.h"

namespace varve {

// Returns the numbers of the value files that the manifest's segments point into.
std::unordered_set<uint64_t> ValueFileNumbers(const Manifest& manifest);

std::string EncodeManifest(const Manifest& manifest);
// Returns DataLoss, with `path` and the offset of the damage, if the bytes are no manifest.
[[nodiscard]] absl::StatusOr<Manifest> DecodeManifest(std::string_view bytes,
                                                      const std::string& path);

// Both return NotFound if the file does not exist.
[[nodiscard]] absl::StatusOr<Manifest> ReadManifest(FileSystem* file_system,
                                                    const std::string& directory);
[[nodiscard]] absl::StatusOr<Manifest> ReadManifestCopy(FileSystem* file_system,
                                                        const std::string& directory);
// Writes the manifest and its copy; both are on disk when it returns OK. After an error a restart
// finds either the old manifest or, if the rename was done and only the sync of the directory
// failed, the new one. The caller must keep the files that either of them names.
[[nodiscard]] absl::Status WriteManifest(FileSystem* file_system, const std::string& directory,
                                         const Manifest& manifest);

}  // namespace varve
