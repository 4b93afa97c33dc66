#include "server/net/io_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/os/disk_wait.h"

namespace varve {
namespace {

// A follower that was not heard of for so long has gone.
constexpr std::chrono::seconds kSilentFollower{15};
constexpr std::chrono::seconds kBetweenVisits{1};
// After which a handshake that found the pool full is tried again.
constexpr std::chrono::milliseconds kBetweenHandshakes{5};

}  // namespace

IoLoop::IoLoop(ServerState* server, const LoopPools& pools, LoopTimes* times)
    : server_(server),
      pools_(pools),
      times_(*times),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      scratch_(kScratchBytes),
      executor_(server),
      helpers_(server, pools.pool),
      remote_(server, pools.store, this),
      idle_policy_(/*is_only_loop=*/server->options.io_threads == 1) {}

IoLoop::~IoLoop() {
  if (epoll_ >= 0) ::close(epoll_);
}

void IoLoop::Run() {
  VARVE_ASSERT(valid());
  DiskWaits::NoteIn(&times_.disk());
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = nullptr;  // the inbox
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, inbox_.descriptor(), &event);
  next_visit_ = CoarseNow() + kBetweenVisits;
  remote_.Begin(epoll_);
  while (!inbox_.aborted()) {
    Round();
    if (drain_seen_ && sessions_.empty()) break;
    if (!scheduled_.empty()) continue;
    times_.RestBegins(CoarseNow());
    Rest();
    times_.RestEnds(CoarseNow());
  }
  PushKept();
  CloseAll();
  remote_.End();
  DiskWaits::NoteIn(nullptr);
}

void IoLoop::Round() {
  remote_.Poll();
  inbox_.BeginLooking();
  // Looked at before the inbox: what was adopted before the drain began is there.
  const bool drains = inbox_.draining();
  CollectInbox();
  CollectEvents(0);  // behind the inbox: a new connection may have ended already
  if (drains && !drain_seen_) {
    drain_seen_ = true;
    for (auto& [session, owner] : sessions_) Schedule(session);
  }
  if (inbox_.TakeDurabilityChange()) ReleaseParked();
  if (const Time now = CoarseNow(); now >= next_visit_ || now >= held_.first) {
    ReleaseHeld(now);
    if (now >= next_visit_) {
      next_visit_ = now + kBetweenVisits;
      VisitSessions();
    }
  }
  if (!scheduled_.empty()) ExecuteRound();
  FreeRemoved();
}

// --- What there is to do -------------------------------------------------------------------------

void IoLoop::CollectEvents(int timeout) {
  epoll_event events[kEventsPerRound];
  const int count = ::epoll_wait(epoll_, events, kEventsPerRound, timeout);
  for (int i = 0; i < count; ++i) {
    Session* const session = static_cast<Session*>(events[i].data.ptr);
    if (session == nullptr) continue;  // the inbox, which is looked at anyway
    session->socket().NoteEvents(events[i].events);
    Schedule(session);
  }
}

void IoLoop::CollectInbox() {
  (void)inbox_.Take(&left_);
  remote_.TakeAnswered(&left_.completed);
  for (LoopInbox::Connection& connection : left_.connections) Welcome(std::move(connection));
  for (const std::shared_ptr<Session>& session : left_.completed) {
    const bool was_handshake = session->lent_for_handshake();
    remote_.NoteCompleted(session.get());
    session->OnCompleted();
    if (was_handshake) DispatchHandshake(NextHandshake());
  }
  for (const std::shared_ptr<Session>& session : left_.mailed) session->OnMail();
  left_.connections.clear();
  left_.completed.clear();
  left_.mailed.clear();
}

void IoLoop::Adopt(LoopInbox::Connection connection) { inbox_.Leave(std::move(connection)); }

void IoLoop::Complete(std::shared_ptr<Session> session) {
  inbox_.LeaveCompleted(std::move(session));
}

void IoLoop::NoteMail(std::shared_ptr<Session> session) { inbox_.LeaveMailed(std::move(session)); }

void IoLoop::Welcome(LoopInbox::Connection connection) {
  auto session = std::make_shared<Session>(this, server_, std::move(connection));
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = session.get();
  if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, session->socket().descriptor(), &event) != 0) {
    spdlog::warn("A connection could not be watched: {}", std::strerror(errno));
    return;
  }
  Session* const key = session.get();
  sessions_.emplace(key, std::move(session));
  Schedule(key);
}

void IoLoop::Schedule(Session* session) {
  if (session->scheduled || session->closed()) return;
  session->scheduled = true;
  scheduled_.push_back(session);
}

void IoLoop::Park(std::shared_ptr<Session> session, SequenceNumber durable_after) {
  VARVE_ASSERT(!session->parked && durable_after != kNoSequence);
  session->parked = true;
  auto place = parked_.end();
  // Nearly always the end.
  while (place != parked_.begin() && std::prev(place)->durable_after > durable_after) --place;
  parked_.insert(place, Parked{durable_after, std::move(session)});
}

void IoLoop::ReleaseParked() {
  const absl::Status log = server_->store->log_status();
  const SequenceNumber durable = server_->store->durable_sequence();
  if (!log.ok() && !log_failed()) {
    log_error_ = CommandContext::ErrorText(log);
    spdlog::error("The log failed, writes are refused from now on: {}", log.ToString());
  }
  auto first_waiting = parked_.begin();
  for (;
       first_waiting != parked_.end() && (first_waiting->durable_after <= durable || log_failed());
       ++first_waiting) {
    Session* const session = first_waiting->session.get();
    VARVE_ASSERT(session->parked);
    session->parked = false;
    Schedule(session);
  }
  parked_.erase(parked_.begin(), first_waiting);
  if (log_failed()) return;  // then replies above what is durable become errors first
  // At once, not behind what else this round serves: the clients can go on meanwhile.
  round_ = scheduled_;  // sessions that turn out to be closed leave scheduled_
  for (Session* session : round_) session->Flush(durable);
  round_.clear();
}

void IoLoop::Hold(std::shared_ptr<Session> session, Session::Wait wait,
                  std::chrono::milliseconds delay) {
  held_.sessions.push_back({std::chrono::steady_clock::now() + delay, wait, session});
  held_.first = std::min(held_.first, held_.sessions.back().until);
}

void IoLoop::ReleaseHeld(Time now) {
  if (now < held_.first) return;
  Time next = Time::max();
  std::erase_if(held_.sessions, [this, now, &next](const Held& held) {
    if (held.until > now) {
      next = std::min(next, held.until);
      return false;
    }
    const std::shared_ptr<Session> session = held.session.lock();
    if (session == nullptr || session->closed()) return true;
    session->Release(held.wait);
    Schedule(session.get());
    return true;
  });
  held_.first = next;
}

// --- The execution of a round --------------------------------------------------------------------

void IoLoop::ExecuteRound() {
  VARVE_ASSERT(round_.empty() && executed_.empty());
  round_.swap(scheduled_);
  for (Session* session : round_) session->scheduled = false;
  idle_policy_.Served<Session>(round_);
  for (Session* session : round_) session->ReadAndParse(drain_seen_);
  ExecuteBatches();
  remote_.EndRound();
  if (!executed_.empty() || unpushed_) PushRound();
  const SequenceNumber durable = server_->store->durable_sequence();
  for (Session* session : round_) {
    if (log_failed()) session->FailWaiting(durable, log_error_);
    session->Flush(durable);
    session->EndRound(drain_seen_);
  }
  round_.clear();
}

void IoLoop::ExecuteBatches() {
  const bool writers_wait = server_->store->pressure() > kFreePressure;
  for (Session* session : round_) {
    if (IsPlacedHere(session, writers_wait)) executed_.push_back(session);
  }
  helpers_.Share(&executed_);
  Execute(executed_);
  while (Session* const session = helpers_.TakeBack()) {
    executed_.push_back(session);
    Execute(absl::MakeSpan(&executed_.back(), 1));
  }
}

bool IoLoop::IsPlacedHere(Session* session, bool writers_wait) {
  // The arithmetic of a handshake takes longer than a round.
  if (session->ShakesHands()) {
    DispatchHandshake(session->shared_from_this());
    return false;
  }
  if (!session->ready()) return false;
  Placement placement = session->executor().Place(writers_wait);
  if (placement == Placement::kMaintenance) {
    if (Dispatch(session, placement)) return false;
    session->executor().RefuseMaintenance();  // too many such requests wait already
    placement = session->executor().Place(writers_wait);
  }
  if (placement == Placement::kInline) return true;
  if (server_->store_waits.remote()) [[unlikely]]
    return remote_.Execute(session);
  return !Dispatch(session, placement);
}

void IoLoop::DispatchHandshake(std::shared_ptr<Session> session) {
  while (session != nullptr) {
    if (!handshakes_.Take(session)) return session->AwaitTurn();
    if (Dispatch(session.get(), Placement::kPool)) return;
    session->AwaitTurn();
    Hold(std::move(session), Session::Wait::kHandshake, kBetweenHandshakes);
    session = NextHandshake();
  }
}

std::shared_ptr<Session> IoLoop::NextHandshake() {
  std::shared_ptr<Session> next = handshakes_.GiveBack();
  if (next != nullptr) next->Release(Session::Wait::kHandshake);
  return next;
}

bool IoLoop::Dispatch(Session* session, Placement placement) {
  session->Lend();
  ThreadPool::Task task = [owner = session->shared_from_this()] { owner->ExecuteOnWorker(); };
  const bool taken = placement == Placement::kMaintenance
                         ? pools_.maintenance->TrySubmit(std::move(task))
                         : pools_.pool->TrySubmit(std::move(task));
  if (taken) {
    server_->statistics.batches_pooled.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  session->TakeBack();
  return false;
}

void IoLoop::Execute(absl::Span<Session* const> sessions) {
  if (sessions.empty()) return;
  batches_.clear();
  for (Session* session : sessions) batches_.push_back(session->BeginHere());
  unpushed_ = executor_.Execute(batches_) || unpushed_;
  for (Session* session : sessions) session->OnExecuted();
  server_->statistics.batches_inline.fetch_add(sessions.size(), std::memory_order_relaxed);
}

void IoLoop::PushRound() {
  // Once for all batches of the round, and before any of their replies leaves: what they wrote, and
  // what they may have read of others' writes.
  const absl::Status pushed = log_failed() ? absl::OkStatus() : server_->store->PushUnsynced();
  if (!pushed.ok()) {
    const std::string error = CommandContext::ErrorText(pushed);
    for (Session* session : executed_) session->FailRound(error);
  }
  executed_.clear();
  // The replies to what is synced wait for it: where that fails, they become errors, of whatever
  // round they are.
  if (unpushed_ &&
      (server_->groups_gather || !idle_policy_.KeepsWrites(std::chrono::steady_clock::now()))) {
    PushKept();
  }
}

void IoLoop::PushKept() {
  idle_policy_.Pushed();
  if (std::exchange(unpushed_, false) && !server_->store->Push().ok()) OnDurabilityChanged();
}

// --- When there is nothing to do -----------------------------------------------------------------

void IoLoop::Rest() {
  if (SyncHere() || PollSockets()) return;
  VARVE_ASSERT(scheduled_.empty() && !unpushed_);
  const int timeout = inbox_.woken() ? 0 : SleepTime();
  if (remote_.drives()) [[unlikely]] {
    remote_.Wait(timeout);
  } else {
    CollectEvents(timeout);
  }
}

bool IoLoop::SyncHere() {
  if (!unpushed_) return false;
  CollectEvents(0);
  if (!scheduled_.empty() || inbox_.woken()) return true;
  if (parked_.empty()) {  // nobody here waits for the disk
    PushKept();
    return false;
  }
  inbox_.SuppressWakes();  // what the sync changes is looked at anyway
  const auto begin = std::chrono::steady_clock::now();
  const bool synced = server_->store->TrySync();
  if (synced) idle_policy_.Synced(std::chrono::steady_clock::now() - begin);
  PushKept();  // what is left is for the log's threads
  return true;
}

bool IoLoop::PollSockets() {
  // Clients that wait for the log's threads are served better by a thread that sleeps meanwhile.
  if (!idle_policy_.serves_at_most_two() || !parked_.empty() || !idle_policy_.Polls()) return false;
  if (remote_.drives()) return false;  // answers come elsewhere
  return idle_policy_.Poll([this] {
    CollectEvents(0);
    return !scheduled_.empty() || inbox_.woken();
  });
}

int IoLoop::SleepTime() const {
  const Time until = std::min(next_visit_, held_.first);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - CoarseNow());
  return static_cast<int>(std::max<int64_t>(left.count(), 0));
}

// --- The sessions --------------------------------------------------------------------------------

void IoLoop::Remove(Session* session) {
  VARVE_ASSERT(session->closed());
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, session->socket().descriptor(), nullptr);
  if (std::exchange(session->scheduled, false)) std::erase(scheduled_, session);
  const auto found = sessions_.find(session);
  VARVE_ASSERT(found != sessions_.end());
  removed_.push_back(std::move(found->second));
  sessions_.erase(found);
}

void IoLoop::FreeRemoved() {
  std::erase_if(removed_, [this](const std::shared_ptr<Session>& session) {
    if (session->in_flight()) return false;
    // A full queue destroys the task, and so the session, here.
    if (session->LeavesSlowly())
      (void)pools_.pool->TrySubmit([session] { session->LeaveOnWorker(); });
    return true;
  });
}

void IoLoop::VisitSessions() {
  seconds_.fetch_add(1, std::memory_order_relaxed);
  times_.CameRound(CoarseNow());
  server_->clients.tracking.Tidy();
  // Where the pool is busy, the next second will do.
  if (server_->ingests.any())
    (void)pools_.pool->TrySubmit([server = server_] { server->ingests.EndIdle(CoarseNow()); });
  if (server_->backups.holds_files()) {
    (void)pools_.pool->TrySubmit(
        [server = server_] { server->backups.EndIdle(CoarseNow(), server->live.backup_ttl); });
  }
  if (server_->for_followers.copies.holds_files()) {
    (void)pools_.pool->TrySubmit([server = server_] {
      server->for_followers.copies.EndIdle(CoarseNow(), server->live.backup_ttl);
    });
  }
  server_->replication.followers.LeaveSilent(CoarseNow() - kSilentFollower);
  server_->for_followers.feeds.CloseIdle(CoarseNow() - kSilentFollower);
  remote_.NoteSlow();
  VARVE_ASSERT(round_.empty());
  for (auto& [session, owner] : sessions_) round_.push_back(session);
  for (Session* session : round_) session->Visit();  // may close, and so remove, the session
  round_.clear();
}

void IoLoop::CloseAll() {
  VARVE_ASSERT(round_.empty());
  for (auto& [session, owner] : sessions_) round_.push_back(session);
  for (Session* session : round_) session->Close();
  round_.clear();
  parked_.clear();
  for (const std::shared_ptr<Session>& session : removed_) RemoteRounds::Abandon(session.get());
  // Workers may still have some of these: the pools are stopped before the loop is destroyed.
  std::erase_if(removed_,
                [](const std::shared_ptr<Session>& session) { return !session->in_flight(); });
}

}  // namespace varve
