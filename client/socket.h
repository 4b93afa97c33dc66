// A connected, non-blocking stream socket (TCP or Unix, plain or with TLS) whose waits have a
// deadline. The destructor closes it. Errors are Unavailable when the connection cannot be had or
// is lost, DeadlineExceeded when the time is up, and for TLS those of client/tls_stream.h.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client_options.h"
#include "client/tls_stream.h"

namespace varve {

class Socket {
 public:
  Socket() = default;
  ~Socket() { Close(); }
  Socket(Socket&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), tls_(std::move(other.tls_)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(tls_, other.tls_);
    return *this;
  }

  // Tries the addresses of options.host in turn, each for at most options.connect_timeout, and
  // gives the handshake of TLS as much.
  [[nodiscard]] static absl::StatusOr<Socket> Connect(const ClientOptions& options);

  bool is_open() const { return descriptor_ >= 0; }
  void Close();

  // How many bytes the kernel took; 0 when it has no room now.
  [[nodiscard]] absl::StatusOr<size_t> Send(std::string_view bytes);
  // How many bytes were there; 0 when none are there now. The end of the stream is an error.
  [[nodiscard]] absl::StatusOr<size_t> Receive(char* buffer, size_t size);
  // Waits until there is something to read or, if asked for, room to write. `timeout` 0: as long as
  // it takes.
  [[nodiscard]] absl::Status Wait(bool for_writing, std::chrono::milliseconds timeout);
  // Returns an error if the other side has closed the connection, as far as that is known by now.
  [[nodiscard]] absl::Status Check();

 private:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}

  absl::Status BeginTls(const ClientOptions& options, const ClientTlsContext& context);

  int descriptor_ = -1;
  std::unique_ptr<TlsStream> tls_;  // null: plain text
};

// InvalidArgument: the path is longer than the address of a Unix socket may be.
[[nodiscard]] absl::Status CheckUnixPath(const std::string& path);
// "host:port" or the path of the Unix socket, for messages.
std::string AddressOf(const ClientOptions& options);
// The name that a server must have by its certificate, where options.tls has no other.
std::string TlsHostOf(const ClientOptions& options);
// The error of a connection whose TLS handshake failed: `why`, with the address in front.
absl::Status HandshakeFailed(const ClientOptions& options, const absl::Status& why);
// The error of a handshake that did not end within options.connect_timeout.
absl::Status HandshakeTookTooLong(const ClientOptions& options);

}  // namespace varve
