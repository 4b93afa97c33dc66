#include "server/net/io_loop.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "spdlog/spdlog.h"
#include "varve/namespace_status.h"

namespace varve {

IoLoop::IoLoop(ServerState* server, ThreadPool* pool, ThreadPool* maintenance)
    : server_(server),
      pool_(pool),
      maintenance_(maintenance),
      guard_(asio::make_work_guard(io_)),
      poller_(io_, ::epoll_create1(EPOLL_CLOEXEC)),
      scratch_(kScratchBytes),
      sync_policy_(/*is_alone=*/server->options.io_threads == 1) {}

void IoLoop::Run() {
  VisitSessions();
  int rounds_since_visit = 0;
  while (!aborted_.load(std::memory_order_relaxed)) {
    Round();
    if (drain_seen_ && sessions_.empty()) {
      io_.poll();  // connections that were accepted but not yet adopted
      if (sessions_.empty()) break;
    }
    if (++rounds_since_visit == kRoundsBetweenVisits) {
      rounds_since_visit = 0;
      io_.poll();
    } else if (scheduled_.empty() && !SyncHere() && !Linger()) {
      rounds_since_visit = 0;
      Sleep();
    }
  }
  PushLeft();
  CloseAll();
}

void IoLoop::PushLeft() {
  sync_policy_.Pushed();
  if (std::exchange(unpushed_, false) && !server_->store->Push().ok()) OnDurabilityChanged();
}

bool IoLoop::SyncHere() {
  if (!unpushed_) return false;
  CollectEvents();
  if (!scheduled_.empty() || woken_.load(std::memory_order_relaxed)) return true;
  if (parked_.empty()) {  // nobody here waits for the disk
    PushLeft();
    return false;
  }
  woken_.store(true);  // what the sync changes is looked at anyway
  const auto begin = std::chrono::steady_clock::now();
  syncing_.store(true, std::memory_order_relaxed);
  const bool synced = server_->store->TrySync();
  syncing_.store(false, std::memory_order_relaxed);
  if (synced) {
    sync_policy_.Synced(std::chrono::steady_clock::now() - begin);
    io_.poll();  // as the thread may not come to sleep there for long
  }
  PushLeft();  // what is left is for the log's threads
  return true;
}

bool IoLoop::Linger() {
  // More clients are served better by a thread that slept: while it polls, others can't run. So are
  // those that wait for the log's threads.
  if (!recent_clients_.at_most_two() || !parked_.empty() || !busy_poll_.IsWorthIt()) return false;
  return busy_poll_.Poll([this] {
    CollectEvents();
    return !scheduled_.empty() || woken_.load(std::memory_order_relaxed);
  });
}

void IoLoop::Sleep() {
  // Arming looks at the sockets again, so nothing that became ready since the last round is missed.
  if (!poller_armed_) {
    poller_armed_ = true;
    poller_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        WithMemory(&wait_memory_, [this](const asio::error_code&) { poller_armed_ = false; }));
  }
  io_.run_one();
}

void IoLoop::Wake() {
  if (!woken_.exchange(true)) asio::post(io_, WithMemory(&wake_memory_, [] {}));
}

void IoLoop::Round() {
  woken_.store(false);  // before looking at what others left: whoever comes later wakes again
  CollectEvents();
  CollectCompleted();
  if (draining_.load(std::memory_order_relaxed) && !drain_seen_) {
    drain_seen_ = true;
    for (auto& [session, owner] : sessions_) Schedule(session);
  }
  if (durability_changed_.exchange(false)) ReleaseParked();
  if (!scheduled_.empty()) ExecuteRound();
  FreeRemoved();
}

void IoLoop::ExecuteRound() {
  round_.swap(scheduled_);
  for (Session* session : round_) session->scheduled = false;
  recent_clients_.Served(round_);
  for (Session* session : round_) session->ReadAndParse(drain_seen_);

  const bool writers_wait = server_->store->pressure() > kFreePressure;
  if (round_.size() > 1) {
    ShareReads(writers_wait);
    ReadTogether(writers_wait);
    WriteTogether(writers_wait);
  }
  for (Session* session : round_) {
    if (session->Execute(writers_wait, &unpushed_)) executed_.push_back(session);
  }
  ExecuteShared(writers_wait);
  if (!executed_.empty() || unpushed_) PushRound();
  const SequenceNumber durable = server_->store->durable_sequence();
  for (Session* session : round_) {
    if (log_failed_) session->FailParked(durable, log_error_);
    session->Flush(durable);
    session->Settle(drain_seen_);
  }
  round_.clear();
}

void IoLoop::ShareReads(bool writers_wait) {
  if (server_->options.execution != Execution::kAdaptive) return;
  int64_t worth = 0;
  for (const Session* session : round_) worth += session->WorthSharing(writers_wait);
  const size_t wanted = std::min(WantedHelpers(worth), pool_->threads());
  if (wanted == 0) return;
  for (Session* session : round_) {
    if (session->WorthSharing(writers_wait) == 0) continue;
    if (!shared_.Add(session)) break;
    session->Lend();
  }
  lent_ = shared_.added();
  shared_.Open();
  while (helpers_.load(std::memory_order_relaxed) < wanted) {
    helpers_.fetch_add(1, std::memory_order_relaxed);
    if (pool_->TrySubmit([this] { Help(); })) continue;
    helpers_.fetch_sub(1, std::memory_order_relaxed);
    break;
  }
}

void IoLoop::Help() {
  while (Session* const session = shared_.TakeLast()) session->ExecuteOnWorker();
  helpers_.fetch_sub(1, std::memory_order_relaxed);
}

void IoLoop::ExecuteShared(bool writers_wait) {
  for (; Session* const session = shared_.TakeFirst(); --lent_) {
    session->TakeBack();
    if (session->Execute(writers_wait, &unpushed_)) executed_.push_back(session);
  }
  if (lent_ > 0)
    server_->statistics.batches_pooled.fetch_add(std::exchange(lent_, 0),
                                                 std::memory_order_relaxed);
}

void IoLoop::PushRound() {
  // Once for all batches of the round, and before any of their replies leaves: what they wrote, and
  // what they may have read of others' writes.
  const absl::Status pushed = log_failed_ ? absl::OkStatus() : server_->store->PushUnsynced();
  if (!pushed.ok()) {
    const std::string error = CommandContext::ErrorText(pushed);
    for (Session* session : executed_) session->FailRound(error);
  }
  executed_.clear();
  // What is synced has gates before its replies: where that fails, they become errors, of whatever
  // round they are.
  if (unpushed_ && (server_->groups_gather ||
                    !sync_policy_.Keep(recent_clients_.one(), std::chrono::steady_clock::now()))) {
    PushLeft();
  }
}

void IoLoop::ReadTogether(bool writers_wait) {
  if (rounds_apart_ > 0) {
    --rounds_apart_;
    return;
  }
  const bool inline_only = server_->options.execution == Execution::kInline;
  ReadOptions reads = GatedReads(kDefaultNamespace, inline_only ? SIZE_MAX : kInlineInputBytes);
  for (size_t next = 0; next < round_.size();) {
    joined_.clear();
    keys_.clear();
    reads.space = kSelectedNamespace;  // that of the first; who uses another one reads apart
    for (; next < round_.size() && keys_.size() < kKeysTogether; ++next) {
      if (round_[next]->AddGets(&keys_, &reads.space, writers_wait))
        joined_.push_back(round_[next]);
    }
    if (joined_.empty()) return;
    results_.resize(std::max(results_.size(), keys_.size()));
    absl::Span<MultiGetResult> results = absl::MakeSpan(results_).first(keys_.size());
    const auto begin = std::chrono::steady_clock::now();
    const absl::Status status = server_->store->MultiGet(reads, keys_, results);
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
    if (++joint_reads_ % kMeasureEvery == 0) {
      server_->read_cost.Measured(taken.count(), static_cast<int64_t>(keys_.size()));
    }
    const auto nanos_each = static_cast<uint64_t>(taken.count()) / keys_.size();
    for (const MultiGetResult& result : results) {
      if (result.value.size() > kLargeValue) rounds_apart_ = kRoundsApart;
    }
    for (Session* session : joined_) {
      if (session->AnswerGets(status, &results, nanos_each)) executed_.push_back(session);
    }
  }
}

void IoLoop::WriteTogether(bool writers_wait) {
  for (size_t next = 0; next < round_.size();) {
    joined_.clear();
    writes_.Clear();
    for (; next < round_.size() && writes_.size() < kWritesTogether; ++next) {
      if (round_[next]->AddSets(&writes_, writers_wait)) joined_.push_back(round_[next]);
    }
    if (joined_.empty()) return;
    const size_t writes = writes_.size();
    const auto begin = std::chrono::steady_clock::now();
    WriteOptions options;
    options.waits_for_exclusive_write = server_->options.execution == Execution::kInline;
    const absl::StatusOr<CommitResult> committed = server_->store->Submit(options, &writes_);
    const std::chrono::nanoseconds taken = std::chrono::steady_clock::now() - begin;
    const auto nanos_each = static_cast<uint64_t>(taken.count()) / writes;
    // Executed apart, in the same round.
    if (ConcernsOneNamespace(committed.status()) || absl::IsCancelled(committed.status())) continue;
    for (Session* session : joined_) {
      session->AnswerSets(committed, nanos_each);
      executed_.push_back(session);
    }
    unpushed_ = unpushed_ || committed.ok();
  }
}

void IoLoop::CollectEvents() {
  epoll_event events[kEventsPerRound];
  const int count = ::epoll_wait(poller_.native_handle(), events, kEventsPerRound, 0);
  for (int i = 0; i < count; ++i) {
    Session* const session = static_cast<Session*>(events[i].data.ptr);
    session->NoteEvents(events[i].events);
    Schedule(session);
  }
}

void IoLoop::CollectCompleted() {
  {
    absl::MutexLock lock(&completed_mutex_);
    if (completed_.empty() && mailed_.empty()) return;
    completed_scratch_.swap(completed_);
    mailed_scratch_.swap(mailed_);
  }
  for (const std::shared_ptr<Session>& session : completed_scratch_) session->OnCompleted();
  completed_scratch_.clear();
  for (const std::shared_ptr<Session>& session : mailed_scratch_) session->OnMail();
  mailed_scratch_.clear();
}

void IoLoop::NoteMail(std::shared_ptr<Session> session) {
  {
    absl::MutexLock lock(&completed_mutex_);
    mailed_.push_back(std::move(session));
  }
  Wake();
}

void IoLoop::Complete(std::shared_ptr<Session> session) {
  {
    absl::MutexLock lock(&completed_mutex_);
    completed_.push_back(std::move(session));
  }
  Wake();
}

void IoLoop::OnDurabilityChanged() {
  durability_changed_.store(true);
  Wake();
}

void IoLoop::ReleaseParked() {
  const absl::Status log = server_->store->log_status();
  const SequenceNumber durable = server_->store->durable_sequence();
  if (!log.ok() && !log_failed_) {
    log_failed_ = true;
    log_error_ = CommandContext::ErrorText(log);
    spdlog::error("The log failed, writes are refused from now on: {}", log.ToString());
  }
  auto first_waiting = parked_.begin();
  for (; first_waiting != parked_.end() && (first_waiting->durable_after <= durable || log_failed_);
       ++first_waiting) {
    Session* const session = first_waiting->session.get();
    session->parked = false;
    if (!session->closed()) Schedule(session);
  }
  parked_.erase(parked_.begin(), first_waiting);
  if (log_failed_) return;  // then replies above what is durable become errors first
  // At once, not behind what else this round serves: the clients can go on meanwhile.
  round_ = scheduled_;  // of which those go that turn out to be closed
  for (Session* session : round_) session->Flush(durable);
  round_.clear();
}

void IoLoop::Park(std::shared_ptr<Session> session, SequenceNumber durable_after) {
  session->parked = true;
  auto place = parked_.end();
  // Nearly always the end.
  while (place != parked_.begin() && std::prev(place)->durable_after > durable_after) --place;
  parked_.insert(place, Parked{durable_after, std::move(session)});
}

void IoLoop::Hold(std::shared_ptr<Session> session, std::chrono::milliseconds delay) {
  auto timer = std::make_shared<asio::steady_timer>(io_, delay);
  asio::steady_timer* const waiting = timer.get();
  waiting->async_wait([this, timer = std::move(timer),
                       held = std::weak_ptr<Session>(session)](const asio::error_code&) {
    const std::shared_ptr<Session> released = held.lock();
    if (released == nullptr || released->closed()) return;
    released->Release();
    Schedule(released.get());
  });
}

bool IoLoop::Dispatch(std::shared_ptr<Session> session, Placement placement) {
  ThreadPool* const pool = placement == Placement::kMaintenance ? maintenance_ : pool_;
  return pool->TrySubmit([session = std::move(session)] { session->ExecuteOnWorker(); });
}

void IoLoop::Schedule(Session* session) {
  if (session->scheduled || session->closed()) return;
  session->scheduled = true;
  scheduled_.push_back(session);
}

void IoLoop::Adopt(int descriptor, std::string address, std::string local_address) {
  asio::post(io_, [this, descriptor, address = std::move(address),
                   local = std::move(local_address)]() mutable {
    auto session =
        std::make_shared<Session>(this, server_, descriptor, std::move(address), std::move(local));
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.ptr = session.get();
    if (::epoll_ctl(poller_.native_handle(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
      spdlog::warn("A connection could not be watched: {}", std::strerror(errno));
      return;
    }
    Session* const key = session.get();
    sessions_.emplace(key, std::move(session));
    Schedule(key);
  });
}

void IoLoop::Remove(Session* session) {
  ::epoll_ctl(poller_.native_handle(), EPOLL_CTL_DEL, session->descriptor(), nullptr);
  if (session->scheduled)
    scheduled_.erase(std::find(scheduled_.begin(), scheduled_.end(), session));
  const auto found = sessions_.find(session);
  removed_.push_back(std::move(found->second));
  sessions_.erase(found);
}

void IoLoop::FreeRemoved() {
  std::erase_if(removed_, [this](const std::shared_ptr<Session>& session) {
    if (session->in_flight()) return false;
    // A full queue destroys the task, and so the session, here.
    if (session->LeavesSlowly()) (void)pool_->TrySubmit([session] { session->LeaveOnWorker(); });
    return true;
  });
}

void IoLoop::BeginDrain() {
  draining_.store(true);
  Wake();
}

void IoLoop::Abort() {
  aborted_.store(true);
  Wake();
}

void IoLoop::VisitSessions() {
  visit_timer_.expires_after(std::chrono::seconds(1));
  visit_timer_.async_wait(WithMemory(&visit_memory_, [this](const asio::error_code& stopped) {
    if (stopped) return;
    seconds_.fetch_add(1, std::memory_order_relaxed);
    VisitSessions();
  }));
  visited_.clear();  // a visit may close, and so remove, the session
  for (auto& [session, owner] : sessions_) visited_.push_back(session);
  for (Session* session : visited_) session->Visit();
  FreeRemoved();
}

void IoLoop::CloseAll() {
  visited_.clear();
  for (auto& [session, owner] : sessions_) visited_.push_back(session);
  for (Session* session : visited_) session->Close();
  parked_.clear();
  // Workers may still have some of these: the pools are stopped before the loop is destroyed.
  std::erase_if(removed_,
                [](const std::shared_ptr<Session>& session) { return !session->in_flight(); });
}

}  // namespace varve
