// Builders of the errors that cross module boundaries, and the two macros that pass them on.
//
// Each message says what was being done, where (file and offset) and, where somebody can act, what
// to do. Codes:
//
//   IoError, by errno
//     ENOSPC EDQUOT EFBIG          ResourceExhausted   the disk or a quota is full: not final,
//                                                      space may return
//     EMFILE ENFILE ENOMEM         ResourceExhausted   a limit of the process or the machine
//     ENOENT                       NotFound
//     EEXIST                       AlreadyExists
//     EACCES EPERM EROFS           PermissionDenied
//     anything else, such as EIO   Internal            the device or the kernel failed: a failed
//                                                      write is never retried as if it had been
//                                                      done
//   Corruption                     DataLoss            bytes were read as the device gave them, and
//                                                      they are wrong
//
// An I/O error is not DataLoss: the data may be whole and reachable again once the device is.
// Unavailable is left to the engine, for "poisoned" and "closing".
//
// Thread-safety: Everything here may be called from any thread. Nothing throws: where there is no
// memory for the message, the code alone is told.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "util/base/memory_guard.h"

namespace varve {

// For IoError where no offset is involved, as in opening or renaming a file.
inline constexpr uint64_t kNoOffset = std::numeric_limits<uint64_t>::max();

// `operation` is a verb such as "write" or "fdatasync"; `offset` counts bytes from the start of the
// file.
[[nodiscard]] absl::Status IoError(int errno_value, std::string_view operation,
                                   std::string_view path, uint64_t offset = kNoOffset) noexcept;

// `what` names the structure and the damage: "log block: checksum 0x12345678, expected 0x9abcdef0".
[[nodiscard]] absl::Status Corruption(std::string_view path, uint64_t offset,
                                      std::string_view what) noexcept;

// A copy that shares no memory with `status`, for a status that is kept under a lock and handed to
// several threads: abseil counts references where ThreadSanitizer cannot see it.
[[nodiscard]] inline absl::Status UnsharedCopy(const absl::Status& status) noexcept {
  return StatusInWords(status.code(), [&] { return status.message(); });
}

}  // namespace varve

// Returns from the enclosing function, with the error, if `expression` (an absl::Status) is not OK.
#define VARVE_RETURN_IF_ERROR(expression)                                 \
  do {                                                                    \
    if (absl::Status varve_status_ = (expression); !varve_status_.ok()) { \
      return varve_status_;                                               \
    }                                                                     \
  } while (false)

// VARVE_ASSIGN_OR_RETURN(auto file, OpenFile(path)): assigns the value of a StatusOr, or returns
// its error.
#define VARVE_ASSIGN_OR_RETURN(target, expression) \
  VARVE_ASSIGN_OR_RETURN_IMPL_(VARVE_CONCATENATE_(varve_status_or_, __LINE__), target, expression)

#define VARVE_ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) return std::move(result).status();           \
  target = *std::move(result)

#define VARVE_CONCATENATE_(left, right) VARVE_CONCATENATE_IMPL_(left, right)
#define VARVE_CONCATENATE_IMPL_(left, right) left##right
