// Pairs of keys and values as JSON lines: {"key":"city:1","value":"Zürich West"}. Bytes that are
// not UTF-8 stand in base64, under the names "key_base64" and "value_base64". For a key that
// expires, "expires_at_ms" gives the instant in milliseconds since the epoch; "metadata" is there
// where the key has some.
//
// Thread-safety: The functions are pure.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace varve {

// Appends one line with its line end. `expiry`: a number; empty: it does not expire.
void AppendJsonRecord(std::string_view key, std::string_view value, std::string_view expiry,
                      std::string_view metadata, std::string* out);

// Reads one line. Members with other names are skipped. InvalidArgument says which byte of the line
// is wrong.
[[nodiscard]] absl::Status ParseJsonRecord(std::string_view line, std::string* key,
                                           std::string* value, std::string* expiry,
                                           std::string* metadata);

}  // namespace varve
