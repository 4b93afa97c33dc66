// Pairs as JSON lines: {"key":"city:1","value":"Zürich West"}. Where bytes are not UTF-8 they stand in base64, under the names
// "key_base64" and "value_base64". Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace varve {

// Appends one line with its line end.
void AppendJsonRecord(std::string_view key, std::string_view value, std::string* out);

// Reads one line. Members with other names are skipped. InvalidArgument says which byte of the line is wrong.
[[nodiscard]] absl::Status ParseJsonRecord(std::string_view line, std::string* key, std::string* value);

}  // namespace varve
