// A raw connection over TLS for tests: bytes in, bytes out.
#pragma once

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <memory>
#include <string>
#include <string_view>

#include "unit-tests/server/test_server.h"

namespace varve::testing {

class TlsClient {
 public:
  struct Options {
    std::string authority;    // that the server's certificate is checked against; empty: not at all
    std::string certificate;  // of the client
    std::string key;
    int version = 0;                 // the only version of TLS that it speaks; 0: any
    SSL_SESSION* session = nullptr;  // that it would go on with
  };

  // Connects, and shakes hands.
  explicit TlsClient(uint16_t port) : TlsClient(port, Options()) {}
  TlsClient(uint16_t port, const Options& options)
      : raw_(port), context_(SSL_CTX_new(TLS_client_method())) {
    if (!options.authority.empty()) {
      SSL_CTX_load_verify_file(context_.get(), options.authority.c_str());
      SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    }
    if (!options.certificate.empty()) {
      SSL_CTX_use_certificate_file(context_.get(), options.certificate.c_str(), SSL_FILETYPE_PEM);
      SSL_CTX_use_PrivateKey_file(context_.get(), options.key.c_str(), SSL_FILETYPE_PEM);
    }
    if (options.version != 0) {
      SSL_CTX_set_security_level(context_.get(), 0);
      SSL_CTX_set_min_proto_version(context_.get(), options.version);
      SSL_CTX_set_max_proto_version(context_.get(), options.version);
    }
    std::signal(SIGPIPE, SIG_IGN);  // OpenSSL writes to sockets that the server has closed
    ssl_.reset(SSL_new(context_.get()));
    if (options.session != nullptr) SSL_set_session(ssl_.get(), options.session);
    SSL_set_fd(ssl_.get(), raw_.descriptor());
    connected_ = SSL_connect(ssl_.get()) == 1;
    ERR_clear_error();
  }

  bool connected() const { return connected_; }
  RawConnection& raw() { return raw_; }
  bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
  // The session that another client may go on with.
  std::unique_ptr<SSL_SESSION, void (*)(SSL_SESSION*)> Session() const {
    return {SSL_get1_session(ssl_.get()), SSL_SESSION_free};
  }
  // The serial number of the server's certificate; -1: it showed none.
  long serial() const {
    const X509* const certificate = SSL_get0_peer_certificate(ssl_.get());
    return certificate == nullptr ? -1 : ASN1_INTEGER_get(X509_get0_serialNumber(certificate));
  }

  bool Send(std::string_view bytes) {
    const int sent = SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
    ERR_clear_error();
    return sent == static_cast<int>(bytes.size());
  }
  // As many bytes, fewer when the server closes or is silent for a minute.
  std::string Receive(size_t size) {
    std::string bytes;
    char buffer[1 << 14];
    while (bytes.size() < size) {
      pollfd waiting{raw_.descriptor(), POLLIN, 0};
      if (SSL_pending(ssl_.get()) == 0 && ::poll(&waiting, 1, 60000) != 1) break;
      const int got = SSL_read(ssl_.get(), buffer,
                               static_cast<int>(std::min(sizeof(buffer), size - bytes.size())));
      ended_ = SSL_get_error(ssl_.get(), got) == SSL_ERROR_ZERO_RETURN;
      ERR_clear_error();
      if (got <= 0) break;
      bytes.append(buffer, static_cast<size_t>(got));
    }
    return bytes;
  }
  // Everything until the server ends the connection; ended() says whether it said so inside TLS.
  std::string ReceiveAll() { return Receive(SIZE_MAX); }
  bool ended() const { return ended_; }

  // Sends a request and returns as many bytes of its reply as `reply` has.
  std::string Ask(std::string_view request, std::string_view reply) {
    return Send(request) ? Receive(reply.size()) : "could not be sent";
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  RawConnection raw_;
  const std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;
  bool connected_ = false;
  bool ended_ = false;
};

}  // namespace varve::testing
