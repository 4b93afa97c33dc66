#include "server/net/session.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <utility>

#include "server/clients/client_modes.h"
#include "server/commands/command_table.h"
#include "server/net/io_loop.h"
#include "spdlog/spdlog.h"

namespace varve {
namespace {

constexpr size_t kFirstRead = 4096;          // bytes of room for a connection's first request
constexpr size_t kLargestRead = 256u << 10;  // bytes asked for in one read
// Executions where they were read; those on the pool are all measured.
constexpr uint32_t kMeasureEvery = 16;
// Requests of a batch that is executed together with others.
constexpr size_t kMostToJoin = 16;
// And bytes, well below the limits of a key and a value.
constexpr size_t kMostBytesToJoin = 16384;
constexpr int kReadsAtClose = 16;  // of bytes nobody will answer
// Seconds for which a client that has closed its side is worked for.
constexpr uint32_t kPatience = 10;

}  // namespace

Session::Session(IoLoop* loop, ServerState* server, int descriptor, std::string address,
                 std::string local_address)
    : loop_(loop), server_(server), descriptor_(descriptor), executor_(server, &client_) {
  client_.id = server->clients.next_id.fetch_add(1);
  client_.address = std::move(address);
  client_.authenticated = !server->clients.password.needed();
  active_at_ = loop->seconds();
  client_.link.local_address = std::move(local_address);
  client_.link.descriptor = descriptor;
  client_.link.mailbox.Open(&server->live.message_limits, [this] {
    if (std::shared_ptr<Session> self = weak_from_this().lock()) loop_->NoteMail(std::move(self));
  });
  client_.link.active_at.store(
      std::chrono::duration_cast<std::chrono::seconds>(client_.connected.time_since_epoch())
          .count());
  server->clients.registry.Add(client_.id, &client_);
}

Session::~Session() {
  server_->clients.registry.Remove(client_.id);
  LeaveModes(&server_->clients, &client_);
  server_->clients.memory.Change(client_.link.memory, 0);
  ::close(descriptor_);
  server_->clients.connected.fetch_sub(1);
}

void Session::NoteEvents(uint32_t epoll_events) {
  if (epoll_events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) readable_ = true;
  if (epoll_events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) writable_ = true;
  if (epoll_events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) peer_closing_ = true;
  if (epoll_events & (EPOLLHUP | EPOLLERR)) reset_ = true;
}

bool Session::OutputFull() const { return output_.size() >= server_->live.unsent_max_bytes; }

void Session::ReadAndParse(bool draining) {
  if (closed_ || held_ || has_batch_ || OutputFull() || client_.close_after_reply ||
      !protocol_error_.empty())
    return;
  if (hungry_ && readable_ && !draining && !peer_closed_) Read();
  if (!closed_) Parse();
}

void Session::Read() {
  size_t quota = server_->options.max_batch_bytes;
  size_t received = 0;
  while (quota > 0) {
    // Room grows with what has arrived, never with what was announced. A connection that sends
    // little has no more than that.
    const bool little = input_.size() < kFirstRead && input_.room() < kFirstRead;
    size_t asked = std::max(quota, kFirstRead);
    char* room;
    if (little) {
      room = loop_->scratch().data();
      asked = std::min(asked, loop_->scratch().size());
    } else {
      const size_t wanted =
          std::clamp(std::min(input_.size(), parser_.missing()), kFirstRead, kLargestRead);
      room = input_.Reserve(input_.room() >= kFirstRead ? kFirstRead : wanted);
      asked = std::min(asked, input_.room());
    }
    const ssize_t got = ::recv(descriptor_, room, asked, 0);
    if (got > 0) {
      const size_t bytes = static_cast<size_t>(got);
      if (little) {
        input_.Append({room, bytes});
      } else {
        input_.Commit(bytes);
      }
      received += bytes;
      quota -= std::min(quota, bytes);
      // A short read has emptied the socket: new bytes, or the end of the stream, bring a new
      // event.
      if (bytes < asked && !peer_closing_) {
        readable_ = false;
        break;
      }
    } else if (got == 0) {
      peer_closed_ = true;
      readable_ = false;
      break;
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      readable_ = false;
      break;
    } else if (errno != EINTR) {
      Close();
      break;
    }
  }
  if (received > 0) {
    active_at_ = loop_->seconds();
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // the steady clock's, cheaper
    client_.link.active_at.store(now.tv_sec, std::memory_order_relaxed);
    ShowFigures();
  }
  server_->statistics.bytes_in.fetch_add(received, std::memory_order_relaxed);
}

void Session::Parse() {
  // Before the login each request by itself, since the next may be the first that is allowed.
  const bool must_log_in = MustLogIn();
  parser_.set_trusted(!must_log_in);
  parser_.set_max_bulk(server_->live.max_value_bytes);
  const size_t max_requests = must_log_in ? 1 : server_->options.max_batch_requests;
  const size_t max_bytes = server_->options.max_batch_bytes;
  size_t offset = 0;
  hungry_ = false;
  while (batch_.requests.size() < max_requests && offset < max_bytes && !batch_.tries_password) {
    const size_t first = batch_.arguments.size();
    size_t consumed = 0;
    const RespParser::Result result =
        parser_.Next(input_.data() + offset, input_.size() - offset, &batch_.arguments, &consumed);
    if (result == RespParser::Result::kRequest) {
      offset += consumed;
      if (batch_.arguments.size() > first) AddRequest(first);
      continue;
    }
    hungry_ = true;
    if (result == RespParser::Result::kError) {
      protocol_error_ = parser_.error();
      server_->statistics.protocol_errors.fetch_add(1, std::memory_order_relaxed);
    }
    break;
  }
  batch_.input_bytes = offset;
  if (batch_.empty()) {
    FinishBatch();
    return;
  }
  has_batch_ = true;
  executor_.Begin(&batch_);
  if (offset > ClientMemory::kNothing) CountMemory();
  if (batch_.tries_password) {
    HoldBack(server_->clients.login_guard.Delay(client_.address, std::chrono::steady_clock::now()));
  }
  server_->statistics.requests.fetch_add(batch_.requests.size(), std::memory_order_relaxed);
}

void Session::AddRequest(size_t first) {
  const size_t count = batch_.arguments.size() - first;
  const std::string_view name = batch_.arguments[first];
  const bool is_as_before = first > 0 && batch_.arguments[batch_.requests.back().first] == name;
  const Command* const command = is_as_before ? batch_.requests.back().command : FindCommand(name);
  batch_.requests.push_back({command, static_cast<uint32_t>(first), static_cast<uint32_t>(count)});
  if (command == nullptr) return;
  batch_.refused = MustLogIn() && (command->flags & kBeforeLoginCommand) == 0;
  if (batch_.refused) return;
  batch_.tries_password = TriesPassword(*command, count);
  const uint32_t keys = KeyCount(*command, count);
  if (command->kind == CommandKind::kGet && count == 2) ++batch_.gets;
  if (command->kind == CommandKind::kSet && count == 3) ++batch_.plain_sets;
  // WATCH reads, too.
  if (command->flags & (kReadCommand | kTransactionCommand)) batch_.reads += keys;
  if (command->flags & kWriteCommand) batch_.writes += std::max(keys, 1u);
  batch_.slow = batch_.slow || (command->flags & kSlowCommand) != 0 ||
                ((command->flags & kSubscriberCommand) != 0 && LeavesSlowly());
  batch_.maintenance = batch_.maintenance || (command->flags & kMaintenanceCommand) != 0;
}

BatchExecutor::Progress Session::RunExecutor(GatedReplies* replies) {
  const bool whole = !executor_.continued();
  const bool anywhere =
      in_flight_ || executor_.elsewhere() || server_->options.execution == Execution::kInline;
  const size_t most_here = anywhere ? SIZE_MAX : kInlineInputBytes;
  const bool measured = whole && !executor_.elsewhere() && !batch_.slow && !batch_.maintenance &&
                        (in_flight_ || ++executions_ % kMeasureEvery == 0);
  if (!measured) return executor_.Run(replies, server_->options.reply_slice_bytes, most_here);
  const auto begin = std::chrono::steady_clock::now();
  const BatchExecutor::Progress progress =
      executor_.Run(replies, server_->options.reply_slice_bytes, most_here);
  const int64_t nanos =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - begin)
          .count();
  if (progress == BatchExecutor::Progress::kDone) {
    if (batch_.reads > 0 && batch_.writes == 0) server_->read_cost.Measured(nanos, batch_.reads);
    if (batch_.writes > 0 && batch_.reads == 0) server_->write_cost.Measured(nanos, batch_.writes);
  }
  return progress;
}

Placement Session::Place(bool writers_wait) const {
  if (executor_.elsewhere()) return Placement::kPool;
  return PlaceBatch(server_->options.execution, batch_, server_->read_cost, server_->write_cost,
                    writers_wait);
}

bool Session::MayJoin(bool writers_wait) const {
  return !closed_ && has_batch_ && !in_flight_ && !client_.Restricted() && !executor_.continued() &&
         !OutputFull() && batch_.requests.size() <= kMostToJoin &&
         batch_.input_bytes <= kMostBytesToJoin && Place(writers_wait) == Placement::kInline;
}

bool Session::AddGets(std::vector<std::string_view>* keys, NamespaceId* space, bool writers_wait) {
  if (batch_.gets == 0 || batch_.gets != batch_.requests.size() || !MayJoin(writers_wait))
    return false;
  if (*space != kSelectedNamespace && *space != client_.space) return false;
  *space = client_.space;
  for (const RequestBatch::Request& request : batch_.requests)
    keys->push_back(batch_.arguments[request.first + 1]);
  return true;
}

bool Session::AnswerGets(const absl::Status& status, absl::Span<MultiGetResult>* results,
                         uint64_t nanos_each) {
  const absl::Span<MultiGetResult> own = results->first(batch_.requests.size());
  results->remove_prefix(own.size());
  // Values are large: executed apart, in the same round.
  if (status.ok() && CountRead(own) < own.size()) {
    for (MultiGetResult& result : own) std::string().swap(result.value);
    return false;
  }
  output_.BeginBatch();
  executor_.AnswerGets(&output_, status, own, nanos_each);
  server_->statistics.batches_inline.fetch_add(1, std::memory_order_relaxed);
  FinishBatch();
  return true;
}

bool Session::AddSets(WriteBatch* writes, bool writers_wait) {
  if (batch_.plain_sets == 0 || batch_.plain_sets != batch_.requests.size() ||
      !MayJoin(writers_wait))
    return false;
  if (server_->clients.events.Tells(kNewEvent))
    return false;  // each has to look whether its key is new
  const uint64_t expiry_ms = server_->store->UsualExpiry(client_.space);
  for (const RequestBatch::Request& request : batch_.requests) {
    writes->Put(batch_.arguments[request.first + 1], batch_.arguments[request.first + 2],
                client_.space, expiry_ms);
  }
  return true;
}

void Session::AnswerSets(const absl::StatusOr<CommitResult>& committed, uint64_t nanos_each) {
  output_.BeginBatch();
  executor_.AnswerSets(&output_, committed, nanos_each);
  server_->statistics.batches_inline.fetch_add(1, std::memory_order_relaxed);
  FinishBatch();
}

bool Session::Execute(bool writers_wait, bool* submitted) {
  if (closed_ || held_ || !has_batch_ || in_flight_ || OutputFull()) return false;
  Placement placement = Place(writers_wait);
  if (placement == Placement::kMaintenance) {
    if (Dispatch(placement)) return false;
    executor_.RefuseMaintenance();  // too many such requests wait already
    batch_.maintenance = false;
    placement = Place(writers_wait);
  }
  if (placement != Placement::kInline && Dispatch(placement)) return false;
  server_->statistics.batches_inline.fetch_add(1, std::memory_order_relaxed);
  output_.BeginBatch(executor_.inside_reply());
  const BatchExecutor::Progress progress = RunExecutor(&output_);
  *submitted = *submitted || executor_.submitted();
  if (executor_.broken()) client_.close_after_reply = true;
  if (progress == BatchExecutor::Progress::kDone) FinishBatch();
  return true;
}

void Session::FailRound(std::string_view error) {
  // Among messages of others an error in the place of each would not say which were replies.
  if (client_.Listens() || executor_.inside_reply() || executor_.continued() ||
      !output_.FailBatch(error))
    Close();
}

void Session::HoldBack(std::chrono::milliseconds delay) {
  if (delay.count() == 0) return;
  held_ = true;
  loop_->Hold(shared_from_this(), delay);
}

void Session::FinishBatch() {
  HoldBack(std::exchange(client_.penalty, std::chrono::milliseconds(0)));
  input_.Consume(batch_.input_bytes);
  batch_.Clear();
  has_batch_ = false;
  if (!protocol_error_.empty() && !client_.close_after_reply) {
    RespWriter(&output_.bytes(), client_.protocol).Error(protocol_error_);
    output_.Mark(kNoSequence, 1);
    client_.close_after_reply = true;
  }
  if (input_.empty()) input_.ShrinkAbove(server_->options.keep_buffer_bytes);
  ShowFigures();
}

bool Session::Abandoned() const {
  if (!has_batch_ || !executor_.continued()) return false;
  // A client that only says that it sends no more may still read. Whether it does shows when
  // something is sent.
  return reset_ || (peer_closing_ && !OutputFull() && loop_->seconds() - active_at_ > kPatience);
}

bool Session::Send(GatedReplies* replies, SequenceNumber durable, bool* would_block) {
  size_t left = replies->Releasable(durable);
  while (left > 0) {
    const ssize_t sent =
        ::send(descriptor_, replies->bytes().data(), left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno == EINTR) continue;
      *would_block = errno == EAGAIN || errno == EWOULDBLOCK;
      return *would_block;
    }
    active_at_ = loop_->seconds();
    replies->Consume(static_cast<size_t>(sent));
    server_->statistics.bytes_out.fetch_add(static_cast<uint64_t>(sent), std::memory_order_relaxed);
    left -= static_cast<size_t>(sent);
  }
  return true;
}

void Session::Flush(SequenceNumber durable) {
  if (closed_) return;
  TakeMail();
  if (held_ || (in_flight_ && send_from_worker_) || output_.empty()) return;
  if (writable_) {
    bool would_block = false;
    if (!Send(&output_, durable, &would_block)) return Close();
    if (would_block) writable_ = false;
    const ClientLink& link = client_.link;
    if (would_block || link.memory > 0 || link.subscription_bytes > 0) CountMemory();
  }
  if (output_.empty()) return output_.ShrinkAbove(server_->options.keep_buffer_bytes);
  if (parked) return;
  if (const SequenceNumber durable_after = output_.NextGate(durable); durable_after != kNoSequence)
    loop_->Park(shared_from_this(), durable_after);
}

void Session::FailParked(SequenceNumber durable, std::string_view error) {
  if (closed_ || output_.NextGate(durable) == kNoSequence) return;
  // As in FailRound().
  if (client_.Listens() || !output_.FailAbove(durable, error)) Close();
}

void Session::Settle(bool draining) {
  if (closed_ || in_flight_) return;
  if (reset_) return Close();
  if (held_) return;
  const bool finished = client_.close_after_reply || ((peer_closed_ || draining) && hungry_);
  if ((finished && !has_batch_ && output_.empty()) || Abandoned()) return Close();
  if (OutputFull() || client_.close_after_reply) {  // goes on when the client has taken its replies
    executor_.Rest();
    return;
  }
  const bool has_mail = !client_.link.mailbox.empty() && output_.empty();
  if (has_batch_ || has_mail || !hungry_ || (readable_ && !peer_closed_ && !draining))
    loop_->Schedule(this);
}

void Session::Close() {
  if (closed_) return;
  closed_ = true;
  ::shutdown(descriptor_, SHUT_WR);
  // Unread bytes would turn the close into a reset, which can overtake the last reply.
  char ignored[kFirstRead];
  for (int i = 0; i<kReadsAtClose&& ::recv(descriptor_, ignored, sizeof(ignored), MSG_DONTWAIT)> 0;
       ++i)
    continue;
  loop_->Remove(this);
}

}  // namespace varve
