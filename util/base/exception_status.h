// A function that turns the exception that is being handled into a status, as GuardMemory does.
// Functions that run with a lock held use it: the thread-safety analysis follows a try block, but
// not the lambda that GuardMemory takes.
//
//   try {
//     return ChangeLocked();
//   } catch (...) {
//     return StatusOfException("changing it");
//   }
//
// Thread-safety: may be used on any thread.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "util/base/memory_guard.h"

namespace varve {

// `doing` completes "out of memory while ...".
// Requires: called in a catch block. An exception of another kind than GuardMemory knows ends the
// process.
inline absl::Status StatusOfException(std::string_view doing) noexcept {
  return GuardMemory(doing, []() -> absl::Status { throw; });
}

}  // namespace varve
