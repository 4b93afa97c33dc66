// Runs a primary and its follower, kills either of them and cuts and stalls the link between them
// at random under load, and compares them all the time: whatever version the follower has come to,
// it holds what the primary held AT that version. No restart has the follower take another copy.
//
// Clients write to the primary and read from the follower, after READAFTER of the newest version
// that any of them was acknowledged (CLIENT VERSION). What they see is linearizable.
//
// Thread-safety: one thread calls the function.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace varve::prove {

struct FollowerOptions {
  std::string server;     // the program
  std::string directory;  // exists, and is empty
  uint64_t seed = 1;
  uint64_t rounds = 10;             // each ends with a kill of the primary
  std::chrono::seconds at_most{0};  // ends earlier when this is over; 0: doesn't
  size_t callers = 6;
  size_t keys = 6;
};

struct FollowerFigures {
  uint64_t rounds = 0;
  uint64_t kills = 0;         // of primary and follower
  uint64_t cuts = 0;          // of the link; stalls, too
  uint64_t operations = 0;    // of clients
  uint64_t acknowledged = 0;  // writes
  uint64_t reads = 0;         // from the follower
  uint64_t compared = 0;      // keys at a version on both
  std::vector<std::string> complaints;
  std::vector<std::string> lines;  // the history
};

// Ends with the first round in which something is wrong.
FollowerFigures RunFollower(const FollowerOptions& options);

}  // namespace varve::prove
