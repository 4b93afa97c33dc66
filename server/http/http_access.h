// The access to pages: on this machine everybody reads all of them; from elsewhere every page but
// those of health takes a user who may execute STATUS, and the user's password, as HTTP's basic
// authentication.
//
// Thread-safety: all threads may call the functions.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/access/user_table.h"
#include "server/execution/server_state.h"
#include "server/http/http_listener.h"
#include "server/http/http_parser.h"

namespace varve {

// Has a browser ask its reader for a user.
inline constexpr std::string_view kAskForUser =
    "WWW-Authenticate: Basic realm=\"varve\", charset=\"UTF-8\"\r\n";

// Returns whether a request may call the server so: by an IP address, "localhost", or one of
// `hosts`. Another name means that somebody's page was made to ask in its reader's place.
bool IsOwnHost(std::string_view host, const std::vector<std::string>& hosts);

// The reader of a page.
struct HttpReader {
  UserPointer user = nullptr;        // null: nobody who is known
  std::optional<HttpReply> refusal;  // if set, the pages that take a user are refused with it
};

// Returns who asks. On this machine a request without a user is the default user's if that one
// needs no password. A wrong password counts for the login guard as one over the server's protocol
// does.
HttpReader ReaderOf(ServerState& server, const HttpRequest& request, const HttpPeer& peer);

// Returns how long the request has to wait before its password is looked at, as the login guard
// says of the peer's address; 0: it has none.
std::chrono::milliseconds PasswordDelay(ServerState& server, const HttpRequest& request,
                                        const HttpPeer& peer);

// Return whether the user may execute the request, wherever it works, and may read all keys in all
// places. Null may do neither.
bool MayExecute(const UserTable& users, const User* user, Arguments request);
bool MayReadAllKeys(const User* user);

}  // namespace varve
