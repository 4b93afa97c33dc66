#include "server/following/failover.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "client/client.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/letter_case.h"
#include "util/base/status.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

// Longer than any failover: its end ends the pause.
constexpr std::chrono::hours kPause{24 * 365};
constexpr std::chrono::milliseconds kBetweenLooksAtFollowers{5};  // at the followers
constexpr std::chrono::milliseconds kBetweenTries{200};           // to reach the follower
constexpr std::chrono::milliseconds kFailoverPatience{5000};      // with one answer of it
constexpr std::chrono::milliseconds kBetweenFollows{1000};        // tries to follow it

bool IsAt(const Follower& follower, const PrimaryAddress& address) {
  return follower.port == address.port && EqualsIgnoreCase(follower.address, address.host);
}

// Sends the request that promotes a follower. `*sent`: it may have reached it; `*refused`: it
// answered, and does not do it.
absl::Status SendPromotion(const ClientOptions& connection, bool* sent, bool* refused) {
  *refused = false;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client, Client::Connect(connection));
  const std::string_view request[] = {"REPLICAOF", "NO", "ONE"};
  *sent = true;
  VARVE_RETURN_IF_ERROR(client->Send(request));
  VARVE_ASSIGN_OR_RETURN(const Reply reply, client->Receive());
  if (!reply.is_error()) return absl::OkStatus();
  *refused = true;
  return absl::FailedPreconditionError(reply.text);
}

}  // namespace

Failover::Failover(ServerState* server, ConnectionTo connection_to)
    : server_(*server),
      store_(ReplicationOf(server->store)),
      connection_to_(std::move(connection_to)) {}

Failover::~Failover() { Stop(); }

absl::Status Failover::Begin(const FailoverRequest& request) {
  absl::MutexLock lock(&mutex_);
  if (request.abort) {
    if (!running_) return absl::FailedPreconditionError("No failover in progress.");
    abort_ = true;
    changed_.SignalAll();
    return absl::OkStatus();
  }
  if (running_) return absl::FailedPreconditionError("FAILOVER already in progress.");
  if (stop_) return absl::FailedPreconditionError("the server stops");
  if (store_ == nullptr) return absl::UnimplementedError("this store can't be replicated");
  if (thread_.joinable()) thread_.join();  // it has ended, but for its last lines
  try {
    thread_ = std::thread([this, request] {
      NameThread("varve-failover");
      Run(request);
    });
    // The standard library's way to say that there are no more.
  } catch (const std::system_error& failed) {
    return absl::ResourceExhaustedError(
        fmt::format("the system gives no thread for the failover: {}", failed.what()));
  }
  abort_ = false;
  running_ = true;
  server_.replication.failover.store(FailoverPhase::kWaitsForSync);
  return absl::OkStatus();
}

void Failover::Stop() {
  std::thread thread;
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
    changed_.SignalAll();
    thread = std::move(thread_);
  }
  if (thread.joinable()) thread.join();
}

void Failover::HoldWrites() {
  server_.clients.pause.Begin(
      ClientPause::Kind::kWrites, kPause,
      [this](std::chrono::milliseconds left) { server_.store->PauseExpiry(left); });
}

void Failover::LetWritesGo() {
  server_.clients.pause.End(
      [this](std::chrono::milliseconds left) { server_.store->PauseExpiry(left); });
}

absl::Status Failover::Pause(std::chrono::milliseconds time, SteadyTime deadline) {
  const SteadyTime until = std::min(std::chrono::steady_clock::now() + time, deadline);
  absl::MutexLock lock(&mutex_);
  while (!stop_ && !abort_ && !changed_.WaitWithDeadline(&mutex_, until)) {
  }
  if (stop_) return absl::CancelledError("the server stops");
  if (abort_) return absl::CancelledError("FAILOVER ABORT");
  if (std::chrono::steady_clock::now() >= deadline)
    return absl::DeadlineExceededError("the time is over");
  return absl::OkStatus();
}

std::optional<PrimaryAddress> Failover::FindCaughtUp(const PrimaryAddress& target) const {
  const SequenceNumber newest = store_->Identity().newest;
  for (const Follower& follower : server_.replication.followers.List()) {
    const bool fits = target.named() ? IsAt(follower, target) : follower.port != 0;
    if (fits && follower.online && follower.durable >= newest)
      return PrimaryAddress{.host = follower.address, .port = follower.port};
  }
  return std::nullopt;
}

absl::StatusOr<PrimaryAddress> Failover::WaitForFollower(const FailoverRequest& request,
                                                         SteadyTime deadline) {
  HoldWrites();
  bool refuses = false;  // the store, all writes: those that had begun, too
  for (;;) {
    const std::optional<PrimaryAddress> caught_up = FindCaughtUp(request.target);
    if (caught_up && refuses) return *caught_up;
    if (caught_up) {
      store_->SetFollowing(true);
      refuses = true;
      continue;  // what was written last may have been too late for the follower
    }
    const absl::Status ended = Pause(kBetweenLooksAtFollowers, deadline);
    if (ended.ok()) continue;
    if (!absl::IsDeadlineExceeded(ended)) return ended;
    if (!request.force) return absl::DeadlineExceededError("no follower caught up in time");
    store_->SetFollowing(true);
    return request.target;
  }
}

absl::Status Failover::Promote(const PrimaryAddress& target, SteadyTime deadline) {
  ClientOptions connection = connection_to_(target);
  connection.name = "varve-failover";
  connection.connect_timeout = connection.timeout = kFailoverPatience;
  connection.reconnect_for = std::chrono::milliseconds(0);
  // Once the request may have reached it, only its answer tells which of the two is the primary:
  // neither the time nor ABORT ends the question.
  for (bool sent = false;;) {
    bool refused = false;
    const absl::Status promoted = SendPromotion(connection, &sent, &refused);
    if (promoted.ok() || refused) return promoted;
    spdlog::warn("Failover: {} can't be promoted yet: {}", PrimaryText(target),
                 promoted.ToString());
    const absl::Status ended = Pause(kBetweenTries, sent ? kEndOfTime : deadline);
    if (!ended.ok() && (!sent || stopped())) {
      return absl::UnavailableError(
          sent ? fmt::format(
                     "{}; {} may be a primary now, too: make one of the two follow the other",
                     promoted.ToString(), PrimaryText(target))
               : promoted.ToString());
    }
  }
}

bool Failover::stopped() {
  absl::MutexLock lock(&mutex_);
  return stop_;
}

void Failover::FollowPromoted(const PrimaryAddress& target) {
  for (;;) {
    const absl::Status follows = server_.calls.follow(target);
    if (follows.ok()) break;
    spdlog::error("Failover: {} is the primary now, and this server can't follow it yet: {}",
                  PrimaryText(target), follows.ToString());
    absl::MutexLock lock(&mutex_);
    if (stop_) return;
    changed_.WaitWithTimeout(&mutex_, absl::FromChrono(kBetweenFollows));
  }
  spdlog::info("Failover: {} is the primary now, and this server follows it", PrimaryText(target));
}

void Failover::Run(const FailoverRequest& request) {
  const SteadyTime deadline =
      request.timeout.count() > 0 ? std::chrono::steady_clock::now() + request.timeout : kEndOfTime;
  const absl::StatusOr<PrimaryAddress> target = WaitForFollower(request, deadline);
  absl::Status ended = target.status();
  if (ended.ok()) {
    server_.replication.failover.store(FailoverPhase::kInProgress);
    // With FORCE the time was for the wait.
    ended = Promote(*target, request.force ? kEndOfTime : deadline);
  }
  if (ended.ok()) {
    FollowPromoted(*target);
  } else {
    store_->SetFollowing(false);
    spdlog::warn("The failover has ended, this server stays the primary: {}", ended.ToString());
  }
  LetWritesGo();
  absl::MutexLock lock(&mutex_);
  running_ = false;
  server_.replication.failover.store(FailoverPhase::kNone);
}

}  // namespace varve
