#include "client/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "fmt/format.h"

namespace varve {
namespace {

absl::Status Lost(std::string_view what, int error) {
  return absl::UnavailableError(fmt::format("{}: {}", what, std::strerror(error)));
}

int PollTimeout(std::chrono::milliseconds timeout) {
  return timeout.count() <= 0 ? -1 : static_cast<int>(std::min<int64_t>(timeout.count(), 1 << 30));
}

// 0, or the errno with which connecting failed.
int ConnectWithin(int descriptor, const sockaddr* address, socklen_t size,
                  std::chrono::milliseconds timeout) {
  if (::connect(descriptor, address, size) == 0) return 0;
  if (errno != EINPROGRESS && errno != EINTR) return errno;
  pollfd waiting{descriptor, POLLOUT, 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, PollTimeout(timeout))) < 0 && errno == EINTR) continue;
  if (ready < 0) return errno;
  if (ready == 0) return ETIMEDOUT;
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

// An open descriptor, or minus the errno.
int OpenConnection(int family, const sockaddr* address, socklen_t size,
                   std::chrono::milliseconds timeout) {
  const int descriptor = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return -errno;
  if (const int error = ConnectWithin(descriptor, address, size, timeout); error != 0) {
    ::close(descriptor);
    return -error;
  }
  return descriptor;
}

absl::StatusOr<int> ConnectUnix(const ClientOptions& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (const absl::Status usable = CheckUnixPath(options.unix_socket); !usable.ok()) return usable;
  std::memcpy(address.sun_path, options.unix_socket.data(), options.unix_socket.size());
  const int descriptor = OpenConnection(AF_UNIX, reinterpret_cast<sockaddr*>(&address),
                                        sizeof(address), options.connect_timeout);
  if (descriptor < 0)
    return Lost(fmt::format("can't connect to {}", options.unix_socket), -descriptor);
  return descriptor;
}

absl::StatusOr<int> ConnectTcp(const ClientOptions& options) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string port = fmt::to_string(options.port);
  if (const int error = ::getaddrinfo(options.host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return absl::UnavailableError(fmt::format("{}: {}", options.host, ::gai_strerror(error)));
  }
  int descriptor = -EADDRNOTAVAIL;
  for (const addrinfo* address = found; address != nullptr && descriptor < 0;
       address = address->ai_next) {
    descriptor = OpenConnection(address->ai_family, address->ai_addr, address->ai_addrlen,
                                options.connect_timeout);
  }
  ::freeaddrinfo(found);
  if (descriptor < 0)
    return Lost(fmt::format("can't connect to {}", AddressOf(options)), -descriptor);
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  return descriptor;
}

}  // namespace

absl::Status CheckUnixPath(const std::string& path) {
  if (path.size() < sizeof(sockaddr_un::sun_path)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      fmt::format("{}: too long for the path of a socket (at most {} bytes)", path,
                  sizeof(sockaddr_un::sun_path) - 1));
}

std::string AddressOf(const ClientOptions& options) {
  return options.unix_socket.empty() ? fmt::format("{}:{}", options.host, options.port)
                                     : options.unix_socket;
}

absl::StatusOr<Socket> Socket::Connect(const ClientOptions& options) {
  const absl::StatusOr<int> descriptor =
      options.unix_socket.empty() ? ConnectTcp(options) : ConnectUnix(options);
  if (!descriptor.ok()) return descriptor.status();
  return Socket(*descriptor);
}

void Socket::Close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

absl::StatusOr<size_t> Socket::Send(std::string_view bytes) {
  while (true) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return Lost("send", errno);
  }
}

absl::StatusOr<size_t> Socket::Receive(char* buffer, size_t size) {
  while (true) {
    const ssize_t got = ::recv(descriptor_, buffer, size, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return absl::UnavailableError("the server closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return Lost("receive", errno);
  }
}

absl::Status Socket::Wait(bool for_writing, std::chrono::milliseconds timeout) {
  pollfd waiting{descriptor_, static_cast<short>(POLLIN | (for_writing ? POLLOUT : 0)), 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, PollTimeout(timeout))) < 0 && errno == EINTR) continue;
  if (ready < 0) return Lost("poll", errno);
  if (ready == 0) return absl::DeadlineExceededError("the server did not answer in time");
  return absl::OkStatus();
}

bool Socket::IsStale() const {
  char byte = 0;
  const ssize_t got = ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

}  // namespace varve
