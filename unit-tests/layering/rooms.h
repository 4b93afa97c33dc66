// The order of the rooms: which folder may include which.
//
// The rooms stand one above the other, and an include goes to the same room or to one below it. Two
// rules narrow that. The tools and the server stand side by side on the engine, and the client
// stands on the public headers, type/ and util/ alone, except for client/program, which may look
// into a store's files with the tools where the client's library may not. Tests may include what
// the room they mirror may, the tests of that room and of those below it, unit-tests/testing and
// the public headers.
//
// Thread-safety: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

// An include from one room into another.
struct Arrow {
  std::string from;
  std::string to;

  friend auto operator<=>(const Arrow&, const Arrow&) = default;
};

// Returns the folder of `path`, which is relative to the root of the repository: "db/log" for
// "db/log/log.h", and "" for a file in the root.
std::string_view FolderOf(std::string_view path);

// Returns the path that the quotes of an include name, relative to the root of the repository:
// "include/varve/store.h" for "varve/store.h", and every other one as it is.
std::string IncludedPath(std::string_view quoted);

// Returns whether `folder` lies in one of the top folders that hold code of this repository.
bool IsOurs(std::string_view folder);

// Returns whether `folder` may hold code: it is a room, or a folder of tests, of benchmarks or of
// examples.
bool IsRoom(std::string_view folder);

// Returns whether a file in the folder `from` may include one in the folder `to`.
bool MayInclude(std::string_view from, std::string_view to);

}  // namespace varve
