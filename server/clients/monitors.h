// The monitors are the connections that see every command (MONITOR). While no connection monitors,
// a command pays one load.
//
// Thread-safety: all functions may be called on any thread.
// Requires: a mailbox is removed before it is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/mailbox.h"
#include "server/requests/request_batch.h"
#include "type/tree_key.h"

namespace varve {

class ClientMemory;

class Monitors {
 public:
  // Requires: `memory`, which counts the lines, outlives the mailboxes that hold them.
  explicit Monitors(ClientMemory* memory) : memory_(memory) {}

  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }

  void Add(Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);

  // Sends the monitors a line that says that the client at `address` executes this command in a
  // namespace. It shows passwords as "(redacted)".
  void Show(NamespaceId space, std::string_view address, const Command& command,
            Arguments arguments) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ClientMemory* const memory_;
  std::atomic<uint32_t> count_{0};
  absl::Mutex mutex_;
  absl::flat_hash_set<Mailbox*> mailboxes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
