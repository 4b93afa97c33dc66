// The version of Varve that this is, the same for all its programs.
#pragma once

#include <cstdint>

namespace varve {

inline constexpr const char* kVarveVersion = "0.1.0";

// The commit that the program was built from, as 12 hexadecimal digits, or "unknown". The build
// writes the definition (cmake/commit.cmake) into the library varve_commit, so that another commit
// compiles one file anew.
extern const char* const kVarveCommit;

// The newest format of the manifest that this version writes; it reads all before it, too
// (db/version/manifest.h).
inline constexpr uint32_t kManifestFormatVersion = 7;

}  // namespace varve
