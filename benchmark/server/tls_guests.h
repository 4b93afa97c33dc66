// TLS guests are connections of TLS clients that say little: hostile_clients opens them by the
// thousand.
//
// Thread-safety: one thread uses an object.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <vector>

namespace varve::bench {

class TlsGuests {
 public:
  TlsGuests();
  ~TlsGuests();
  TlsGuests(const TlsGuests&) = delete;
  TlsGuests& operator=(const TlsGuests&) = delete;

  // Connects a guest to 127.0.0.1, which shakes hands and asks PING once. Returns whether it got
  // its answer; the connection stays open.
  bool Welcome(uint16_t port);
  // Closes all connections.
  void SendAway();
  int count() const { return static_cast<int>(guests_.size()); }

 private:
  SSL_CTX* const context_;
  std::vector<SSL*> guests_;
};

}  // namespace varve::bench
