// The state of a move says how far it has come. It is a small text file, so that a move that was
// killed goes on; names, keys and bounds stand in it in hexadecimal.
//
//   varve-move 1
//   route 3132372e...      from where to where, and what of it
//   feed varve-move-0123456789abcdef
//   history 42
//   position 4711          everything up to this version is at the target; 0: nothing was begun
//   keys 1000              copied so far
//   open 1                 1: requests of a process that was killed may still be under way
//   space 7573657273       a namespace whose keys at the target are the move's
//   copy 7573657273 2d 2b  what is still to be copied: namespace, lower bound, upper bound
//   end
//
// Thread-safety: One thread at a time uses an object.
// Invariants: What is read is a state that was saved whole.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/move/key_bounds.h"
#include "varve/types.h"

namespace varve {

// A pending copy is what is to be copied of a namespace, from the first of its bounds on.
struct PendingCopy {
  std::string space;  // of the source
  KeyBounds bounds;
};

struct MoveState {
  std::string route;
  std::string feed;  // the name of the move's place at the source
  uint64_t history_id = 0;
  SequenceNumber position = kNoSequence;
  uint64_t keys = 0;
  bool is_open = true;             // a process that is at work may have requests under way
  std::set<std::string> spaces;    // of the source, whose keys at the target are the move's
  std::deque<PendingCopy> copies;  // the first one is under way

  // NotFound: there is none; DataLoss: it can't be read.
  [[nodiscard]] static absl::StatusOr<MoveState> Load(const std::string& path);
  // The old one or the new one is there whatever happens.
  [[nodiscard]] absl::Status Save(const std::string& path) const;
};

}  // namespace varve
