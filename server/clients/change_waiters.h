// The change waiters are the connections that have delivered all of the change feed and wait for
// the next commit. A commit wakes each of them once; one that falls behind waits for nothing, so it
// costs writers nothing.
//
// A connection that waits notes word() before it looks at the store, calls Wait(), and compares
// word() with what it noted. Wake() changes word() before it looks for connections, so that no
// commit is missed.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "server/clients/mailbox.h"

namespace varve {

struct ClientLink;

class ChangeWaiters {
 public:
  ChangeWaiters() = default;
  ChangeWaiters(const ChangeWaiters&) = delete;
  ChangeWaiters& operator=(const ChangeWaiters&) = delete;

  // Returns a number to which each Wake() gives another value.
  uint64_t word() const { return word_.load(); }

  // The next Wake() nudges the connection of the mailbox, once.
  // Requires: Leave() is called before the mailbox goes.
  void Wait(Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(Mailbox* mailbox) ABSL_LOCKS_EXCLUDED(mutex_);
  // More can be delivered than before.
  void Wake() ABSL_LOCKS_EXCLUDED(mutex_);

  // Note that a request waits for the disk, and that it is answered. It calls the first before it
  // looks at what is durable.
  void BeginDiskWait();
  void EndDiskWait() { disk_waits_.fetch_sub(1); }
  // More is durable than before: Wake(), if a request waits for that. Costs a fence otherwise.
  void WakeForDisk() ABSL_LOCKS_EXCLUDED(mutex_);

  // Note that a request of the connection waits, and that it is answered. In between it is blocked,
  // also while it looks at a commit that may not concern it.
  void BeginBlock(ClientLink* client);
  void EndBlock(ClientLink* client);
  // Ends the wait of a blocked request: it is answered as if its time were over or, `is_error`,
  // with an error. Returns whether there was one.
  bool Unblock(ClientLink* client, bool is_error);
  size_t blocked() const { return blocked_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> word_{0};
  std::atomic<size_t> waiting_{0};
  std::atomic<size_t> blocked_{0};
  std::atomic<size_t> disk_waits_{0};
  absl::Mutex mutex_;
  absl::flat_hash_set<Mailbox*> mailboxes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
