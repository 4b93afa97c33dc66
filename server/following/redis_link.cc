#include "server/following/redis_link.h"

#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "absl/time/time.h"
#include "client/backoff.h"
#include "fmt/format.h"
#include "server/following/command_stream.h"
#include "server/following/rdb_load.h"
#include "server/following/redis_session.h"
#include "spdlog/spdlog.h"
#include "util/base/assert.h"
#include "util/os/thread_setup.h"

namespace varve {
namespace {

// Each second it is said again, as CLIENT UNPAUSE ends it.
constexpr std::chrono::hours kExpiryHold{1};
constexpr std::chrono::milliseconds kFirstRedisPause{100}, kLongestRedisPause{5000};
// After the store refused a write, which a copy so soon would not change.
constexpr std::chrono::milliseconds kPauseOfStore{30000};

}  // namespace

RedisLink::RedisLink(ServerState* server, RedisPrimary primary, Tell tell)
    : server_(*server), primary_(std::move(primary)), tell_(std::move(tell)) {}

RedisLink::~RedisLink() { Stop(); }

absl::Status RedisLink::Start() {
  VARVE_ASSERT(!thread_.joinable() && !stop_);
  try {
    thread_ = std::thread([this] {
      NameThread("varve-redis");
      Run();
    });
  } catch (const std::system_error& failed) {
    return absl::ResourceExhaustedError(
        fmt::format("the system gives no thread for the link to Redis: {}", failed.what()));
  }
  return absl::OkStatus();
}

void RedisLink::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stop_ = true;
  }
  stopped_.SignalAll();
  if (thread_.joinable()) thread_.join();
}

RedisLinkStatus RedisLink::Status() const {
  RedisLinkStatus status = report_.Get();
  status.skipped = skipped_.counts();
  status.skipped_names = skipped_.names();
  return status;
}

void RedisLink::HoldExpiry() { server_.store->PauseExpiry(kExpiryHold); }

void RedisLink::Run() {
  if (const absl::Status removed = RdbLoad::RemoveLeftovers(server_.store); !removed.ok()) {
    spdlog::warn("What an earlier copy of Redis has left can't be removed now: {}",
                 std::string(removed.message()));
  }
  CommandStream stream(&server_, &skipped_, fmt::format("{}:{}", primary_.host, primary_.port));
  RedisPosition position;
  const RedisLinkParts parts = {.server = &server_,
                                .primary = &primary_,
                                .stream = &stream,
                                .position = &position,
                                .skipped = &skipped_,
                                .report = &report_,
                                .tell =
                                    [this] {
                                      HoldExpiry();
                                      if (tell_) tell_();
                                    },
                                .stop = &stop_};
  Backoff backoff(kFirstRedisPause, kLongestRedisPause);
  while (!stop_) {
    HoldExpiry();
    RedisSession session(parts);
    const absl::Status why = session.Run();
    // What this store has differs from what the primary had there.
    if (absl::IsAborted(why) || absl::IsDataLoss(why)) position = {};
    if (session.was_up()) backoff.Reset();
    Pause(NoteEnd(why, backoff.Next()));
  }
  server_.store->PauseExpiry(std::chrono::milliseconds(0));
}

std::chrono::milliseconds RedisLink::NoteEnd(const absl::Status& why,
                                             std::chrono::milliseconds pause) {
  const std::string error(why.message());
  bool is_new = false;
  report_.Update([&](RedisLinkStatus& status) {
    is_new = status.up || status.syncing || status.error != error;
    status.up = status.syncing = false;
    status.error = error;
  });
  if (tell_) tell_();
  if (absl::IsCancelled(why)) return std::chrono::milliseconds(0);
  if (absl::IsAborted(why)) pause = kPauseOfStore;
  if (is_new) {
    spdlog::warn("The link to Redis at {}:{} is down: {}; it is tried again{}", primary_.host,
                 primary_.port, error,
                 absl::IsAborted(why) ? " with another copy, in half a minute" : "");
  }
  return pause;
}

void RedisLink::Pause(std::chrono::milliseconds pause) {
  const SteadyTime until = SteadyNow() + pause;
  absl::MutexLock lock(&mutex_);
  while (!stop_ && SteadyNow() < until) stopped_.WaitWithDeadline(&mutex_, until);
}

}  // namespace varve
