// The socket of one connection: what the kernel has said of it, receiving and sending.
//
// Thread-safety: Send() may be called by the thread that has the connection's batch; all other
// functions belong to the thread of the connection's loop. Nothing blocks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "server/clients/pending_replies.h"
#include "util/resp/resp_buffer.h"
#include "varve/types.h"

namespace varve {

class ClientSocket {
 public:
  enum class Sent : uint8_t { kAll, kWouldBlock, kBroken };

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

  // Receives up to `quota` bytes behind `*input`; `missing` bytes at least complete what is there.
  // A connection that sends little receives by way of `scratch`, so that it takes no more memory
  // than it sends. Returns false if the connection is broken. `*received` grows by what came.
  [[nodiscard]] bool Receive(ByteBuffer* input, size_t missing, size_t quota,
                             absl::Span<char> scratch, size_t* received);

  // Sends the front of `*replies`, as far as it may leave once `durable` is durable.
  [[nodiscard]] Sent Send(PendingReplies* replies, SequenceNumber durable, size_t* sent);

  // Announces the end of the replies and throws away what nobody will answer.
  void ShutDown();

 private:
  const int descriptor_;
  bool readable_ = true;
  bool writable_ = true;
  bool peer_closing_ = false;
  bool at_end_ = false;
  bool reset_ = false;
};

}  // namespace varve
