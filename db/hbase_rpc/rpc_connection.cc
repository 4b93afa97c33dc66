#include "db/hbase_rpc/rpc_connection.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>

#include "asio/connect.hpp"
#include "asio/post.hpp"
#include "asio/write.hpp"
#include "util/base/assert.h"
#include "util/base/coding.h"

namespace varve {
namespace {

constexpr size_t kFirstBuffer = size_t{64} << 10;
// A buffer that a large answer has blown up is given back.
constexpr size_t kKeptBuffer = size_t{1} << 20;
// HBase names no call by this id: it says why it ends the connection.
constexpr uint32_t kNoCall = 0x8000'0000;

}  // namespace

absl::StatusOr<std::pair<std::string, uint16_t>> ParseServerAddress(std::string_view address) {
  const size_t colon = address.rfind(':');
  uint16_t port = 0;
  if (colon != std::string_view::npos && colon > 0) {
    const char* const end = address.data() + address.size();
    const auto [rest, error] = std::from_chars(address.data() + colon + 1, end, port);
    if (error == std::errc() && rest == end && port != 0) {
      return std::pair(std::string(address.substr(0, colon)), port);
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("'{}' is no address of a server: it takes host:port", address));
}

void ResolveServer(const std::pair<std::string, uint16_t>& server,
                   asio::ip::tcp::resolver* resolver, ResolveDone done) {
  const std::string port = std::to_string(server.second);
  asio::error_code error;
  const asio::ip::address address = asio::ip::make_address(server.first, error);
  if (error) return resolver->async_resolve(server.first, port, std::move(done));
  auto found = asio::ip::tcp::resolver::results_type::create(
      asio::ip::tcp::endpoint(address, server.second), server.first, port);
  asio::post(resolver->get_executor(),
             [done = std::move(done), found = std::move(found)] { done({}, found); });
}

void RpcConnection::Open() {
  auto self = shared_from_this();
  connect_timer_ =
      context_.timers.At(std::chrono::steady_clock::now() + context_.options.connect_timeout,
                         [self] { self->CloseOver("it could not be connected to in time"); });
  const auto address = ParseServerAddress(address_);
  if (!address.ok()) {
    asio::post(context_.io,
               [self, why = std::string(address.status().message())] { self->CloseOver(why); });
    return;
  }
  ResolveServer(
      *address, &resolver_,
      [self](const asio::error_code& error, const asio::ip::tcp::resolver::results_type& found) {
        if (self->is_closed_) return;
        if (error)
          return self->CloseOver(fmt::format("its name has no address: {}", error.message()));
        self->Connect(found);
      });
}

void RpcConnection::Connect(const asio::ip::tcp::resolver::results_type& endpoints) {
  asio::async_connect(
      socket_, endpoints,
      [self = shared_from_this()](const asio::error_code& error,
                                  const asio::ip::tcp::endpoint& /*endpoint*/) {
        if (self->is_closed_) return;
        if (error) {
          return self->CloseOver(fmt::format("it cannot be connected to: {}", error.message()));
        }
        self->BeginSession();
      });
}

void RpcConnection::BeginSession() {
  context_.timers.Cancel(connect_timer_);
  asio::error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  context_.counters.connections_opened.fetch_add(1, std::memory_order_relaxed);
  is_open_ = true;
  last_received_ = std::chrono::steady_clock::now();
  unsent_ = ConnectionPreamble(service_, context_.options.user);
  buffer_.resize(kFirstBuffer);
  Read();
  SendWaiting();
}

void RpcConnection::Call(std::string_view method, const google::protobuf::MessageLite& parameter,
                         Time deadline, Done done) {
  VARVE_ASSERT(!is_closed_);
  do {
    last_call_id_ = (last_call_id_ + 1) & 0x7fff'ffff;
  } while (calls_.contains(last_call_id_));
  const uint32_t call_id = last_call_id_;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  PendingCall call;
  call.done = std::move(done);
  AppendRequest(call_id, method, static_cast<uint32_t>(std::max<int64_t>(left.count(), 1)),
                parameter, &call.frame);
  call.timer = context_.timers.At(deadline, [this, call_id] { MissDeadline(call_id); });
  calls_.emplace(call_id, std::move(call));
  waiting_.push_back(call_id);
  context_.counters.requests.fetch_add(1, std::memory_order_relaxed);
  SendWaiting();
}

// Requests that are made in one turn of the loop go out together.
void RpcConnection::SendWaiting() {
  if (!is_open_) return;
  const Time now = std::chrono::steady_clock::now();
  while (!waiting_.empty() && sent_calls_ < context_.options.max_in_flight) {
    const auto found = calls_.find(waiting_.front());
    waiting_.pop_front();
    if (found == calls_.end() || found->second.is_sent()) continue;
    PendingCall& call = found->second;
    if (call.timer.first <= now) continue;  // its deadline has passed, and its timer is due
    call.sent_at = now;
    if (asked_since_ <= last_received_) asked_since_ = now;
    ++sent_calls_;
    if (unsent_.empty()) {
      unsent_ = std::move(call.frame);
    } else {
      unsent_.append(call.frame);
    }
    call.frame = std::string();
  }
  if (unsent_.empty() || is_sending_ || flush_is_posted_) return;
  flush_is_posted_ = true;
  asio::post(context_.io, [self = shared_from_this()] {
    self->flush_is_posted_ = false;
    self->Flush();
  });
}

void RpcConnection::Flush() {
  if (is_closed_ || is_sending_ || unsent_.empty()) return;
  is_sending_ = true;
  being_sent_.clear();
  being_sent_.swap(unsent_);
  asio::async_write(
      socket_, asio::buffer(being_sent_),
      [self = shared_from_this()](const asio::error_code& error, size_t size) {
        self->context_.counters.bytes_sent.fetch_add(size, std::memory_order_relaxed);
        self->is_sending_ = false;
        if (self->is_closed_) return;
        if (error) {
          return self->CloseOver(fmt::format("the connection is lost: {}", error.message()));
        }
        self->Flush();
      });
}

void RpcConnection::Read() {
  if (received_ == buffer_.size()) buffer_.resize(buffer_.size() * 2);
  socket_.async_read_some(
      asio::buffer(buffer_.data() + received_, buffer_.size() - received_),
      [self = shared_from_this()](const asio::error_code& error, size_t size) {
        if (self->is_closed_) return;
        if (error) {
          return self->CloseOver(fmt::format("the connection is lost: {}", error.message()));
        }
        self->context_.counters.bytes_received.fetch_add(size, std::memory_order_relaxed);
        self->last_received_ = std::chrono::steady_clock::now();
        self->received_ += size;
        self->TakeFrames();
        if (!self->is_closed_) self->Read();
      });
}

void RpcConnection::TakeFrames() {
  size_t taken = 0;
  while (received_ - taken >= kFrameSizeBytes) {
    const size_t size = DecodeBigEndian32(buffer_.data() + taken);
    if (size > context_.options.max_answer_size) {
      return Close(FailureOfGarbage(fmt::format("an answer of {} bytes, where {} is the limit",
                                                size, context_.options.max_answer_size),
                                    address_));
    }
    if (received_ - taken - kFrameSizeBytes < size) break;
    const std::string_view frame(buffer_.data() + taken + kFrameSizeBytes, size);
    taken += kFrameSizeBytes + size;
    if (!TakeFrame(frame)) return;
  }
  received_ -= taken;
  if (taken > 0 && received_ > 0) std::memmove(buffer_.data(), buffer_.data() + taken, received_);
  if (received_ < kFirstBuffer && buffer_.size() > kKeptBuffer) {
    buffer_.resize(kFirstBuffer);
    buffer_.shrink_to_fit();
  }
  SendWaiting();
}

bool RpcConnection::TakeFrame(std::string_view frame) {
  RpcResponse response;
  if (!ParseResponse(frame, &response)) {
    Close(FailureOfGarbage("a message that cannot be read", address_));
    return false;
  }
  RpcResult result{std::nullopt, response.result, response.cells};
  if (response.header.has_exception()) {
    const hbase::pb::ExceptionResponse& exception = response.header.exception();
    result.failure = FailureOfException(exception.exception_class_name(), exception.stack_trace(),
                                        exception.do_not_retry(), address_);
  }
  const auto found = calls_.find(response.header.call_id());
  if (found == calls_.end() || !found->second.is_sent()) {
    // The answer to a call that has missed its deadline, or the reason why the server hangs up.
    if (response.header.call_id() < kNoCall || !result.failure.has_value()) return true;
    Close(*result.failure);
    return false;
  }
  const Done done = std::move(found->second.done);
  EndCall(response.header.call_id());
  done(result);
  return !is_closed_;
}

void RpcConnection::EndCall(uint32_t call_id) {
  const auto found = calls_.find(call_id);
  context_.timers.Cancel(found->second.timer);
  if (found->second.is_sent()) --sent_calls_;
  calls_.erase(found);
}

// A server that has sent nothing at all since it got the request, and has owed an answer for almost
// as long as an attempt takes, is taken for dead. That nothing came while nothing was asked says
// nothing.
void RpcConnection::MissDeadline(uint32_t call_id) {
  const auto self = shared_from_this();
  const auto found = calls_.find(call_id);
  VARVE_ASSERT(found != calls_.end());
  const Done done = std::move(found->second.done);
  const bool was_sent = found->second.is_sent();
  const bool is_silent = was_sent && last_received_ < found->second.sent_at;
  EndCall(call_id);
  const char* const what = was_sent   ? "it did not answer in time"
                           : is_open_ ? "it was too busy to be asked in time"
                                      : "it could not be connected to in time";
  const HbaseFailure failure = FailureOfConnection(what, address_, was_sent);
  done({failure, {}, {}});
  if (is_closed_) return;
  const auto long_wait = context_.options.attempt_timeout - context_.options.attempt_timeout / 8;
  if (is_silent && std::chrono::steady_clock::now() - asked_since_ >= long_wait)
    return Close(failure);
  SendWaiting();
}

void RpcConnection::CloseOver(std::string_view what) {
  if (!is_closed_) Close(FailureOfConnection(what, address_, true));
}

void RpcConnection::Close(const HbaseFailure& why) {
  if (is_closed_) return;
  const auto self = shared_from_this();
  is_closed_ = true;
  context_.timers.Cancel(connect_timer_);
  resolver_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
  auto calls = std::move(calls_);
  calls_.clear();
  for (auto& [call_id, call] : calls) context_.timers.Cancel(call.timer);
  for (auto& [call_id, call] : calls) {
    HbaseFailure failure = why;
    failure.may_have_happened &= call.is_sent();
    call.done({std::move(failure), {}, {}});
  }
}

}  // namespace varve
