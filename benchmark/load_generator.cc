#include "benchmark/load_generator.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include "benchmark/process.h"
#include "benchmark/workload.h"

namespace varve::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kKeyDigits = 12;  // that are rewritten
constexpr int kReplyTimeoutMs = 30'000;

std::string BulkString(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }

sockaddr_in Localhost(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// -1 when nobody listens.
int Connect(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) Fail(fmt::format("cannot make a socket: {}", std::strerror(errno)));
  const sockaddr_in address = Localhost(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

// What all connections of a load share: the form of a request and of its reply.
class Exchange {
 public:
  explicit Exchange(const Load& load)
      : load_(load), random_(load.keys + static_cast<uint64_t>(load.pipeline)), first_key_(LoadKey(0, load.key_size)) {
    std::string value(std::max(load.value_size, first_key_.size()), 'v');
    value.replace(0, first_key_.size(), first_key_);
    value.resize(load.value_size);
    if (load.operation == Operation::kSet) {
      request_ = "*3\r\n" + BulkString("SET") + BulkString(first_key_) + BulkString(value);
      reply_head_ = "+OK\r\n";
      reply_size_ = reply_head_.size();
      if (load.value_size >= first_key_.size()) value_at_ = request_.size() - 2 - value.size();
    } else {
      request_ = "*2\r\n" + BulkString("GET") + BulkString(first_key_);
      reply_head_ = fmt::format("${}\r\n", load.value_size);
      reply_size_ = reply_head_.size() + load.value_size + 2;
      checks_values_ = load.check_values && load.value_size >= first_key_.size();
    }
    key_at_ = request_.find(first_key_);
  }

  const Load& load() const { return load_; }
  const std::string& request() const { return request_; }
  size_t reply_size() const { return reply_size_; }

  // Writes the next key into the prepared request at `request`.
  void Address(char* request) {
    uint64_t number = load_.every_key_once ? next_++ % load_.keys : random_.Below(load_.keys);
    char* const key = request + key_at_ + first_key_.size() - kKeyDigits;
    for (size_t at = kKeyDigits; at-- > 0; number /= 10) key[at] = static_cast<char>('0' + number % 10);
    if (value_at_ > 0) std::memcpy(request + value_at_, request + key_at_, first_key_.size());
  }

  // Ends the benchmark unless the bytes are the reply to that request.
  void Check(const char* reply, const char* request) const {
    const bool good =
        std::memcmp(reply, reply_head_.data(), reply_head_.size()) == 0 &&
        (!checks_values_ || std::memcmp(reply + reply_head_.size(), request + key_at_, first_key_.size()) == 0);
    if (!good) Refuse({reply, reply_size_}, request);
  }

  // Replies that are shorter than expected are recognised by their beginning.
  void CheckBeginning(std::string_view received, const char* request) const {
    const size_t known = std::min(received.size(), reply_head_.size());
    if (std::memcmp(received.data(), reply_head_.data(), known) != 0) Refuse(received, request);
  }

 private:
  [[noreturn]] void Refuse(std::string_view reply, const char* request) const {
    Fail(fmt::format("{} gave a wrong reply for {}: {}", load_.server,
                     std::string_view(request + key_at_, first_key_.size()), reply.substr(0, 200)));
  }

  const Load load_;
  Random random_;
  const std::string first_key_;
  uint64_t next_ = 0;
  std::string request_;
  std::string reply_head_;
  size_t reply_size_ = 0;
  size_t key_at_ = 0;
  size_t value_at_ = 0;  // 0: none to be rewritten
  bool checks_values_ = false;
};

// One socket with at most one pipeline of requests under way.
class Connection {
 public:
  Connection(Exchange* exchange, int epoll) : exchange_(exchange), epoll_(epoll), fd_(Connect(exchange->load().port)) {
    if (fd_ < 0) Fail(fmt::format("{} accepts no connection: {}", exchange->load().server, std::strerror(errno)));
    const int on = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    epoll_event event{.events = EPOLLIN, .data = {.ptr = this}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd_, &event);
    for (int i = 0; i < exchange->load().pipeline; ++i) out_ += exchange->request();
    in_.resize(exchange->reply_size() * static_cast<size_t>(exchange->load().pipeline) + 1);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Clock::time_point sent_at() const { return sent_at_; }
  bool done() const { return answered_ == exchange_->load().pipeline; }

  void SendPipeline(Clock::time_point now) {
    for (size_t at = 0; at < out_.size(); at += exchange_->request().size()) exchange_->Address(out_.data() + at);
    sent_ = 0;
    received_ = 0;
    answered_ = 0;
    sent_at_ = now;
    ContinueSending();
  }

  void ContinueSending() {
    while (sent_ < out_.size()) {
      const ssize_t n = send(fd_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) break;
      if (n < 0) Fail(fmt::format("{} broke a connection: {}", exchange_->load().server, std::strerror(errno)));
      sent_ += static_cast<size_t>(n);
    }
    const bool waits = sent_ < out_.size();
    if (waits == waits_to_send_) return;
    waits_to_send_ = waits;
    epoll_event event{.events = EPOLLIN | (waits ? uint32_t{EPOLLOUT} : 0u), .data = {.ptr = this}};
    epoll_ctl(epoll_, EPOLL_CTL_MOD, fd_, &event);
  }

  // Returns how many replies came.
  uint64_t Receive() {
    const ssize_t n = recv(fd_, in_.data() + received_, in_.size() - received_, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (n <= 0)
      Fail(fmt::format("{} closed a connection: {}", exchange_->load().server, n == 0 ? "end" : std::strerror(errno)));
    received_ += static_cast<size_t>(n);
    const size_t reply_size = exchange_->reply_size();
    const size_t request_size = exchange_->request().size();
    const int before = answered_;
    size_t at = static_cast<size_t>(answered_) * reply_size;
    for (; !done() && received_ - at >= reply_size; at += reply_size) {
      exchange_->Check(in_.data() + at, out_.data() + static_cast<size_t>(answered_) * request_size);
      ++answered_;
    }
    const std::string_view rest(in_.data() + at, received_ - at);
    if (done() && !rest.empty()) Fail(fmt::format("{} sent more than it was asked for", exchange_->load().server));
    if (!rest.empty()) exchange_->CheckBeginning(rest, out_.data() + static_cast<size_t>(answered_) * request_size);
    return static_cast<uint64_t>(answered_ - before);
  }

 private:
  Exchange* const exchange_;
  const int epoll_;
  const int fd_;
  std::string out_;
  std::string in_;
  size_t sent_ = 0;
  size_t received_ = 0;
  int answered_ = 0;
  bool waits_to_send_ = false;
  Clock::time_point sent_at_;
};

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// One run: warm up, measure, let the last replies come.
class Run {
 public:
  Run(const Load& load, const std::function<double()>& server_cpu)
      : exchange_(load), server_cpu_(server_cpu), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (int i = 0; i < load.connections; ++i) connections_.push_back(std::make_unique<Connection>(&exchange_, epoll_));
    left_to_send_ = load.every_key_once
                        ? (load.keys + static_cast<uint64_t>(load.pipeline) - 1) / static_cast<uint64_t>(load.pipeline)
                        : UINT64_MAX;
  }
  ~Run() { close(epoll_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  LoadResult Measure() {
    const Load& load = exchange_.load();
    const Clock::time_point begin = Clock::now();
    measure_from_ = load.every_key_once ? begin : begin + Seconds(load.warm_up_seconds);
    measure_until_ = load.every_key_once ? Clock::time_point::max() : measure_from_ + Seconds(load.seconds);
    for (const auto& connection : connections_) SendNext(connection.get(), begin);
    epoll_event events[128];
    while (under_way_ > 0) {
      const int count = epoll_wait(epoll_, events, 128, kReplyTimeoutMs);
      if (count == 0) Fail(fmt::format("{} gave no reply for {} s", load.server, kReplyTimeoutMs / 1000));
      for (int i = 0; i < count; ++i) Handle(static_cast<Connection*>(events[i].data.ptr), events[i].events);
    }
    if (measuring_) EndMeasuring(Clock::now());
    result_.requests = histogram_.total();
    result_.p50 = histogram_.Percentile(0.5) * 1e-9;
    result_.p99 = histogram_.Percentile(0.99) * 1e-9;
    result_.p999 = histogram_.Percentile(0.999) * 1e-9;
    return result_;
  }

 private:
  void Handle(Connection* connection, uint32_t events) {
    if ((events & EPOLLOUT) != 0) connection->ContinueSending();
    if ((events & ~uint32_t{EPOLLOUT}) == 0) return;
    const uint64_t replies = connection->Receive();
    const Clock::time_point now = Clock::now();
    if (measuring_ && now >= measure_until_) EndMeasuring(now);
    if (measuring_) {
      const auto latency = std::chrono::duration_cast<std::chrono::nanoseconds>(now - connection->sent_at());
      histogram_.Record(static_cast<uint64_t>(latency.count()), replies);
    }
    if (!measuring_ && !measured_ && now >= measure_from_) BeginMeasuring(now);
    if (!connection->done()) return;
    --under_way_;
    SendNext(connection, now);
  }

  void SendNext(Connection* connection, Clock::time_point now) {
    if (measured_ || left_to_send_ == 0) return;
    --left_to_send_;
    ++under_way_;
    connection->SendPipeline(now);
  }

  void BeginMeasuring(Clock::time_point now) {
    measuring_ = true;
    measure_from_ = now;
    result_.server_cpu_seconds = server_cpu_();
    if (measure_until_ != Clock::time_point::max()) measure_until_ = now + Seconds(exchange_.load().seconds);
  }

  void EndMeasuring(Clock::time_point now) {
    measuring_ = false;
    measured_ = true;
    result_.seconds = std::chrono::duration<double>(now - measure_from_).count();
    result_.server_cpu_seconds = server_cpu_() - result_.server_cpu_seconds;
  }

  Exchange exchange_;
  const std::function<double()> server_cpu_;
  const int epoll_;
  std::vector<std::unique_ptr<Connection>> connections_;
  Histogram histogram_;
  LoadResult result_;
  Clock::time_point measure_from_;
  Clock::time_point measure_until_;
  uint64_t left_to_send_ = 0;  // pipelines
  int under_way_ = 0;          // connections that wait for replies
  bool measuring_ = false;
  bool measured_ = false;
};

}  // namespace

std::string LoadKey(uint64_t number, size_t key_size) { return fmt::format("key:{:0{}}", number, key_size - 4); }

LoadResult RunLoad(const Load& load, const std::function<double()>& server_cpu) {
  return Run(load, server_cpu).Measure();
}

bool AnswersPing(uint16_t port) {
  const int fd = Connect(port);
  if (fd < 0) return false;
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const std::string ping = "*1\r\n" + BulkString("PING");
  char reply[8] = {};
  const bool answered = send(fd, ping.data(), ping.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(ping.size()) &&
                        recv(fd, reply, sizeof(reply), 0) > 0 && std::string_view(reply, 5) == "+PONG";
  close(fd);
  return answered;
}

uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Localhost(0);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Fail(fmt::format("cannot find a free port: {}", std::strerror(errno)));
  }
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace varve::bench
