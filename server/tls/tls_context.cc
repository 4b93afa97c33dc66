#include "server/tls/tls_context.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "fmt/format.h"
#include "server/tls/hashed_directory.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr off_t kLargestFile = 1 << 20;

template <auto Function>
struct Freer {
  template <typename Object>
  void operator()(Object* object) const {
    Function(object);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using RevocationList = std::unique_ptr<X509_CRL, Freer<X509_CRL_free>>;

absl::Status Wrong(std::string_view setting, std::string_view file, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}: {}", setting, file, why));
}

absl::StatusOr<std::string> ReadFile(std::string_view setting, const std::string& path) {
  if (path.empty()) return std::string();
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return Wrong(setting, path, std::strerror(errno));
  if (!S_ISREG(there.st_mode)) return Wrong(setting, path, "it is no file");
  if (there.st_size > kLargestFile) return Wrong(setting, path, "it has more than 1 MiB");
  std::ifstream file(path, std::ios::binary);
  if (!file) return Wrong(setting, path, std::strerror(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

absl::StatusOr<std::string> DescribeDirectory(const TlsOptions& options) {
  if (options.ca_directory.empty()) return std::string();
  absl::StatusOr<std::string> text = DescribeHashedFiles(options.ca_directory);
  if (text.ok()) return text;
  return Wrong("tls-ca-cert-dir", options.ca_directory, std::string(text.status().message()));
}

Bio ReaderOf(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Hands OpenSSL the password that `given` points to. Without one OpenSSL would ask at the terminal.
int GivePassword(char* buffer, int size, int /*writing*/, void* given) {
  const auto& password = *static_cast<const std::string*>(given);
  if (password.size() > static_cast<size_t>(size)) return -1;
  std::memcpy(buffer, password.data(), password.size());
  return static_cast<int>(password.size());
}

// Returns whether the last read failed because the text has no further block, and then forgets the
// error. A block that is damaged is no end.
bool IsEndOfPem() {
  const unsigned long error = ERR_peek_last_error();
  const bool is_end =
      ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (is_end) ERR_clear_error();
  return is_end;
}

absl::Status UseCertificate(const TlsOptions& options, const std::string& text, SSL_CTX* context) {
  const auto wrong = [&](std::string_view why) {
    return Wrong("tls-cert-file", options.certificate_file, why);
  };
  const Bio reader = ReaderOf(text);
  const Certificate certificate(PEM_read_bio_X509_AUX(reader.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) {
    TakeTlsError();
    return wrong("it holds no certificate in PEM form");
  }
  if (SSL_CTX_use_certificate(context, certificate.get()) != 1) return wrong(TakeTlsError());
  while (X509* const issuer = PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)) {
    if (SSL_CTX_add0_chain_cert(context, issuer) == 1) continue;
    X509_free(issuer);
    return wrong(TakeTlsError());
  }
  return IsEndOfPem() ? absl::OkStatus() : wrong(TakeTlsError());
}

absl::Status UseKey(const TlsOptions& options, const std::string& text, SSL_CTX* context) {
  const std::string& path = options.key_file.empty() ? options.certificate_file : options.key_file;
  const auto wrong = [&](std::string_view why) { return Wrong("tls-key-file", path, why); };
  const Bio reader = ReaderOf(text);
  std::string password = options.key_password;
  const Key key(PEM_read_bio_PrivateKey(reader.get(), nullptr, GivePassword, &password));
  if (key == nullptr) {
    return wrong(fmt::format("it holds no private key in PEM form that {} opens ({})",
                             password.empty() ? "no password" : "tls-key-file-pass",
                             TakeTlsError()));
  }
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1) {
    TakeTlsError();
    return wrong(
        fmt::format("it is not the key of the certificate in {}", options.certificate_file));
  }
  return absl::OkStatus();
}

// Clients' certificates are checked against every list: each authority has one of its own.
absl::Status UseRevocations(const TlsOptions& options, const std::string& text, X509_STORE* store) {
  if (options.crl_file.empty()) return absl::OkStatus();
  const auto wrong = [&](std::string_view why) {
    return Wrong("tls-crl-file", options.crl_file, why);
  };
  const Bio reader = ReaderOf(text);
  int count = 0;
  while (
      const RevocationList list{PEM_read_bio_X509_CRL(reader.get(), nullptr, nullptr, nullptr)}) {
    ++count;
    if (X509_STORE_add_crl(store, list.get()) != 1) return wrong(TakeTlsError());
  }
  if (!IsEndOfPem()) return wrong(TakeTlsError());
  if (count == 0) return wrong("it holds no revocation list in PEM form");
  X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
  return absl::OkStatus();
}

// The authorities that may sign clients' certificates.
absl::Status UseAuthorities(const TlsOptions& options, const TlsFiles& files, SSL_CTX* context) {
  X509_STORE* const store = SSL_CTX_get_cert_store(context);
  if (!options.ca_file.empty()) {
    const Bio reader = ReaderOf(files.ca);
    int count = 0;
    while (
        const Certificate authority{PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr)}) {
      ++count;
      if (X509_STORE_add_cert(store, authority.get()) != 1 ||
          SSL_CTX_add_client_CA(context, authority.get()) != 1)
        return Wrong("tls-ca-cert-file", options.ca_file, TakeTlsError());
    }
    if (!IsEndOfPem()) return Wrong("tls-ca-cert-file", options.ca_file, TakeTlsError());
    if (count == 0)
      return Wrong("tls-ca-cert-file", options.ca_file, "it holds no certificate in PEM form");
  }
  if (!options.ca_directory.empty()) {
    VARVE_RETURN_IF_ERROR(DescribeDirectory(options).status());
    if (SSL_CTX_load_verify_dir(context, options.ca_directory.c_str()) != 1)
      return Wrong("tls-ca-cert-dir", options.ca_directory, TakeTlsError());
  }
  return UseRevocations(options, files.crl, store);
}

absl::Status UseVerification(const TlsOptions& options, const TlsFiles& files, SSL_CTX* context) {
  VARVE_RETURN_IF_ERROR(UseAuthorities(options, files, context));
  int mode = SSL_VERIFY_NONE;
  if (options.client_certificates != TlsClientCertificates::kNo) {
    if (options.ca_file.empty() && options.ca_directory.empty()) {
      return absl::InvalidArgumentError(
          "tls-auth-clients: clients' certificates are checked against tls-ca-cert-file or "
          "tls-ca-cert-dir, and neither is set; set one, or tls-auth-clients no");
    }
    mode = SSL_VERIFY_PEER;
    if (options.client_certificates == TlsClientCertificates::kYes)
      mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
  }
  SSL_CTX_set_verify(context, mode, nullptr);
  return absl::OkStatus();
}

absl::Status UseCiphers(const TlsOptions& options, const TlsFiles& files, SSL_CTX* context) {
  if (!options.ciphers.empty() && SSL_CTX_set_cipher_list(context, options.ciphers.c_str()) != 1) {
    TakeTlsError();
    return Wrong("tls-ciphers", options.ciphers, "OpenSSL knows none of these ciphers of TLS 1.2");
  }
  if (!options.cipher_suites.empty() &&
      SSL_CTX_set_ciphersuites(context, options.cipher_suites.c_str()) != 1) {
    TakeTlsError();
    return Wrong("tls-ciphersuites", options.cipher_suites,
                 "OpenSSL does not know all of these suites of TLS 1.3");
  }
  if (options.prefer_server_ciphers) SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE);
  if (options.dh_file.empty()) {
    SSL_CTX_set_dh_auto(context, 1);
    return absl::OkStatus();
  }
  const Bio reader = ReaderOf(files.dh);
  Key parameters(PEM_read_bio_Parameters(reader.get(), nullptr));
  if (parameters == nullptr || SSL_CTX_set0_tmp_dh_pkey(context, parameters.get()) != 1) {
    TakeTlsError();
    return Wrong("tls-dh-params-file", options.dh_file, "it holds no parameters in PEM form");
  }
  (void)parameters.release();  // the context has them
  return absl::OkStatus();
}

void UseProtocols(const TlsOptions& options, SSL_CTX* context) {
  const bool all = options.protocols.empty();
  const bool has_12 = all || options.protocols.find("1.2") != std::string::npos;
  const bool has_13 = all || options.protocols.find("1.3") != std::string::npos;
  SSL_CTX_set_min_proto_version(context, has_12 ? TLS1_2_VERSION : TLS1_3_VERSION);
  SSL_CTX_set_max_proto_version(context, has_13 ? TLS1_3_VERSION : TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
}

void UseSessions(const TlsOptions& options, SSL_CTX* context) {
  static constexpr unsigned char kName[] = "varve";
  SSL_CTX_set_session_id_context(context, kName, sizeof(kName) - 1);
  if (!options.session_caching) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    return;
  }
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
  SSL_CTX_sess_set_cache_size(context, static_cast<long>(options.session_cache_size));
  SSL_CTX_set_timeout(context, static_cast<long>(options.session_cache_seconds));
}

std::string SerialOf(const X509* certificate) {
  BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get0_serialNumber(certificate), nullptr);
  if (number == nullptr) return "";
  char* const digits = BN_bn2hex(number);
  std::string serial = digits == nullptr ? "" : digits;
  OPENSSL_free(digits);
  BN_free(number);
  return serial;
}

int64_t EndOf(const X509* certificate) {
  std::tm end{};
  if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) != 1) return 0;
  return ::timegm(&end);
}

}  // namespace

std::string TakeTlsError() {
  const unsigned long code = ERR_peek_last_error();
  ERR_clear_error();
  if (code == 0) return "no reason is known";
  const char* const reason = ERR_reason_error_string(code);
  return reason != nullptr ? reason : fmt::format("error {}", code);
}

absl::StatusOr<TlsFiles> ReadTlsFiles(const TlsOptions& options) {
  TlsFiles files;
  VARVE_ASSIGN_OR_RETURN(files.certificate, ReadFile("tls-cert-file", options.certificate_file));
  VARVE_ASSIGN_OR_RETURN(files.key, ReadFile("tls-key-file", options.key_file));
  VARVE_ASSIGN_OR_RETURN(files.ca, ReadFile("tls-ca-cert-file", options.ca_file));
  VARVE_ASSIGN_OR_RETURN(files.crl, ReadFile("tls-crl-file", options.crl_file));
  VARVE_ASSIGN_OR_RETURN(files.dh, ReadFile("tls-dh-params-file", options.dh_file));
  VARVE_ASSIGN_OR_RETURN(files.ca_directory, DescribeDirectory(options));
  return files;
}

TlsContext::TlsContext(Handle context, TlsUserName user_name)
    : context_(std::move(context)), user_name_(user_name) {
  const X509* const certificate = SSL_CTX_get0_certificate(context_.get());
  VARVE_ASSERT(certificate != nullptr);
  serial_ = SerialOf(certificate);
  expires_at_ = EndOf(certificate);
}

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Make(const TlsOptions& options,
                                                                   const TlsFiles& files) {
  if (options.certificate_file.empty()) {
    return absl::InvalidArgumentError(
        "tls-cert-file: TLS takes a certificate and its key: set tls-cert-file and tls-key-file");
  }
  Handle context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::ResourceExhaustedError("OpenSSL gives no TLS context");
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  UseProtocols(options, context.get());
  UseSessions(options, context.get());
  VARVE_RETURN_IF_ERROR(UseCertificate(options, files.certificate, context.get()));
  // A file may hold both, the certificate and its key.
  const std::string& key = options.key_file.empty() ? files.certificate : files.key;
  VARVE_RETURN_IF_ERROR(UseKey(options, key, context.get()));
  VARVE_RETURN_IF_ERROR(UseCiphers(options, files, context.get()));
  VARVE_RETURN_IF_ERROR(UseVerification(options, files, context.get()));
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context), options.user_name));
}

}  // namespace varve
