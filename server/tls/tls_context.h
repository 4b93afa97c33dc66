// A TLS context is what all connections share that begin with it: OpenSSL's context, made of the
// settings and of the certificates and keys that their files held. It does not change; files that
// change make a new one.
//
// Thread-safety: all threads may use an object at once.
#pragma once

#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "type/tls_options.h"

namespace varve {

// The contents of the files that the settings name, at one moment, and what tells the files in the
// directory of authorities from later ones. OpenSSL reads those when it first needs them.
struct TlsFiles {
  std::string certificate;
  std::string key;
  std::string ca;
  std::string crl;
  std::string dh;
  std::string ca_directory;  // as DescribeHashedFiles() has it

  bool operator==(const TlsFiles&) const = default;
};

// Reads the files that the settings name. InvalidArgument names the setting, the file and the
// reason.
[[nodiscard]] absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsOptions& options);

class TlsContext {
 public:
  // InvalidArgument: names the setting, the file and what is wrong with it.
  [[nodiscard]] static absl::StatusOr<std::shared_ptr<const TlsContext>> Make(
      const TlsOptions& options, const TlsFiles& files);

  SSL_CTX* get() const { return context_.get(); }
  TlsUserName user_name() const { return user_name_; }
  // Returns the serial number of the server's certificate in hexadecimal digits.
  const std::string& serial() const { return serial_; }
  // Returns the end of the certificate's time, in seconds since 1970.
  int64_t expires_at() const { return expires_at_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  using Handle = std::unique_ptr<SSL_CTX, Free>;

  TlsContext(Handle context, TlsUserName user_name);

  const Handle context_;
  const TlsUserName user_name_;
  std::string serial_;
  int64_t expires_at_ = 0;
};

// Takes OpenSSL's latest error of this thread as words, and forgets all of them.
std::string TakeTlsError();

}  // namespace varve
