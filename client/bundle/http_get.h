// Fetches one page from the server's HTTP port.
//
// Thread-safety: All threads may call the function.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/client_options.h"

namespace varve {

// Returns the body of the page `path`. `options` names host, port, user, password and timeouts.
// Unavailable: there is no connection, or the answer is not 200.
[[nodiscard]] absl::StatusOr<std::string> HttpGet(const ClientOptions& options,
                                                  std::string_view path);

}  // namespace varve
