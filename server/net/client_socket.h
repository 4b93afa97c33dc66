// The socket of one connection: what the kernel has said of it, receiving and sending, in plain
// text or over TLS.
//
// Thread-safety: Send() and ShakeHands() may be called by the thread that has the connection's
// batch or handshake; all other functions belong to the thread of the connection's loop. Nothing
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "server/clients/pending_replies.h"
#include "server/tls/tls_connection.h"
#include "util/resp/resp_buffer.h"
#include "varve/types.h"

namespace varve {

class ClientSocket {
 public:
  using Sent = TlsConnection::Sent;

  // Takes over a connected, non-blocking socket.
  explicit ClientSocket(int descriptor) : descriptor_(descriptor) {}
  ~ClientSocket();
  ClientSocket(const ClientSocket&) = delete;
  ClientSocket& operator=(const ClientSocket&) = delete;

  int descriptor() const { return descriptor_; }
  // The socket may have bytes that were not received.
  bool readable() const { return readable_; }
  bool writable() const { return writable_; }
  // The peer sends no more, behind bytes that may still be unread; at_end(): all were read.
  bool peer_closing() const { return peer_closing_; }
  bool at_end() const { return at_end_; }
  // The connection is gone in both directions.
  bool reset() const { return reset_; }

  void NoteEvents(uint32_t epoll_events);
  void NoteFull() { writable_ = false; }
  // The bytes that came, and the room that was there, until now are used; the next event tells of
  // more.
  void NoteUsed() { readable_ = writable_ = false; }
  // There may be bytes and room that no event will tell of.
  void NoteUnknown() { readable_ = writable_ = true; }

  // Tells what the connection begins with, without taking it.
  TlsConnection::Beginning LookAtBeginning();
  // The connection is TLS from here on. ResourceExhausted: there is no memory.
  [[nodiscard]] absl::Status BeginTls(std::shared_ptr<const TlsContext> context);
  // Goes on with the handshake. Requires: BeginTls() was called.
  [[nodiscard]] TlsConnection::Handshake ShakeHands() { return tls_->ShakeHands(); }
  // Null: the connection is plain text.
  const TlsConnection* tls() const { return tls_.get(); }

  // Receives up to `quota` bytes behind `*input`; `missing` bytes at least complete what is there.
  // A connection that sends little receives by way of `scratch`, so that it takes no more memory
  // than it sends. Returns false if the connection is broken. `*received` grows by what came.
  [[nodiscard]] bool Receive(ByteBuffer* input, size_t missing, size_t quota,
                             absl::Span<char> scratch, size_t* received);

  // Sends the front of `*replies`, as far as it may leave once `durable` is durable.
  [[nodiscard]] Sent Send(PendingReplies* replies, SequenceNumber durable, size_t* sent);

  // Announces the end of the replies and throws away what nobody will answer. `is_in_use`: another
  // thread sends or shakes hands meanwhile.
  void ShutDown(bool is_in_use);

 private:
  bool ReceiveTls(ByteBuffer* input, size_t quota, absl::Span<char> scratch, size_t* received);

  const int descriptor_;
  std::unique_ptr<TlsConnection> tls_;
  bool readable_ = true;
  bool writable_ = true;
  bool peer_closing_ = false;
  bool at_end_ = false;
  bool reset_ = false;
};

}  // namespace varve
