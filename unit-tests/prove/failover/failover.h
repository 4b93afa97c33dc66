// Runs three servers, one of them the primary, cuts and stalls links, kills followers and primaries
// at random under load, and promotes a follower again and again by a script:
//
//   1. It kills the primary, or cuts it off from the others while clients go on writing to it.
//   2. It asks both other servers how far they have come, and says REPLICAOF NO ONE to the one that
//      has the most of the newest history.
//   3. It says REPLICAOF to the other follower, has clients go to the new primary, and has the old
//      primary follow once it is back.
//
// With `sync-replicas 1` nothing that was acknowledged is lost, a primary that is cut off
// acknowledges nothing, and what all clients saw is linearizable (linearizability/check.go takes
// the lines). Without, every write that was acknowledged is in the new primary or in the diverged
// file of the old one, and none is in both.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace varve::prove {

struct FailoverOptions {
  std::string server;     // the program
  std::string directory;  // exists, and is empty
  uint64_t seed = 1;
  uint64_t failovers = 10;
  std::chrono::seconds at_most{0};  // ends earlier when this is over; 0: doesn't
  bool sync_replicas = true;
  // Each write has a key of its own, and all that were acknowledged are looked for; else callers
  // share a few keys, and the history shows whether anything was lost. Requires: true, or
  // sync_replicas.
  bool own_keys = false;
  size_t callers = 4;
  size_t keys = 6;
};

struct FailoverFigures {
  uint64_t failovers = 0;  // promotions
  uint64_t kills = 0;      // of primaries and followers
  uint64_t cuts = 0;       // links that were cut or stalled
  uint64_t operations = 0;
  uint64_t reads = 0;
  uint64_t acknowledged = 0;                    // writes
  uint64_t diverged = 0;                        // acknowledged writes that only a diverged file has
  std::vector<std::chrono::milliseconds> gaps;  // from the last acknowledgment by an old primary to
                                                // the first one by the new one, ascending
  std::vector<std::string> complaints;
  std::vector<std::string> lines;  // the history
};

// Ends with the first failover in which something is wrong.
FailoverFigures RunFailovers(const FailoverOptions& options);

}  // namespace varve::prove
