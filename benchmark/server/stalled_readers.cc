#include "benchmark/server/stalled_readers.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "benchmark/process.h"
#include "benchmark/server/load_connection.h"

namespace varve::bench {

StalledReaders::StalledReaders(const std::string& server, uint16_t port, int count) {
  constexpr std::string_view kRequest = "HELLO 3\r\nCHANGES STREAM SINCE FIRST\r\n";
  for (int i = 0; i < count; ++i) {
    sockets_.push_back(ConnectTo(port));
    if (sockets_.back() < 0) Fail(server + " does not take as many connections");
    // A new socket has room for it.
    if (send(sockets_.back(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(kRequest.size()))
      Fail(server + " closed a connection");
  }
  for (const int socket : sockets_) {
    pollfd waits{socket, POLLIN, 0};
    while (poll(&waits, 1, /*timeout=*/-1) < 0 && errno == EINTR) {
    }
  }
}

StalledReaders::~StalledReaders() {
  for (const int socket : sockets_) close(socket);
}

}  // namespace varve::bench
