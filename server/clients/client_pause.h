// The pause of all clients (CLIENT PAUSE): until it ends, requests that it holds up wait in their
// sessions, and no thread waits with them. As in Redis, a further pause makes one that is under way
// longer or stricter, never shorter or milder.
//
// A session that finds its next request held up says so in ClientLink::paused, compares word() with
// what it had seen, and goes on when somebody nudges it or the time is over. End() changes word()
// before it looks for sessions to nudge, so none is missed.
//
// Thread-safety: all functions may be called on any thread. word() and Any() cost one load.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/client_registry.h"

namespace varve {

struct ClientState;

class ClientPause {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Kind : uint8_t { kNone, kWrites, kAll };

  // Requires: the registry outlives this object.
  explicit ClientPause(const ClientRegistry* registry) : registry_(*registry) {}

  // Returns what is held up, with a number that each change gives another value.
  uint64_t word() const { return word_.load(); }
  // Returns whether there may be a pause.
  bool Any() const { return (word_.load(std::memory_order_relaxed) & kKindBits) != 0; }

  // Returns what is held up now; a pause whose time is over ends here.
  Kind Now() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how long the pause will last; zero when there is none.
  std::chrono::milliseconds Left() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A listener is told how long the pause lasts from now on, in the order of the changes.
  using Listener = absl::FunctionRef<void(std::chrono::milliseconds left)>;
  void Begin(Kind kind, std::chrono::milliseconds how_long, Listener listener)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Lets everybody go on.
  void End(Listener listener) ABSL_LOCKS_EXCLUDED(mutex_);

  // Notes in the client's link whether its next request waits.
  void NoteWaiting(ClientState* client, bool waits);
  size_t waiting() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kKindBits = 3;

  Kind NowLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Change(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ClientRegistry& registry_;
  std::atomic<uint64_t> word_{0};  // a number of changes, and the kind in its last bits
  std::atomic<size_t> waiting_{0};
  mutable absl::Mutex mutex_;
  Time until_ ABSL_GUARDED_BY(mutex_){};
};

}  // namespace varve
