// A certificate authority for tests, and the certificates that it signs, as files in PEM form. The
// keys are made anew in each test.
#pragma once

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace varve::testing {

class TestCertificates {
 public:
  // Writes DIRECTORY/ca.crt. Requires: the directory is there.
  explicit TestCertificates(std::string directory, const std::string& name = "authority")
      : directory_(std::move(directory)),
        key_(EVP_EC_gen("P-256")),
        certificate_(Make(name, key_)) {
    Extend(certificate_.get(), NID_basic_constraints, "critical,CA:TRUE");
    X509_sign(certificate_.get(), key_.get(), EVP_sha256());
    WriteCertificate(File("ca.crt"), certificate_.get());
  }

  // The path of a file in the directory.
  std::string File(const std::string& name) const { return directory_ + "/" + name; }
  std::string authority() const { return File("ca.crt"); }
  // Returns the name that the authority's certificate has in a directory of them.
  std::string HashedName() const {
    char name[16];
    std::snprintf(name, sizeof(name), "%08lx.0", X509_subject_name_hash(certificate_.get()));
    return name;
  }

  struct Names {
    std::string common_name;
    // As OpenSSL writes it: "IP:127.0.0.1,DNS:localhost" or "URI:spiffe://here/app".
    std::string alternatives = "IP:127.0.0.1,DNS:localhost";
    long days = 30;    // that it is valid for from now on
    bool rsa = false;  // the kind of its key; false: an elliptic curve
  };
  // Writes NAME.crt and NAME.key, which replace files of that name whole.
  void Issue(const std::string& name, const Names& names) {
    const Key key(names.rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"));
    const Certificate certificate = Make(names.common_name, key, names.days);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
    Extend(certificate.get(), NID_subject_alt_name, names.alternatives);
    X509_sign(certificate.get(), key_.get(), EVP_sha256());
    WriteCertificate(File(name + ".crt"), certificate.get());
    std::FILE* const file = std::fopen(File(name + ".key").c_str(), "w");
    ASSERT_NE(file, nullptr);
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
  }

  // Writes a list of certificates that are taken back, by their serial numbers.
  void WriteRevocations(const std::string& name, const std::vector<long>& serials) {
    const std::unique_ptr<X509_CRL, Free> list(X509_CRL_new());
    X509_CRL_set_version(list.get(), 1);
    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(certificate_.get()));
    const std::unique_ptr<ASN1_TIME, Free> now(X509_gmtime_adj(nullptr, -3600));
    const std::unique_ptr<ASN1_TIME, Free> next(X509_gmtime_adj(nullptr, 30L * 24 * 3600));
    X509_CRL_set1_lastUpdate(list.get(), now.get());
    X509_CRL_set1_nextUpdate(list.get(), next.get());
    for (const long serial : serials) {
      const std::unique_ptr<ASN1_INTEGER, Free> number(ASN1_INTEGER_new());
      ASN1_INTEGER_set(number.get(), serial);
      X509_REVOKED* const revoked = X509_REVOKED_new();
      X509_REVOKED_set_serialNumber(revoked, number.get());
      X509_REVOKED_set_revocationDate(revoked, now.get());
      X509_CRL_add0_revoked(list.get(), revoked);
    }
    X509_CRL_sort(list.get());
    X509_CRL_sign(list.get(), key_.get(), EVP_sha256());
    std::FILE* const file = std::fopen(File(name).c_str(), "w");
    ASSERT_NE(file, nullptr);
    PEM_write_X509_CRL(file, list.get());
    std::fclose(file);
  }

  // Returns the serial number of the certificate that was issued last.
  long last_serial() const { return next_serial_ - 1; }

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
    void operator()(X509_CRL* list) const { X509_CRL_free(list); }
    void operator()(ASN1_STRING* text) const { ASN1_STRING_free(text); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  Certificate Make(const std::string& common_name, const Key& key, long days = 30) {
    Certificate certificate(X509_new());
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), next_serial_++);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -24L * 3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), days * 24 * 3600);
    X509_NAME* const subject = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                               reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1,
                               0);
    X509_set_issuer_name(certificate.get(), subject);
    X509_set_pubkey(certificate.get(), key.get());
    return certificate;
  }

  static void Extend(X509* certificate, int kind, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, kind, value.c_str());
    ASSERT_NE(extension, nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  static void WriteCertificate(const std::string& path, X509* certificate) {
    std::FILE* const file = std::fopen(path.c_str(), "w");
    ASSERT_NE(file, nullptr);
    PEM_write_X509(file, certificate);
    std::fclose(file);
  }

  const std::string directory_;
  long next_serial_ = 1;
  const Key key_;
  const Certificate certificate_;
};

}  // namespace varve::testing
