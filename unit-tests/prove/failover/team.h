// A team is some callers that call the same server at the same time, until their connections are
// lost or the server says that it is no primary.
//
// Thread-safety: one thread at a time uses a team; the callers have threads of their own.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "unit-tests/prove/caller.h"

namespace varve::prove {

class Team {
 public:
  // The callers have the ids from `first_id` on. Requires: `seen` outlives the team.
  Team(size_t first_id, size_t callers, uint64_t seed, LastSeen* seen, CallerKind kind);
  ~Team() { Join().IgnoreError(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Requires: it does not call at present.
  [[nodiscard]] absl::Status Start(uint16_t port);
  // From the return on, whatever is called is a SET.
  void OnlySets();
  // Waits until all have lost their connections. Internal: an answer that must not be.
  [[nodiscard]] absl::Status Join();
  // Whatever was under way took effect before `death`, or never. Requires: it does not call.
  void Died(int64_t death);

  // How many writes were acknowledged to it.
  uint64_t acknowledged() const;
  const std::deque<Caller>& callers() const { return callers_; }

 private:
  std::deque<Caller> callers_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<absl::Status> ends_;
  std::vector<std::thread> threads_;
};

}  // namespace varve::prove
