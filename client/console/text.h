// Bytes as people and other programs read and write them: escapes for a terminal, JSON, words. Pure
// functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

bool IsUtf8(std::string_view bytes);

// What is safe to show on a terminal: UTF-8 that can be seen as it is, \n \r \t \\ and \xHH for all
// else. `keep_lines` leaves line ends and tabs alone. The result, in double quotes, is what the
// prompt and plain lines read back (a quote is escaped where `quoted`).
std::string Escaped(std::string_view bytes, bool keep_lines = false, bool quoted = false);

// Columns that the text takes on a terminal.
size_t DisplayWidth(std::string_view utf8);
// The text cut to so many columns, with an ellipsis as its last one where something is missing.
std::string Fitted(std::string_view utf8, size_t columns);

// "..." with JSON's escapes; `utf8` is valid UTF-8.
void AppendJsonString(std::string_view utf8, std::string* out);
// A JSON string, or {"base64":"..."} for bytes that are not UTF-8.
void AppendJsonBytes(std::string_view bytes, std::string* out);

// Whether `word` is `lower`, in upper or lower case.
bool IsWord(std::string_view word, std::string_view lower);

// "1.5 MiB", "312 B".
std::string HumanBytes(double bytes);

}  // namespace varve
