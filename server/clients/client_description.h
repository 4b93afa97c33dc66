// The line that CLIENT LIST shows for a connection, with Redis' fields, and the choice of
// connections. Functions are thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/client_state.h"

namespace varve {

// Ends with a line end. `self`: the caller executes for this connection.
std::string DescribeClient(const ClientState& client, bool self);

// Bytes, about: all that the connection takes, also what its buffers keep ready. What counts for
// --maxmemory-clients is less, see ClientMemory.
uint64_t ClientBytes(const ClientState& client);

// "normal" or "pubsub".
std::string_view ClientType(const ClientState& client);

// What CLIENT LIST and KILL choose by; each condition that is set must hold. Nobody chooses a
// connection that others have asked to close: it is as good as gone, however long its loop takes to
// see it.
struct ClientFilter {
  std::vector<uint64_t> ids;
  std::optional<std::string> address;
  std::optional<std::string> local_address;
  std::optional<std::string> type;  // lower case
  bool skip_self = false;

  bool Matches(const ClientState& client, uint64_t self) const;
};

}  // namespace varve
