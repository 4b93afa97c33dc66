// The rules that hold for the whole tree, as functions from a directory to what breaks them there.
//
//   arrows          an include goes to the same room or to one below it (rooms.h)
//   root-relative   an include of our own names its folder: "db/log/log.h", never "log.h" or
//                   "../log/log.h"; a public header is "varve/store.h"; and the file exists
//   headers         open with a comment that says what they are for, and have #pragma once
//   folders         of code and of tests hold at most kMaxFiles files; docs/decisions is one list
//                   of records and not a folder of code, so the rule does not count it
//   lines           of code have at most kMaxColumns columns
//   functions       have at most kMaxFunctionLines lines
//   classes         have at most kMaxMembers data members and kMaxFunctions functions of their
//                   own, constructors and destructors apart
//   loops           no range-for goes through f()->g(): where f returns a shared_ptr, it is let go
//                   of before the first round, and what the loop goes through may be gone
//   names           two headers of the product define no type of one name: a program that links
//                   both would mix them up, and no compiler tells
//   sentences       a comment in a header begins with a sentence, and not with a fragment of one
//                   such as "Whether the file exists"
//   paths           nothing speaks of a directory that exists on one machine only
//   leftovers       no to-do notes: a gap is named in docs/ or closed
//
// Thread-safety: pure functions over the file system.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "unit-tests/layering/rooms.h"

namespace varve {

inline constexpr size_t kMaxFiles = 40;
inline constexpr size_t kMaxColumns = 100;

inline constexpr size_t kMaxFunctionLines = 60;
inline constexpr size_t kMaxMembers = 25;
inline constexpr size_t kMaxFunctions = 40;

// What a tree may keep although a rule forbids it. An exception that nothing needs any more is
// itself reported, so that the list can only shrink.
struct Exceptions {
  std::set<Arrow> arrows;
  std::set<std::string> long_functions;
  std::set<std::string> large_classes;
  // Classes that are tables of settings or of counters, with the reason why each is one. They stay.
  std::map<std::string, std::string> tables;
  size_t fragments = 0;  // so many comments of headers may still begin with one
};

// The exceptions of this repository.
const Exceptions& KnownExceptions();

// Returns what breaks the rules under `root`, as "path:line: what"; nothing when all is well. Looks
// at files that are written by hand: sources, build files, scripts, documents and pictures, but
// neither at build output nor at data.
std::vector<std::string> FindViolations(const std::string& root, const Exceptions& exceptions = {});

// Returns how many files FindViolations looks at.
size_t CountScannedFiles(const std::string& root);

}  // namespace varve
