// The line that CLIENT LIST shows for a connection, with the fields of Redis, and the filter that
// chooses connections.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/clients/client_state.h"

namespace varve {

// Returns the line, with a line end. `self` says that the caller executes for this connection.
std::string DescribeClient(const ClientState& client, bool self);

// Returns about how many bytes of memory the connection takes, with the memory that its buffers
// keep ready. ClientMemory counts less for --maxmemory-clients.
uint64_t ClientBytes(const ClientState& client);

// Returns "normal" or "pubsub".
std::string_view ClientType(const ClientState& client);

// The conditions by which CLIENT LIST and CLIENT KILL choose connections. A connection matches if
// each condition that is set holds and no thread has asked it to close.
struct ClientFilter {
  std::vector<uint64_t> ids;
  std::optional<std::string> address;
  std::optional<std::string> local_address;
  std::optional<std::string> user;
  std::optional<std::string> type;  // lower case
  bool skip_self = false;

  bool Matches(const ClientState& client, uint64_t self) const;
};

}  // namespace varve
