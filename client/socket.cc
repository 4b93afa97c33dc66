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
#include <optional>

#include "fmt/format.h"
#include "util/base/status.h"

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

std::string TlsHostOf(const ClientOptions& options) {
  return options.unix_socket.empty() ? options.host : "localhost";
}

absl::Status HandshakeFailed(const ClientOptions& options, const absl::Status& why) {
  return absl::Status(why.code(), fmt::format("can't connect to {}: {}", AddressOf(options),
                                              std::string(why.message())));
}

absl::Status HandshakeTookTooLong(const ClientOptions& options) {
  return absl::DeadlineExceededError(fmt::format(
      "can't connect to {}: the TLS handshake did not end within {} ms; does the server "
      "speak TLS on this port?",
      AddressOf(options), options.connect_timeout.count()));
}

absl::StatusOr<Socket> Socket::Connect(const ClientOptions& options) {
  std::optional<ClientTlsContext> context;
  if (options.tls.enabled) {
    VARVE_ASSIGN_OR_RETURN(context, ClientTlsContext::Make(options.tls));
  }
  VARVE_ASSIGN_OR_RETURN(const int descriptor,
                         options.unix_socket.empty() ? ConnectTcp(options) : ConnectUnix(options));
  Socket socket(descriptor);
  if (context) VARVE_RETURN_IF_ERROR(socket.BeginTls(options, *context));
  return socket;
}

absl::Status Socket::BeginTls(const ClientOptions& options, const ClientTlsContext& context) {
  using Clock = std::chrono::steady_clock;
  using std::chrono::milliseconds;
  VARVE_ASSIGN_OR_RETURN(tls_, TlsStream::Make(context, TlsHostOf(options), descriptor_));
  const bool is_bounded = options.connect_timeout.count() > 0;
  const Clock::time_point deadline = Clock::now() + options.connect_timeout;
  while (true) {
    const absl::StatusOr<bool> done = tls_->Handshake();
    if (!done.ok()) return HandshakeFailed(options, done.status());
    if (*done) return absl::OkStatus();
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
    if (is_bounded && left.count() <= 0) return HandshakeTookTooLong(options);
    const absl::Status status = Wait(false, is_bounded ? left : milliseconds(0));
    if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
  }
}

void Socket::Close() {
  tls_ = nullptr;
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

absl::StatusOr<size_t> Socket::Send(std::string_view bytes) {
  if (tls_ != nullptr) return tls_->Send(bytes);
  while (true) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return Lost("send", errno);
  }
}

absl::StatusOr<size_t> Socket::Receive(char* buffer, size_t size) {
  if (tls_ != nullptr) return tls_->Receive(buffer, size);
  while (true) {
    const ssize_t got = ::recv(descriptor_, buffer, size, 0);
    if (got > 0) return static_cast<size_t>(got);
    if (got == 0) return absl::UnavailableError("the server closed the connection");
    if (errno == EAGAIN || errno == EWOULDBLOCK) return size_t{0};
    if (errno != EINTR) return Lost("receive", errno);
  }
}

absl::Status Socket::Wait(bool for_writing, std::chrono::milliseconds timeout) {
  if (tls_ != nullptr) {
    if (tls_->may_have_more()) return absl::OkStatus();
    for_writing |= tls_->needs_room();
  }
  pollfd waiting{descriptor_, static_cast<short>(POLLIN | (for_writing ? POLLOUT : 0)), 0};
  int ready = 0;
  while ((ready = ::poll(&waiting, 1, PollTimeout(timeout))) < 0 && errno == EINTR) continue;
  if (ready < 0) return Lost("poll", errno);
  if (ready == 0) return absl::DeadlineExceededError("the server did not answer in time");
  return absl::OkStatus();
}

absl::Status Socket::Check() {
  if (tls_ != nullptr) return tls_->Check();
  char byte = 0;
  const ssize_t got = ::recv(descriptor_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  if (got == 0) return absl::UnavailableError("the server closed the connection");
  if (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    return Lost("receive", errno);
  return absl::OkStatus();
}

}  // namespace varve
