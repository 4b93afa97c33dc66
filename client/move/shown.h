// Keys and names as a move shows them to people.
//
// Thread-safety: The function is pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/string_view.h"

namespace varve {

// Returns the bytes without any that a terminal would obey, or the beginning of many.
inline std::string Shown(std::string_view bytes) {
  constexpr size_t kMost = 200;
  const std::string_view begin = bytes.substr(0, kMost);
  std::string text = absl::Utf8SafeCHexEscape(absl::string_view(begin.data(), begin.size()));
  if (bytes.size() > kMost) text += "...";
  return text;
}

}  // namespace varve
