#include "util/base/status.h"

#include <errno.h>
#include <fmt/format.h>
#include <string.h>

#include <string>

namespace varve {
namespace {

struct ErrnoMeaning {
  absl::StatusCode code;
  std::string_view advice;  // empty where nobody can act on it
};

ErrnoMeaning MeaningOf(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return {absl::StatusCode::kResourceExhausted, "free space on this file system"};
    case EDQUOT:
      return {absl::StatusCode::kResourceExhausted, "raise the disk quota or free space under it"};
    case EFBIG:
      return {absl::StatusCode::kResourceExhausted, "raise the file size limit (ulimit -f)"};
    case EMFILE:
      return {absl::StatusCode::kResourceExhausted,
              "raise the process's limit of open files (ulimit -n)"};
    case ENFILE:
      return {absl::StatusCode::kResourceExhausted,
              "raise the machine's limit of open files (fs.file-max)"};
    case ENOMEM:
      return {absl::StatusCode::kResourceExhausted, "free memory on this machine"};
    case ENOENT:
      return {absl::StatusCode::kNotFound, ""};
    case EEXIST:
      return {absl::StatusCode::kAlreadyExists, ""};
    case EACCES:
    case EPERM:
      return {absl::StatusCode::kPermissionDenied, "give the server's user access to it"};
    case EROFS:
      return {absl::StatusCode::kPermissionDenied, "mount the file system writable"};
    case EIO:
      return {absl::StatusCode::kInternal, "check the device and the kernel's log"};
    default:
      return {absl::StatusCode::kInternal, ""};
  }
}

// "No space left on device (ENOSPC)", or "error 4711" where the C library knows none.
std::string Describe(int errno_value) {
  const char* name = strerrorname_np(errno_value);
  const char* description = strerrordesc_np(errno_value);
  if (name == nullptr || description == nullptr) return fmt::format("error {}", errno_value);
  return fmt::format("{} ({})", description, name);
}

}  // namespace

absl::Status IoError(int errno_value, std::string_view operation, std::string_view path,
                     uint64_t offset) noexcept {
  const ErrnoMeaning meaning = MeaningOf(errno_value);
  return StatusInWords(meaning.code, [&] {
    std::string message = fmt::format("{} {}", operation, path);
    if (offset != kNoOffset) message += fmt::format(" at offset {}", offset);
    message += fmt::format(": {}", Describe(errno_value));
    if (!meaning.advice.empty()) message += fmt::format("; {}", meaning.advice);
    return message;
  });
}

absl::Status Corruption(std::string_view path, uint64_t offset, std::string_view what) noexcept {
  return StatusInWords(absl::StatusCode::kDataLoss, [&] {
    return fmt::format("{} is damaged at offset {}: {}", path, offset, what);
  });
}

}  // namespace varve
