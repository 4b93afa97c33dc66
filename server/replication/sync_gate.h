// The sync gate holds replies back until `sync-replicas` followers have the write on disk, too: it
// bounds what the store counts as durable (ReplicatedStore::BoundDurable()), and so a reply waits
// for followers in the same way as for the local disk.
//
// The bound never falls while the setting holds. What was acknowledged before somebody raised the
// setting counts as durable, wherever it is. A server that begins as a primary does not know what
// its followers have, and so nothing counts before they tell.
//
// Thread-safety: all functions may be called on any thread.
#pragma once

#include <cstddef>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/replication/follower_table.h"
#include "varve/replication.h"
#include "varve/types.h"

namespace varve {

class SyncGate {
 public:
  // Requires: both outlive the gate; the store may be null, and then there is no bound.
  SyncGate(ReplicatedStore* store, const FollowerTable* followers)
      : store_(store), followers_(*followers) {}

  // Replies wait for so many followers from now on; 0: for none. Where they waited for none before,
  // what is on this disk now counts as durable, or, if `begins`, nothing does.
  void SetReplicas(size_t count, bool begins) ABSL_LOCKS_EXCLUDED(mutex_);
  // Raises the bound to what the followers have. Returns whether that let anything go on.
  bool Update() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns whether a reply to the write of this version waits for followers.
  bool HoldsBack(SequenceNumber version) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  ReplicatedStore* const store_;
  const FollowerTable& followers_;
  mutable absl::Mutex mutex_;
  size_t count_ ABSL_GUARDED_BY(mutex_) = 0;
  SequenceNumber bound_ ABSL_GUARDED_BY(mutex_) = kMaxSequence;
};

}  // namespace varve
