// Access that was denied: counted for INFO, kept for ACL LOG, and told to the audit log.
//
// Thread-safety: all threads may call the function.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/execution/server_state.h"

namespace varve {

struct DeniedAccess {
  // In the order of ServerStatistics::access_denied, but for the last, which counts as kAuth.
  enum class Reason : uint8_t { kCommand, kKey, kDatabase, kChannel, kAuth, kCertificate };

  Reason reason = Reason::kCommand;
  std::string_view command;
  std::string_view object;   // what the user may not have; the log keeps the first kilobyte of it
  std::string_view user;     // by name
  std::string_view context;  // "toplevel", "multi", "http"
  std::string client;        // as CLIENT LIST describes it, without its line's end
  std::string_view address;
  uint64_t client_id = 0;  // 0: it is no client of the server's protocol
};

void NoteDenied(ServerState& server, DeniedAccess denied);

}  // namespace varve
