// The client memory counts the memory of all connections together: incomplete and waiting requests,
// replies that clients have not taken, messages, and names that clients listen to. When it exceeds
// --maxmemory-clients, the server closes the connections that hold most. Connections that hold
// little, replies that the pool works on and empty buffers are not counted.
//
// Thread-safety: all functions may be called on any thread.
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
  // A connection that holds up to so many bytes is not counted.
  static constexpr size_t kNothing = 16u << 10;

  size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }
  void ResetStatistics() { evicted_.store(0, std::memory_order_relaxed); }

  // Notes that a connection that was counted with `before` bytes holds `now`.
  void Change(size_t before, size_t now) {
    bytes_.fetch_add(now - before, std::memory_order_relaxed);
  }

  // Returns a message that is counted once, however many mailboxes share it, until the last of them
  // drops it. Requires: the message does not outlive this object.
  Mailbox::Message Count(std::string text);

  // Asks connections to close, the largest first, until the memory is below `limit`. Connections
  // with CLIENT NO-EVICT come last, but are not exempt.
  void Evict(size_t limit, const ClientRegistry& registry) ABSL_LOCKS_EXCLUDED(evicting_);

 private:
  std::atomic<size_t> bytes_{0};
  std::atomic<uint64_t> evicted_{0};
  absl::Mutex evicting_;  // held by the thread that looks for the largest connections
};

}  // namespace varve
