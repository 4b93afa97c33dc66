// The client registry holds all open connections, for CLIENT LIST and CLIENT KILL. Only these
// commands and connections that open or close take its lock.
//
// Thread-safety: all functions may be called on any thread.
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

  // Calls `visit` for each connection, ascending by id. No connection leaves meanwhile. `visit` may
  // only use ClientState::link and the fields that never change, except for the connection that its
  // thread executes for.
  void ForEach(const std::function<void(ClientState&)>& visit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Does the same for one connection; returns false if there is none of that id.
  bool Visit(uint64_t id, const std::function<void(ClientState&)>& visit) const
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  absl::btree_map<uint64_t, ClientState*> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace varve
