#include "client/pipeline.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "fmt/format.h"
#include "util/base/status.h"

namespace varve {
namespace {

using std::chrono::milliseconds;

constexpr size_t kSendBytes = 256u << 10;  // requests kept back before they are sent on their own
constexpr size_t kPipelineReceiveBytes = 64u << 10;

// Errors that another attempt would meet again.
bool IsFinal(const absl::Status& status) {
  return absl::IsUnauthenticated(status) || absl::IsPermissionDenied(status) ||
         absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status);
}

}  // namespace

Pipeline::Pipeline(ClientOptions options)
    : options_(std::move(options)),
      queue_(options_),
      backoff_(options_.backoff_first, options_.backoff_last) {}

absl::StatusOr<std::unique_ptr<Pipeline>> Pipeline::Connect(ClientOptions options) {
  std::unique_ptr<Pipeline> pipeline(new Pipeline(std::move(options)));
  VARVE_RETURN_IF_ERROR(pipeline->Open());
  return pipeline;
}

absl::Status Pipeline::Open() {
  VARVE_ASSIGN_OR_RETURN(socket_, Socket::Connect(options_));
  queue_.BeginConnection();
  absl::Status status;
  while (status.ok() && !queue_.handshaken()) {
    status = SendSome();
    if (status.ok() && queue_.Unsent().empty()) {
      status = socket_.Wait(false, options_.connect_timeout);
      if (status.ok()) status = ReceiveSome();
      absl::StatusOr<Reply> reply = Reply();
      if (status.ok() && queue_.Take(&reply) == RequestQueue::Taken::kBroken)
        status = queue_.broken();
    }
  }
  if (!status.ok()) socket_.Close();
  return status;
}

absl::Status Pipeline::SendSome() {
  while (!queue_.Unsent().empty()) {
    VARVE_ASSIGN_OR_RETURN(const size_t sent, socket_.Send(queue_.Unsent()));
    if (sent == 0) break;
    queue_.MarkSent(sent);
  }
  return absl::OkStatus();
}

absl::Status Pipeline::ReceiveSome() {
  VARVE_ASSIGN_OR_RETURN(
      const size_t got, socket_.Receive(queue_.Room(kPipelineReceiveBytes), kPipelineReceiveBytes));
  queue_.Received(got);
  return absl::OkStatus();
}

void Pipeline::Lose(const absl::Status& why) {
  socket_.Close();
  lost_ = why;
  // A server that is too slow would only be slower if it were asked again.
  queue_.ConnectionLost(why, options_.reconnect_for.count() > 0 && !absl::IsDeadlineExceeded(why));
}

void Pipeline::DropIfStale() {
  if (outstanding() > 0 || !socket_.is_open()) return;
  if (const absl::Status status = socket_.Check(); !status.ok()) Lose(status);
}

bool Pipeline::EnsureOpen() {
  if (socket_.is_open()) return true;
  if (closed()) {
    queue_.FailAll(absl::UnavailableError(
        fmt::format("the connection is closed: {}", std::string(lost_.message()))));
    return false;
  }
  // A server that takes connections and drops them is tried at the pace of one that can't be
  // reached.
  absl::Status failed = fruitful_ ? absl::OkStatus() : lost_;
  if (fruitful_) {
    retry_until_ = Clock::now() + options_.reconnect_for;
    backoff_.Reset();
    fruitful_ = false;
  }
  while (true) {
    if (!failed.ok()) {
      const Clock::time_point now = Clock::now();
      if (now >= retry_until_ || IsFinal(failed)) {
        fruitful_ = true;  // the next request begins a new series
        queue_.FailAll(failed);
        return false;
      }
      std::this_thread::sleep_for(std::min<Clock::duration>(backoff_.Next(), retry_until_ - now));
    }
    failed = Open();
    if (failed.ok()) {
      ++reconnects_;
      return true;
    }
  }
}

void Pipeline::Step() {
  if (!EnsureOpen()) return;
  absl::Status status = SendSome();
  if (status.ok()) status = socket_.Wait(!queue_.Unsent().empty(), options_.timeout);
  if (status.ok()) status = ReceiveSome();
  if (status.ok()) return;
  TakeAll();
  Lose(status);
}

void Pipeline::TakeAll() {
  absl::StatusOr<Reply> reply = Reply();
  while (queue_.Take(&reply) == RequestQueue::Taken::kReply) {
    fruitful_ |= reply.ok();
    done_.push_back(std::move(reply));
  }
}

void Pipeline::Send(absl::Span<const std::string_view> arguments, WhenLost when_lost) {
  DropIfStale();
  queue_.Add(arguments, when_lost);
  if (queue_.Unsent().size() >= kSendBytes) Flush();
}

void Pipeline::SendStream(absl::Span<const std::string_view> arguments, ReplySink sink) {
  DropIfStale();
  queue_.Add(arguments, WhenLost::kByCommand, std::make_unique<ReplySink>(std::move(sink)));
}

void Pipeline::Flush() {
  while (EnsureOpen() && !queue_.Unsent().empty()) {
    if (const absl::Status status = SendSome(); !status.ok()) {
      TakeAll();
      Lose(status);
    } else if (!queue_.Unsent().empty()) {
      Step();
    }
  }
}

void Pipeline::Disconnect() {
  TakeAll();
  queue_.StopListening();
  Lose(absl::UnavailableError("the connection was closed on purpose"));
  fruitful_ = true;
}

absl::StatusOr<Reply> Pipeline::Receive() {
  if (outstanding() == 0) return absl::FailedPreconditionError("no request is outstanding");
  absl::StatusOr<Reply> reply = Reply();
  if (!done_.empty()) {
    reply = std::move(done_.front());
    done_.pop_front();
    return reply;
  }
  while (true) {
    const RequestQueue::Taken taken = queue_.Take(&reply);
    if (taken == RequestQueue::Taken::kReply) {
      fruitful_ |= reply.ok();
      return reply;
    }
    if (taken == RequestQueue::Taken::kBroken) {
      Lose(queue_.broken());
    } else {
      Step();
    }
  }
}

absl::Status Pipeline::WaitForPush(std::chrono::milliseconds timeout) {
  const size_t before = queue_.pushes();
  const Clock::time_point deadline = Clock::now() + timeout;
  const absl::Status too_late = absl::DeadlineExceededError("no push message came in time");
  while (true) {
    // What came with the last reply is here already.
    absl::StatusOr<Reply> reply = Reply();
    if (queue_.outstanding() == 0 && queue_.Take(&reply) == RequestQueue::Taken::kBroken)
      Lose(queue_.broken());
    if (queue_.pushes() > before) return absl::OkStatus();
    if (!EnsureOpen())
      return absl::UnavailableError(fmt::format("no connection: {}", std::string(lost_.message())));
    if (queue_.pushes() > before) return absl::OkStatus();  // subscriptions were made again
    milliseconds left{0};
    if (timeout.count() > 0) {
      left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
      if (left.count() <= 0) return too_late;
    }
    absl::Status status = SendSome();
    if (status.ok()) status = socket_.Wait(!queue_.Unsent().empty(), left);
    if (absl::IsDeadlineExceeded(status)) return too_late;
    if (status.ok()) status = ReceiveSome();
    if (!status.ok()) Lose(status);
  }
}

}  // namespace varve
