// The change thread does the work of the change recorder each time it was woken, and then tells the
// listeners of the change feed that there may be more to read.
//
// Thread-safety: all functions may be called on any thread; Start() and Stop() by one thread at a
// time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "util/os/steady_condition.h"
#include "varve/types.h"

namespace varve {

class ChangeThread {
 public:
  ChangeThread() = default;
  ~ChangeThread() { Stop(); }
  ChangeThread(const ChangeThread&) = delete;
  ChangeThread& operator=(const ChangeThread&) = delete;

  // Starts the thread unless it runs. The thread calls `work` each time it was woken.
  void Start(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_listeners() const { return has_listeners_.load(std::memory_order_relaxed); }
  // Wakes the thread if the listeners were told of no version as new as `deliverable`.
  void WakeFor(SequenceNumber deliverable) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (told_.exchange(deliverable) < deliverable) Wake();
  }

  // These do what the functions of StoreChanges do that have their names.
  uint64_t AddListener(std::function<void()> listener) ABSL_LOCKS_EXCLUDED(listeners_mutex_);
  void RemoveListener(uint64_t token) ABSL_LOCKS_EXCLUDED(listeners_mutex_);

 private:
  void Loop(const std::function<void()>& work) ABSL_LOCKS_EXCLUDED(mutex_, listeners_mutex_);

  absl::Mutex mutex_;
  SteadyCondition wake_;
  bool woken_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
  // The thread holds it while listeners run, so that a removed one is not called any more.
  absl::Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
  std::atomic<bool> has_listeners_{false};
  std::atomic<SequenceNumber> told_{kNoSequence};
};

}  // namespace varve
