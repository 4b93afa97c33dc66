#include "server/net/client_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kFirstRead = 4096;          // bytes of room for a connection's first request
constexpr size_t kLargestRead = 256u << 10;  // bytes asked for in one read
constexpr int kReadsAtClose = 16;            // of bytes nobody will answer

}  // namespace

ClientSocket::~ClientSocket() { ::close(descriptor_); }

void ClientSocket::NoteEvents(uint32_t epoll_events) {
  if (epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (epoll_events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) peer_closing_ = true;
  if (epoll_events & (EPOLLHUP | EPOLLERR)) reset_ = true;
}

TlsConnection::Beginning ClientSocket::LookAtBeginning() {
  const TlsConnection::Beginning beginning = TlsConnection::LookAtBeginning(descriptor_);
  if (beginning == TlsConnection::Beginning::kNone) readable_ = false;
  return beginning;
}

absl::Status ClientSocket::BeginTls(std::shared_ptr<const TlsContext> context) {
  VARVE_ASSERT(tls_ == nullptr);
  VARVE_ASSIGN_OR_RETURN(tls_, TlsConnection::Accept(std::move(context), descriptor_));
  return absl::OkStatus();
}

bool ClientSocket::ReceiveTls(ByteBuffer* input, size_t quota, absl::Span<char> scratch,
                              size_t* received) {
  for (size_t came = 0; came < quota;) {
    const size_t before = input->size();
    const TlsConnection::Received result = tls_->Receive(scratch, input);
    came += input->size() - before;
    *received += input->size() - before;
    // The end of the stream may be behind the bytes of a short read.
    if (result == TlsConnection::Received::kEmpty && !peer_closing_) readable_ = false;
    if (result == TlsConnection::Received::kEnd) at_end_ = true;
    if (result == TlsConnection::Received::kEnd || result == TlsConnection::Received::kBroken)
      readable_ = false;
    if (result == TlsConnection::Received::kBroken) return false;
    if (!readable_ || input->size() == before) break;
  }
  return true;
}

bool ClientSocket::Receive(ByteBuffer* input, size_t missing, size_t quota,
                           absl::Span<char> scratch, size_t* received) {
  VARVE_ASSERT(!at_end_);
  VARVE_ASSERT(scratch.size() >= kFirstRead);
  if (tls_ != nullptr) return ReceiveTls(input, quota, scratch, received);
  while (quota > 0) {
    // Room grows with what has arrived, never with what was announced.
    const bool little = input->size() < kFirstRead && input->room() < kFirstRead;
    size_t asked = std::max(quota, kFirstRead);
    char* room = scratch.data();
    if (little) {
      asked = std::min(asked, scratch.size());
    } else {
      const size_t wanted = std::clamp(std::min(input->size(), missing), kFirstRead, kLargestRead);
      room = input->Reserve(input->room() >= kFirstRead ? kFirstRead : wanted);
      asked = std::min(asked, input->room());
    }
    const ssize_t got = ::recv(descriptor_, room, asked, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      readable_ = false;
      at_end_ = got == 0;
      return got == 0 || errno == EAGAIN || errno == EWOULDBLOCK;
    }
    const size_t bytes = static_cast<size_t>(got);
    if (little) {
      input->Append({room, bytes});
    } else {
      input->Commit(bytes);
    }
    *received += bytes;
    quota -= std::min(quota, bytes);
    // A short read has emptied the socket: new bytes, or the end of the stream, bring a new event.
    if (bytes < asked && !peer_closing_) {
      readable_ = false;
      break;
    }
  }
  return true;
}

ClientSocket::Sent ClientSocket::Send(PendingReplies* replies, SequenceNumber durable,
                                      size_t* sent) {
  size_t left = replies->Releasable(durable);
  VARVE_ASSERT(left <= replies->size());
  if (tls_ != nullptr) {
    size_t gone = 0;
    const Sent result = tls_->Send({replies->bytes().data(), left}, &gone);
    replies->Consume(gone);
    *sent += gone;
    return result;
  }
  while (left > 0) {
    const ssize_t bytes =
        ::send(descriptor_, replies->bytes().data(), left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == EWOULDBLOCK ? Sent::kWouldBlock : Sent::kBroken;
    }
    replies->Consume(static_cast<size_t>(bytes));
    *sent += static_cast<size_t>(bytes);
    left -= static_cast<size_t>(bytes);
  }
  return Sent::kAll;
}

void ClientSocket::ShutDown(bool is_in_use) {
  if (tls_ != nullptr && !is_in_use) tls_->Close();
  ::shutdown(descriptor_, SHUT_WR);
  // Unread bytes would turn the close into a reset, which can overtake the last reply.
  char ignored[kFirstRead];
  for (int i = 0; i < kReadsAtClose; ++i) {
    if (::recv(descriptor_, ignored, sizeof(ignored), MSG_DONTWAIT) <= 0) break;
  }
}

}  // namespace varve
