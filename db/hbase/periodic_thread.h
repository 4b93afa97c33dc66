// A thread that does the same work again and again, with a pause in between, until it is stopped.
//
// Thread-safety: Any thread may stop it.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "util/os/steady_condition.h"
#include "util/os/thread_setup.h"

namespace varve {

class PeriodicThread {
 public:
  // The first time is after the first pause.
  PeriodicThread(const std::string& name, std::chrono::milliseconds pause,
                 std::function<void()> work)
      : pause_(pause), work_(std::move(work)), thread_([this, name] {
          NameThread(name);
          Run();
        }) {}
  ~PeriodicThread() {
    Stop();
    thread_.join();
  }
  PeriodicThread(const PeriodicThread&) = delete;
  PeriodicThread& operator=(const PeriodicThread&) = delete;

  // Ends the pause; the work is not begun any more.
  void Stop() {
    const absl::MutexLock lock(&mutex_);
    stops_ = true;
    condition_.SignalAll();
  }
  // Tells the work that it should end soon.
  bool stops() const {
    const absl::MutexLock lock(&mutex_);
    return stops_;
  }

 private:
  void Run() {
    for (;;) {
      {
        const absl::MutexLock lock(&mutex_);
        const SteadyTime end = SteadyNow() + absl::FromChrono(pause_);
        while (!stops_ && !condition_.WaitWithDeadline(&mutex_, end)) {
        }
        if (stops_) return;
      }
      work_();
    }
  }

  const std::chrono::milliseconds pause_;
  const std::function<void()> work_;
  mutable absl::Mutex mutex_;
  SteadyCondition condition_;
  bool stops_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace varve
