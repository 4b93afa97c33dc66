// A door says what a connection may begin with, which depends on the port that it came to.
//
// Thread-safety: a plain value.
#pragma once

#include <string_view>

namespace varve {

struct Door {
  bool plain = true;           // plain text is served
  bool tls = false;            // TLS is served
  bool verified_only = false;  // only clients are that have shown a certificate

  bool operator==(const Door&) const = default;
};

// The first replies to connections that are not served.
inline constexpr std::string_view kFullReply = "-ERR max number of clients reached\r\n";
inline constexpr std::string_view kTlsNeededReply = "-ERR this port speaks TLS\r\n";
inline constexpr std::string_view kProtectedReply =
    "-DENIED Varve is in protected mode: no password is set, so only connections from the machine "
    "it runs on are served. To let others in, set a password (CONFIG SET requirepass on that "
    "machine, or --requirepass-file), or, where everybody who reaches this port is trusted, start "
    "with --protected-mode=no.\r\n";

}  // namespace varve
