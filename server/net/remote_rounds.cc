#include "server/net/remote_rounds.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/net/io_loop.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// After which a batch is tried again for which the system gave no thread.
constexpr std::chrono::milliseconds kBetweenTries{5};

}  // namespace

RemoteRounds::RemoteRounds(ServerState* server, ElasticPool* threads, IoLoop* loop)
    : server_(server),
      threads_(threads),
      loop_(loop),
      most_(kMostInFlight / std::max<size_t>(server->statistics.loops.size(), 1)) {}

void RemoteRounds::Execute(Session* session) {
  if (in_flight_ >= most_ || ComesLater(*session)) return Wait(session);
  size_t requests = 1;  // a thread asks for one after the other
  if (Ask(session)) {
    requests = session->remote.run->size();
    asked_ = true;
  } else if (!HandOver(session)) {
    session->remote.awaits_room = true;
    return loop_->Hold(session->shared_from_this(), Session::Wait::kRoom, kBetweenTries);
  }
  session->remote.ticket = 0;
  session->remote.in_flight = requests;
  in_flight_ += requests;
  server_->store_waits.Begin(requests, std::chrono::steady_clock::now());
}

bool RemoteRounds::Ask(Session* session) {
  std::shared_ptr<RemoteRun>& run = session->remote.run;
  if (run == nullptr) run = RemoteRun::Take(server_, session->executor().cursor());
  if (run == nullptr) return false;
  session->Lend();
  run->Send([loop = loop_, self = session->shared_from_this()] { loop->Complete(self); });
  return true;
}

void RemoteRounds::Abandon(Session* session) {
  if (!session->in_flight() || session->remote.run == nullptr) return;
  session->remote.run->Abandon();
  session->TakeBack();
}

bool RemoteRounds::HandOver(Session* session) {
  session->Lend();
  if (threads_->TrySubmit([owner = session->shared_from_this()] { owner->ExecuteOnWorker(); })) {
    server_->statistics.batches_pooled.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  session->TakeBack();
  return false;
}

bool RemoteRounds::ComesLater(const Session& session) const {
  if (waiting_.empty()) return false;
  VARVE_ASSERT(in_flight_ > 0);
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
  const size_t requests = std::exchange(session->remote.in_flight, 0);
  VARVE_ASSERT(requests <= in_flight_);
  in_flight_ -= requests;
  server_->store_waits.End(requests, std::chrono::steady_clock::now());
  if (in_flight_ == 0) {
    while (!waiting_.empty()) ReleaseNext();
  }
  // Each takes room for a request at least. Those for whom there is none left wait again.
  for (size_t room = in_flight_; room < most_ && !waiting_.empty(); ++room) ReleaseNext();
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
