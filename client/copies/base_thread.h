// A thread that copies a base of a server to a target while the archiver goes on with changes.
//
// Thread-safety: One thread at a time uses an object.
#pragma once

#include <atomic>
#include <thread>

#include "absl/status/status.h"
#include "client/client_options.h"
#include "client/copies/archive_target.h"

namespace varve {

class BaseThread {
 public:
  // Requires: the target and the options outlive the object.
  BaseThread(const ClientOptions& connection, ArchiveTarget* target)
      : connection_(connection), target_(*target) {}
  ~BaseThread() { Cancel(); }
  BaseThread(const BaseThread&) = delete;
  BaseThread& operator=(const BaseThread&) = delete;

  // Begins to copy, with a connection of its own. Requires: it does not run.
  void Start();
  // Returns whether it was started, and nobody has seen yet what came of it.
  bool is_running() const { return thread_.joinable(); }
  bool is_done() const { return done_.load(std::memory_order_acquire); }
  // Waits for the end, and returns what came of it. Requires: it runs.
  absl::Status Finish();
  // Ends it, if it runs. What it has copied whole stays.
  void Cancel();

 private:
  absl::Status Copy();

  const ClientOptions& connection_;
  ArchiveTarget& target_;
  std::thread thread_;
  std::atomic<bool> done_{false};
  std::atomic<bool> cancelled_{false};
  absl::Status copied_;  // read once the thread was joined
};

}  // namespace varve
