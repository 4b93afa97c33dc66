// Functions that write a text as a JSON string.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace varve {

// Returns the bytes of the UTF-8 character at the front of `text`; 0: there is none.
// Requires: `text` is not empty.
size_t Utf8CharacterSize(std::string_view text);

// Appends `text` with quotes to `*json`. Bytes that are no UTF-8 become U+FFFD each.
void AppendJsonText(std::string_view text, std::string* json);

}  // namespace varve
