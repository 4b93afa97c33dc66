// A Redis link makes this server the follower of a Redis or Valkey: a thread of its own takes a
// copy of its strings, executes the commands that it sends from then on, and connects anew for as
// long as it runs. After a lost connection it goes on where it was, as long as the Redis has the
// bytes since then in its backlog; else it takes another copy. The position is kept in memory, so a
// restart of this server takes a copy, too.
//
// Thread-safety: Status() may be called on any thread; one thread at a time calls the others.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "server/execution/server_state.h"
#include "server/following/redis_primary.h"
#include "server/following/redis_report.h"
#include "server/following/skipped_keys.h"
#include "util/os/steady_condition.h"

namespace varve {

class RedisLink {
 public:
  // Called on the link's thread each second, and whenever the link comes up or goes down or a copy
  // begins. It must be short and must not call the link, other than Status(). May be empty.
  using Tell = std::function<void()>;

  // Requires: `server` outlives the link, and its store is written by nobody else meanwhile.
  RedisLink(ServerState* server, RedisPrimary primary, Tell tell = {});
  ~RedisLink();
  RedisLink(const RedisLink&) = delete;
  RedisLink& operator=(const RedisLink&) = delete;

  // ResourceExhausted: the system gives no thread. Requires: it was not called before.
  [[nodiscard]] absl::Status Start();
  // Ends the link and returns once its thread has ended; what has been executed stays. A connection
  // that is being made may take three seconds.
  void Stop();

  RedisLinkStatus Status() const;

 private:
  void Run();
  // Has the store remove nothing by itself for a while: the primary says when a key is gone.
  void HoldExpiry();
  // Notes why a connection ended. Returns how long the next one waits.
  std::chrono::milliseconds NoteEnd(const absl::Status& why, std::chrono::milliseconds pause);
  void Pause(std::chrono::milliseconds pause) ABSL_LOCKS_EXCLUDED(mutex_);

  ServerState& server_;
  const RedisPrimary primary_;
  const Tell tell_;
  SkippedKeys skipped_;
  RedisReport report_;
  std::atomic<bool> stop_{false};
  absl::Mutex mutex_;
  SteadyCondition stopped_;  // stop_ is set
  std::thread thread_;
};

}  // namespace varve
