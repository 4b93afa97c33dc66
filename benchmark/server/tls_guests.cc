#include "benchmark/server/tls_guests.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string_view>

namespace varve::bench {

// Guests take any certificate, and begin each session anew.
TlsGuests::TlsGuests() : context_(SSL_CTX_new(TLS_client_method())) {
  SSL_CTX_set_verify(context_, SSL_VERIFY_NONE, nullptr);
  SSL_CTX_set_mode(context_, SSL_MODE_RELEASE_BUFFERS);
}

TlsGuests::~TlsGuests() {
  SendAway();
  SSL_CTX_free(context_);
}

bool TlsGuests::Welcome(uint16_t port) {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  SSL* const guest = SSL_new(context_);
  if (guest == nullptr || descriptor < 0 ||
      ::connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      SSL_set_fd(guest, descriptor) != 1) {
    SSL_free(guest);
    if (descriptor >= 0) ::close(descriptor);
    return false;
  }
  guests_.push_back(guest);
  constexpr std::string_view kPing = "PING\r\n", kPong = "+PONG\r\n";
  char answer[kPong.size()];
  return SSL_connect(guest) == 1 &&
         SSL_write(guest, kPing.data(), kPing.size()) == static_cast<int>(kPing.size()) &&
         SSL_read(guest, answer, sizeof(answer)) == static_cast<int>(kPong.size()) &&
         std::string_view(answer, sizeof(answer)) == kPong;
}

void TlsGuests::SendAway() {
  for (SSL* const guest : guests_) {
    const int descriptor = SSL_get_fd(guest);
    SSL_free(guest);
    ::close(descriptor);
  }
  guests_.clear();
}

}  // namespace varve::bench
