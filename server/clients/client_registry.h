// The registry of all connections, which CLIENT LIST and KILL walk through. Connections register
// when they come and leave when they go; no request takes the lock.
//
// Thread-safety: All threads may use an object at once.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/synchronization/mutex.h"

namespace varve {

struct ClientState;

class ClientRegistry {
 public:
  void Add(uint64_t id, ClientState* client) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(uint64_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Calls `visit` for each, in the order of their numbers. They stay meanwhile. Of others only
  // ClientState::link and what is fixed may be looked at.
  void ForEach(const std::function<void(ClientState&)>& visit) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  absl::btree_map<uint64_t, ClientState*> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
