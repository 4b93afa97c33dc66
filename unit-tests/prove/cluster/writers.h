// Writers write ascending numbers to keys of their own, one after the other, and note how long they
// wait, while parts of the cluster below are dead. Afterwards they look for each write that was
// acknowledged. Values differ from those of all other groups of writers, so that what others wrote
// to the same keys counts as lost.
//
// Thread-safety: One thread uses the group of writers; each writer runs on a thread of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/client.h"
#include "unit-tests/testing/server_process.h"

namespace varve::testing {

using SteadyTime = std::chrono::steady_clock::time_point;

// What one writer did.
struct WriterFigures {
  uint64_t acknowledged = 0;
  uint64_t refused = 0;                           // answered by an error
  std::chrono::steady_clock::duration silence{};  // the longest time between two acknowledgements
  std::chrono::steady_clock::duration longest{};  // the slowest call, also a refused one
  std::string last_refusal;
};

class Writers {
 public:
  // Starts so many writers, half of them at each server if there are two.
  Writers(size_t count, const std::vector<const ServerProcess*>& servers);
  ~Writers();
  Writers(const Writers&) = delete;
  Writers& operator=(const Writers&) = delete;

  // The first bytes of a writer's keys, which sort as the writers' numbers do.
  static std::string KeyPrefix(size_t writer);

  // Keep the writers from beginning another write, and let them go on.
  void Pause();
  void Resume();
  // Waits until every writer had so many acknowledgements more.
  void WaitForEach(uint64_t acknowledged);
  // Forgets the figures, so that the time of what follows is measured.
  void Restart();
  // The figures since Restart(), also of a silence and of a call that go on.
  WriterFigures Figures(size_t writer);
  void Stop();
  // After Stop(): how many acknowledged writes a server does not have as they were written.
  uint64_t CountLost(const ServerProcess& server);

 private:
  struct Writer {
    absl::Mutex mutex;
    WriterFigures figures ABSL_GUARDED_BY(mutex);
    SteadyTime last ABSL_GUARDED_BY(mutex);
    std::optional<SteadyTime> call ABSL_GUARDED_BY(mutex);  // when the call under way began
    uint64_t total ABSL_GUARDED_BY(mutex) = 0;
    std::vector<uint64_t> written;  // of its thread; of the caller after Stop()
    std::unique_ptr<Client> client;
    std::thread thread;
  };

  void Run(size_t number, Writer* writer);
  // Waits while the writers are paused, and returns whether another write is to begin.
  bool MayWrite();
  std::string ValueOf(uint64_t number) const;

  const std::string tag_;  // in all values
  std::vector<std::unique_ptr<Writer>> writers_;
  absl::Mutex mutex_;
  bool paused_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
};

// Calls PING on a connection of its own, and notes the slowest reply.
class Pinger {
 public:
  explicit Pinger(const ServerProcess& server);
  ~Pinger();
  Pinger(const Pinger&) = delete;
  Pinger& operator=(const Pinger&) = delete;

  // Since the last call.
  std::chrono::steady_clock::duration TakeSlowest();

 private:
  std::unique_ptr<Client> client_;
  std::atomic<bool> stop_{false};
  std::atomic<std::chrono::steady_clock::duration> slowest_{};
  std::thread thread_;
};

}  // namespace varve::testing
