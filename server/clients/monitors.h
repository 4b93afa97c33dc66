// The connections that see every command (MONITOR), and the line they see. While no connection
// monitors, a command pays one load. A mailbox may be destroyed once it was removed.
//
// Thread-safety: All threads may use an object at once.
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
  // Lines are counted there; it outlives their last reader.
  explicit Monitors(ClientMemory* memory) : memory_(memory) {}

  bool any() const { return count_.load(std::memory_order_relaxed) > 0; }

  void Add(Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);

  // Shows that the client at `address` had this executed in a namespace. Passwords are shown as
  // "(redacted)".
  void Show(NamespaceId space, std::string_view address, const Command& command,
            Arguments arguments) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ClientMemory* const memory_;
  std::atomic<uint32_t> count_{0};
  absl::Mutex mutex_;
  absl::flat_hash_set<Mailbox*> mailboxes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
