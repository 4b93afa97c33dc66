// The configuration file: TOML with one line `name = value` for each setting, the names of the
// flags, and no sections. Reading names every mistake with its line. Rewriting changes only the
// lines whose values have changed, so comments and order stay.
//
// Thread-safety: All threads may call the functions as long as nobody else changes the file.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/config/settings.h"

namespace varve {

// Reads the file into `*config`. InvalidArgument: what is wrong, each mistake a line "path:line:
// ..."; then `*config` is of no use.
[[nodiscard]] absl::Status ReadConfigFile(const std::string& path, ServerConfig* config);
// Does the same for a text; `path` is for messages.
[[nodiscard]] absl::Status ParseConfigText(std::string_view text, std::string_view path,
                                           ServerConfig* config);

// The text with the values of `config`: settings that it names with another value get the new one
// in their place; settings that it doesn't name, and whose value isn't the default, go behind their
// commented-out line, or to the end.
[[nodiscard]] absl::StatusOr<std::string> RewriteConfigText(std::string_view text,
                                                            std::string_view path,
                                                            const ServerConfig& config);
// Rewrites the file so that a crash leaves the old one or the new one, with the permissions it had.
[[nodiscard]] absl::Status RewriteConfigFile(const std::string& path, const ServerConfig& config);

// A file with every setting and its default, commented out.
std::string ExampleConfig();

}  // namespace varve
