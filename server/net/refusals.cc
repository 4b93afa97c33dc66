#include "server/net/refusals.h"

#include <sys/socket.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cerrno>
#include <utility>

#include "util/base/assert.h"

namespace varve {
namespace {

using Socket = asio::posix::stream_descriptor;

}  // namespace

Refusals::~Refusals() { VARVE_ASSERT(all_.empty()); }

bool Refusals::MayTake() {
  const auto now = std::chrono::steady_clock::now();
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    in_second_ = 0;
  }
  return all_.size() < kMost && in_second_++ < kASecond;
}

void Refusals::Refuse(int descriptor, const Door& door, std::string_view reply) {
  if (!door.tls) {  // nothing has to be waited for
    ::send(descriptor, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    ::close(descriptor);
    return;
  }
  if (!MayTake()) {
    ::close(descriptor);
    return;
  }
  const Place refused = all_.emplace(all_.end(), io_, descriptor);
  refused->door = door;
  refused->reply = reply;
  refused->timer.expires_after(kTime);
  refused->timer.async_wait([this, refused](const asio::error_code& stopped) {
    if (!stopped) End(&*refused);
  });
  Wait(refused, Socket::wait_read);
}

void Refusals::Wait(Place refused, Socket::wait_type what) {
  refused->socket.async_wait(what, [this, refused](const asio::error_code& error) {
    const bool failed = error || refused->is_over;
    // A client that says nothing is told in plain text, where that may be its language.
    if (failed && refused->tls == nullptr && !refused->replied && refused->door.plain)
      (void)SendReply(refused);
    if (failed || !GoOn(refused)) Remove(refused);
  });
}

bool Refusals::GoOn(Place refused) {
  if (refused->replied) return AwaitEnd(refused);
  return refused->tls == nullptr ? Begin(refused) : ShakeHands(refused);
}

bool Refusals::Begin(Place refused) {
  const int descriptor = refused->socket.native_handle();
  switch (TlsConnection::LookAtBeginning(descriptor)) {
    case TlsConnection::Beginning::kNone:
      Wait(refused, Socket::wait_read);
      return true;
    case TlsConnection::Beginning::kOther:
      return Reply(refused);
    case TlsConnection::Beginning::kEnd:
      return false;
    case TlsConnection::Beginning::kTls:
      break;
  }
  const std::shared_ptr<const TlsContext> context = tls_.Get();
  if (context == nullptr) return false;
  absl::StatusOr<std::unique_ptr<TlsConnection>> tls = TlsConnection::Accept(context, descriptor);
  if (!tls.ok()) return false;
  refused->tls = *std::move(tls);
  return ShakeHands(refused);
}

bool Refusals::ShakeHands(Place refused) {
  switch (refused->tls->ShakeHands()) {
    case TlsConnection::Handshake::kDone:
      return Reply(refused);
    case TlsConnection::Handshake::kWantsInput:
      Wait(refused, Socket::wait_read);
      return true;
    case TlsConnection::Handshake::kWantsOutput:
      Wait(refused, Socket::wait_write);
      return true;
    case TlsConnection::Handshake::kFailed:
      return false;
  }
  return false;
}

bool Refusals::SendReply(Place refused) {
  const int descriptor = refused->socket.native_handle();
  const std::string_view reply =
      refused->door.plain || refused->tls != nullptr ? refused->reply : kTlsNeededReply;
  if (refused->tls != nullptr) {
    size_t sent = 0;
    if (refused->tls->Send(reply, &sent) != TlsConnection::Sent::kAll) return false;
    refused->tls->Close();
  } else {
    ::send(descriptor, reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  ::shutdown(descriptor, SHUT_WR);
  refused->replied = true;
  return true;
}

bool Refusals::AwaitEnd(Place refused) {
  // Bytes that nobody reads would turn the close into a reset, which can overtake the reply.
  char ignored[4096];
  const ssize_t got =
      ::recv(refused->socket.native_handle(), ignored, sizeof(ignored), MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return false;
  Wait(refused, Socket::wait_read);
  return true;
}

void Refusals::End(Refused* refused) {
  refused->is_over = true;
  asio::error_code ignored;
  refused->socket.cancel(ignored);  // whose handler removes the connection
}

void Refusals::Remove(Place refused) {
  refused->timer.cancel();
  // The handler of the timer may still run: it must find the object.
  asio::post(io_, [this, refused] {
    VARVE_ASSERT(!all_.empty());
    all_.erase(refused);
  });
}

void Refusals::Close(std::function<void()> on_closed) {
  asio::post(io_, [this, on_closed = std::move(on_closed)] {
    for (Refused& refused : all_) End(&refused);
    // Behind the handlers of what was cancelled, and behind what those post.
    asio::post(io_, [this, on_closed] { asio::post(io_, on_closed); });
  });
}

}  // namespace varve
