// LogTrouble() writes a line into the program's log when the work of a background thread begins to
// fail and when it works again.
//
// Thread-safety: may be called on any thread.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "spdlog/spdlog.h"
#include "util/base/memory_guard.h"

namespace varve {

// Logs "<what>: works again" for OK, else the error. Without memory it logs nothing: the thread
// goes on.
inline void LogTrouble(std::string_view what, const absl::Status& status) noexcept {
  const auto level = status.ok() ? spdlog::level::info : spdlog::level::err;
  TryWithMemory(
      [&] { spdlog::log(level, "{}: {}", what, status.ok() ? "works again" : status.ToString()); });
}

}  // namespace varve
