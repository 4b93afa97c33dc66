#include "client/async_client.h"

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "asio/bind_executor.hpp"
#include "asio/generic/stream_protocol.hpp"
#include "asio/ip/tcp.hpp"
#include "asio/local/stream_protocol.hpp"
#include "asio/post.hpp"
#include "asio/steady_timer.hpp"
#include "asio/strand.hpp"
#include "client/backoff.h"
#include "client/request_queue.h"
#include "client/socket.h"
#include "client/tls_stream.h"
#include "fmt/format.h"

namespace varve {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

constexpr size_t kReceiveBytes = 64u << 10;

absl::Status Lost(std::string_view what, const asio::error_code& error) {
  if (error == asio::error::eof) return absl::UnavailableError("the server closed the connection");
  return absl::UnavailableError(fmt::format("{}: {}", what, error.message()));
}

}  // namespace

// All members are used on the strand only, but for the constants. Operations under way hold the
// object; each begins with the number of the connection it belongs to, and is ignored when that one
// is gone.
class AsyncClient::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& context, ClientOptions options)
      : options_(std::move(options)),
        strand_(asio::make_strand(context)),
        queue_(options_),
        backoff_(options_.backoff_first, options_.backoff_last),
        resolver_(strand_),
        socket_(strand_),
        retry_timer_(strand_),
        watch_timer_(strand_) {}

  void Call(absl::Span<const std::string_view> arguments, Callback callback, WhenLost when_lost) {
    asio::post(strand_, [self = shared_from_this(),
                         words = std::vector<std::string>(arguments.begin(), arguments.end()),
                         callback = std::move(callback), when_lost]() mutable {
      self->Add(words, std::move(callback), when_lost);
    });
  }
  void Close() {
    asio::post(strand_, [self = shared_from_this()] { self->CloseNow(); });
  }

 private:
  enum class State { kIdle, kConnecting, kPausing, kConnected, kClosed };

  struct Pending {
    Callback callback;
    SteadyClock::time_point since;
  };

  void Add(const std::vector<std::string>& words, Callback callback, WhenLost when_lost);
  void CloseNow();

  void BeginConnecting();  // a series of attempts
  void Attempt();
  void TryEndpoint(size_t index);
  void BeginTls();
  void ContinueHandshake();
  void AttemptFailed(absl::Status why);
  void Connected();

  void Read();
  void ReadTls();
  void ReadOn();  // takes what was received and goes on
  void Write();
  // Returns how many bytes were taken; 0: there is no room now. Nothing: the connection is broken.
  std::optional<size_t> SendSome(std::string_view bytes);
  void TakeReplies();
  void Lose(absl::Status why);  // the present connection
  void Deliver(absl::StatusOr<Reply> reply);
  // Gives up the connection when it takes too long: to be made, or for the first request to be
  // answered.
  void Watch();
  void WatchExpired();
  void CloseSocket();

  const ClientOptions options_;
  asio::strand<asio::io_context::executor_type> strand_;
  RequestQueue queue_;
  std::deque<Pending> pending_;  // one for each request of queue_
  Backoff backoff_;
  asio::ip::tcp::resolver resolver_;
  asio::generic::stream_protocol::socket socket_;
  std::unique_ptr<TlsStream> tls_;  // null: plain text, or no connection
  asio::steady_timer retry_timer_;
  asio::steady_timer watch_timer_;
  std::vector<asio::generic::stream_protocol::endpoint> endpoints_;
  State state_ = State::kIdle;
  uint64_t generation_ = 0;  // of the connection
  bool waiting_for_room_ = false;
  bool write_planned_ = false;
  bool fruitful_ = false;  // there was a reply since the last series of attempts began
  SteadyClock::time_point watch_until_ = SteadyClock::time_point::max();  // when watch_timer_ fires
  SteadyClock::time_point retry_until_;
  SteadyClock::time_point attempt_began_;
};

void AsyncClient::Connection::Add(const std::vector<std::string>& words, Callback callback,
                                  WhenLost when_lost) {
  if (state_ == State::kClosed) return callback(absl::CancelledError("the client is closed"));
  if (pending_.empty()) retry_until_ = SteadyClock::now() + options_.reconnect_for;
  queue_.Add(std::vector<std::string_view>(words.begin(), words.end()), when_lost);
  pending_.push_back({std::move(callback), SteadyClock::now()});
  if (queue_.outstanding_bytes() == 0) TakeReplies();  // nothing will be sent for it
  if (state_ == State::kIdle) BeginConnecting();
  if (state_ == State::kConnected && !write_planned_) {
    // After all calls that are queued by now, so that they leave together.
    write_planned_ = true;
    asio::post(strand_, [self = shared_from_this()] {
      self->write_planned_ = false;
      if (self->state_ == State::kConnected) self->Write();
    });
  }
  Watch();
}

void AsyncClient::Connection::CloseNow() {
  if (state_ == State::kClosed) return;
  CloseSocket();
  state_ = State::kClosed;
  resolver_.cancel();
  retry_timer_.cancel();
  watch_timer_.cancel();
  queue_.FailAll(absl::CancelledError("the client was closed"));
  TakeReplies();
}

void AsyncClient::Connection::CloseSocket() {
  ++generation_;
  waiting_for_room_ = false;
  tls_ = nullptr;
  asio::error_code ignored;
  socket_.close(ignored);
}

void AsyncClient::Connection::BeginConnecting() {
  retry_until_ = SteadyClock::now() + options_.reconnect_for;
  fruitful_ = false;
  backoff_.Reset();
  Attempt();
}

void AsyncClient::Connection::Attempt() {
  state_ = State::kConnecting;
  attempt_began_ = SteadyClock::now();
  const uint64_t generation = ++generation_;
  Watch();
  endpoints_.clear();
  if (!options_.unix_socket.empty()) {
    if (const absl::Status usable = CheckUnixPath(options_.unix_socket); !usable.ok())
      return AttemptFailed(usable);
    endpoints_.push_back(asio::local::stream_protocol::endpoint(options_.unix_socket));
    return TryEndpoint(0);
  }
  resolver_.async_resolve(
      options_.host, fmt::to_string(options_.port),
      [self = shared_from_this(), generation](const asio::error_code& error,
                                              const asio::ip::tcp::resolver::results_type& found) {
        if (generation != self->generation_) return;
        if (error) return self->AttemptFailed(Lost(self->options_.host, error));
        for (const auto& entry : found) self->endpoints_.push_back(entry.endpoint());
        self->TryEndpoint(0);
      });
}

void AsyncClient::Connection::TryEndpoint(size_t index) {
  asio::error_code ignored;
  socket_.close(ignored);
  socket_.async_connect(endpoints_[index], [self = shared_from_this(), index,
                                            generation =
                                                generation_](const asio::error_code& error) {
    if (generation != self->generation_) return;
    if (!error) return self->options_.tls.enabled ? self->BeginTls() : self->Connected();
    if (index + 1 < self->endpoints_.size()) return self->TryEndpoint(index + 1);
    self->AttemptFailed(Lost(fmt::format("can't connect to {}", AddressOf(self->options_)), error));
  });
}

void AsyncClient::Connection::BeginTls() {
  asio::error_code ignored;
  socket_.non_blocking(true, ignored);
  const absl::StatusOr<ClientTlsContext> context = ClientTlsContext::Make(options_.tls);
  if (!context.ok()) return AttemptFailed(context.status());
  absl::StatusOr<std::unique_ptr<TlsStream>> stream =
      TlsStream::Make(*context, TlsHostOf(options_), socket_.native_handle());
  if (!stream.ok()) return AttemptFailed(stream.status());
  tls_ = *std::move(stream);
  ContinueHandshake();
}

// The timer of Watch() ends a handshake that takes too long.
void AsyncClient::Connection::ContinueHandshake() {
  const absl::StatusOr<bool> done = tls_->Handshake();
  if (!done.ok()) return AttemptFailed(HandshakeFailed(options_, done.status()));
  if (*done) return Connected();
  socket_.async_wait(
      tls_->needs_room() ? asio::socket_base::wait_write : asio::socket_base::wait_read,
      [self = shared_from_this(), generation = generation_](const asio::error_code& error) {
        if (generation != self->generation_) return;
        if (error) return self->AttemptFailed(Lost("connection", error));
        self->ContinueHandshake();
      });
}

void AsyncClient::Connection::Connected() {
  asio::error_code ignored;
  if (options_.unix_socket.empty()) socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  // Who only listens would never notice.
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  socket_.non_blocking(true, ignored);
  state_ = State::kConnected;
  queue_.BeginConnection();
  for (Pending& pending : pending_) pending.since = SteadyClock::now();
  Watch();
  Read();
  Write();
}

void AsyncClient::Connection::AttemptFailed(absl::Status why) {
  CloseSocket();
  const SteadyClock::time_point now = SteadyClock::now();
  // Another attempt would meet a refused handshake again.
  const bool is_final = !absl::IsUnavailable(why) && !absl::IsDeadlineExceeded(why);
  // Who listens has no request that could fail and tell: attempts go on until Close().
  const bool listens = queue_.listens() && options_.reconnect_for.count() > 0;
  const bool is_late = is_final || now >= retry_until_;
  if (!listens && (is_late || pending_.empty())) {
    state_ = State::kIdle;
    queue_.FailAll(why);
    return TakeReplies();
  }
  state_ = State::kPausing;
  const SteadyClock::time_point next = now + SteadyClock::duration(backoff_.Next());
  retry_timer_.expires_at(is_late ? next : std::min(next, retry_until_));
  retry_timer_.async_wait(
      [self = shared_from_this(), generation = generation_](const asio::error_code& error) {
        if (!error && generation == self->generation_) self->Attempt();
      });
  if (!is_late) return;
  queue_.FailAll(why);
  TakeReplies();
}

void AsyncClient::Connection::Read() {
  if (tls_ != nullptr) return ReadTls();
  socket_.async_read_some(asio::buffer(queue_.Room(kReceiveBytes), kReceiveBytes),
                          [self = shared_from_this(), generation = generation_](
                              const asio::error_code& error, size_t size) {
                            if (generation != self->generation_) return;
                            if (error) return self->Lose(Lost("receive", error));
                            self->queue_.Received(size);
                            self->ReadOn();
                          });
}

void AsyncClient::Connection::ReadOn() {
  const uint64_t generation = generation_;
  TakeReplies();
  if (generation != generation_) return;
  Write();
  Read();
}

void AsyncClient::Connection::ReadTls() {
  const auto receive = [self = shared_from_this(),
                        generation = generation_](const asio::error_code& error = {}) {
    if (generation != self->generation_) return;
    if (error) return self->Lose(Lost("receive", error));
    const absl::StatusOr<size_t> got =
        self->tls_->Receive(self->queue_.Room(kReceiveBytes), kReceiveBytes);
    if (!got.ok()) return self->Lose(got.status());
    self->queue_.Received(*got);
    self->ReadOn();
  };
  if (tls_->may_have_more()) return asio::post(strand_, [receive] { receive(); });
  socket_.async_wait(
      tls_->needs_room() ? asio::socket_base::wait_write : asio::socket_base::wait_read, receive);
}

// Writes at once what the kernel takes, so that what was sent is known before a reply to it can be
// read.
void AsyncClient::Connection::Write() {
  if (waiting_for_room_) return;
  while (!queue_.Unsent().empty()) {
    const std::optional<size_t> sent = SendSome(queue_.Unsent());
    // The read that is under way meets it, too, after the replies that came before.
    if (!sent) return;
    if (*sent == 0) break;
    queue_.MarkSent(*sent);
  }
  if (queue_.Unsent().empty()) return;
  waiting_for_room_ = true;
  socket_.async_wait(
      asio::socket_base::wait_write,
      [self = shared_from_this(), generation = generation_](const asio::error_code& error) {
        if (generation != self->generation_) return;
        self->waiting_for_room_ = false;
        if (!error) self->Write();
      });
}

std::optional<size_t> AsyncClient::Connection::SendSome(std::string_view bytes) {
  if (tls_ != nullptr) {
    const absl::StatusOr<size_t> sent = tls_->Send(bytes);
    return sent.ok() ? std::optional<size_t>(*sent) : std::nullopt;
  }
  asio::error_code error;
  const size_t sent = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
  if (error == asio::error::would_block) return 0;
  return error ? std::nullopt : std::optional<size_t>(sent);
}

void AsyncClient::Connection::TakeReplies() {
  const uint64_t generation = generation_;
  absl::StatusOr<Reply> reply = Reply();
  while (generation == generation_) {
    const RequestQueue::Taken taken = queue_.Take(&reply);
    if (taken == RequestQueue::Taken::kReply) {
      Deliver(std::move(reply));
    } else if (taken == RequestQueue::Taken::kBroken) {
      return queue_.handshaken() ? Lose(queue_.broken()) : AttemptFailed(queue_.broken());
    } else {
      return;
    }
  }
}

void AsyncClient::Connection::Deliver(absl::StatusOr<Reply> reply) {
  const Callback callback = std::move(pending_.front().callback);
  pending_.pop_front();
  fruitful_ |= reply.ok();
  callback(std::move(reply));
}

void AsyncClient::Connection::Lose(absl::Status why) {
  CloseSocket();
  state_ = State::kIdle;
  const bool again = options_.reconnect_for.count() > 0;
  queue_.ConnectionLost(why, again && !absl::IsDeadlineExceeded(why));
  if (!again) {
    queue_.FailAll(why);
    TakeReplies();
    return CloseNow();
  }
  TakeReplies();
  if (state_ != State::kIdle || (pending_.empty() && !queue_.listens())) return;
  // A server that takes connections and drops them is tried at the pace of one that can't be
  // reached.
  return fruitful_ ? BeginConnecting() : AttemptFailed(why);
}

void AsyncClient::Connection::Watch() {
  const bool connecting = state_ == State::kConnecting;
  const milliseconds bound = connecting ? options_.connect_timeout : options_.timeout;
  if (bound.count() == 0 || (!connecting && (pending_.empty() || state_ != State::kConnected)))
    return;
  const SteadyClock::time_point until =
      (connecting ? attempt_began_ : pending_.front().since) + bound;
  if (watch_until_ <= until) return;  // it looks again then
  watch_until_ = until;
  watch_timer_.expires_at(until);
  watch_timer_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error || self->state_ == State::kClosed) return;
    self->watch_until_ = SteadyClock::time_point::max();
    self->WatchExpired();
    self->Watch();
  });
}

void AsyncClient::Connection::WatchExpired() {
  const SteadyClock::time_point now = SteadyClock::now();
  if (state_ == State::kConnecting && options_.connect_timeout.count() > 0 &&
      now >= attempt_began_ + options_.connect_timeout) {
    AttemptFailed(tls_ != nullptr ? HandshakeTookTooLong(options_)
                                  : absl::DeadlineExceededError(fmt::format(
                                        "can't connect to {} in time", AddressOf(options_))));
  } else if (state_ == State::kConnected && options_.timeout.count() > 0 && !pending_.empty() &&
             now >= pending_.front().since + options_.timeout) {
    Lose(absl::DeadlineExceededError("the server did not answer in time"));
  }
}

AsyncClient::AsyncClient(asio::io_context& context, ClientOptions options)
    : connection_(std::make_shared<Connection>(context, std::move(options))) {}

AsyncClient::~AsyncClient() { Close(); }

void AsyncClient::Call(absl::Span<const std::string_view> arguments, Callback callback,
                       WhenLost when_lost) {
  connection_->Call(arguments, std::move(callback), when_lost);
}

void AsyncClient::Close() { connection_->Close(); }

}  // namespace varve
