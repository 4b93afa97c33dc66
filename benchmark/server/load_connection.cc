#include "benchmark/server/load_connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "benchmark/process.h"

namespace varve::bench {

int ConnectTo(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

LoadConnection::LoadConnection(Exchange* exchange, int epoll)
    : exchange_(exchange), epoll_(epoll), fd_(ConnectTo(exchange->load().port)) {
  if (fd_ < 0)
    Fail(
        fmt::format("{} accepts no connection: {}", exchange->load().server, std::strerror(errno)));
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (exchange->load().tls != nullptr) BeginTls();
  if (!exchange->load().space.empty()) UseNamespace();
  epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
  epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event);
  const auto pipeline = static_cast<size_t>(exchange->load().pipeline);
  slots_.resize(pipeline);
  in_.resize(exchange->reply_room() * pipeline + 1);
}

LoadConnection::~LoadConnection() {
  tls_ = nullptr;
  close(fd_);
}

void LoadConnection::BeginTls() {
  constexpr int kPatienceMs = 30'000;
  const Load& load = exchange_->load();
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  absl::StatusOr<std::unique_ptr<TlsStream>> stream = TlsStream::Make(*load.tls, "127.0.0.1", fd_);
  if (!stream.ok()) Fail(stream.status().ToString());
  tls_ = *std::move(stream);
  while (true) {
    const absl::StatusOr<bool> done = tls_->Handshake();
    if (!done.ok()) Fail(fmt::format("{}: {}", load.server, done.status().ToString()));
    if (*done) return;
    pollfd waiting{fd_, static_cast<short>(tls_->needs_room() ? POLLOUT : POLLIN), 0};
    if (poll(&waiting, 1, kPatienceMs) == 0) Fail(load.server + " does not end a handshake");
  }
}

void LoadConnection::UseNamespace() {
  const Load& load = exchange_->load();
  const std::string request = fmt::format("NAMESPACE USE {}\r\n", load.space);
  if (SendSome(request) != request.size()) Fail(load.server + " takes no request");
  std::string reply;
  while (!reply.ends_with("\r\n")) {
    char buffer[256];
    pollfd waiting{fd_, POLLIN, 0};
    poll(&waiting, 1, -1);
    reply.append(buffer, ReceiveSome(buffer, sizeof(buffer)));
  }
  if (reply != "+OK\r\n") Fail(fmt::format("{} answered: {}", load.server, reply));
}

size_t LoadConnection::SendSome(std::string_view bytes) {
  const std::string& server = exchange_->load().server;
  if (tls_ != nullptr) {
    const absl::StatusOr<size_t> sent = tls_->Send(bytes);
    if (!sent.ok())
      Fail(fmt::format("{} broke a connection: {}", server, sent.status().ToString()));
    return *sent;
  }
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno != EAGAIN && errno != EINTR)
    Fail(fmt::format("{} broke a connection: {}", server, std::strerror(errno)));
  return 0;
}

size_t LoadConnection::ReceiveSome(char* buffer, size_t size) {
  const std::string& server = exchange_->load().server;
  if (tls_ != nullptr) {
    const absl::StatusOr<size_t> got = tls_->Receive(buffer, size);
    if (!got.ok()) Fail(fmt::format("{} closed a connection: {}", server, got.status().ToString()));
    return *got;
  }
  const ssize_t got = recv(fd_, buffer, size, MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    Fail(
        fmt::format("{} closed a connection: {}", server, got == 0 ? "end" : std::strerror(errno)));
  }
  return 0;
}

void LoadConnection::MakeRequests() {
  size_t at = 0;
  for (Slot& slot : slots_) {
    const Form& form = exchange_->Draw();
    const size_t end = at + form.request.size();
    if (slot.form != &form || slot.at != at) {
      if (out_.size() < end) out_.resize(end);
      std::memcpy(out_.data() + at, form.request.data(), form.request.size());
      slot = {&form, at};
    }
    exchange_->Address(form, out_.data() + at);
    at = end;
  }
  out_.resize(at);
}

void LoadConnection::SendPipeline(Clock::time_point since) {
  MakeRequests();
  sent_ = 0;
  received_ = 0;
  taken_ = 0;
  answered_ = 0;
  since_ = since;
  ContinueSending();
}

void LoadConnection::ContinueSending() {
  while (sent_ < out_.size()) {
    const size_t sent = SendSome(std::string_view(out_).substr(sent_));
    if (sent == 0) break;
    sent_ += sent;
  }
  const bool waits = sent_ < out_.size();
  if (waits == waits_to_send_) return;
  waits_to_send_ = waits;
  epoll_event event{.events = EPOLLIN | (waits ? uint32_t{EPOLLOUT} : 0u), .data = {.ptr = this}};
  epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_, &event);
}

uint64_t LoadConnection::Receive() {
  received_ += ReceiveSome(in_.data() + received_, in_.size() - received_);
  const size_t before = answered_;
  while (!done() && taken_ < received_) {
    const Slot& slot = slots_[answered_];
    const size_t size = exchange_->Take(*slot.form, {in_.data() + taken_, received_ - taken_},
                                        out_.data() + slot.at);
    if (size == 0) break;
    taken_ += size;
    ++answered_;
  }
  if (done() && taken_ < received_)
    Fail(exchange_->load().server + " sent more than it was asked for");
  return answered_ - before;
}

}  // namespace varve::bench
