// The lineage of a store names the histories that its versions come from. A promotion ends one
// history and begins another, so that two servers can tell up to which version they have the same.
//
// Thread-safety: plain values and stateless functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "varve/types.h"

namespace varve {

struct HistoryEnd {
  uint64_t id = 0;
  SequenceNumber end = kNoSequence;  // the last version of the history

  friend bool operator==(const HistoryEnd&, const HistoryEnd&) = default;
};

struct Lineage {
  std::vector<HistoryEnd> past;  // oldest first
  uint64_t current = 0;          // the id of the history that goes on
  SequenceNumber newest = kNoSequence;

  // Returns all of it, with the one that goes on, and no end behind that of a later history: what
  // lies behind such an end is of the later one.
  std::vector<HistoryEnd> Ends() const;
};

// Returns the last version up to which the two stores are the same; nothing if they have no history
// in common.
std::optional<SequenceNumber> CommonVersion(const Lineage& one, const Lineage& other);

// Returns the lineage after a promotion: `next` goes on behind the newest version.
Lineage Promoted(Lineage lineage, uint64_t next);

}  // namespace varve
