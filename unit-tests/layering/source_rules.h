// The rules that hold for the whole tree, as functions from a directory to what breaks them there.
//
//   arrows          type <- util <- structure <- db <- server, and client on type and util alone:
//                   an include never points up. Tests may include what the folder they mirror may,
//                   and unit-tests/testing, which may include what db/ may; tests of the server may
//                   use the client; benchmarks may include everything.
//   root-relative   an include of our own names its folder: "include/varve/store.h", never
//                   "store.h" or "../include/varve/store.h", and the file exists
//   headers         open with a comment that says what they are for, and have #pragma once
//   length          no source file beyond kMaxLines
//   paths           nothing speaks of a directory that exists on one machine only
//   leftovers       no to-do notes: a gap is named in docs/ or closed
// Thread-safety: pure functions over the file system.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace varve {

inline constexpr int kMaxLines = 420;

// What breaks the rules under `root`, as "path:line: what"; empty when all is well. Looks at files
// that are written by hand: sources, build files, scripts, documents and pictures, but neither at
// build output nor at data.
std::vector<std::string> FindViolations(const std::string& root);

// How many files FindViolations looks at.
size_t CountScannedFiles(const std::string& root);

// Whether a file in `from` (a folder such as "db" or "unit-tests/db") may include one in the folder
// `to`.
bool MayInclude(std::string_view from, std::string_view to);

}  // namespace varve
