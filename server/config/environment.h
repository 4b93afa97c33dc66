// Settings from the environment, as containers are configured: the variable VARVE_FOO_BAR sets
// foo-bar, and VARVE_FOO_BAR_FILE names a file whose first line is the value, for secrets.
//
// Thread-safety: All threads may call the functions.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/config/settings.h"

namespace varve {

// Returns the name of the variable for a setting: VARVE_FOO_BAR for "foo-bar".
std::string VariableOf(std::string_view setting);

// Reads the settings among `variables` ("NAME=value", null at the end) into `*config`. An empty
// variable is as good as none. InvalidArgument names the variable that is wrong, or whose name is
// nearly that of a setting.
[[nodiscard]] absl::Status TakeEnvironment(const char* const* variables, ServerConfig* config);

}  // namespace varve
