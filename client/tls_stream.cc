#include "client/tls_stream.h"

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>
#include <utility>

#include "fmt/format.h"

namespace varve {
namespace {

// The reason of the oldest error that OpenSSL noted in this thread.
std::string NotedReason() {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  // Errors of system calls have their words in the C library alone.
  if (ERR_SYSTEM_ERROR(error)) return std::strerror(ERR_GET_REASON(error));
  const char* const reason = ERR_reason_error_string(error);
  return reason == nullptr ? fmt::format("error {:#x} of OpenSSL", error) : std::string(reason);
}

absl::Status Unusable(std::string_view what, std::string_view file) {
  return absl::InvalidArgumentError(
      fmt::format("the {} {} can't be used: {}", what, file, NotedReason()));
}

int Descriptor(BIO* bio) { return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio))); }

// OpenSSL's own BIO of a socket would use write(), which raises SIGPIPE.
int SendBytes(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t sent = 0;
  do {
    sent = ::send(Descriptor(bio), bytes, static_cast<size_t>(size), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int ReceiveBytes(BIO* bio, char* buffer, int size) {
  BIO_clear_retry_flags(bio);
  ssize_t got = 0;
  do {
    got = ::recv(Descriptor(bio), buffer, static_cast<size_t>(size), 0);
  } while (got < 0 && errno == EINTR);
  if (got == 0) errno = 0;  // tells the end from a failure
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

const BIO_METHOD* SocketMethod() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
    BIO_meth_set_write(made, SendBytes);
    BIO_meth_set_read(made, ReceiveBytes);
    BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return method;
}

bool IsAddress(const std::string& host) {
  in6_addr address;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

absl::Status TrustAuthorities(const ClientTlsOptions& options, SSL_CTX* context) {
  if (options.ca_file.empty() && options.ca_directory.empty()) {
    SSL_CTX_set_default_verify_paths(context);  // that a system has none shows at the verification
    return absl::OkStatus();
  }
  if (!options.ca_file.empty() && SSL_CTX_load_verify_file(context, options.ca_file.c_str()) != 1) {
    return Unusable("file of trusted certificates", options.ca_file);
  }
  if (!options.ca_directory.empty() &&
      SSL_CTX_load_verify_dir(context, options.ca_directory.c_str()) != 1) {
    return Unusable("directory of trusted certificates", options.ca_directory);
  }
  return absl::OkStatus();
}

absl::Status UseCertificate(const ClientTlsOptions& options, SSL_CTX* context) {
  if (options.certificate_file.empty()) {
    if (options.key_file.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        fmt::format("the key {} needs a certificate beside it", options.key_file));
  }
  if (SSL_CTX_use_certificate_chain_file(context, options.certificate_file.c_str()) != 1)
    return Unusable("certificate", options.certificate_file);
  const std::string& key = options.key_file.empty() ? options.certificate_file : options.key_file;
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    return Unusable("key", key);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ClientTlsContext> ClientTlsContext::Make(const ClientTlsOptions& options) {
  ERR_clear_error();
  const std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("OpenSSL: " + NotedReason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(),
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_read_ahead(context.get(), 1);  // one system call for many small records
  SSL_CTX_set_verify(context.get(), options.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (const absl::Status trusted = TrustAuthorities(options, context.get()); !trusted.ok())
    return trusted;
  if (const absl::Status used = UseCertificate(options, context.get()); !used.ok()) return used;
  return ClientTlsContext(options, context);
}

absl::StatusOr<std::unique_ptr<TlsStream>> TlsStream::Make(const ClientTlsContext& context,
                                                           std::string_view host, int descriptor) {
  ERR_clear_error();
  const ClientTlsOptions& options = context.options_;
  const std::string name = options.server_name.empty() ? std::string(host) : options.server_name;
  SSL* const ssl = SSL_new(context.context_.get());
  BIO* const bio = ssl == nullptr ? nullptr : BIO_new(SocketMethod());
  if (bio == nullptr) {
    SSL_free(ssl);
    return absl::ResourceExhaustedError("OpenSSL: " + NotedReason());
  }
  std::unique_ptr<TlsStream> stream(new TlsStream(ssl, !options.certificate_file.empty()));
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  const bool is_address = IsAddress(name);
  const bool named = is_address || SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  const bool demanded = is_address ? X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1
                                   : SSL_set1_host(ssl, name.c_str()) == 1;
  if (named && demanded) return stream;
  ERR_clear_error();
  return absl::InvalidArgumentError(
      fmt::format("TLS can't verify a server by the name '{}'", name));
}

TlsStream::~TlsStream() {
  ERR_clear_error();
  if (handshaken_ && failure_.ok()) SSL_shutdown(ssl_);
  ERR_clear_error();
  SSL_free(ssl_);
}

absl::StatusOr<bool> TlsStream::Handshake() {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_connect(ssl_);
  handshaken_ = result == 1;
  may_have_more_ = handshaken_;  // read with the end of the handshake
  if (handshaken_) return true;
  if (!NoteOutcome(result, errno).ok()) return failure_;
  return false;
}

absl::StatusOr<size_t> TlsStream::Send(std::string_view bytes) {
  if (!failure_.ok()) return failure_;
  ERR_clear_error();
  errno = 0;
  const auto size = static_cast<int>(std::min<size_t>(bytes.size(), INT_MAX));
  const int sent = SSL_write(ssl_, bytes.data(), size);
  if (sent > 0) return static_cast<size_t>(sent);
  const int error_number = errno;
  if (SSL_get_error(ssl_, sent) == SSL_ERROR_SYSCALL) {
    // The server may have said why it closed; if it sent a reply before, Receive() finds that.
    if (absl::Status closed = Check(); !closed.ok()) return closed;
    return absl::UnavailableError(fmt::format("send: {}", std::strerror(error_number)));
  }
  if (!NoteOutcome(sent, error_number).ok()) return failure_;
  return size_t{0};
}

absl::StatusOr<size_t> TlsStream::Receive(char* buffer, size_t size) {
  size_t received = 0;
  may_have_more_ = true;
  while (received < size && failure_.ok() && may_have_more_) {
    ERR_clear_error();
    errno = 0;
    const auto room = static_cast<int>(std::min<size_t>(size - received, INT_MAX));
    const int got = SSL_read(ssl_, buffer + received, room);
    if (got > 0) {
      received += static_cast<size_t>(got);
      may_have_more_ = SSL_has_pending(ssl_) == 1;
    } else if (NoteOutcome(got, errno).ok()) {
      may_have_more_ = false;
    }
  }
  // The caller sees a failure when it has taken what came before it.
  if (received == 0 && !failure_.ok()) return failure_;
  return received;
}

absl::Status TlsStream::Check() {
  if (!failure_.ok()) return failure_;
  ERR_clear_error();
  errno = 0;
  char byte = 0;
  const int got = SSL_peek(ssl_, &byte, 1);
  if (got <= 0) return NoteOutcome(got, errno);
  may_have_more_ = true;
  return absl::OkStatus();
}

absl::Status TlsStream::NoteOutcome(int result, int error_number) {
  const int error = SSL_get_error(ssl_, result);
  needs_room_ = error == SSL_ERROR_WANT_WRITE;
  if (needs_room_ || error == SSL_ERROR_WANT_READ) return absl::OkStatus();
  const bool ended =
      error == SSL_ERROR_ZERO_RETURN || (error == SSL_ERROR_SYSCALL && error_number == 0);
  if (error == SSL_ERROR_SSL) {
    failure_ = Refusal();
  } else if (!ended) {
    failure_ = absl::UnavailableError(fmt::format("receive: {}", std::strerror(error_number)));
  } else if (handshaken_) {
    failure_ = absl::UnavailableError("the server closed the connection");
  } else {
    failure_ = absl::UnavailableError(
        "the server closed the connection in the TLS handshake; does it speak TLS on this port?");
  }
  return failure_;
}

absl::Status TlsStream::Refusal() const {
  const int reason = ERR_GET_REASON(ERR_peek_error());
  const std::string words = NotedReason();
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return absl::FailedPreconditionError(
        fmt::format("the server's certificate is not accepted: {}",
                    X509_verify_cert_error_string(SSL_get_verify_result(ssl_))));
  }
  if (!handshaken_ && reason == SSL_R_WRONG_VERSION_NUMBER)
    return absl::FailedPreconditionError("the server does not speak TLS on this port");
  switch (reason - SSL_AD_REASON_OFFSET) {
    case SSL_AD_HANDSHAKE_FAILURE:
    case SSL_AD_BAD_CERTIFICATE:
    case SSL_AD_UNSUPPORTED_CERTIFICATE:
    case SSL_AD_CERTIFICATE_REVOKED:
    case SSL_AD_CERTIFICATE_EXPIRED:
    case SSL_AD_CERTIFICATE_UNKNOWN:
    case SSL_AD_UNKNOWN_CA:
    case SSL_AD_ACCESS_DENIED:
    case TLS13_AD_CERTIFICATE_REQUIRED:
      return absl::PermissionDeniedError(fmt::format(
          "the server refused the TLS connection: {}{}", words,
          has_certificate_ ? "" : " (it may want a certificate of the client, which has none)"));
    case SSL_AD_PROTOCOL_VERSION:
    case SSL_AD_INSUFFICIENT_SECURITY:
      return absl::FailedPreconditionError("the server refused the TLS connection: " + words);
    default:
      return absl::UnavailableError("TLS: " + words);
  }
}

}  // namespace varve
