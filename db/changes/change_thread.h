// The change thread does the work of the recorder of changes when somebody wakes it, and tells the
// listeners of the change feed that there may be more to read. It rests unless it is woken.
//
// Thread-safety: all functions may be called on any thread, but Start() and Stop(), which belong to
// one thread at a time.
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

  // Begins the thread unless it is there. It calls `work` each time it was woken.
  void Start(std::function<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_listened() const { return listened_.load(std::memory_order_relaxed); }
  // Wakes the thread if that is more than listeners were told of.
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
  // Held while listeners run, so that a removed one is not called any more.
  absl::Mutex listeners_mutex_;
  std::map<uint64_t, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  uint64_t next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
  std::atomic<bool> listened_{false};
  std::atomic<SequenceNumber> told_{kNoSequence};
};

}  // namespace varve
