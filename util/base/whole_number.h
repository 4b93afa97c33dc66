// ParseWholeNumber reads a number that is written in digits alone, as files and other programs
// write it.
//
// Thread-safety: a pure function.
#pragma once

#include <charconv>
#include <concepts>
#include <string_view>
#include <system_error>

namespace varve {

// Reads the number into `*number`. Returns false if the text is empty, has anything but digits of
// the base (a sign or a blank, say), or is beyond `Number`. Base 16 takes digits of either case and
// no prefix.
template <std::integral Number>
[[nodiscard]] bool ParseWholeNumber(std::string_view text, Number* number, int base = 10) {
  if (text.starts_with('-')) return false;
  const char* const limit = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), limit, *number, base);
  return error == std::errc() && end == limit;
}

}  // namespace varve
