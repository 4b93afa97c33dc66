// The line that CLIENT LIST shows for a connection, with the fields of Redis, and the filter that
// chooses connections.
//
// Thread-safety: All threads may call the functions.
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

// The conditions by which CLIENT LIST and KILL choose; each condition that is set must hold. A
// connection that another thread has asked to close is never chosen: it is as good as gone, however
// long its loop takes to see it.
struct ClientFilter {
  std::vector<uint64_t> ids;
  std::optional<std::string> address;
  std::optional<std::string> local_address;
  std::optional<std::string> type;  // lower case
  bool skip_self = false;

  bool Matches(const ClientState& client, uint64_t self) const;
};

}  // namespace varve
