// Conversions of bytes into what people and other programs read: escapes for a terminal, JSON
// strings, words.
//
// Thread-safety: The functions are pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

bool IsUtf8(std::string_view bytes);

// Returns text that is safe to show on a terminal: visible UTF-8 as it is, and \n \r \t \\ and \xHH
// for all else. `keep_lines` leaves line ends and tabs alone. The prompt and plain lines read the
// result back if it stands in double quotes (a quote is escaped if `quoted`).
std::string Escaped(std::string_view bytes, bool keep_lines = false, bool quoted = false);

// Columns that the text takes on a terminal.
size_t DisplayWidth(std::string_view utf8);
// The text cut to so many columns, with an ellipsis as its last one where something is missing.
std::string Fitted(std::string_view utf8, size_t columns);

// "..." with JSON's escapes; `utf8` is valid UTF-8.
void AppendJsonString(std::string_view utf8, std::string* out);
// A JSON string, or {"base64":"..."} for bytes that are not UTF-8.
void AppendJsonBytes(std::string_view bytes, std::string* out);

// Returns whether `word` is `lower`, in upper or lower case.
bool IsWord(std::string_view word, std::string_view lower);

// "1.5 MiB", "312 B".
std::string HumanBytes(double bytes);

}  // namespace varve
