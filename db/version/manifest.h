// The one truth about what a store consists of: live segments by level and run, namespaces, where
// the log stands.
//
// File `MANIFEST`, written whole to `MANIFEST.tmp`, synced, renamed over the old one, directory
// synced: a crash leaves either the old or the new one. Some hundred bytes a segment.
// `MANIFEST.copy` follows in the same way, before anything that only the manifest before named is
// let go: what it names is a whole store, too. Nothing reads it but a repair, where MANIFEST is
// damaged.
//
//      0   8  magic "VARVEMAN"
//      8   4  format version (2; 3 where segments refer to value files; 1, which is read, too,
//          knows neither a clock mark nor descriptions
//             and bases of namespaces)
//     12   4  checksum of everything behind byte 16
//     16   8  size of everything behind byte 24
//     24   .  fields, drawn in manifest.cc
//
// Not thread-safe: the engine serializes installs.
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
// DataLoss names `path` and the offset of what is wrong.
[[nodiscard]] absl::StatusOr<Manifest> DecodeManifest(std::string_view bytes,
                                                      const std::string& path);

// NotFound: there is none.
[[nodiscard]] absl::StatusOr<Manifest> ReadManifest(FileSystem* file_system,
                                                    const std::string& directory);
[[nodiscard]] absl::StatusOr<Manifest> ReadManifestCopy(FileSystem* file_system,
                                                        const std::string& directory);
// On disk when it returns OK, with its copy. After an error either the old or the new one is what a
// restart finds (the new one only if the rename was done and the directory's sync failed): files
// that either of them names have to stay.
[[nodiscard]] absl::Status WriteManifest(FileSystem* file_system, const std::string& directory,
                                         const Manifest& manifest);

}  // namespace varve
