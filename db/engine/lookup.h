// One key on its way through the sources, newest first, until one of them knows it. For one thread.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "db/engine/engine.h"
#include "db/segment/segment.h"
#include "db/version/version.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "util/base/hash.h"

namespace varve {

struct Engine::Lookup {
  Lookup(NamespaceGeneration generation, std::string_view user_key)
      : key(generation, user_key), hash(HashKey(key.view())) {}

  // What of the run may hold the key; null: nothing.
  Segment* SegmentOf(size_t run, const std::vector<const Run*>& runs) const {
    return run < asked ? segments[run] : runs[run]->Find(key.view());
  }

  TreeKey key;
  uint64_t hash;
  bool found = false;  // a record, perhaps a tombstone
  bool gated = false;  // it came from a write that readers wait for
  RecordView record;
  SequenceNumber cut =
      // Where the generation that was asked for stands on another one, whose key this is now;.
      kNoSequence;
  SequenceNumber up_to = kMaxSequence;  // and as of when that is read
  static constexpr size_t kMostAsked = 16;
  // Of the first runs: what may hold the key (null: nothing),.
  std::array<Segment*, kMostAsked> segments;
  // And of how many runs it was looked up and its table asked for.
  size_t asked = 0;
  size_t first_run = 0;  // runs before it hold no record of the key
  SegmentProbe probe;    // has begun in that run, or not at all
  FoundRecord from_segment;
};

}  // namespace varve
