// The memory that all connections together hold in incomplete or waiting requests, replies that
// were not taken, messages, and names that they listen to. When it exceeds --maxmemory-clients, the
// connections that hold most are closed. A connection that holds little is not counted, so that it
// costs nothing. A reply is not counted while the pool works on it, and neither are buffers that
// are kept ready.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/client_registry.h"
#include "server/clients/mailbox.h"

namespace varve {

class ClientMemory {
 public:
  // Bytes up to which a connection counts as holding nothing.
  static constexpr size_t kNothing = 16u << 10;

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  void ResetStatistics() { evicted_.store(0, std::memory_order_relaxed); }

  // A connection that was counted with `before` bytes holds `now`.
  void Change(size_t before, size_t now) {
    bytes_.fetch_add(now - before, std::memory_order_relaxed);
  }

  // A message that is counted once, in however many mailboxes it lies, until it has left the last.
  // Must not outlive this.
  Mailbox::Message Count(std::string text);

  // Asks as many connections to close as it takes to come below `limit`, the largest first. Those
  // that CLIENT NO-EVICT spares come last: it is no way around the limit.
  void Evict(size_t limit, const ClientRegistry& registry) ABSL_LOCKS_EXCLUDED(evicting_);

 private:
  std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> evicted_{0};
  absl::Mutex evicting_;  // held by the one who looks for the largest
};

}  // namespace varve
