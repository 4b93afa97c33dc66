// The options of a move, as plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "client/client_options.h"

namespace varve {

struct MoveOptions {
  ClientOptions source;
  ClientOptions target;
  std::optional<std::string> space;  // a database's number or a namespace; nothing: all of them
  std::string into;    // the namespace of the target that takes `space`; empty: that of its name
  std::string prefix;  // of the keys that move
  // The groups of the target's namespaces by their names: "together" or a delimiter.
  std::map<std::string, std::string> groupings;
  std::string state;                        // a file; empty: an interrupted move begins anew
  uint64_t bytes_per_second = 0;            // 0: as fast as it goes
  uint64_t feed_bytes = uint64_t{1} << 30;  // that the source keeps for the move at most
  std::chrono::milliseconds report_every{10'000};
  bool until_caught_up = false;  // ends once nothing is behind
  bool finish = false;           // gives the move's place at the source up then
  bool verify = false;           // compares both sides then
  bool replace = false;          // what the target has there goes first
  bool skip_options = false;     // namespaces get what the target provides of their options
  bool skip_refused = false;     // a key that the target refuses is left out
};

// Returns whether the name is that of a database, a number.
inline bool IsDatabaseName(const std::string& space) {
  return !space.empty() && space.find_first_not_of("0123456789") == std::string::npos;
}

// Returns the name that a database or namespace of the source has at the target.
inline const std::string& TargetSpace(const MoveOptions& options, const std::string& space) {
  return options.into.empty() ? space : options.into;
}

}  // namespace varve
