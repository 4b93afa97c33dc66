// The settings of TLS, as plain values. The names of the settings are those of Redis, where it has
// them.
#pragma once

#include <cstdint>
#include <string>

namespace varve {

// The languages of the ordinary port. With kOptional the first byte of a connection tells TLS from
// plain text.
enum class TlsMode : uint8_t { kOff, kOptional, kRequired };

// The answers to whether clients have to show a certificate.
enum class TlsClientCertificates : uint8_t { kYes, kNo, kOptional };

// The part of a client's certificate that names the user that the client is.
enum class TlsUserName : uint8_t { kOff, kCommonName, kUri };

struct TlsOptions {
  TlsMode mode = TlsMode::kOff;
  int port = 0;  // a further port, which speaks TLS alone; 0: none, -1: any free one
  std::string certificate_file;
  std::string key_file;
  std::string key_password;
  std::string ca_file;
  std::string ca_directory;  // of files whose names are hashes of their subjects
  std::string crl_file;      // certificates that are taken back
  TlsClientCertificates client_certificates = TlsClientCertificates::kYes;
  TlsUserName user_name = TlsUserName::kOff;
  std::string protocols;      // "TLSv1.2 TLSv1.3"; empty: both
  std::string ciphers;        // of TLS 1.2; empty: OpenSSL's
  std::string cipher_suites;  // of TLS 1.3; empty: OpenSSL's
  std::string dh_file;        // empty: OpenSSL's parameters
  bool prefer_server_ciphers = false;
  bool session_caching = true;
  int64_t session_cache_size = 20480;
  int64_t session_cache_seconds = 300;
  int64_t reload_seconds = 10;  // between looks at the files; 0: only SIGHUP has them looked at

  // Returns whether any port may speak TLS.
  bool in_use() const { return mode != TlsMode::kOff || port != 0; }
};

}  // namespace varve
