#include "client/cli/bench.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "asio/io_context.hpp"
#include "client/async_client.h"
#include "client/client.h"
#include "client/console/interrupt.h"
#include "client/console/output.h"
#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Counts of times, in buckets that grow: 16 to each doubling, so that a quantile is right to 6 %.
class LatencyHistogram {
 public:
  void Add(SteadyClock::duration latency) {
    const auto nanoseconds = static_cast<uint64_t>(std::chrono::nanoseconds(latency).count());
    ++counts_[BucketOf(nanoseconds)];
    ++total_;
  }
  // Milliseconds.
  double Quantile(double share) const {
    auto wanted = static_cast<uint64_t>(share * static_cast<double>(total_));
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (wanted < counts_[i]) return static_cast<double>(UpperEdge(i)) / 1e6;
      wanted -= counts_[i];
    }
    return 0;
  }
  uint64_t total() const { return total_; }

 private:
  static size_t BucketOf(uint64_t value) {
    if (value < 16) return value;
    const auto doublings = static_cast<size_t>(std::bit_width(value)) - 5;
    return 16 * doublings + (value >> doublings);
  }
  static uint64_t UpperEdge(size_t bucket) {
    if (bucket < 16) return bucket + 1;
    const size_t doublings = bucket / 16 - 1;
    return (16 + bucket % 16 + 1) << doublings;
  }

  std::array<uint64_t, 16 * 61> counts_{};
  uint64_t total_ = 0;
};

// One kind of request over all connections until the time is up.
class Load {
 public:
  Load(const CommandLine& line, const std::string& prefix, bool writes)
      : bench_(line.bench),
        prefix_(prefix),
        writes_(writes),
        value_(static_cast<size_t>(bench_.value_size), 'v'),
        random_(1) {
    ClientOptions options = line.connection;
    options.reconnect_for = std::chrono::milliseconds(0);
    for (int64_t i = 0; i < bench_.connections; ++i) {
      clients_.push_back(std::make_unique<AsyncClient>(context_, options));
    }
  }

  void Run() {
    begun_ = SteadyClock::now();
    until_ = begun_ + std::chrono::seconds(bench_.seconds);
    for (const auto& client : clients_) {
      running_ += bench_.pipeline;
      for (int64_t i = 0; i < bench_.pipeline; ++i) Ask(client.get());
    }
    context_.run();
    seconds_ = std::chrono::duration<double>(SteadyClock::now() - begun_).count();
  }

  bool interrupted() const { return interrupt_.happened(); }
  const std::string& error() const { return error_; }
  std::string Report(OutputStyle style) const {
    const double rate = static_cast<double>(latencies_.total()) / seconds_;
    const char* const name = writes_ ? "SET" : "GET";
    const double p50 = latencies_.Quantile(0.5), p99 = latencies_.Quantile(0.99);
    if (style == OutputStyle::kJson) {
      return fmt::format(
          "{{\"test\":\"{}\",\"requests_per_second\":{:.0f},\"p50_ms\":{:.3f},\"p99_ms\":{:.3f}}}"
          "\n",
          name, rate, p50, p99);
    }
    return fmt::format("{}  {:>10.0f} requests/s   p50 {:.3f} ms   p99 {:.3f} ms\n", name, rate,
                       p50, p99);
  }

 private:
  void Ask(AsyncClient* client) {
    const std::string key =
        fmt::format("{}{}", prefix_, random_() % static_cast<uint64_t>(bench_.keyspace));
    auto answered = [this, client, asked = SteadyClock::now()](const absl::StatusOr<Reply>& reply) {
      Answered(client, asked, reply);
    };
    if (writes_) {
      client->Call({"SET", key, value_}, answered);
    } else {
      client->Call({"GET", key}, answered);
    }
  }

  void Answered(AsyncClient* client, SteadyClock::time_point asked,
                const absl::StatusOr<Reply>& reply) {
    const SteadyClock::time_point now = SteadyClock::now();
    if (!reply.ok() || reply->is_error()) {
      if (error_.empty()) error_ = reply.ok() ? reply->text : std::string(reply.status().message());
    } else {
      latencies_.Add(now - asked);
      if (now < until_ && error_.empty() && !interrupt_.happened()) return Ask(client);
    }
    if (--running_ == 0) {
      for (const auto& each : clients_) each->Close();
    }
  }

  const BenchOptions& bench_;
  const std::string& prefix_;
  const bool writes_;
  const Interrupt interrupt_;
  const std::string value_;
  std::minstd_rand random_;
  asio::io_context context_{1};
  std::vector<std::unique_ptr<AsyncClient>> clients_;
  SteadyClock::time_point begun_;
  SteadyClock::time_point until_;
  double seconds_ = 0;
  int64_t running_ = 0;
  LatencyHistogram latencies_;
  std::string error_;
};

// Keys of its own, that nobody else has.
std::string OwnPrefix() { return fmt::format("bench:{:08x}:", std::random_device()()); }

absl::Status DeleteAll(const CommandLine& line, const std::string& prefix) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(line.connection));
  const std::string end =
      prefix.substr(0, prefix.size() - 1) + static_cast<char>(prefix.back() + 1);
  return client->Call({"DELRANGE", "[" + prefix, "(" + end}).status();
}

absl::Status RunLoads(const CommandLine& line, const std::string& prefix, OutputStyle style) {
  for (const bool writes : {true, false}) {
    Load load(line, prefix, writes);
    load.Run();
    if (!load.error().empty()) return absl::UnavailableError(load.error());
    if (load.interrupted()) return absl::CancelledError("interrupted");
    PrintOut(load.Report(style));
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

}  // namespace

int RunBench(const CommandLine& line) {
  const OutputStyle style = Output::ForStandardOutput(line.style).style;
  if (style != OutputStyle::kJson) {
    PrintOut(fmt::format("{} connections, pipeline {}, values of {} bytes, {} keys, {} s each\n",
                         line.bench.connections, line.bench.pipeline, line.bench.value_size,
                         line.bench.keyspace, line.bench.seconds));
  }
  const std::string prefix = OwnPrefix();
  const absl::Status status = RunLoads(line, prefix, style);
  if (const absl::Status deleted = DeleteAll(line, prefix); !deleted.ok()) {
    fmt::print(stderr, "{}: keys that begin with {} are left behind: {}\n",
               program_invocation_short_name, prefix, std::string(deleted.message()));
  }
  return status.ok() ? kDone : Fail(status);
}

}  // namespace varve
