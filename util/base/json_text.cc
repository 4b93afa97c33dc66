#include "util/base/json_text.h"

#include <iterator>

#include "fmt/format.h"

namespace varve {

size_t Utf8CharacterSize(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t size = byte(0) < 0x80   ? 1
                      : byte(0) < 0xC2 ? 0
                      : byte(0) < 0xE0 ? 2
                      : byte(0) < 0xF0 ? 3
                      : byte(0) < 0xF5 ? 4
                                       : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what is behind the last character.
  if (size == 3 && byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (size == 3 && byte(0) == 0xED && byte(1) >= 0xA0) return 0;
  if (size == 4 && byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (size == 4 && byte(0) == 0xF4 && byte(1) >= 0x90) return 0;
  return size;
}

void AppendJsonText(std::string_view text, std::string* json) {
  *json += '"';
  while (!text.empty()) {
    const size_t size = Utf8CharacterSize(text);
    const char first = text[0];
    if (size == 0) {
      *json += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      *json += '\\';
      *json += first;
    } else if (static_cast<unsigned char>(first) < 0x20) {
      fmt::format_to(std::back_inserter(*json), "\\u{:04x}", static_cast<int>(first));
    } else {
      *json += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  *json += '"';
}

}  // namespace varve
