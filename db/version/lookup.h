// A lookup is the search for one key in a super version. The functions here are its steps: they
// search the write buffers, the segments and the parents of a clone, newest first, until one of
// them has a record of the key.
//
// Thread-safety: a Lookup belongs to one thread. The functions have no state of their own and may
// run on any thread, as long as the super version is held in place.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "db/segment/segment.h"
#include "db/version/super_version.h"
#include "type/record.h"
#include "type/tree_key.h"
#include "util/base/hash.h"

namespace varve {

struct Lookup {
  Lookup(NamespaceGeneration generation, std::string_view user_key)
      : key(generation, user_key), hash(HashKey(key.view())) {}

  // Returns the segment of the run that may hold the key; null if there is none.
  Segment* SegmentOf(size_t run, const std::vector<const Run*>& runs) const {
    return run < asked ? segments[run] : runs[run]->Find(key.view());
  }

  TreeKey key;
  uint64_t hash;
  bool found = false;         // a record, perhaps a tombstone
  bool readers_wait = false;  // readers wait until the record is durable
  RecordView record;
  // The fork point of the clone, once the lookup has gone on to a parent; `key` is then the key in
  // that parent. kNoSequence before that.
  SequenceNumber fork_point = kNoSequence;
  SequenceNumber up_to = kMaxSequence;  // the sequence as of which that parent is read
  static constexpr size_t kMostAsked = 16;
  // For each of the first `asked` runs, the segment that may hold the key (null: none).
  // PrefetchTables() has prefetched their offset tables.
  std::array<Segment*, kMostAsked> segments;
  size_t asked = 0;
  size_t first_run = 0;  // runs before it hold no record of the key
  SegmentProbe probe;    // if it has begun, it is in run `first_run`
  FoundRecord from_segment;
};

// Searches the write buffers. Returns whether one of them has a record of the key up to `at`.
bool LookUpBuffers(const SuperVersion& state, SequenceNumber at, Lookup* lookup);

// Prefetches the offset tables of the first runs into the processor's cache, so that they arrive
// while the caller searches the write buffers.
void PrefetchTables(const SuperVersion& state, Lookup* lookup);

// Searches the segments, newest run first.
[[nodiscard]] absl::Status LookUpSegments(const SuperVersion& state, SequenceNumber at,
                                          bool fill_cache, Lookup* lookup);

// Searches the generations that the key's own one was forked from, parent by parent.
// Requires: neither the buffers nor the segments have a record of the key's own generation.
[[nodiscard]] absl::Status LookUpParents(const SuperVersion& state, SequenceNumber at,
                                         bool fill_cache, Lookup* lookup);

// Searches the write buffers, the segments and the parents without reading a value. Returns whether
// the newest version up to `at` is a value that no range tombstone hides; it may have expired.
[[nodiscard]] absl::StatusOr<bool> FindLive(const SuperVersion& state, SequenceNumber at,
                                            Lookup* lookup);

}  // namespace varve
