#include "benchmark/server/null_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "benchmark/process.h"
#include "benchmark/server/exchange.h"

namespace varve::bench {
namespace {

constexpr size_t kReceiveBytes = 64 << 10;
constexpr size_t kKeySize = 16;  // of the entries of a RANGE

struct Session {
  std::string in;  // what has not been parsed yet
  std::string out;
};

// Reads "<type><number>\r\n" at `*at`; false when it isn't all there.
bool ReadNumber(std::string_view in, size_t* at, size_t* number) {
  size_t value = 0;
  for (size_t i = *at + 1; i < in.size(); ++i) {
    if (in[i] == '\r') {
      if (i + 1 == in.size()) return false;
      *at = i + 2;
      *number = value;
      return true;
    }
    value = value * 10 + static_cast<size_t>(in[i] - '0');
  }
  return false;
}

// The verb of the request at `*at`, which moves behind the request, and how many words it has;
// empty when it isn't all there.
std::string_view ReadRequest(std::string_view in, size_t* at, size_t* parts) {
  size_t pos = *at;
  if (!ReadNumber(in, &pos, parts)) return {};
  std::string_view verb;
  for (size_t part = 0; part < *parts; ++part) {
    size_t size = 0;
    if (!ReadNumber(in, &pos, &size) || in.size() - pos < size + 2) return {};
    if (part == 0) verb = in.substr(pos, size);
    pos += size + 2;
  }
  *at = pos;
  return verb;
}

class NullServer {
 public:
  NullServer(uint16_t port, size_t value_size)
      : value_(BulkString(std::string(value_size, 'v'))),
        entries_(Entries(value_)),
        epoll_(epoll_create1(EPOLL_CLOEXEC)),
        listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
        listen(listener_, SOMAXCONN) != 0) {
      Fail(fmt::format("the null server cannot listen on port {}: {}", port, std::strerror(errno)));
    }
    Watch(listener_);
  }

  [[noreturn]] void Serve() {
    epoll_event events[128];
    for (;;) {
      const int count = epoll_wait(epoll_, events, 128, -1);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == listener_) {
          Accept();
        } else if (!Answer(events[i].data.fd)) {
          sessions_.erase(events[i].data.fd);
          close(events[i].data.fd);
        }
      }
    }
  }

 private:
  void Watch(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  void Accept() {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    sessions_[fd] = std::make_unique<Session>();
    Watch(fd);
  }

  // One receive, all its answers in one send (which blocks when the client doesn't read). False:
  // the client has gone.
  bool Answer(int fd) {
    Session& session = *sessions_[fd];
    std::string_view in;
    const ssize_t n = recv(fd, buffer_, sizeof(buffer_), 0);
    if (n <= 0) return false;
    if (session.in.empty()) {
      in = {buffer_, static_cast<size_t>(n)};
    } else {
      session.in.append(buffer_, static_cast<size_t>(n));
      in = session.in;
    }
    session.out.clear();
    size_t at = 0;
    size_t parts = 0;
    for (std::string_view verb; at < in.size() && !(verb = ReadRequest(in, &at, &parts)).empty();) {
      AppendReply(verb, parts, &session.out);
    }
    session.in = std::string(in.substr(at));
    for (size_t sent = 0; sent < session.out.size();) {
      const ssize_t m =
          send(fd, session.out.data() + sent, session.out.size() - sent, MSG_NOSIGNAL);
      if (m <= 0) return false;
      sent += static_cast<size_t>(m);
    }
    return true;
  }

  void AppendReply(std::string_view verb, size_t parts, std::string* out) const {
    if (verb == "SET" || verb == "MSET") {
      *out += "+OK\r\n";
    } else if (verb == "GET") {
      *out += value_;
    } else if (verb == "INCR") {
      *out += ":1\r\n";
    } else if (verb == "MGET") {
      fmt::format_to(std::back_inserter(*out), "*{}\r\n", parts - 1);
      for (size_t i = 1; i < parts; ++i) *out += value_;
    } else if (verb == "RANGE") {
      *out += entries_;
    } else if (verb == "PING") {
      *out += "+PONG\r\n";
    } else {
      *out += "-ERR nothing but SET, GET, MSET, MGET, INCR, RANGE and PING here\r\n";
    }
  }

  static std::string Entries(const std::string& value) {
    std::string entries = fmt::format("*{}\r\n", 2 * kRangeEntries);
    for (uint64_t i = 0; i < kRangeEntries; ++i)
      entries += BulkString(LoadKey(i, kKeySize)) + value;
    return entries;
  }

  const std::string value_;
  const std::string entries_;
  const int epoll_;
  const int listener_;
  std::unordered_map<int, std::unique_ptr<Session>> sessions_;
  char buffer_[kReceiveBytes];
};

}  // namespace

void ServeNothing(uint16_t port, size_t value_size) { NullServer(port, value_size).Serve(); }

}  // namespace varve::bench
