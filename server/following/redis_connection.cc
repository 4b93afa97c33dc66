#include "server/following/redis_connection.h"

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kReadBytes = 256u << 10;
constexpr size_t kLongestLine = 64u << 10;
constexpr size_t kKeptBuffer = 4u << 20;
constexpr std::chrono::milliseconds kBetweenLooks{100};  // at whether the link is to stop
constexpr std::chrono::seconds kBetweenBeats{1};
// Redis sends something at least every ten seconds (repl-ping-replica-period).
constexpr std::chrono::seconds kLongestSilence{60};

}  // namespace

absl::StatusOr<std::unique_ptr<RedisConnection>> RedisConnection::Open(
    const ClientOptions& options, const std::atomic<bool>* stop) {
  VARVE_ASSIGN_OR_RETURN(Socket socket, Socket::Connect(options));
  return std::unique_ptr<RedisConnection>(
      new RedisConnection(std::move(socket), AddressOf(options), stop));
}

RedisConnection::RedisConnection(Socket socket, std::string address, const std::atomic<bool>* stop)
    : socket_(std::move(socket)),
      address_(std::move(address)),
      stop_(stop),
      last_io_(SteadyClock::now()),
      last_beat_(last_io_) {}

absl::Status RedisConnection::Lost(const absl::Status& why) const {
  return absl::UnavailableError(
      fmt::format("the connection to {} is lost: {}", address_, std::string(why.message())));
}

absl::Status RedisConnection::BeatIfDue() {
  const SteadyClock::time_point now = SteadyClock::now();
  if (!beat_ || beating_ || now - last_beat_ < kBetweenBeats) return absl::OkStatus();
  last_beat_ = now;
  beating_ = true;
  const absl::Status status = beat_();
  beating_ = false;
  return status;
}

absl::Status RedisConnection::Send(std::string_view bytes) {
  const SteadyClock::time_point begin = SteadyClock::now();
  while (true) {
    const absl::StatusOr<size_t> sent = socket_.Send(bytes);
    if (!sent.ok()) return Lost(sent.status());
    bytes.remove_prefix(*sent);
    if (bytes.empty()) return absl::OkStatus();
    if (stop_->load()) return absl::CancelledError("the link stops");
    if (SteadyClock::now() - begin > kLongestSilence)
      return Lost(absl::UnavailableError("it takes nothing any more"));
    const absl::Status waited = socket_.Wait(/*for_writing=*/true, kBetweenLooks);
    if (!waited.ok() && !absl::IsDeadlineExceeded(waited)) return Lost(waited);
  }
}

absl::StatusOr<size_t> RedisConnection::TryReceive() {
  char* const place = buffer_.Reserve(kReadBytes);
  const absl::StatusOr<size_t> received = socket_.Receive(place, buffer_.room());
  if (!received.ok()) return Lost(received.status());
  buffer_.Commit(*received);
  if (*received > 0) last_io_ = SteadyClock::now();
  return *received;
}

absl::Status RedisConnection::ReceiveWhatIsThere() {
  VARVE_RETURN_IF_ERROR(BeatIfDue());
  return TryReceive().status();
}

absl::Status RedisConnection::Receive() {
  while (true) {
    if (stop_->load()) return absl::CancelledError("the link stops");
    VARVE_RETURN_IF_ERROR(BeatIfDue());
    VARVE_ASSIGN_OR_RETURN(const size_t received, TryReceive());
    if (received > 0) return absl::OkStatus();
    if (SteadyClock::now() - last_io_ > kLongestSilence) {
      return Lost(absl::UnavailableError(
          fmt::format("nothing was heard for {} seconds", kLongestSilence.count())));
    }
    const absl::Status waited = socket_.Wait(/*for_writing=*/false, kBetweenLooks);
    if (!waited.ok() && !absl::IsDeadlineExceeded(waited)) return Lost(waited);
  }
}

absl::Status RedisConnection::ReadLine(std::string* line) {
  while (true) {
    const std::string_view bytes = buffer_.view();
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      if (bytes.size() > kLongestLine) return Damaged("a line without an end");
      VARVE_RETURN_IF_ERROR(Receive());
      continue;
    }
    line->assign(bytes.substr(0, end));
    if (line->ends_with('\r')) line->pop_back();
    Consume(end + 1);
    if (!line->empty()) return absl::OkStatus();
  }
}

absl::StatusOr<std::string_view> RedisConnection::Peek(size_t wanted) {
  while (buffer_.size() < wanted) VARVE_RETURN_IF_ERROR(Receive());
  return buffer_.view();
}

void RedisConnection::Consume(size_t bytes) {
  buffer_.Consume(bytes);
  offset_ += bytes;
  if (buffer_.empty()) buffer_.ShrinkAbove(kKeptBuffer);
}

absl::Status RedisConnection::Damaged(std::string_view what) const {
  return absl::DataLossError(fmt::format("what {} sent, at byte {}: {}", address_, offset_, what));
}

}  // namespace varve
