// The names that a client gives its connection and its library.
//
// Thread-safety: the thread that executes for the connection calls these functions.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "server/clients/client_state.h"

namespace varve {

// The longest such name in bytes. It shows up in lists and in each entry of the slow log.
inline constexpr size_t kMaxClientName = 1024;

// Checks that a name is printable, without blanks and not too long. Returns InvalidArgument if not;
// the message calls the name `what`.
[[nodiscard]] absl::Status CheckClientName(std::string_view what, std::string_view name);

// Requires: CheckClientName() accepts `name`, or it is empty.
void RenameClient(ClientState* client, std::string_view name);

}  // namespace varve
