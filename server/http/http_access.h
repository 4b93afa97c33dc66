// The access to pages: on this machine everybody reads all of them; from elsewhere every page but
// those of health takes a user who may execute STATUS, and the user's password, as HTTP's basic
// authentication.
//
// Thread-safety: all threads may call the functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/execution/server_state.h"
#include "server/http/http_listener.h"
#include "server/http/http_parser.h"

namespace varve {

// Returns whether a request may call the server so: by an IP address, "localhost", or one of
// `hosts`. Another name means that somebody's page was made to ask in its reader's place.
bool IsOwnHost(std::string_view host, const std::vector<std::string>& hosts);

// Returns nothing if the request may read pages that take a user, else the reply that refuses it.
// A wrong password counts for the login guard as one over the server's protocol does.
std::optional<HttpReply> RefusalOf(ServerState& server, const HttpRequest& request,
                                   const HttpPeer& peer);

}  // namespace varve
