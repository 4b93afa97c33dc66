#include "server/tls/tls_connection.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

constexpr unsigned char kHello = 0x16;
constexpr size_t kRecord = 16384;             // bytes of plain text in the largest record
constexpr size_t kLargestSend = 4 * kRecord;  // that are encrypted before they are sent
constexpr size_t kLargestUnsent = 64u << 10;  // of answers that a peer asks for and does not take

bool IsUsable(std::string_view name) {
  return !name.empty() && name.find('\0') == std::string_view::npos;
}

// The common names of a certificate, the last and most specific one first.
std::vector<std::string> CommonNames(const X509* certificate) {
  std::vector<std::string> names;
  const X509_NAME* const subject = X509_get_subject_name(certificate);
  for (int at = X509_NAME_entry_count(subject) - 1; at >= 0; --at) {
    const X509_NAME_ENTRY* const entry = X509_NAME_get_entry(subject, at);
    if (OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry)) != NID_commonName) continue;
    unsigned char* text = nullptr;
    const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
    if (size < 0) continue;
    names.emplace_back(reinterpret_cast<const char*>(text), static_cast<size_t>(size));
    OPENSSL_free(text);
  }
  std::erase_if(names, [](const std::string& name) { return !IsUsable(name); });
  return names;
}

// The URIs among a certificate's alternative names.
std::vector<std::string> Uris(const X509* certificate) {
  std::vector<std::string> names;
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all, i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* const uri = name->d.uniformResourceIdentifier;
    names.emplace_back(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)),
                       static_cast<size_t>(ASN1_STRING_length(uri)));
  }
  GENERAL_NAMES_free(all);
  std::erase_if(names, [](const std::string& name) { return !IsUsable(name); });
  return names;
}

}  // namespace

// --- OpenSSL's reads and writes ------------------------------------------------------------------

const BIO_METHOD* TlsConnection::Method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "varve");
    if (made == nullptr) return made;
    BIO_meth_set_read(made, ReadBytes);
    BIO_meth_set_write(made, WriteBytes);
    BIO_meth_set_ctrl(made, Control);
    return made;
  }();
  return method;
}

int TlsConnection::ReadBytes(BIO* bio, char* bytes, int size) {
  auto* const self = static_cast<TlsConnection*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  if (self->incoming_.empty()) {
    BIO_set_retry_read(bio);
    return -1;
  }
  const size_t taken = std::min(self->incoming_.size(), static_cast<size_t>(size));
  std::memcpy(bytes, self->incoming_.data(), taken);
  self->incoming_.remove_prefix(taken);
  return static_cast<int>(taken);
}

int TlsConnection::WriteBytes(BIO* bio, const char* bytes, int size) {
  auto* const self = static_cast<TlsConnection*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  std::string* const target = self->outgoing_ != nullptr ? self->outgoing_ : &self->unsent_;
  try {
    target->append(bytes, static_cast<size_t>(size));
  } catch (const std::bad_alloc&) {  // must not pass through OpenSSL
    return -1;
  }
  return size;
}

long TlsConnection::Control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// --- Begin and end -------------------------------------------------------------------------------

TlsConnection::Beginning TlsConnection::LookAtBeginning(int descriptor) {
  unsigned char first = 0;
  ssize_t got = 0;
  do {
    got = ::recv(descriptor, &first, 1, MSG_PEEK | MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Beginning::kNone;
  if (got <= 0) return Beginning::kEnd;
  return first == kHello ? Beginning::kTls : Beginning::kOther;
}

TlsConnection::TlsConnection(std::shared_ptr<const TlsContext> context, int descriptor)
    : context_(std::move(context)), descriptor_(descriptor) {}

absl::StatusOr<std::unique_ptr<TlsConnection>> TlsConnection::Accept(
    std::shared_ptr<const TlsContext> context, int descriptor) {
  VARVE_ASSERT(context != nullptr);
  std::unique_ptr<TlsConnection> connection(new TlsConnection(std::move(context), descriptor));
  const BIO_METHOD* const method = Method();
  SSL* const ssl = method == nullptr ? nullptr : SSL_new(connection->context_->get());
  BIO* const bio = ssl == nullptr ? nullptr : BIO_new(method);
  connection->ssl_ = ssl;
  if (bio == nullptr) {
    ERR_clear_error();
    return absl::ResourceExhaustedError("there is no memory for a TLS connection");
  }
  BIO_set_data(bio, connection.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_accept_state(ssl);
  return connection;
}

TlsConnection::~TlsConnection() { SSL_free(ssl_); }

void TlsConnection::NoteError() {
  if (!error_.empty()) return;
  const long verdict = SSL_get_verify_result(ssl_);
  error_ = TakeTlsError();
  if (verdict != X509_V_OK) error_ += fmt::format(" ({})", X509_verify_cert_error_string(verdict));
}

void TlsConnection::MakeCertificateOptional() {
  const int mode = SSL_get_verify_mode(ssl_);
  SSL_set_verify(ssl_, mode & ~SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
}

TlsConnection::Handshake TlsConnection::ShakeHands() {
  char bytes[kRecord];
  for (;;) {
    const int done = SSL_do_handshake(ssl_);
    const int wanted = done == 1 ? SSL_ERROR_NONE : SSL_get_error(ssl_, done);
    if (done != 1 && wanted != SSL_ERROR_WANT_READ) NoteError();
    if (done == 1) left_.append(incoming_);  // `bytes` goes when this function returns
    incoming_ = {};
    const Sent sent = SendUnsent();
    if (!error_.empty()) return Handshake::kFailed;
    if (sent == Sent::kWouldBlock) return Handshake::kWantsOutput;
    if (sent == Sent::kBroken) {
      error_ = "the client has gone";
      return Handshake::kFailed;
    }
    if (done == 1) return Handshake::kDone;
    const ssize_t got = ::recv(descriptor_, bytes, sizeof(bytes), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Handshake::kWantsInput;
    if (got <= 0) {
      error_ = "the client has gone";
      return Handshake::kFailed;
    }
    incoming_ = {bytes, static_cast<size_t>(got)};
  }
}

void TlsConnection::Close() {
  // A record that has left in part must not be followed by another.
  if (!unsent_.empty() || !SSL_is_init_finished(ssl_)) return;
  (void)SSL_shutdown(ssl_);
  ERR_clear_error();
  (void)SendUnsent();
}

// --- Receiving -----------------------------------------------------------------------------------

bool TlsConnection::Decrypt(ByteBuffer* input, bool* ended) {
  char plain[kRecord];
  for (;;) {
    const int got = SSL_read(ssl_, plain, sizeof(plain));
    if (got > 0) {
      input->Append({plain, static_cast<size_t>(got)});
      continue;
    }
    const int why = SSL_get_error(ssl_, got);
    if (why == SSL_ERROR_ZERO_RETURN) *ended = true;
    if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_ZERO_RETURN)
      return unsent_.size() <= kLargestUnsent;
    NoteError();
    return false;
  }
}

TlsConnection::Received TlsConnection::Receive(absl::Span<char> scratch, ByteBuffer* input) {
  VARVE_ASSERT(SSL_is_init_finished(ssl_) && incoming_.empty());
  bool ended = false;
  if (!left_.empty()) {
    incoming_ = left_;
    const bool fine = Decrypt(input, &ended);
    incoming_ = {};
    left_ = {};
    if (!fine) return Received::kBroken;
    return ended ? Received::kEnd : Received::kMore;
  }
  ssize_t got = 0;
  do {
    got = ::recv(descriptor_, scratch.data(), scratch.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return Received::kEnd;
  if (got < 0)
    return errno == EAGAIN || errno == EWOULDBLOCK ? Received::kEmpty : Received::kBroken;
  incoming_ = {scratch.data(), static_cast<size_t>(got)};
  const bool fine = Decrypt(input, &ended);
  incoming_ = {};
  if (!fine) return Received::kBroken;
  if (ended) return Received::kEnd;
  return static_cast<size_t>(got) < scratch.size() ? Received::kEmpty : Received::kMore;
}

// --- Sending -------------------------------------------------------------------------------------

TlsConnection::Sent TlsConnection::SendNow(std::string_view bytes) {
  VARVE_ASSERT(unsent_.empty());
  while (!bytes.empty()) {
    const ssize_t sent =
        ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK) return Sent::kBroken;
      unsent_.assign(bytes);
      return Sent::kWouldBlock;
    }
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return Sent::kAll;
}

TlsConnection::Sent TlsConnection::SendUnsent() {
  if (unsent_.empty()) return Sent::kAll;
  return SendNow(std::exchange(unsent_, {}));
}

TlsConnection::Sent TlsConnection::Send(std::string_view bytes, size_t* sent) {
  VARVE_ASSERT(SSL_is_init_finished(ssl_) && encrypted_ <= bytes.size());
  if (const Sent old = SendUnsent(); old != Sent::kAll) return old;
  *sent += encrypted_;
  bytes.remove_prefix(std::exchange(encrypted_, 0));
  thread_local std::string encrypted;  // its memory serves all connections of the thread
  while (!bytes.empty()) {
    const std::string_view chunk = bytes.substr(0, kLargestSend);
    encrypted.clear();
    outgoing_ = &encrypted;
    const int written = SSL_write(ssl_, chunk.data(), static_cast<int>(chunk.size()));
    outgoing_ = nullptr;
    if (written <= 0) {
      NoteError();
      return Sent::kBroken;
    }
    VARVE_ASSERT(static_cast<size_t>(written) == chunk.size());
    const Sent now = SendNow(encrypted);
    if (now == Sent::kWouldBlock) encrypted_ = chunk.size();
    if (now != Sent::kAll) return now;
    *sent += chunk.size();
    bytes.remove_prefix(chunk.size());
  }
  return Sent::kAll;
}

// --- Who the peer is -----------------------------------------------------------------------------

bool TlsConnection::verified() const {
  return SSL_is_init_finished(ssl_) && SSL_get0_peer_certificate(ssl_) != nullptr &&
         SSL_get_verify_result(ssl_) == X509_V_OK &&
         (SSL_get_verify_mode(ssl_) & SSL_VERIFY_PEER) != 0;
}

std::vector<std::string> TlsConnection::UserNames() const {
  if (!verified()) return {};
  const X509* const certificate = SSL_get0_peer_certificate(ssl_);
  switch (context_->user_name()) {
    case TlsUserName::kOff:
      return {};
    case TlsUserName::kCommonName:
      return CommonNames(certificate);
    case TlsUserName::kUri:
      return Uris(certificate);
  }
  return {};
}

}  // namespace varve
