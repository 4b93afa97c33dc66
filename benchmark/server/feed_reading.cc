#include "benchmark/server/feed_reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "benchmark/process.h"

namespace varve::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kChangesARequest = 1000;
constexpr size_t kRequestsUnderWay = 256;
constexpr uint64_t kLeastLags = 100;

double Seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::vector<std::string_view> Words(const std::vector<std::string>& request) {
  return {request.begin(), request.end()};
}

double Quantile(std::vector<double>* sorted, double share) {
  std::sort(sorted->begin(), sorted->end());
  const auto at = static_cast<size_t>(share * static_cast<double>(sorted->size()));
  return (*sorted)[std::min(at, sorted->size() - 1)];
}

}  // namespace

FeedReading::FeedReading(Options options)
    : options_(std::move(options)), value_(options_.value_size, 'v') {
  for (std::unique_ptr<Client>* const client : {&writer_, &reader_}) {
    ClientOptions how;
    how.port = options_.port;
    absl::StatusOr<std::unique_ptr<Client>> connected = Client::Connect(std::move(how));
    if (!connected.ok()) Refuse(connected.status().ToString());
    *client = *std::move(connected);
  }
}

void FeedReading::Refuse(const std::string& why) const {
  Fail(fmt::format("{}: {}", options_.server, why));
}

std::vector<std::string> FeedReading::WriteRequest(uint64_t number) const {
  std::string key = fmt::format("key:{:012}", number);
  if (!options_.is_redis) return {"SET", std::move(key), value_};
  return {"XADD", "varve:changes", "*", "op", "set", "key", std::move(key), "value", value_};
}

std::vector<std::string> FeedReading::ReadRequest(bool waits) const {
  const std::string count = fmt::to_string(kChangesARequest);
  std::vector<std::string> request;
  if (options_.by_changes && !options_.is_redis) {
    request = {"CHANGES", "SINCE", place_, "COUNT", count};
    if (waits) request.insert(request.end(), {"BLOCK", "0"});
    return request;
  }
  request = {"XREAD", "COUNT", count};
  if (waits) request.insert(request.end(), {"BLOCK", "0"});
  request.insert(request.end(), {"STREAMS", "varve:changes", place_});
  return request;
}

uint64_t FeedReading::Take(const Reply& reply) {
  if (reply.is_error()) Refuse(reply.text);
  if (options_.by_changes && !options_.is_redis) {
    if (reply.elements.size() != 4) Refuse("no reply to CHANGES");
    place_ = fmt::to_string(reply.elements[1].integer);
    uint64_t operations = 0;  // a commit holds the writes of one batch of requests
    for (const Reply& commit : reply.elements[3].elements)
      operations += commit.elements.at(2).elements.size();
    return operations;
  }
  if (reply.is_null()) return 0;
  if (reply.elements.size() != 1 || reply.elements[0].elements.size() != 2)
    Refuse("no reply to XREAD");
  const std::vector<Reply>& entries = reply.elements[0].elements[1].elements;
  if (!entries.empty()) place_ = entries.back().elements.at(0).text;
  return entries.size();
}

void FeedReading::Fill(uint64_t changes) {
  uint64_t sent = 0, answered = 0;
  for (; answered < changes; ++answered) {
    for (; sent < changes && sent < answered + kRequestsUnderWay; ++sent) {
      if (const absl::Status queued = writer_->Send(Words(WriteRequest(sent))); !queued.ok())
        Refuse(queued.ToString());
    }
    const absl::StatusOr<Reply> reply = writer_->Receive();
    if (!reply.ok()) Refuse(reply.status().ToString());
    if (reply->is_error()) Refuse(reply->text);
  }
}

FeedReadResult FeedReading::ReadAll() {
  FeedReadResult result;
  place_ = options_.by_changes && !options_.is_redis ? "FIRST" : "0";
  const Clock::time_point begin = Clock::now();
  for (;;) {
    const absl::StatusOr<Reply> reply = reader_->Call(Words(ReadRequest(/*waits=*/false)));
    if (!reply.ok()) Refuse(reply.status().ToString());
    const uint64_t taken = Take(*reply);
    if (taken == 0) break;
    result.changes += taken;
  }
  result.seconds = Seconds(Clock::now() - begin);
  return result;
}

FeedLagResult FeedReading::Lag(double seconds) {
  ReadAll();  // up to the end
  std::vector<double> lags;
  const Clock::time_point begin = Clock::now();
  while (lags.size() < kLeastLags || Seconds(Clock::now() - begin) < seconds) {
    if (const absl::Status sent = reader_->Send(Words(ReadRequest(/*waits=*/true))); !sent.ok())
      Refuse(sent.ToString());
    reader_->pipeline().Flush();
    const absl::StatusOr<Reply> written = writer_->Call(Words(WriteRequest(lags.size())));
    const Clock::time_point acknowledged = Clock::now();
    if (!written.ok()) Refuse(written.status().ToString());
    const absl::StatusOr<Reply> reply = reader_->Receive();
    if (!reply.ok()) Refuse(reply.status().ToString());
    lags.push_back(Seconds(Clock::now() - acknowledged));
    if (Take(*reply) != 1) Refuse("a reader gets another number of changes than were made");
  }
  FeedLagResult result{.changes = lags.size()};
  result.p50 = Quantile(&lags, 0.5);
  result.p99 = Quantile(&lags, 0.99);
  return result;
}

}  // namespace varve::bench
