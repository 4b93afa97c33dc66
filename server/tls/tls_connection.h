// A TLS connection is the server's side of one connection over TLS, on a socket that does not
// block. The object receives and sends by itself, so that one system call carries many records, and
// keeps of the encrypted bytes only what the socket did not take.
//
// Thread-safety: one thread at a time uses an object. Nothing blocks.
// Invariants: the first encrypted_ bytes of what the caller sends are encrypted already and wait in
// unsent_; they are sent, and reported as sent, before anything else is encrypted.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/tls/tls_context.h"
#include "util/resp/resp_buffer.h"

namespace varve {

class TlsConnection {
 public:
  // The beginning of a connection, as its first byte tells. No request of Redis' protocol or of
  // HTTP begins with the byte that a TLS hello begins with.
  enum class Beginning : uint8_t {
    kNone,   // nothing has come yet
    kTls,    // a TLS hello
    kOther,  // plain text
    kEnd,    // the peer sends nothing, or the connection is broken
  };
  enum class Handshake : uint8_t { kDone, kWantsInput, kWantsOutput, kFailed };
  enum class Received : uint8_t {
    kMore,    // the socket may have more
    kEmpty,   // it has no more now
    kEnd,     // the peer sends nothing more
    kBroken,  // see error()
  };
  enum class Sent : uint8_t { kAll, kWouldBlock, kBroken };

  // Looks at the first byte that came over the socket, and leaves it there.
  static Beginning LookAtBeginning(int descriptor);

  // Begins the server's side on the socket, which stays the caller's. ResourceExhausted: there is
  // no memory.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<TlsConnection>> Accept(
      std::shared_ptr<const TlsContext> context, int descriptor);
  ~TlsConnection();
  TlsConnection(const TlsConnection&) = delete;
  TlsConnection& operator=(const TlsConnection&) = delete;

  // The peer may do without the certificate that the settings want. Called before the handshake.
  void MakeCertificateOptional();

  // Goes on with the handshake as far as the socket lets it.
  [[nodiscard]] Handshake ShakeHands();

  // Receives once, by way of `scratch`, and appends the plain text to `*input`.
  // Requires: the handshake is done.
  [[nodiscard]] Received Receive(absl::Span<char> scratch, ByteBuffer* input);

  // Sends the front of `bytes`. `*sent` grows by what has left; after kWouldBlock the caller hands
  // over the same bytes from there on, and may have more behind them.
  // Requires: the handshake is done.
  [[nodiscard]] Sent Send(std::string_view bytes, size_t* sent);

  // Returns how many bytes the connection holds for the socket or for Receive().
  size_t held() const { return unsent_.capacity() + left_.capacity(); }

  // Tells the peer that nothing follows, if the socket takes it at once.
  void Close();

  // Returns whether the peer showed a certificate that an authority of ours signed.
  bool verified() const;
  // Returns the names by which the peer's certificate calls a user, the most specific one first.
  // Empty where it was not verified, or where names are not looked at.
  std::vector<std::string> UserNames() const;
  // Returns why the handshake or the connection failed.
  const std::string& error() const { return error_; }

 private:
  TlsConnection(std::shared_ptr<const TlsContext> context, int descriptor);

  // OpenSSL reads and writes through these.
  static const BIO_METHOD* Method();
  static int ReadBytes(BIO* bio, char* bytes, int size);
  static int WriteBytes(BIO* bio, const char* bytes, int size);
  static long Control(BIO* bio, int command, long number, void* pointer);

  bool Decrypt(ByteBuffer* input, bool* ended);
  // Sends what waits in unsent_.
  Sent SendUnsent();
  // Sends `bytes`, of which unsent_ keeps what the socket does not take.
  Sent SendNow(std::string_view bytes);
  void NoteError();

  const std::shared_ptr<const TlsContext> context_;
  const int descriptor_;
  SSL* ssl_ = nullptr;
  std::string_view incoming_;        // encrypted bytes that OpenSSL has not read yet
  std::string left_;                 // those of them that the handshake left
  std::string* outgoing_ = nullptr;  // where OpenSSL writes; null: to unsent_
  std::string unsent_;
  size_t encrypted_ = 0;
  std::string error_;
};

}  // namespace varve
