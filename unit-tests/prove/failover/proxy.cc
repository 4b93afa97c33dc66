#include "unit-tests/prove/failover/proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace varve::prove {
namespace {

constexpr size_t kMostPending = size_t{1} << 18;

sockaddr_in LocalAddress(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

void BecomePrompt(int descriptor) {
  const int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

// Returns a connected socket, or -1.
int ConnectTo(uint16_t port) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = LocalAddress(port);
  if (descriptor >= 0 &&
      connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    BecomePrompt(descriptor);
    return descriptor;
  }
  if (descriptor >= 0) close(descriptor);
  return -1;
}

// Returns a socket that listens on some port, or -1.
int Listen(uint16_t* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address = LocalAddress(0);
  socklen_t size = sizeof(address);
  if (listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
      listen(listener, 64) == 0 &&
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    *port = ntohs(address.sin_port);
    return listener;
  }
  if (listener >= 0) close(listener);
  return -1;
}

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

// Moves what there is. Returns false when the direction is over.
template <typename Direction>
bool Pump(Direction* direction) {
  char bytes[16384];
  while (!direction->at_end && direction->pending.size() < kMostPending) {
    const ssize_t got = recv(direction->from, bytes, sizeof(bytes), 0);
    if (got > 0) direction->pending.append(bytes, static_cast<size_t>(got));
    if (got > 0) continue;
    direction->at_end = got == 0 || !WouldBlock();
    break;
  }
  while (!direction->pending.empty()) {
    const ssize_t sent =
        send(direction->to, direction->pending.data(), direction->pending.size(), MSG_NOSIGNAL);
    if (sent < 0) return WouldBlock();
    direction->pending.erase(0, static_cast<size_t>(sent));
  }
  return !direction->at_end;
}

}  // namespace

Proxy::Proxy() {
  if (pipe2(wake_, O_CLOEXEC | O_NONBLOCK) != 0) return;
  listener_ = Listen(&port_);
  if (listener_ >= 0) thread_ = std::thread([this] { Run(); });
}

uint16_t Proxy::FreePort() {
  uint16_t port = 0;
  if (const int listener = Listen(&port); listener >= 0) close(listener);
  return port;
}

Proxy::~Proxy() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    CloseAll();
  }
  Enter(Mode::kCut);
  if (thread_.joinable()) thread_.join();
  for (const int descriptor : {listener_, wake_[0], wake_[1]})
    if (descriptor >= 0) close(descriptor);
}

void Proxy::SetTarget(uint16_t target) {
  absl::MutexLock lock(&mutex_);
  target_ = target;
}

void Proxy::Enter(Mode mode) {
  absl::MutexLock lock(&mutex_);
  mode_ = mode;
  if (mode == Mode::kCut) CloseAll();
  [[maybe_unused]] const ssize_t written = write(wake_[1], "w", 1);
}

void Proxy::CloseAll() {
  for (const std::unique_ptr<Connection>& each : connections_) {
    close(each->there.from);
    close(each->there.to);
  }
  connections_.clear();
}

void Proxy::Accept() {
  for (;;) {
    const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const int server = mode_ == Mode::kCut ? -1 : ConnectTo(target_);
    if (server < 0) {
      close(client);
      continue;
    }
    BecomePrompt(client);
    auto connection = std::make_unique<Connection>();
    connection->there.from = connection->back.to = client;
    connection->there.to = connection->back.from = server;
    connections_.push_back(std::move(connection));
  }
}

bool Proxy::Await() {
  std::vector<pollfd> waits = {{.fd = wake_[0], .events = POLLIN, .revents = 0}};
  {
    absl::MutexLock lock(&mutex_);
    if (stop_) return false;
    if (mode_ != Mode::kStalled) {
      waits.push_back({.fd = listener_, .events = POLLIN, .revents = 0});
      for (const std::unique_ptr<Connection>& each : connections_) {
        const auto events = [](const Direction& in, const Direction& out) {
          return static_cast<short>((in.pending.size() < kMostPending ? POLLIN : 0) |
                                    (out.pending.empty() ? 0 : POLLOUT));
        };
        waits.push_back(
            {.fd = each->there.from, .events = events(each->there, each->back), .revents = 0});
        waits.push_back(
            {.fd = each->there.to, .events = events(each->back, each->there), .revents = 0});
      }
    }
  }
  poll(waits.data(), waits.size(), -1);
  char bytes[64];
  while (read(wake_[0], bytes, sizeof(bytes)) > 0) continue;
  return true;
}

void Proxy::Run() {
  while (Await()) {
    absl::MutexLock lock(&mutex_);
    if (mode_ == Mode::kStalled || stop_) continue;
    Accept();
    std::erase_if(connections_, [](const std::unique_ptr<Connection>& each) {
      const bool there = Pump(&each->there), back = Pump(&each->back);
      if (there && back) return false;
      close(each->there.from);
      close(each->there.to);
      return true;
    });
  }
}

}  // namespace varve::prove
