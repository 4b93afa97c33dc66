// A lookup is one key on its way through the sources of a super version, newest first, until one of
// them knows it. The functions here are the steps of that way.
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
  bool found = false;  // a record, perhaps a tombstone
  bool gated = false;  // the record came from a write that readers wait for
  RecordView record;
  // The fork point, once the lookup has gone on from a clone to its parent, whose key `key` then
  // is.
  SequenceNumber fork_point = kNoSequence;
  SequenceNumber up_to = kMaxSequence;  // and as of when the parent is read
  static constexpr size_t kMostAsked = 16;
  // The segments of the first `asked` runs that may hold the key (null: none), whose tables are on
  // their way into the processor's cache.
  std::array<Segment*, kMostAsked> segments;
  size_t asked = 0;
  size_t first_run = 0;  // runs before it hold no record of the key
  SegmentProbe probe;    // has begun in that run, or not at all
  FoundRecord from_segment;
};

// Looks into the write buffers. Returns whether one of them has a record of the key up to `at`.
bool LookUpBuffers(const SuperVersion& state, SequenceNumber at, Lookup* lookup);

// Asks the processor for the offset tables of the first runs, so that they arrive while the buffers
// are searched.
void PrefetchTables(const SuperVersion& state, Lookup* lookup);

// Looks into the segments, newest run first.
[[nodiscard]] absl::Status LookUpSegments(const SuperVersion& state, SequenceNumber at,
                                          bool fill_cache, Lookup* lookup);

// Looks for the key in the generations that its own was forked from, parent by parent.
// Requires: neither the buffers nor the segments have a record of the key's own generation.
[[nodiscard]] absl::Status LookUpParents(const SuperVersion& state, SequenceNumber at,
                                         bool fill_cache, Lookup* lookup);

// Looks everywhere, and reads no value. Returns whether there is a value that nothing deletes; it
// may have expired.
[[nodiscard]] absl::StatusOr<bool> FindLive(const SuperVersion& state, SequenceNumber at,
                                            Lookup* lookup);

}  // namespace varve
