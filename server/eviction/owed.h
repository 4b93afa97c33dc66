// The evictor owes evictions that its thread makes in time left over: the data is above a bound,
// writers will want room, or the disk is short of room.
//
// The evictions for a bound are taken back when the bound or the rule changes, and kept to what a
// count of the data shows, as clients may have made room themselves.
//
// Thread-safety: one thread at a time uses an object.
#pragma once

#include <algorithm>
#include <cstdint>

#include "varve/namespace.h"

namespace varve {

struct Owed {
  struct Amount {
    uint64_t bytes = 0;  // of keys and values
    uint64_t keys = 0;
  };

  Amount for_bound;
  uint64_t for_disk = 0;  // bytes; what is evicted for the bound relieves the disk, too

  bool any() const { return for_bound.bytes > 0 || for_bound.keys > 0 || for_disk > 0; }
  uint64_t bytes() const { return std::max(for_bound.bytes, for_disk); }
  // Returns whether more is owed for the bound than `amount`, of bytes or of keys.
  bool IsAbove(const Amount& amount) const {
    return for_bound.bytes > amount.bytes || for_bound.keys > amount.keys;
  }

  void RaiseTo(const Amount& least) {
    for_bound.bytes = std::max(for_bound.bytes, least.bytes);
    for_bound.keys = std::max(for_bound.keys, least.keys);
  }
  // Requires: `least` is not above `most`.
  void KeepWithin(const Amount& least, const Amount& most) {
    for_bound.bytes = std::clamp(for_bound.bytes, least.bytes, most.bytes);
    for_bound.keys = std::clamp(for_bound.keys, least.keys, most.keys);
  }
  // Notes that so much was evicted.
  void Pay(const Amount& evicted) {
    for_bound.bytes -= std::min(for_bound.bytes, evicted.bytes);
    for_bound.keys -= std::min(for_bound.keys, evicted.keys);
    for_disk -= std::min(for_disk, evicted.bytes);
  }
};

// The databases owe evictions together, which were found by this rule and this bound.
struct DatabasesOwed {
  Owed owed;
  EvictionRule rule;
  uint64_t limit = 0;
  // Up to where the use of the disk has been answered by evictions, which show there only once
  // merges have removed the data; 0: they have not begun.
  uint64_t relieved_disk = 0;
  uint64_t most_on_disk = 0;  // the lowest use of the disk at which evictions have begun since then

  // Notes that evictions for the disk begin at this use. A bound that was lowered asks for more.
  void NoteMostOnDisk(uint64_t most) {
    if (relieved_disk != 0 && most < most_on_disk)
      relieved_disk -= std::min(relieved_disk - 1, most_on_disk - most);
    most_on_disk = relieved_disk == 0 ? most : std::min(most, most_on_disk);
  }
  // Takes back what another rule or another bound has asked for. Either leaves the disk as short of
  // room as it is, and what was evicted for it evicted. Where no rule was in force, the evictions
  // for the disk begin.
  void KeepUnder(EvictionRule new_rule, uint64_t new_limit) {
    if (new_rule != rule) {
      owed.for_bound = {};
      if (!new_rule.on()) owed.for_disk = 0;
      if (!rule.on()) relieved_disk = 0;
    }
    if (new_limit != limit) owed.for_bound = {};
    rule = new_rule;
    limit = new_limit;
  }
};

}  // namespace varve
