#include "benchmark/server/load_generator.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <thread>

#include "benchmark/histogram.h"
#include "benchmark/process.h"
#include "benchmark/process_use.h"
#include "benchmark/server/load_connection.h"

namespace varve::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(30);  // for a reply
constexpr int kEvents = 128;

Clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

// While it lives, this thread's sleeps end when they should, not up to 50 µs later.
class PunctualSleep {
 public:
  PunctualSleep() { prctl(PR_SET_TIMERSLACK, 1UL); }
  ~PunctualSleep() { prctl(PR_SET_TIMERSLACK, 0UL); }  // the default again
  PunctualSleep(const PunctualSleep&) = delete;
  PunctualSleep& operator=(const PunctualSleep&) = delete;
};

// When the pipelines of an open loop are due.
class Schedule {
 public:
  Schedule(Clock::time_point begin, Clock::time_point end, double pipelines_per_second)
      : begin_(begin), end_(end), distance_(1e9 / pipelines_per_second) {}

  Clock::time_point next() const {
    return begin_ +
           std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(count_) * distance_));
  }
  bool ended() const { return next() >= end_; }
  void Advance() { ++count_; }

 private:
  const Clock::time_point begin_;
  const Clock::time_point end_;
  const double distance_;  // nanoseconds
  uint64_t count_ = 0;
};

// One run: warm up, measure, let the last replies come.
class Run {
 public:
  Run(const Load& load, const std::function<double()>& server_cpu)
      : exchange_(load),
        load_(exchange_.load()),
        server_cpu_(server_cpu),
        epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    for (int i = 0; i < load.connections; ++i)
      connections_.push_back(std::make_unique<LoadConnection>(&exchange_, epoll_));
    const auto pipeline = static_cast<uint64_t>(load.pipeline);
    left_to_send_ = load.each_key_once() ? (load.keys + pipeline - 1) / pipeline : UINT64_MAX;
  }
  ~Run() { close(epoll_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  LoadResult Measure() {
    const Clock::time_point begin = Clock::now();
    measure_from_ = load_.each_key_once() ? begin : begin + Seconds(load_.warm_up_seconds);
    measure_until_ =
        load_.each_key_once() ? Clock::time_point::max() : measure_from_ + Seconds(load_.seconds);
    if (load_.rate > 0) {
      OpenLoop(begin);
    } else {
      for (const auto& connection : connections_) SendNext(connection.get(), begin);
      while (under_way_ > 0) WaitAndHandle(kPatience);
    }
    if (measuring_) EndMeasuring(Clock::now());
    exchange_.CheckTotals();
    result_.inserts = exchange_.inserts();
    return result_;
  }

  const Histogram& histogram() const { return histogram_; }

 private:
  void OpenLoop(Clock::time_point begin) {
    const PunctualSleep punctual;
    Schedule schedule(begin, measure_until_, load_.rate / load_.pipeline);
    for (const auto& connection : connections_) idle_.push_back(connection.get());
    Clock::time_point now = begin;
    while (now < measure_until_) {
      for (; !idle_.empty() && !schedule.ended() && schedule.next() <= now; schedule.Advance()) {
        ++under_way_;
        LoadConnection* const connection = idle_.front();
        idle_.pop_front();
        connection->SendPipeline(schedule.next());
      }
      const bool waits_for_time = !idle_.empty() && !schedule.ended();
      WaitAndHandle((waits_for_time ? schedule.next() : measure_until_) - Clock::now());
      now = Clock::now();
      Pass(now);
    }
    if (measuring_) EndMeasuring(now);
    for (; !schedule.ended(); schedule.Advance()) {
      if (schedule.next() >= measure_from_)
        Record(measure_until_ - schedule.next(), load_.pipeline);
    }
    while (under_way_ > 0) WaitAndHandle(kPatience);
  }

  // Handles what arrives within that time.
  void WaitAndHandle(Clock::duration most) {
    epoll_event events[kEvents];
    const auto wait = std::max(Clock::duration::zero(), most);
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(wait);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (wait - seconds).count()};
    const int count = epoll_pwait2(epoll_, events, kEvents, &limit, nullptr);
    if (count < 0 && errno != EINTR)
      Fail(fmt::format("cannot wait for replies: {}", std::strerror(errno)));
    if (count == 0 && most >= kPatience) {
      Fail(fmt::format("{} gave no reply for {} s", load_.server,
                       kPatience / std::chrono::seconds(1)));
    }
    for (int i = 0; i < count; ++i)
      Handle(static_cast<LoadConnection*>(events[i].data.ptr), events[i].events);
  }

  void Handle(LoadConnection* connection, uint32_t events) {
    if ((events & EPOLLOUT) != 0) connection->ContinueSending();
    if ((events & ~uint32_t{EPOLLOUT}) == 0) return;
    const uint64_t replies = connection->Receive();
    const Clock::time_point now = Clock::now();
    if (measuring_ && (load_.rate == 0 || now < measure_until_)) result_.requests += replies;
    const bool counts = load_.rate > 0 ? connection->since() >= measure_from_ : measuring_;
    if (counts) Record(now - connection->since(), static_cast<int>(replies));
    if (measuring_ && now >= measure_until_) EndMeasuring(now);
    Pass(now);
    if (!connection->done()) return;
    --under_way_;
    if (load_.rate > 0) {
      idle_.push_back(connection);
    } else {
      SendNext(connection, now);
    }
  }

  void Record(Clock::duration latency, int times) {
    histogram_.Record(static_cast<uint64_t>(
                          std::chrono::duration_cast<std::chrono::nanoseconds>(latency).count()),
                      static_cast<uint64_t>(times));
  }

  void SendNext(LoadConnection* connection, Clock::time_point now) {
    if (measured_ || left_to_send_ == 0) return;
    --left_to_send_;
    ++under_way_;
    connection->SendPipeline(now);
  }

  // Begins measuring when it is time.
  void Pass(Clock::time_point now) {
    if (measuring_ || measured_ || now < measure_from_) return;
    measuring_ = true;
    measuring_since_ = now;
    result_.server_cpu_seconds = server_cpu_();
    result_.client_cpu_seconds = ProcessUse::Now().cpu_seconds;
    const bool lasts_so_long = load_.rate == 0 && measure_until_ != Clock::time_point::max();
    if (lasts_so_long) measure_until_ = now + Seconds(load_.seconds);
  }

  void EndMeasuring(Clock::time_point now) {
    measuring_ = false;
    measured_ = true;
    result_.seconds = load_.rate > 0
                          ? load_.seconds
                          : std::chrono::duration<double>(now - measuring_since_).count();
    result_.server_cpu_seconds = server_cpu_() - result_.server_cpu_seconds;
    result_.client_cpu_seconds = ProcessUse::Now().cpu_seconds - result_.client_cpu_seconds;
  }

  Exchange exchange_;
  const Load& load_;
  const std::function<double()> server_cpu_;
  const int epoll_;
  std::vector<std::unique_ptr<LoadConnection>> connections_;
  std::deque<LoadConnection*> idle_;  // of an open loop, the one that waits longest first
  Histogram histogram_;
  LoadResult result_;
  Clock::time_point measure_from_;
  Clock::time_point measure_until_;
  Clock::time_point measuring_since_;
  uint64_t left_to_send_ = 0;  // pipelines of a closed loop
  int under_way_ = 0;          // connections that wait for replies
  bool measuring_ = false;
  bool measured_ = false;
};

}  // namespace

LoadResult RunLoad(const Load& load, const std::function<double()>& server_cpu) {
  const auto threads = static_cast<size_t>(load.client_threads);
  std::vector<std::unique_ptr<Run>> runs;
  for (size_t i = 0; i < threads; ++i) {
    Load part = load;
    part.connections = std::max(1, load.connections / load.client_threads);
    part.seed = load.seed * threads + i;
    part.rate = load.rate / static_cast<double>(threads);
    runs.push_back(std::make_unique<Run>(part, server_cpu));
  }
  std::vector<LoadResult> results(threads);
  std::vector<std::thread> others;
  for (size_t i = 1; i < threads; ++i)
    others.emplace_back([&, i] { results[i] = runs[i]->Measure(); });
  results[0] = runs[0]->Measure();
  for (std::thread& other : others) other.join();

  // All measured the same time, but for the last replies, and each the processor time of all.
  LoadResult result = results[0];
  Histogram histogram = runs[0]->histogram();
  for (size_t i = 1; i < threads; ++i) {
    result.requests += results[i].requests;
    result.inserts += results[i].inserts;
    result.seconds = std::max(result.seconds, results[i].seconds);
    histogram.Add(runs[i]->histogram());
  }
  result.p50 = histogram.Percentile(0.5) * 1e-9;
  result.p99 = histogram.Percentile(0.99) * 1e-9;
  result.p999 = histogram.Percentile(0.999) * 1e-9;
  return result;
}

IdleConnections::IdleConnections(const Load& load)
    : exchange_(load), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  constexpr int kPatienceMs = 30'000;
  for (int i = 0; i < load.connections; ++i) {
    connections_.push_back(std::make_unique<LoadConnection>(&exchange_, epoll_));
    LoadConnection* const connection = connections_.back().get();
    connection->SendPipeline(Clock::now());
    while (!connection->done()) {
      epoll_event event;
      if (epoll_wait(epoll_, &event, 1, kPatienceMs) == 0) Fail(load.server + " gives no reply");
      if ((event.events & EPOLLOUT) != 0) connection->ContinueSending();
      connection->Receive();
    }
  }
}

IdleConnections::~IdleConnections() { close(epoll_); }

int MostConnections() {
  constexpr rlim_t kOtherFiles = 200;  // ours, or a server's
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t kMost = 1'000'000;
  return static_cast<int>(std::min(limit.rlim_cur, kMost) - std::min(limit.rlim_cur, kOtherFiles));
}

bool AnswersPing(uint16_t port) {
  const int fd = ConnectTo(port);
  if (fd < 0) return false;
  const timeval patience{.tv_sec = 2, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  const std::string ping = "*1\r\n" + BulkString("PING");
  char reply[8] = {};
  const bool answered =
      send(fd, ping.data(), ping.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(ping.size()) &&
      recv(fd, reply, sizeof(reply), 0) > 0 && std::string_view(reply, 5) == "+PONG";
  close(fd);
  return answered;
}

uint16_t FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    Fail(fmt::format("cannot find a free port: {}", std::strerror(errno)));
  }
  close(fd);
  return ntohs(address.sin_port);
}

}  // namespace varve::bench
