// A TLS stream encrypts what a client exchanges with its server over a connected, non-blocking
// socket. It speaks TLS 1.2 or 1.3 by OpenSSL, and verifies the server's certificate and name
// unless the options say otherwise. A write to a closed connection is an error and raises no
// signal.
//
// Errors: InvalidArgument for files and names that cannot be used; FailedPrecondition where the
// server speaks no TLS, or has a certificate that the client does not accept; PermissionDenied
// where the server does not accept the client's; Unavailable when the connection is lost.
//
// Thread-safety: Any number of threads may use a context; one thread at a time uses a stream.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client_options.h"

struct ssl_st;      // OpenSSL's SSL
struct ssl_ctx_st;  // OpenSSL's SSL_CTX

namespace varve {

// A context is what the streams of a client share: the authorities that it trusts, and its own
// certificate.
class ClientTlsContext {
 public:
  // Reads the files that the options name.
  [[nodiscard]] static absl::StatusOr<ClientTlsContext> Make(const ClientTlsOptions& options);

 private:
  friend class TlsStream;

  ClientTlsContext(ClientTlsOptions options, std::shared_ptr<ssl_ctx_st> context)
      : options_(std::move(options)), context_(std::move(context)) {}

  ClientTlsOptions options_;
  std::shared_ptr<ssl_ctx_st> context_;
};

class TlsStream {
 public:
  // `host` stands in for an empty ClientTlsOptions::server_name. The stream does not own the
  // descriptor, which outlives it.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<TlsStream>> Make(
      const ClientTlsContext& context, std::string_view host, int descriptor);
  // Tells the server that the stream ends, if it can be told without waiting.
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Goes on with the handshake. Returns whether it is done; if not, the caller waits for the
  // socket, as needs_room() says, and calls again.
  [[nodiscard]] absl::StatusOr<bool> Handshake();

  // Returns how many bytes were taken; 0 when the kernel has no room now. The next call then begins
  // with the same bytes, and may have more.
  // Requires: the handshake is done, here and in the functions below.
  [[nodiscard]] absl::StatusOr<size_t> Send(std::string_view bytes);
  // Returns how many bytes there were; 0 when none are there now. The end of the stream is an
  // error.
  [[nodiscard]] absl::StatusOr<size_t> Receive(char* buffer, size_t size);
  // Returns an error if the server has ended the stream, as far as that is known by now.
  [[nodiscard]] absl::Status Check();

  // The last call needs room for writing in the socket before it can go on, even a Receive().
  bool needs_room() const { return needs_room_; }
  // Receive() may find more although nothing arrives in the socket.
  bool may_have_more() const { return may_have_more_; }

 private:
  TlsStream(ssl_st* ssl, bool has_certificate) : ssl_(ssl), has_certificate_(has_certificate) {}

  // Takes note of why a call of OpenSSL returned `result`. Returns failure_; OK: the call has to
  // wait.
  absl::Status NoteOutcome(int result, int error_number);
  absl::Status Refusal() const;

  ssl_st* const ssl_;
  const bool has_certificate_;
  absl::Status failure_;  // after which there is no going on
  bool handshaken_ = false;
  bool needs_room_ = false;
  bool may_have_more_ = false;
};

}  // namespace varve
