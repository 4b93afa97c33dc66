#include "util/base/memory_guard.h"

#include <fmt/format.h>

namespace varve {

absl::Status OutOfMemory(std::string_view doing) noexcept {
  return StatusInWords(absl::StatusCode::kResourceExhausted, [&] {
    return fmt::format(
        "out of memory while {}; nothing of it was done, try again when there is more", doing);
  });
}

absl::Status OutOfThreads(std::string_view doing, const std::system_error& failed) noexcept {
  return StatusInWords(absl::StatusCode::kResourceExhausted, [&] {
    return fmt::format("no more threads while {}: {}; raise the limit of threads", doing,
                       failed.what());
  });
}

}  // namespace varve
