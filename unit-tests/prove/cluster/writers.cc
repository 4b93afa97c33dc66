#include "unit-tests/prove/cluster/writers.h"

#include <algorithm>
#include <unordered_set>

#include "fmt/format.h"
#include "gtest/gtest.h"
#include "unit-tests/prove/cluster/cluster.h"

namespace varve::testing {
namespace {

using std::chrono::steady_clock;

std::string KeyOf(size_t writer, uint64_t number) {
  return fmt::format("{}{:08}", Writers::KeyPrefix(writer), number);
}

}  // namespace

std::string Writers::KeyPrefix(size_t writer) { return fmt::format("w{:02}:", writer); }

Writers::Writers(size_t count, const std::vector<const ServerProcess*>& servers)
    : tag_(fmt::format("{:016x}", steady_clock::now().time_since_epoch().count())) {
  for (size_t i = 0; i < count; ++i) {
    writers_.push_back(std::make_unique<Writer>());
    Writer* const writer = writers_.back().get();
    writer->client = ConnectTo(*servers[i % servers.size()]);
    if (writer->client != nullptr)
      writer->thread = std::thread([this, i, writer] { Run(i, writer); });
  }
}

Writers::~Writers() { Stop(); }

std::string Writers::ValueOf(uint64_t number) const {
  return fmt::format("{} {}{}", tag_, number, std::string(80, 'v'));
}

bool Writers::MayWrite() {
  absl::MutexLock lock(&mutex_);
  const auto goes_on = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS { return stop_ || !paused_; };
  mutex_.Await(absl::Condition(&goes_on));
  return !stop_;
}

void Writers::Pause() {
  absl::MutexLock lock(&mutex_);
  paused_ = true;
}

void Writers::Resume() {
  absl::MutexLock lock(&mutex_);
  paused_ = false;
}

void Writers::Run(size_t number, Writer* writer) {
  for (uint64_t next = 1; MayWrite(); ++next) {
    const SteadyTime begin = steady_clock::now();
    {
      absl::MutexLock lock(&writer->mutex);
      writer->call = begin;
    }
    const auto reply = writer->client->Call({"SET", KeyOf(number, next), ValueOf(next)});
    const SteadyTime end = steady_clock::now();
    absl::MutexLock lock(&writer->mutex);
    writer->call.reset();
    WriterFigures& figures = writer->figures;
    figures.longest = std::max(figures.longest, end - begin);
    if (!reply.ok()) {
      ++figures.refused;
      figures.last_refusal = reply.status().ToString();
      continue;
    }
    ++figures.acknowledged;
    ++writer->total;
    figures.silence = std::max(figures.silence, end - writer->last);
    writer->last = end;
    writer->written.push_back(next);
  }
}

void Writers::WaitForEach(uint64_t acknowledged) {
  for (const auto& writer : writers_) {
    absl::MutexLock lock(&writer->mutex);
    const uint64_t target = writer->total + acknowledged;
    const auto is_there = [&writer, target]()
                              ABSL_NO_THREAD_SAFETY_ANALYSIS { return writer->total >= target; };
    EXPECT_TRUE(writer->mutex.AwaitWithTimeout(absl::Condition(&is_there), absl::Seconds(120)))
        << "a writer waits for ever; " << writer->figures.last_refusal;
  }
}

void Writers::Restart() {
  for (const auto& writer : writers_) {
    absl::MutexLock lock(&writer->mutex);
    writer->figures = {};
    writer->last = steady_clock::now();
  }
}

WriterFigures Writers::Figures(size_t writer) {
  absl::MutexLock lock(&writers_[writer]->mutex);
  WriterFigures figures = writers_[writer]->figures;
  const SteadyTime now = steady_clock::now();
  figures.silence = std::max(figures.silence, now - writers_[writer]->last);
  const std::optional<SteadyTime>& call = writers_[writer]->call;
  if (call.has_value()) figures.longest = std::max(figures.longest, now - *call);
  return figures;
}

void Writers::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  for (const auto& writer : writers_) {
    if (writer->thread.joinable()) writer->thread.join();
  }
}

uint64_t Writers::CountLost(const ServerProcess& server) {
  const auto client = ConnectTo(server);
  uint64_t lost = 0;
  for (size_t i = 0; client != nullptr && i < writers_.size(); ++i) {
    const std::vector<uint64_t>& written = writers_[i]->written;
    std::unordered_set<std::string> missing;
    for (const uint64_t number : written) missing.insert(KeyOf(i, number) + ValueOf(number));
    const auto found = [&missing](std::string&& key, std::string&& value, uint64_t /*expires*/) {
      missing.erase(key + value);
      return true;
    };
    const absl::Status status =
        client->StreamPrefix(KeyPrefix(i), {}, {.begin = nullptr, .pair = found});
    EXPECT_TRUE(status.ok()) << status;
    lost += missing.size();
  }
  return lost;
}

Pinger::Pinger(const ServerProcess& server) : client_(ConnectTo(server)) {
  thread_ = std::thread([this] {
    while (client_ != nullptr && !stop_.load()) {
      const SteadyTime begin = steady_clock::now();
      EXPECT_TRUE(client_->Ping().ok());
      slowest_.store(std::max(slowest_.load(), steady_clock::now() - begin));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
}

Pinger::~Pinger() {
  stop_.store(true);
  thread_.join();
}

steady_clock::duration Pinger::TakeSlowest() { return slowest_.exchange({}); }

}  // namespace varve::testing
