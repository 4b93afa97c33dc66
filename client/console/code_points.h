// The properties of characters on a terminal: how many columns a character takes, and whether it is
// better shown as an escape. They are a small extract of the Unicode Character Database
// (East_Asian_Width, General_Category).
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace varve {

// The length of the well-formed UTF-8 sequence at bytes[0]; 0 if there is none. `bytes` is not
// empty.
size_t Utf8Length(std::string_view bytes);
// The code point of a whole, well-formed sequence.
char32_t DecodeUtf8(std::string_view sequence);

// 2 for East Asian wide characters and emoji, 0 for marks that sit on the character before, 1 for
// all else.
size_t ColumnsOf(char32_t code_point);
// Steers a terminal or can't be seen: controls (also those of eight bits), marks of writing
// direction, blanks of no width.
bool IsHidden(char32_t code_point);

}  // namespace varve
