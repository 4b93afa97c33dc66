#include "server/net/session.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "server/clients/client_description.h"
#include "server/clients/client_login.h"
#include "server/clients/client_modes.h"
#include "server/commands/command_table.h"
#include "server/execution/denied_access.h"
#include "server/net/io_loop.h"
#include "server/tls/tls_contexts.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "varve/store.h"

namespace varve {
namespace {

// Seconds for which a client that has closed its side is worked for.
constexpr uint32_t kPatience = 10;
constexpr std::chrono::seconds kHandshakeTime{10};
constexpr std::chrono::milliseconds kBetweenTries{5};  // to have the pool make a step of a stream
constexpr uint32_t kIdle = 1;        // seconds after which a connection's buffers are given back
constexpr int kSlicesOnWorker = 16;  // of one reply, before other clients get their slice

// Returns whether a session may go from one state to the other.
bool IsLegal(Session::State from, Session::State to) {
  using State = Session::State;
  switch (from) {
    case State::kArriving:
      return to == State::kHandshake || to == State::kReading || to == State::kFinishing ||
             to == State::kClosed;
    case State::kHandshake:
      return to == State::kInFlight || to == State::kReading || to == State::kClosed;
    case State::kReading:
      return to == State::kReady || to == State::kFinishing || to == State::kClosed;
    case State::kReady:
      return to == State::kReading || to == State::kHeld || to == State::kInFlight ||
             to == State::kFinishing || to == State::kClosed;
    case State::kHeld:
      return to == State::kReading || to == State::kReady || to == State::kFinishing ||
             to == State::kClosed;
    case State::kInFlight:
      return to == State::kReady || to == State::kHandshake || to == State::kClosedInFlight;
    case State::kFinishing:
    case State::kClosedInFlight:
      return to == State::kClosed;
    case State::kClosed:
      return false;
  }
  return false;
}

// Returns the state of a session that neither is held nor in flight.
Session::State RestingState(const RequestBatch& batch, const ClientState& client) {
  if (!batch.empty()) return Session::State::kReady;
  return client.close_after_reply ? Session::State::kFinishing : Session::State::kReading;
}

// Answers `reply`, behind which the connection closes.
void TurnAway(std::string_view reply, PendingReplies* output, ClientState* client) {
  output->bytes().Append(reply);
  output->Mark(kNoSequence, 1);
  client->close_after_reply = true;
}

// Makes the client the first of these users that is there and on and whose limits allow it, if any.
// That one of them is there and may not come is logged, as the client goes on as another user.
void LogInByCertificate(const std::vector<std::string>& names, ServerState* server,
                        ClientState* client) {
  std::string_view refused;
  for (const std::string& name : names) {
    UserPointer user = server->clients.users.Find(name);
    if (user == nullptr) continue;
    if (user->on && BecomeUser(client, std::move(user)).ok()) return;
    if (refused.empty()) refused = name;
  }
  if (refused.empty()) return;
  // The name is for those who may read ACL LOG.
  spdlog::warn("The certificate of the client at {} names a user who may not log in",
               client->address);
  std::string description = DescribeClient(*client, /*self=*/true);
  if (description.ends_with('\n')) description.pop_back();
  NoteDenied(*server, {.reason = DeniedAccess::Reason::kCertificate,
                       .command = "auth",
                       .object = refused,
                       .user = refused,
                       .context = "toplevel",
                       .client = std::move(description),
                       .address = client->address,
                       .client_id = client->id});
}

// Has the pool make the next step of the client's stream once the client has taken the last one, or
// has to be given more of it.
void PumpStream(IoLoop* loop, Session* session, ServerState* server, ClientState* client,
                bool is_taken) {
  PushedStream& stream = *client->modes.stream;
  Mailbox& mailbox = client->link.mailbox;
  const bool lacks_text = mailbox.inside() && mailbox.LacksText();
  // The rest of a message that nobody makes any more is missing.
  if (stream.ended()) return lacks_text ? session->Close() : EndStream(client);
  if (!stream.running() && (!is_taken || mailbox.empty())) client->modes.stream_turn = nullptr;
  if (!is_taken) {
    mailbox.PutAway(loop->seconds());
    return stream.Rest();
  }
  if ((!mailbox.empty() && !lacks_text) || !stream.TryBegin(client)) return;
  client->modes.stream_turn = server->clients.stream_turns.Take();
  const bool begins = client->modes.stream_turn != nullptr &&
                      loop->RunOnPool([self = session->shared_from_this(),
                                       made = client->modes.stream] { made->Step(); });
  if (begins) return;
  client->modes.stream_turn = nullptr;
  stream.Abandon();
  loop->Hold(session->shared_from_this(), Session::Wait::kPause, kBetweenTries);
}

// Returns since when a reply or a stream has held a snapshot.
std::optional<std::chrono::steady_clock::time_point> SnapshotSince(const ClientState& client,
                                                                   const BatchExecutor& executor) {
  if (const PushedStream* const stream = client.modes.stream.get(); stream != nullptr) {
    const auto since = stream->snapshot_since();
    if (since.time_since_epoch().count() != 0) return since;
  }
  return executor.streaming_since();
}

// The first reply waits for followers, and the server ends as a follower itself, often to begin
// anew with a copy: nobody tells it any more that the write is in the history of its primary.
bool WaitsInVain(const PendingReplies& replies, const ServerState& server) {
  if (replies.empty() || !server.replication.follows()) return false;
  const SequenceNumber awaited = replies.NextDurableAfter(server.store->durable_sequence());
  return awaited != kNoSequence && server.for_followers.gate.HoldsBack(awaited);
}

}  // namespace

// --- The state -----------------------------------------------------------------------------------

void Session::MoveTo(State next) {
  VARVE_ASSERT(IsLegal(state_, next));
  state_ = next;
}

Session::Session(IoLoop* loop, ServerState* server, LoopInbox::Connection connection)
    : loop_(loop),
      server_(server),
      door_(connection.door),
      socket_(connection.descriptor),
      state_(connection.door == Door() ? State::kReading : State::kArriving),
      executor_(server, &client_) {
  client_.id = server->clients.next_id.fetch_add(1);
  client_.address = std::move(connection.address);
  BecomeDefaultUser(&client_, server->clients.users);
  active_at_ = loop->seconds();
  client_.link.local_address = std::move(connection.local_address);
  client_.link.descriptor = connection.descriptor;
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
  server_->clients.pause.NoteWaiting(&client_, false);
  server_->clients.changes.EndBlock(&client_.link);
  server_->clients.changes.Leave(&client_.link.mailbox);
  if (client_.link.is_target) server_->clients.tracking.EndTarget(client_);
  server_->clients.memory.Change(client_.link.memory, 0);
  if (counted_as_tls_)
    server_->tls->statistics().connections.fetch_sub(1, std::memory_order_relaxed);
  const auto connected = server_->clients.connected.fetch_sub(1);
  VARVE_ASSERT(connected > 0);
}

void Session::HoldBack(std::chrono::milliseconds delay) {
  if (delay.count() == 0) return;
  VARVE_ASSERT(delay.count() > 0);
  MoveTo(State::kHeld);
  loop_->Hold(shared_from_this(), Wait::kLogin, delay);
}

void Session::Release(Wait wait) {
  if (wait == Wait::kPause) {
    waits_ = awaits_release_ = false;
    return;
  }
  if (wait == Wait::kHandshake) {
    VARVE_ASSERT(state_ == State::kHandshake && awaits_release_);
    awaits_release_ = false;
    socket_.NoteUnknown();  // the events until now are used
    return;
  }
  if (wait == Wait::kRoom) {
    remote.awaits_room = false;
    return;
  }
  VARVE_ASSERT(state_ == State::kHeld);
  MoveTo(RestingState(batch_, client_));
}

void Session::Close() {
  if (closed()) return;
  MoveTo(state_ == State::kInFlight ? State::kClosedInFlight : State::kClosed);
  socket_.ShutDown(/*is_in_use=*/state_ == State::kClosedInFlight);
  loop_->Remove(this);
}

// --- The beginning of a connection ---------------------------------------------------------------

void Session::Arrive() {
  const TlsConnection::Beginning beginning = socket_.LookAtBeginning();
  if (beginning == TlsConnection::Beginning::kNone) return;
  if (beginning == TlsConnection::Beginning::kTls && door_.tls) {
    if (const std::shared_ptr<const TlsContext> context = server_->tls->Get()) {
      if (!socket_.BeginTls(context).ok()) return Close();
      return MoveTo(State::kHandshake);
    }
  }
  if (door_.plain && !door_.verified_only) return MoveTo(State::kReading);
  TurnAway(door_.plain ? kProtectedReply : kTlsNeededReply, &output_, &client_);
  MoveTo(State::kFinishing);
}

void Session::AwaitTurn() {
  VARVE_ASSERT(state_ == State::kHandshake && !awaits_release_);
  awaits_release_ = true;
}

bool Session::ShakesHands() const {
  if (state_ != State::kHandshake || awaits_release_) return false;
  return worker_.handshake == TlsConnection::Handshake::kWantsOutput ? socket_.writable()
                                                                     : socket_.readable();
}

void Session::OnHandshake() {
  VARVE_ASSERT(state_ == State::kHandshake);
  const TlsConnection& tls = *socket_.tls();
  if (worker_.handshake == TlsConnection::Handshake::kFailed) {
    server_->tls->NoteFailure(client_.address, tls.error());
    return Close();
  }
  // A round behind it goes on, or ends the connection if the server stops meanwhile.
  if (worker_.handshake != TlsConnection::Handshake::kDone) return loop_->Schedule(this);
  MoveTo(State::kReading);
  socket_.NoteUnknown();
  active_at_ = loop_->seconds();
  server_->tls->NoteSuccess();
  counted_as_tls_ = true;
  if (door_.verified_only && !tls.verified()) {
    TurnAway(kProtectedReply, &output_, &client_);
    MoveTo(State::kFinishing);
  } else {
    LogInByCertificate(tls.UserNames(), server_, &client_);
  }
  loop_->Schedule(this);
}

// --- Receiving and parsing -----------------------------------------------------------------------

void Session::ReadAndParse(bool draining) {
  if (state_ == State::kArriving && socket_.readable() && !draining) Arrive();
  if (state_ != State::kReading || HoldsBack()) return;
  VARVE_ASSERT(batch_.empty() && protocol_error_.empty());
  TakeMail();  // before the replies to what follows
  if (needs_input_ && socket_.readable() && !draining && !socket_.at_end()) {
    size_t received = 0;
    const bool alive = socket_.Receive(&input_, parser_.missing(), server_->options.max_batch_bytes,
                                       loop_->scratch(), &received);
    if (received > 0) {
      active_at_ = loop_->seconds();
      timespec now{};
      ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // the steady clock's, cheaper
      client_.link.active_at.store(now.tv_sec, std::memory_order_relaxed);
      ShowFigures();
    }
    server_->statistics.bytes_in.fetch_add(received, std::memory_order_relaxed);
    if (!alive) return Close();
  }
  Parse();
}

void Session::Parse() {
  // Before the login each request by itself, since the next may be the first that is allowed.
  const bool must_log_in = MustLogIn(client_, server_->clients.users);
  parser_.set_trusted(!must_log_in);
  parser_.set_max_bulk(server_->live.max_value_bytes);
  const size_t max_requests = must_log_in ? 1 : server_->options.max_batch_requests;
  const size_t max_bytes = server_->options.max_batch_bytes;
  size_t offset = 0;
  needs_input_ = false;
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
    needs_input_ = true;
    if (result == RespParser::Result::kError) {
      protocol_error_ = parser_.error();
      server_->statistics.protocol_errors.fetch_add(1, std::memory_order_relaxed);
    }
    break;
  }
  VARVE_ASSERT(offset <= input_.size());
  batch_.input_bytes = offset;
  if (batch_.empty()) return FinishBatch();
  MoveTo(State::kReady);
  executor_.Begin(&batch_);
  if (offset > ClientMemory::kNothing) ShowFigures();
  if (batch_.tries_password) {
    HoldBack(server_->clients.login_guard.Delay(client_.address, std::chrono::steady_clock::now()));
  }
  server_->statistics.requests.fetch_add(batch_.requests.size(), std::memory_order_relaxed);
}

void Session::AddRequest(size_t first) {
  VARVE_ASSERT(first < batch_.arguments.size());
  const size_t count = batch_.arguments.size() - first;
  const std::string_view name = batch_.arguments[first];
  const bool is_as_before = first > 0 && batch_.arguments[batch_.requests.back().first] == name;
  const Command* const command = is_as_before ? batch_.requests.back().command : FindCommand(name);
  batch_.requests.push_back({command, static_cast<uint32_t>(first), static_cast<uint32_t>(count)});
  if (command == nullptr) return;
  batch_.refused =
      MustLogIn(client_, server_->clients.users) && (command->flags & kBeforeLoginCommand) == 0;
  if (batch_.refused) return;
  batch_.tries_password = TriesPassword(*command, count);
  const uint32_t keys = KeyCount(*command, count);
  if (command->kind == CommandKind::kGet && count == 2) ++batch_.gets;
  if (command->kind == CommandKind::kSet && count == 3) ++batch_.plain_sets;
  uint32_t flags = command->flags;
  if ((flags & kContainerCommand) != 0) [[unlikely]] {
    const Subcommand* const subcommand =
        FindSubcommand(*command, Arguments(batch_.arguments).subspan(first));
    if (subcommand != nullptr)
      flags |= keys > 0 ? subcommand->flags : subcommand->flags & kMaintenanceCommand;
  }
  // WATCH reads, too.
  if (flags & (kReadCommand | kTransactionCommand)) batch_.reads += keys;
  if (flags & kWriteCommand) batch_.writes += std::max(keys, 1u);
  batch_.slow = batch_.slow || (command->flags & kSlowCommand) != 0 ||
                ((command->flags & kSubscriberCommand) != 0 && LeavesSlowly());
  batch_.maintenance = batch_.maintenance || (flags & kMaintenanceCommand) != 0;
}

// --- Execution on the loop's thread --------------------------------------------------------------

BatchExecutor* Session::BeginHere() {
  VARVE_ASSERT(ready() && !batch_.empty());
  executor_.BeginReplies(&output_);
  return &executor_;
}

void Session::OnExecuted() {
  VARVE_ASSERT(state_ == State::kReady);
  if (executor_.broken()) client_.close_after_reply = true;
  if (executor_.progress() == BatchExecutor::Progress::kDone) FinishBatch();
  ShowWait();
}

void Session::ShowWait() {
  waits_ = state_ == State::kReady && executor_.waits();
  server_->clients.pause.NoteWaiting(&client_, waits_ && executor_.paused());
  if (!waits_) return;
  if (!executor_.paused()) {
    server_->clients.changes.BeginBlock(&client_.link);
    server_->clients.changes.Wait(&client_.link.mailbox);
  }
  const std::optional<std::chrono::milliseconds> left = executor_.WaitLeft();
  // A thread that ends the wait from here on sees that the session waits, and nudges it.
  if (executor_.WaitIsOver()) {
    waits_ = false;
    return;
  }
  if (!left) return;
  const auto until = std::chrono::steady_clock::now() + *left;
  if (awaits_release_ && release_at_ <= until) return;
  awaits_release_ = true;
  release_at_ = until;
  loop_->Hold(shared_from_this(), Wait::kPause, *left);
}

void Session::FinishBatch() {
  VARVE_ASSERT(state_ == State::kReady || state_ == State::kReading);
  VARVE_ASSERT(batch_.input_bytes <= input_.size());
  input_.Consume(batch_.input_bytes);
  batch_.Clear();
  if (!protocol_error_.empty() && !client_.close_after_reply) {
    RespWriter(&output_.bytes(), client_.protocol).Error(protocol_error_);
    output_.Mark(kNoSequence, 1);
    client_.close_after_reply = true;
  }
  HoldBack(std::exchange(client_.penalty, std::chrono::milliseconds(0)));
  if (state_ != State::kHeld && state_ != RestingState(batch_, client_))
    MoveTo(RestingState(batch_, client_));
  if (input_.empty()) input_.ShrinkAbove(server_->options.keep_buffer_bytes);
  ShowFigures();
}

void Session::FailRound(std::string_view error) {
  if (closed()) return;
  // Among messages of others an error in the place of each would not say which were replies.
  if (client_.MayGetMessages() || executor_.inside_reply() || executor_.continued() ||
      !output_.FailBatch(error))
    Close();
}

void Session::FailWaiting(SequenceNumber durable, std::string_view error) {
  if (closed() || output_.NextDurableAfter(durable) == kNoSequence) return;
  // As in FailRound(). A worker may be changing the client.
  const bool has_messages = in_flight() ? worker_.may_get_messages : client_.MayGetMessages();
  if (has_messages || !output_.FailAbove(durable, error)) Close();
}

// --- Sending -------------------------------------------------------------------------------------

ClientSocket::Sent Session::Send(PendingReplies* replies, SequenceNumber durable) {
  size_t bytes = 0;
  const ClientSocket::Sent sent = socket_.Send(replies, durable, &bytes);
  if (bytes > 0) {
    active_at_ = loop_->seconds();
    server_->statistics.bytes_out.fetch_add(bytes, std::memory_order_relaxed);
  }
  return sent;
}

void Session::TakeMail() {
  // While a batch is in flight, its worker alone may look at the executor.
  const bool may_answer = state_ == State::kReading || state_ == State::kReady ||
                          (state_ == State::kHeld && !client_.close_after_reply);
  Mailbox& mailbox = client_.link.mailbox;
  if (!may_answer || mailbox.empty() || executor_.replying() || IsFull(output_, *server_)) return;
  if (remote.run != nullptr) return;  // a part of a reply may be written
  mailbox.Take(&output_, client_.protocol, server_->live.unsent_max_bytes - output_.size());
}

void Session::Flush(SequenceNumber durable) {
  if (closed()) return;
  TakeMail();
  if (state_ == State::kHeld || (in_flight() && worker_.may_send) || output_.empty()) return;
  if (socket_.writable()) {
    const ClientSocket::Sent sent = Send(&output_, durable);
    if (sent == ClientSocket::Sent::kBroken) return Close();
    const bool full = sent == ClientSocket::Sent::kWouldBlock;
    if (full) socket_.NoteFull();
    const ClientLink& link = client_.link;
    if (full || link.memory > 0 || link.subscription_bytes > 0) ShowFigures();
  }
  if (output_.empty()) return output_.ShrinkAbove(server_->options.keep_buffer_bytes);
  if (parked) return;
  if (const SequenceNumber durable_after = output_.NextDurableAfter(durable);
      durable_after != kNoSequence)
    loop_->Park(shared_from_this(), durable_after);
}

bool Session::Abandoned() const {
  if (state_ != State::kReady || !executor_.continued()) return false;
  // A client that only says that it sends no more may still read. Whether it does shows when
  // something is sent.
  return socket_.reset() || (socket_.peer_closing() && !IsFull(output_, *server_) &&
                             loop_->seconds() - active_at_ > kPatience);
}

void Session::EndRound(bool draining) {
  if (closed() || in_flight()) return;
  if (socket_.reset()) return Close();
  if (client_.modes.stream != nullptr && !draining) [[unlikely]]
    PumpStream(loop_, this, server_, &client_, output_.empty());
  if (closed() || state_ == State::kHeld) return;
  const bool at_end = (socket_.at_end() || draining) && needs_input_;
  const bool is_new = state_ == State::kArriving || state_ == State::kHandshake;
  const bool finished =
      state_ == State::kFinishing || ((state_ == State::kReading || is_new) && at_end);
  if ((finished && output_.empty()) || Abandoned()) return Close();
  if (draining && WaitsInVain(output_, *server_)) return Close();
  // Goes on when the client has taken its replies, or what it has to be given of a message is here.
  if (HoldsBack() || state_ == State::kFinishing) {
    const Mailbox& mailbox = client_.link.mailbox;
    const bool is_next_due = mailbox.inside() && output_.empty();
    const bool lacks_text = is_next_due && mailbox.LacksText();
    if (lacks_text && draining) return Close();  // the stream makes no text any more
    if (is_next_due && !lacks_text) loop_->Schedule(this);
    return executor_.Rest();
  }
  if (remote.awaits_room) return;
  // A client that has gone does not wait for the end of the pause.
  if (waits_ && !draining) return socket_.peer_closing() ? Close() : void();
  const bool has_mail = !client_.link.mailbox.empty() && output_.empty();
  if (is_new) {
    if (ShakesHands()) loop_->Schedule(this);
    return;
  }
  const bool may_receive = socket_.readable() && !socket_.at_end() && !draining;
  if (state_ == State::kReady || has_mail || !needs_input_ || may_receive) loop_->Schedule(this);
}

// --- Execution on a worker -----------------------------------------------------------------------

void Session::Lend() {
  VARVE_ASSERT(batch_.empty() ? ShakesHands() : ready());
  MoveTo(State::kInFlight);
  if (batch_.empty()) return socket_.NoteUsed();
  worker_.may_send = output_.empty() && socket_.writable() && remote.run == nullptr;
  worker_.log_had_failed = loop_->log_failed();
  worker_.may_get_messages = client_.MayGetMessages();
}

void Session::TakeBack() {
  VARVE_ASSERT(state_ == State::kInFlight || state_ == State::kClosedInFlight);
  if (state_ == State::kClosedInFlight) return MoveTo(State::kClosed);
  MoveTo(batch_.empty() ? State::kHandshake : State::kReady);
}

bool Session::ExecuteSlice(bool is_first) {
  worker_.progress = executor_.Run(BatchExecutor::Where::kWorker);
  worker_.broken = executor_.broken();
  absl::Status pushed;
  if (executor_.TakeSubmitted()) {
    pushed = server_->store->Push();
  } else if (!worker_.log_had_failed) {
    pushed = server_->store->PushUnsynced();
  }
  if (!pushed.ok()) {
    // A client that has seen a part of the replies can't get an error in their place, and none of
    // the rest may leave.
    if (!is_first || executor_.continued() || executor_.inside_reply() ||
        !worker_.replies.FailBatch(CommandContext::ErrorText(pushed))) {
      worker_.broken = true;
      worker_.replies.Clear();
    }
  }
  if (!worker_.may_send || worker_.broken || client_.penalty.count() > 0) return false;
  const SequenceNumber durable = server_->store->durable_sequence();
  worker_.broken = Send(&worker_.replies, durable) == ClientSocket::Sent::kBroken;
  return worker_.progress == BatchExecutor::Progress::kMore && worker_.replies.empty() &&
         !worker_.broken && !executor_.slice_spent() && !executor_.waits();
}

void Session::ExecuteOnWorker(bool is_wanted) {
  if (batch_.empty()) {
    worker_.handshake = socket_.ShakeHands();
    return loop_->Complete(shared_from_this());
  }
  executor_.BeginReplies(&worker_.replies);
  worker_.progress = executor_.progress();
  worker_.broken = false;
  for (int slice = 0; is_wanted && slice < kSlicesOnWorker; ++slice) {
    // Nobody will see the replies: what is queued must not hold up the stop.
    if (loop_->aborted()) {
      worker_.broken = true;
      break;
    }
    if (!ExecuteSlice(/*is_first=*/slice == 0)) break;
  }
  loop_->Complete(shared_from_this());
}

void Session::OnCompleted() {
  if (remote.run != nullptr) [[unlikely]] {
    // Also where the client has gone: others may wait to hear of what it wrote.
    const bool all = remote.run->Answer(&worker_.replies);
    executor_.NoteAnswered();
    worker_.progress = executor_.progress();
    worker_.broken = false;
    if (all || worker_.progress == BatchExecutor::Progress::kDone) remote.run = nullptr;
  }
  TakeBack();
  if (closed()) return;
  if (state_ == State::kHandshake) return OnHandshake();
  output_.Take(&worker_.replies);
  worker_.replies.ShrinkAbove(server_->options.keep_buffer_bytes);
  if (worker_.broken) client_.close_after_reply = true;
  if (worker_.progress == BatchExecutor::Progress::kDone || worker_.broken) FinishBatch();
  ShowWait();
  if (Abandoned()) return Close();
  ShowFigures();
  loop_->Schedule(this);
}

bool Session::LeavesSlowly() const { return varve::LeavesSlowly(client_); }

void Session::LeaveOnWorker() { LeaveModes(&server_->clients, &client_); }

// --- What other connections see and leave --------------------------------------------------------

void Session::OnMail() {
  if (closed()) return;
  if (client_.link.mailbox.close_requested()) return Close();
  if (client_.link.mailbox.OverLimit(std::chrono::steady_clock::now())) {
    spdlog::warn(
        "Client {} at {} doesn't take its messages, {} bytes wait for it: its connection is closed",
        client_.id, client_.address, client_.link.mailbox.bytes());
    return Close();
  }
  waits_ = false;
  loop_->Schedule(this);
}

void Session::ShowFigures() {
  client_.link.protocol.store(client_.protocol, std::memory_order_relaxed);
  client_.link.output_bytes.store(output_.size(), std::memory_order_relaxed);
  client_.link.input_bytes.store(input_.size(), std::memory_order_relaxed);
  client_.link.input_room.store(input_.room(), std::memory_order_relaxed);
  const size_t names = client_.link.subscription_bytes.load(std::memory_order_relaxed);
  // A request of many tiny arguments takes more for them than for its bytes.
  const size_t arguments = parser_.memory() + batch_.arguments.size() * sizeof(std::string_view);
  const size_t transaction = client_.link.transaction_bytes.load(std::memory_order_relaxed);
  // What waits for the peer inside TLS, encrypted, is left to a worker that may have it.
  const size_t encrypted = socket_.tls() == nullptr || in_flight() ? 0 : socket_.tls()->held();
  const size_t held = input_.size() + output_.size() + names + arguments + transaction + encrypted;
  const size_t counted = held > ClientMemory::kNothing ? held : 0;
  if (const size_t before = client_.link.memory.load(std::memory_order_relaxed);
      counted != before) {
    client_.link.memory.store(counted, std::memory_order_relaxed);
    server_->clients.memory.Change(before, counted);
  }
  const size_t limit = server_->live.max_clients_memory.load(std::memory_order_relaxed);
  if (limit > 0 && server_->clients.memory.bytes() > limit)
    server_->clients.memory.Evict(limit, server_->clients.registry);
}

bool Session::CloseOverdue() {
  const std::chrono::seconds idle_timeout = server_->live.idle_timeout;
  const uint32_t silent = loop_->seconds() - active_at_;
  const bool waits_for_client = batch_.empty() || HoldsBack();
  if (idle_timeout.count() > 0 && waits_for_client && !client_.Listens() &&
      silent > idle_timeout.count()) {
    spdlog::debug("Client {} at {} was idle for {} s, its connection is closed", client_.id,
                  client_.address, silent);
    Close();
    return true;
  }
  const auto now = std::chrono::steady_clock::now();
  const bool has_to_shake_hands =
      state_ == State::kHandshake || (state_ == State::kArriving && !door_.plain);
  if (has_to_shake_hands && now - client_.connected > kHandshakeTime) {
    server_->tls->NoteFailure(client_.address, "the client is too slow");
    Close();
    return true;
  }
  const std::chrono::seconds login_timeout = server_->live.login_timeout;
  if (login_timeout.count() > 0 && MustLogIn(client_, server_->clients.users) &&
      now - client_.connected > login_timeout) {
    spdlog::debug("Client {} at {} has not given the password, its connection is closed",
                  client_.id, client_.address);
    Close();
    return true;
  }
  const std::chrono::nanoseconds snapshot_max_age = server_->live.snapshot_max_age;
  if (const auto since = SnapshotSince(client_, executor_); since && snapshot_max_age.count() > 0 &&
                                                            !output_.empty() &&
                                                            now - *since > snapshot_max_age) {
    spdlog::warn(
        "Client {} at {} has not taken its reply within --snapshot-max-age, its connection is "
        "closed",
        client_.id, client_.address);
    Close();
    return true;
  }
  if (!output_gauge_.Over(output_.size(), server_->live.reply_limits.Get(), now)) return false;
  spdlog::warn(
      "Client {} at {} leaves {} bytes of replies unread, more than --client-output-buffer-limit "
      "allows: its connection is closed",
      client_.id, client_.address, output_.size());
  Close();
  return true;
}

void Session::Visit() {
  if (closed() || in_flight()) return;
  if (!client_.link.mailbox.empty()) OnMail();
  if (closed()) return;
  if (CloseOverdue()) return;
  if (client_.modes.stream != nullptr) loop_->Schedule(this);  // a sign of life may be due
  if (loop_->seconds() - active_at_ <= kIdle || !batch_.empty()) return;
  input_.ShrinkAbove(input_.size());
  output_.ShrinkAbove(output_.size());
  worker_.replies.ShrinkAbove(0);
  client_.link.input_room.store(input_.room(), std::memory_order_relaxed);
}

}  // namespace varve
