#include "server/net/remote_rounds.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/execution/request_checks.h"
#include "server/execution/store_capability.h"
#include "server/net/io_loop.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// After which a batch is tried again for which the system gave no thread.
constexpr std::chrono::milliseconds kBetweenRounds{5};

// The rounds of the loop that this thread runs, if it drives the store.
thread_local RemoteRounds* driving_here = nullptr;

}  // namespace

RemoteRounds::RemoteRounds(ServerState* server, ElasticPool* threads, IoLoop* loop)
    : server_(server),
      threads_(threads),
      loop_(loop),
      loops_(std::max<size_t>(server->statistics.loops.size(), 1)),
      most_slow_threads_(std::max<size_t>(server->options.store_threads / 2 / loops_, 1)),
      prompt_{.most = kMostInFlight / loops_, .most_bytes = kMostBytes / loops_},
      slow_{.most = prompt_.most / 2, .most_bytes = prompt_.most_bytes / 2} {}

// --- Answers -------------------------------------------------------------------------------------

void RemoteRounds::Begin(int descriptor) {
  if (server_->store_waits.remote()) driver_ = server_->store->DriveOnThisThread(descriptor);
  if (drives()) driving_here = this;
}

void RemoteRounds::End() {
  driving_here = nullptr;
  driver_.reset();
}

void RemoteRounds::Wait(int timeout) {
  driver_->Wait(std::chrono::milliseconds(timeout), [this] { return !answered_.empty(); });
}

void RemoteRounds::OnAnswered(std::shared_ptr<Session> session) {
  if (driving_here == this) {
    answered_.push_back(std::move(session));
  } else {
    loop_->Complete(std::move(session));
  }
}

void RemoteRounds::TakeAnswered(std::vector<std::shared_ptr<Session>>* sessions) {
  for (std::shared_ptr<Session>& session : answered_) sessions->push_back(std::move(session));
  answered_.clear();
}

// --- Room ----------------------------------------------------------------------------------------

void RemoteRounds::Room::Take(const Session::RemotePart& part) {
  in_flight += part.in_flight;
  bytes += part.bytes;
  if (part.on_thread) ++on_threads;
}

void RemoteRounds::Room::GiveBack(const Session::RemotePart& part) {
  VARVE_ASSERT(part.in_flight <= in_flight && part.bytes <= bytes);
  in_flight -= part.in_flight;
  bytes -= part.bytes;
  if (part.on_thread) --on_threads;
}

bool RemoteRounds::IsAway(Session* session) const {
  if (session->remote.run != nullptr) return session->remote.run->is_away();
  BatchExecutor& executor = session->executor();
  if (executor.streaming_since()) return false;
  const RequestBatch& batch = executor.batch();
  const RequestBatch::Request& next = batch.requests[executor.cursor()->next];
  const ClientState& client = *executor.cursor()->client;
  // A command that may run long comes here as well.
  return !batch.refused && AsksStore(client, next.command, batch.ArgumentsOf(next)) &&
         AsksWhatIsAway(*server_, client, *next.command, batch.ArgumentsOf(next));
}

void RemoteRounds::NoteSlow() {
  if (in_prompt_.empty()) return;
  const auto late = std::chrono::steady_clock::now() - server_->store_waits.SlowAfter();
  // Where all machines are slow, requests do not go on to come in for ever.
  const auto may_move = [this] {
    return slow_.in_flight < 2 * prompt_.most && slow_.bytes < prompt_.most_bytes;
  };
  while (!in_prompt_.empty() && may_move() && in_prompt_.begin()->second->remote.since <= late) {
    Session::RemotePart& part = in_prompt_.begin()->second->remote;
    prompt_.GiveBack(part);
    slow_.Take(part);
    part.is_slow = true;
    in_prompt_.erase(in_prompt_.begin());
  }
  ReleaseWaiting();
}

// --- The way of a batch --------------------------------------------------------------------------

bool RemoteRounds::Execute(Session* session) {
  const bool is_away = IsAway(session);
  const bool goes_on = session->remote.run != nullptr;  // a part of its reply may be written
  if (!is_away && (prompt_.IsFull() || ComesLater(*session))) {
    Wait(session);
    return false;
  }
  BatchExecutor& executor = session->executor();
  if (is_away && !goes_on && slow_.IsFull()) return Refuse(session);
  // Before a thread may change them.
  const size_t bytes =
      executor.batch().input_bytes + executor.cursor()->client->modes.transaction.bytes();
  if (Ask(session)) {
    asked_ = true;
    const RemoteRun& run = *session->remote.run;
    NoteAsked(session, run.size(), bytes + run.range_bytes(), is_away, /*on_thread=*/false);
  } else if (is_away && slow_.on_threads >= most_slow_threads_) {
    return Refuse(session);
  } else if (HandOver(session, is_away)) {
    // A thread asks for one request after the other.
    NoteAsked(session, 1, bytes, is_away, /*on_thread=*/true);
  } else {
    session->remote.awaits_room = true;
    loop_->Hold(session->shared_from_this(), Session::Wait::kRoom, kBetweenRounds);
  }
  return false;
}

bool RemoteRounds::Refuse(Session* session) {
  session->remote.ticket = 0;
  session->executor().RefuseNext();
  return true;
}

void RemoteRounds::NoteAsked(Session* session, size_t requests, size_t bytes, bool is_slow,
                             bool on_thread) {
  Session::RemotePart& part = session->remote;
  part.ticket = 0;
  part.in_flight = requests;
  part.bytes = bytes;
  part.is_slow = is_slow;
  part.on_thread = on_thread;
  part.since = std::chrono::steady_clock::now();
  part.order = ++last_order_;
  (is_slow ? slow_ : prompt_).Take(part);
  if (!is_slow) in_prompt_.emplace(part.order, session);
  server_->store_waits.Begin(requests, part.since);
}

bool RemoteRounds::Ask(Session* session) {
  std::shared_ptr<RemoteRun>& run = session->remote.run;
  // The rest of a reply comes before the replies of the requests behind it.
  if (run == nullptr && session->executor().streaming_since()) return false;
  if (run == nullptr) run = RemoteRun::Take(server_, session->executor().cursor());
  if (run == nullptr) return false;
  session->Lend();
  run->Send([this, self = session->shared_from_this()] { OnAnswered(self); });
  return true;
}

void RemoteRounds::Abandon(Session* session) {
  if (!session->in_flight() || session->remote.run == nullptr) return;
  session->remote.run->Abandon();
  session->TakeBack();
}

bool RemoteRounds::HandOver(Session* session, bool is_away) {
  session->Lend();
  // A batch whose keys are away by the time that a thread takes it comes back, and then is one of
  // those.
  ElasticPool::Task task = [this, is_away, owner = session->shared_from_this()] {
    owner->ExecuteOnWorker(/*is_wanted=*/is_away || !IsAway(owner.get()));
  };
  if (threads_->TrySubmit(std::move(task))) {
    server_->statistics.batches_pooled.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  session->TakeBack();
  return false;
}

bool RemoteRounds::ComesLater(const Session& session) const {
  if (waiting_.empty()) return false;
  VARVE_ASSERT(prompt_.in_flight > 0);
  return session.remote.ticket == 0 || session.remote.ticket > waiting_.begin()->first;
}

void RemoteRounds::Wait(Session* session) {
  session->remote.awaits_room = true;
  // One that was released, and found no room, keeps its place.
  if (session->remote.ticket == 0) session->remote.ticket = ++last_ticket_;
  waiting_.emplace(session->remote.ticket, session->weak_from_this());
  server_->store_waits.BeginCrowd();
}

void RemoteRounds::GiveBack(Session* session) {
  Session::RemotePart& part = session->remote;
  (part.is_slow ? slow_ : prompt_).GiveBack(part);
  if (!part.is_slow) in_prompt_.erase(part.order);
  server_->store_waits.End(std::exchange(part.in_flight, 0), std::chrono::steady_clock::now());
  ReleaseWaiting();
}

void RemoteRounds::ReleaseWaiting() {
  if (prompt_.in_flight == 0) {
    while (!waiting_.empty()) ReleaseNext();
  }
  if (prompt_.IsFull()) return;
  // Each takes room for a request at least. Those for whom there is none left wait again.
  for (size_t room = prompt_.in_flight; room < prompt_.most && !waiting_.empty(); ++room)
    ReleaseNext();
}

void RemoteRounds::ReleaseNext() {
  while (!waiting_.empty()) {
    const std::shared_ptr<Session> next = waiting_.begin()->second.lock();
    waiting_.erase(waiting_.begin());
    server_->store_waits.EndCrowd();
    if (next == nullptr || next->closed()) continue;
    next->Release(Session::Wait::kRoom);
    return loop_->Schedule(next.get());
  }
}

void RemoteRounds::Push() {
  asked_ = false;
  if (!server_->store->Push().ok()) loop_->OnDurabilityChanged();
}

}  // namespace varve
