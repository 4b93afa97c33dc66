// A survey of a store shows people how it lies in memory and on disk: the strata of its tree, how
// many bytes groups of keys take, and the positions in its log. It is made of what the store has in
// memory.
//
// Thread-safety: plain values; all threads may call the functions of SurveyedStore.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "varve/key_group.h"
#include "varve/types.h"

namespace varve {

// One segment, an immutable sorted file.
struct SegmentSurvey {
  uint64_t number = 0;
  uint64_t bytes = 0;             // of the file
  uint64_t referenced_bytes = 0;  // of values that are kept apart
  uint64_t records = 0;
  uint64_t tombstones = 0;  // of single keys
  uint64_t range_tombstones = 0;
  SequenceNumber oldest = 0;  // sequences of its records
  SequenceNumber newest = 0;
  // User keys, and the namespaces that they are in; a name is empty if the namespace is gone.
  std::string first_namespace, first_key;
  std::string last_namespace, last_key;
  bool is_merging = false;  // the merge that is under way reads it
  bool is_damaged = false;
  bool has_index = false;  // its offset table and fences are in memory
};

struct RunSurvey {
  uint64_t bytes = 0;
  uint64_t segment_count = 0;
  std::vector<SegmentSurvey> segments;  // in the order of keys; the last ones may be left out
};

struct LevelSurvey {
  std::vector<RunSurvey> runs;  // newest first
};

struct BufferSurvey {
  uint64_t bytes = 0;
  uint64_t records = 0;
  bool is_full = false;  // it waits for its flush, or is being flushed
};

struct MergeSurvey {
  std::string reason;
  uint64_t segments = 0;
  uint64_t bytes = 0;  // of the files that it reads
  int output_level = 0;
  uint64_t parts = 1;  // ranges of keys that are merged at once, as far as there are threads
  double seconds = 0;  // since it began
};

struct TreeSurvey {
  std::vector<BufferSurvey> buffers;  // newest first
  std::vector<LevelSurvey> levels;
  std::optional<MergeSurvey> merge;  // that is under way
};

// Keys that begin alike: with `prefix`, which ends behind a ':' or a '/'. The figures are
// estimates, as in NamespaceEstimate.
struct KeyGroup {
  std::string prefix;
  uint64_t keys = 0;
  uint64_t bytes = 0;
  // The largest groups within this one, largest first. What they lack to `bytes` is in smaller
  // groups, or in keys without a further separator.
  std::vector<KeyGroup> groups;
};

struct NamespaceKeys {
  NamespaceId id = kDefaultNamespace;
  std::string name;      // the number of a database as text
  KeyGroup keys;         // all of them: the prefix is empty
  KeyGrouping grouping;  // that the namespace declares
};

struct KeyMap {
  std::vector<NamespaceKeys> namespaces;  // those that hold something, largest first
  uint64_t bytes = 0;                     // of all namespaces
  // The bytes of segments whose fences are in memory; in other segments only the first and the
  // last key are known, and groups are guessed from them.
  uint64_t segment_bytes = 0;
  uint64_t known_segment_bytes = 0;
  // The records of write buffers, and those that were looked at; the others are taken to be like a
  // few spread among them.
  uint64_t buffer_records = 0;
  uint64_t known_buffer_records = 0;
};

struct StorePositions {
  SequenceNumber visible = kNoSequence;  // the newest write that readers see
  SequenceNumber durable = kNoSequence;  // every write up to here is on disk
  SequenceNumber flushed = kNoSequence;  // segments hold every write up to here
  // The newest write in each mode, by its Durability; what is behind `durable` may be lost in a
  // power cut.
  std::array<SequenceNumber, 3> newest_by_durability{};
  uint64_t replayed_bytes = 0;  // of the operations that the last start replayed
  uint64_t stall_nanos = 0;     // that writers were slowed down or waited for room
};

// A store that can be surveyed is one beside being a Store. Its answers wait neither for the disk
// nor for other writers.
class SurveyedStore {
 public:
  virtual ~SurveyedStore() = default;

  // Returns how the tree lies, with the facts of at most `most_segments` segments.
  virtual TreeSurvey SurveyTree(size_t most_segments) const = 0;
  // Returns how many bytes groups of keys take, about `most_groups` of them. What the map lacks in
  // memory, the store may bring there later.
  virtual KeyMap MapKeys(size_t most_groups) = 0;
  virtual StorePositions Positions() const = 0;
};

// Returns null if the store cannot be surveyed.
template <typename AnyStore>
SurveyedStore* SurveyOf(AnyStore* store) {
  return dynamic_cast<SurveyedStore*>(store);
}

}  // namespace varve
