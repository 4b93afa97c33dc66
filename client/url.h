// Addresses of servers as URLs:
//
//   redis://[[user]:password@][host][:port][/database]     plain text
//   rediss://...                                           the same with TLS
//   unix://[[user]:password@]path[?db=database]            a Unix socket
//
// As redis-cli has it, what stands before @ without a colon is a password. Any byte of a user, a
// password, a host or a path may be written as % and two hexadecimal digits. An IPv6 address stands
// in brackets. `?db=N` may replace the path of the first two, too.
//
// Thread-safety: The functions are pure.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client_options.h"

namespace varve {

// Sets what the URL names, and the transport: TLS or none, TCP or a Unix socket. Everything else in
// `options` stays. InvalidArgument, and nothing is set: the URL is none; the message says which
// part of it is wrong, and repeats no password.
[[nodiscard]] absl::Status ApplyUrl(std::string_view url, ClientOptions* options);

// The options of a client at that URL.
[[nodiscard]] absl::StatusOr<ClientOptions> OptionsOfUrl(std::string_view url);

}  // namespace varve
