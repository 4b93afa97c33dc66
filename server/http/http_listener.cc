#include "server/http/http_listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <system_error>
#include <utility>

#include "fmt/chrono.h"
#include "fmt/format.h"
#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

constexpr std::chrono::seconds kBetweenTicks{1};
constexpr int kEventsPerRound = 64;
constexpr size_t kReceiveBytes = 4096;
// What a connection is watched for. While a request waits to be answered nothing more is read.
constexpr uint32_t kForInput = EPOLLIN | EPOLLRDHUP;
constexpr uint32_t kForOutput = EPOLLOUT;
constexpr uint32_t kForNothing = 0;

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 303:
      return "See Other";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 410:
      return "Gone";
    case 421:
      return "Misdirected Request";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

// The address and the length of what the system takes for it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SocketAddress AddressOf(const std::string& ip, uint16_t port) {
  SocketAddress address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  const std::string numeric = ip == "localhost" ? "127.0.0.1" : ip;
  if (inet_pton(AF_INET, numeric.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.size = sizeof(sockaddr_in);
  } else if (inet_pton(AF_INET6, numeric.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.size = sizeof(sockaddr_in6);
  }
  return address;
}

uint16_t PortOf(const SocketAddress& address) {
  return address.storage.ss_family == AF_INET
             ? ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port)
             : ntohs(reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port);
}

HttpPeer PeerOf(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
    return {fmt::format("{}:{}", text, PortOf(address)),
            (ntohl(v4->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET};
  }
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
  const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr);
  const bool is_loopback =
      mapped ? v6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET : IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
  return {fmt::format("[{}]:{}", text, PortOf(address)), is_loopback};
}

}  // namespace

std::string HttpReplyText(const HttpReply& reply, bool head_only, bool keep_alive) {
  VARVE_ASSERT(reply.status >= 200 && reply.status < 600);
  // A stream ends with its connection.
  const std::string length = reply.stream != nullptr
                                 ? std::string()
                                 : fmt::format("Content-Length: {}\r\n", reply.body.size());
  std::string text = fmt::format(
      "HTTP/1.1 {} {}\r\nDate: {:%a, %d %b %Y %H:%M:%S} GMT\r\nContent-Type: {}\r\n"
      "{}Connection: {}\r\nCache-Control: no-store\r\n"
      "Content-Security-Policy: {}\r\nX-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n{}\r\n",
      reply.status, ReasonOf(reply.status), fmt::gmtime(std::time(nullptr)), reply.content_type,
      length, keep_alive ? "keep-alive" : "close", reply.policy, reply.more_headers);
  if (!head_only) text += reply.body;
  return text;
}

// --- Start and end -------------------------------------------------------------------------------

absl::Status HttpListener::Start(const std::string& address, uint16_t port, Handlers handlers,
                                 int passed) {
  VARVE_ASSERT(!thread_.joinable() && handlers.answer != nullptr && handlers.tick != nullptr);
  handlers_ = std::move(handlers);
  socket_ = passed;
  absl::Status status = passed < 0 ? Open(address, port) : absl::OkStatus();
  if (status.ok() && !NotePlace()) {
    status = absl::FailedPreconditionError(
        fmt::format("can't serve HTTP at {}:{}: getsockname: {}", address, port, strerror(errno)));
  }
  if (status.ok()) status = OpenPolling();
  if (status.ok()) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::system_error& failed) {
      status = absl::ResourceExhaustedError(
          fmt::format("the system gives no thread for HTTP: {}", failed.what()));
    }
  }
  if (!status.ok()) CloseDescriptors();
  return status;
}

absl::Status HttpListener::Open(const std::string& address, uint16_t port) {
  const auto failed = [&](std::string_view what) {
    return absl::FailedPreconditionError(fmt::format("can't serve HTTP at {}:{}: {}: {}", address,
                                                     port, what, std::strerror(errno)));
  };
  SocketAddress place = AddressOf(address, port);
  VARVE_ASSERT(place.size != 0);
  socket_ = ::socket(place.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket_ < 0) return failed("socket");
  const int on = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(socket_, place.get(), place.size) != 0) return failed("bind");
  if (::listen(socket_, static_cast<int>(kMaxConnections)) != 0) return failed("listen");
  return absl::OkStatus();
}

bool HttpListener::NotePlace() {
  SocketAddress place;
  place.size = sizeof(place.storage);
  if (::getsockname(socket_, place.get(), &place.size) != 0) return false;
  port_ = PortOf(place);
  place_ = PeerOf(place).address;
  return true;
}

absl::Status HttpListener::OpenPolling() {
  epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_ < 0 || wake_ < 0)
    return absl::ResourceExhaustedError("the system gives no descriptors for HTTP");
  for (int* const descriptor : {&socket_, &wake_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = descriptor;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, *descriptor, &event) != 0)
      return absl::ResourceExhaustedError("the system watches no descriptors for HTTP");
  }
  return absl::OkStatus();
}

void HttpListener::CloseDescriptors() {
  for (int* const descriptor : {&socket_, &epoll_, &wake_}) {
    if (*descriptor >= 0) ::close(*descriptor);
    *descriptor = -1;
  }
  port_ = 0;
}

void HttpListener::Stop() {
  if (!thread_.joinable()) return;
  stop_requested_.store(true);
  Wake();
  thread_.join();
  CloseDescriptors();
}

void HttpListener::Wake() const {
  VARVE_ASSERT(wake_ >= 0);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof(one));
}

void HttpListener::Run() {
  NameThread("varve-http");
  YieldToForeground();
  Time next_tick = std::chrono::steady_clock::now();
  while (!stopping_) {
    if (const Time now = std::chrono::steady_clock::now(); now >= next_tick) {
      next_tick = now + kBetweenTicks;
      CloseLate(now);
      handlers_.tick();
      accepts_ = true;
    }
    Round(next_tick);
  }
  while (!connections_.empty()) Close(connections_.begin());
}

// --- A round -------------------------------------------------------------------------------------

void HttpListener::Round(Time until) {
  epoll_event events[kEventsPerRound];
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(NextDeadline(until) -
                                                                 std::chrono::steady_clock::now());
  const int timeout = static_cast<int>(std::max<int64_t>(left.count(), 0));
  const int count = ::epoll_wait(epoll_, events, kEventsPerRound, timeout);
  const Time now = std::chrono::steady_clock::now();
  bool has_new = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.ptr == &socket_) {
      has_new = true;  // behind the others, which may be closed for it
    } else if (events[i].data.ptr == &wake_) {
      uint64_t wakes = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_, &wakes, sizeof(wakes));
      stopping_ = stop_requested_.load();
    } else {
      auto* const connection = static_cast<Connection*>(events[i].data.ptr);
      if (Serve(connection, events[i].events, now)) continue;
      Close(std::find_if(connections_.begin(), connections_.end(),
                         [&](const Connection& other) { return &other == connection; }));
    }
  }
  AnswerWaiting(now);
  if (!stopping_) SendPieces(now);
  if (has_new && !stopping_) Accept(now);
  VARVE_ASSERT(connections_.size() <= kMaxConnections);
}

void HttpListener::Accept(Time now) {
  if (!accepts_) {
    // The process has no descriptors; until the next tick the thread looks again now and then.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  // As many as there may be, and no more before other connections are served.
  for (size_t i = 0; i < kMaxConnections; ++i) {
    SocketAddress peer;
    peer.size = sizeof(peer.storage);
    const int descriptor = ::accept4(socket_, peer.get(), &peer.size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      Welcome(descriptor, PeerOf(peer), now);
      accepts_ = true;
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      accepts_ = false;
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;  // nobody waits any more
    }
  }
}

void HttpListener::Welcome(int descriptor, HttpPeer peer, Time now) {
  if (connections_.size() >= kMaxConnections) CloseStalest();
  VARVE_ASSERT(connections_.size() < kMaxConnections);
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  connections_.push_back(
      {.descriptor = descriptor,
       .peer = std::move(peer),
       .last_head = now,
       .deadline = now + kHeadTime,
       .stage = tls_ != nullptr && tls_->Get() != nullptr ? Stage::kArriving : Stage::kOpen});
  epoll_event event{};
  event.events = connections_.back().watched = kForInput;
  event.data.ptr = &connections_.back();
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0)
    Close(std::prev(connections_.end()));
}

void HttpListener::CloseStalest() {
  VARVE_ASSERT(!connections_.empty());
  Close(std::min_element(
      connections_.begin(), connections_.end(), [](const Connection& a, const Connection& b) {
        // Streams are fewer than connections may be, so there is another one.
        const bool a_streams = a.stream != nullptr, b_streams = b.stream != nullptr;
        return a_streams != b_streams ? b_streams : a.last_head < b.last_head;
      }));
}

void HttpListener::CloseLate(Time now) {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    const auto here = connection++;
    if (here->deadline > now) continue;
    if (!HasBegunHead(*here) || !RefuseLate(&*here, now)) Close(here);
  }
}

bool HttpListener::HasBegunHead(const Connection& connection) {
  // A complete head waits for its answer, or has one.
  return connection.stage == Stage::kOpen && !connection.input.empty() &&
         connection.output.empty() && connection.stream == nullptr &&
         connection.answer_at == Time();
}

bool HttpListener::RefuseLate(Connection* connection, Time now) {
  VARVE_ASSERT(HasBegunHead(*connection));
  Refuse(connection, 408, fmt::format("The head of a request has {} s.", kHeadTime.count()));
  connection->deadline = now + kFarewellTime;
  return Send(connection, now);
}

void HttpListener::Close(Connections::iterator connection) {
  VARVE_ASSERT(connection != connections_.end() && connection->descriptor >= 0);
  if (connection->tls != nullptr && connection->stage == Stage::kOpen)
    tls_->statistics().connections.fetch_sub(1, std::memory_order_relaxed);
  ::close(connection->descriptor);  // which leaves the epoll descriptor, too
  connections_.erase(connection);
}

// --- A connection --------------------------------------------------------------------------------

bool HttpListener::Serve(Connection* connection, uint32_t events, Time now) {
  if ((events & (EPOLLERR | EPOLLHUP)) != 0) return false;
  if (connection->stage == Stage::kArriving) return Arrive(connection, now);
  if (connection->stage == Stage::kHandshake) return ShakeHands(connection, now);
  if (connection->stream != nullptr)
    return (events & EPOLLOUT) != 0 ? Send(connection, now) : Drain(connection);
  // While a reply waits, nothing more is read.
  if (!connection->output.empty()) return Send(connection, now) && AnswerRequest(connection, now);
  return Receive(connection, now);
}

bool HttpListener::Arrive(Connection* connection, Time now) {
  const TlsConnection::Beginning beginning = TlsConnection::LookAtBeginning(connection->descriptor);
  if (beginning == TlsConnection::Beginning::kNone) return true;
  const std::shared_ptr<const TlsContext> context = tls_->Get();
  if (beginning == TlsConnection::Beginning::kTls && context != nullptr) {
    absl::StatusOr<std::unique_ptr<TlsConnection>> tls =
        TlsConnection::Accept(context, connection->descriptor);
    if (!tls.ok()) return false;
    connection->tls = *std::move(tls);
    // Probes have no certificate, and a page takes a password instead of one.
    connection->tls->MakeCertificateOptional();
    connection->stage = Stage::kHandshake;
    return ShakeHands(connection, now);
  }
  connection->stage = Stage::kOpen;
  if (tls_->mode() != TlsMode::kRequired) return Receive(connection, now);
  Refuse(connection, 400, "This port speaks TLS.");
  connection->deadline = now + kReplyTime;
  return Send(connection, now);
}

bool HttpListener::ShakeHands(Connection* connection, Time now) {
  VARVE_ASSERT(connection->tls != nullptr);
  switch (connection->tls->ShakeHands()) {
    case TlsConnection::Handshake::kWantsInput:
      return Watch(connection, kForInput);
    case TlsConnection::Handshake::kWantsOutput:
      return Watch(connection, kForOutput);
    case TlsConnection::Handshake::kFailed:
      tls_->NoteFailure(connection->peer.address, connection->tls->error());
      return false;
    case TlsConnection::Handshake::kDone:
      break;
  }
  connection->stage = Stage::kOpen;
  connection->peer.user_names = connection->tls->UserNames();
  tls_->NoteSuccess();
  return Watch(connection, kForInput) && Receive(connection, now);
}

bool HttpListener::ReceiveBytes(Connection* connection, std::string* bytes) {
  char scratch[kReceiveBytes];
  if (connection->tls != nullptr) {
    ByteBuffer plain;
    const TlsConnection::Received result =
        connection->tls->Receive(absl::MakeSpan(scratch), &plain);
    bytes->assign(plain.view());
    return result == TlsConnection::Received::kMore || result == TlsConnection::Received::kEmpty;
  }
  const ssize_t got = ::recv(connection->descriptor, scratch, sizeof(scratch), 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  bytes->assign(scratch, static_cast<size_t>(got));
  return got > 0;
}

bool HttpListener::Receive(Connection* connection, Time now) {
  const bool is_first = connection->input.empty();
  std::string bytes;
  if (!ReceiveBytes(connection, &bytes)) return false;
  if (bytes.empty() || connection->was_refused) return true;
  connection->input += bytes;
  // The first head has its time from the connection's beginning.
  if (is_first) connection->deadline = std::min(connection->deadline, now + kHeadTime);
  return AnswerRequest(connection, now);
}

bool HttpListener::AnswerRequest(Connection* connection, Time now) {
  if (!connection->output.empty() || connection->input.empty() || connection->answer_at > now)
    return true;
  connection->answer_at = {};
  HttpRequest request;
  const HttpParse parsed = ParseHttpHead(connection->input, &request);
  if (parsed.result == HttpParse::Result::kIncomplete) return Watch(connection, kForInput);
  connection->last_head = now;
  connection->deadline = now + kReplyTime;
  if (parsed.result == HttpParse::Result::kRefused) {
    Refuse(connection, parsed.status, parsed.why);
    return Send(connection, now);
  }
  VARVE_ASSERT(parsed.size <= connection->input.size());
  if (handlers_.delay != nullptr && !std::exchange(connection->has_waited, true)) {
    const std::chrono::milliseconds delay = handlers_.delay(request, connection->peer);
    VARVE_ASSERT(delay < kReplyTime);
    connection->answer_at = now + delay;
    if (delay.count() > 0) return Watch(connection, kForNothing);
  }
  connection->has_waited = false;
  connection->input.erase(0, parsed.size);
  Answer(request, connection);
  if (!Send(connection, now)) return false;
  if (connection->input.empty()) return true;
  connection->answer_at = now;
  return !connection->output.empty() || Watch(connection, kForNothing);
}

void HttpListener::AnswerWaiting(Time now) {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    const auto here = connection++;
    const bool waits = here->answer_at != Time() && here->answer_at <= now;
    if (waits && !AnswerRequest(&*here, now)) Close(here);
  }
}

HttpListener::Time HttpListener::NextDeadline(Time until) const {
  for (const Connection& connection : connections_) {
    if (connection.answer_at != Time() && connection.output.empty())
      until = std::min(until, connection.answer_at);
  }
  return until;
}

void HttpListener::Refuse(Connection* connection, int status, std::string_view why) {
  connection->closes = connection->was_refused = true;
  connection->input.clear();
  connection->output = HttpReplyText({.status = status,
                                      .body = fmt::format("{}\n", why),
                                      .more_headers = status == 405 ? "Allow: GET, HEAD\r\n" : ""},
                                     /*head_only=*/false, /*keep_alive=*/false);
}

void HttpListener::Answer(const HttpRequest& request, Connection* connection) {
  VARVE_ASSERT(connection->output.empty() && connection->sent == 0);
  HttpReply reply = handlers_.answer(request, connection->peer);
  if (reply.stream != nullptr && CountStreams() >= kMaxStreams)
    reply = {.status = 503, .body = "There are too many streams already.\n"};
  const bool has_end = reply.stream == nullptr || request.head_only;
  connection->closes = !request.keep_alive || reply.stream != nullptr;
  connection->output = HttpReplyText(reply, request.head_only, !connection->closes);
  if (!has_end) connection->stream = std::move(reply.stream);
}

size_t HttpListener::CountStreams() const {
  return static_cast<size_t>(
      std::count_if(connections_.begin(), connections_.end(),
                    [](const Connection& connection) { return connection.stream != nullptr; }));
}

void HttpListener::SendPieces(Time now) {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    const auto here = connection++;
    const bool waits = here->stream != nullptr && here->output.empty();
    if (waits && !SendPiece(&*here, now)) Close(here);
  }
}

bool HttpListener::SendPiece(Connection* connection, Time now) {
  connection->output = connection->stream->TakePiece(now);
  if (connection->stream->ended()) connection->stream = nullptr;
  if (connection->output.empty()) return connection->stream != nullptr;
  connection->deadline = now + kIdleTime;
  return Send(connection, now);
}

bool HttpListener::Drain(Connection* connection) {
  std::string bytes;
  return ReceiveBytes(connection, &bytes);
}

bool HttpListener::SendBytes(Connection* connection) {
  VARVE_ASSERT(connection->sent <= connection->output.size());
  if (connection->tls != nullptr) {
    const std::string_view left = std::string_view(connection->output).substr(connection->sent);
    return connection->tls->Send(left, &connection->sent) != TlsConnection::Sent::kBroken;
  }
  while (connection->sent < connection->output.size()) {
    const ssize_t sent =
        ::send(connection->descriptor, connection->output.data() + connection->sent,
               connection->output.size() - connection->sent, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return errno == EAGAIN;
    connection->sent += static_cast<size_t>(sent);
  }
  return true;
}

bool HttpListener::Watch(Connection* connection, uint32_t events) {
  if (events == connection->watched) return true;
  epoll_event event{};
  event.events = connection->watched = events;
  event.data.ptr = connection;
  return ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection->descriptor, &event) == 0;
}

bool HttpListener::Send(Connection* connection, Time now) {
  if (!SendBytes(connection)) return false;
  const bool waits = connection->sent < connection->output.size();
  if (!Watch(connection, waits ? kForOutput : kForInput)) return false;
  if (waits) return true;
  connection->output.clear();
  connection->sent = 0;
  connection->deadline = now + (connection->input.empty() ? kIdleTime : kHeadTime);
  if (connection->stream != nullptr) connection->deadline = Time::max();  // it may have nothing
  if (!connection->closes || connection->stream != nullptr) return true;
  if (connection->tls != nullptr) connection->tls->Close();
  ::shutdown(connection->descriptor, SHUT_WR);
  connection->deadline = now + kFarewellTime;
  return connection->was_refused;
}

}  // namespace varve
