// A compaction picker chooses what to merge next. A program may give a store its own picker;
// LazyLevelingPicker is the default. docs/compaction.md has its rules and what they cost.
//
// Thread-safety: a picker is stateless and thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "varve/options.h"
#include "varve/types.h"

namespace varve {

// The description of one segment, an immutable sorted file. Keys here order as bytes and begin with
// four bytes that stand for the namespace. Views are valid as long as the TreeShape.
struct SegmentShape {
  uint64_t number = 0;  // names the segment in a CompactionPick
  uint64_t file_size = 0;
  uint64_t referenced_bytes = 0;  // of values that are kept apart
  uint64_t tombstones = 0;        // of single keys
  uint64_t range_tombstones = 0;
  std::string_view smallest;
  std::string_view largest;
  bool largest_is_exclusive = false;  // largest is the end of a range tombstone
  SequenceNumber smallest_sequence = kMaxSequence;
  SequenceNumber largest_sequence = kNoSequence;
  bool is_ingested = false;  // built by a bulk ingest (varve/ingest.h), and not merged since

  // Returns whether the segment may hold keys at or behind `key`.
  bool ReachesTo(std::string_view key) const {
    return largest_is_exclusive ? key < largest : key <= largest;
  }
  // Returns whether both segments may hold the same key.
  bool Overlaps(const SegmentShape& other) const {
    return ReachesTo(other.smallest) && other.ReachesTo(smallest);
  }
};

// A sorted run: segments with ascending, disjoint key ranges.
struct RunShape {
  std::vector<SegmentShape> segments;

  uint64_t bytes() const;  // of files
  uint64_t referenced_bytes() const;
  // Returns the index of the first segment that reaches to `key`; segments.size() if none does.
  size_t IndexOf(std::string_view key) const;
};

struct LevelShape {
  std::vector<RunShape> runs;  // newest first
};

// The shape of the whole tree. Every level but the last holds sorted runs side by side; the last
// one is a single run. Wherever key ranges overlap, a level is older than the levels above it, and
// a run is older than the runs before it in its level. A tree with one level has no last level yet.
struct TreeShape {
  std::vector<LevelShape> levels;
};

// Says why a merge is made. The engine counts merges by reason and logs the reason of each one.
enum class CompactionReason : uint8_t {
  kPicker,             // a picker chose the merge and gave no other reason
  kFullLevel,          // a level holds as many runs as it may
  kOverwrittenValues,  // the upper levels refer to so many values that many older ones are garbage
  kRange,              // a caller asked for the range
  kDeadSegments,       // nobody can see anything of the segments
  kValueGarbage,       // value files hold much that no segment points to
  kDamage,             // intact runs are merged around a damaged one
};
inline constexpr size_t kCompactionReasons = 7;

// Returns the reason's name, as the statistics and the log show it: "full_level".
std::string_view NameOf(CompactionReason reason);

// A merge that a picker wants.
struct CompactionPick {
  // The segments of one run that go in, by number, in ascending order of keys: the whole run; for
  // the last level those that overlap.
  struct Input {
    int level = 0;
    std::vector<uint64_t> segments;
  };
  // Newest first.
  // Requires: every older segment that overlaps an input, down to the output, is an input, too.
  std::vector<Input> inputs;
  int output_level = 0;
  // The output joins the run of the last level (its untouched segments stay), which may be about to
  // come into being; otherwise it becomes the newest run of output_level.
  bool joins_last_run = false;
  // The inputs are moved as they are, and nothing is written.
  // Requires: the inputs are disjoint.
  bool move_only = false;
  // Tombstones may go.
  // Requires: nothing older than the inputs overlaps them.
  bool drops_tombstones = false;
  // A new last level is opened below: the old last level moves one down first.
  bool pushes_last_level_down = false;
  // Why the merge is made. The engine counts a value that it does not know as kPicker.
  CompactionReason reason = CompactionReason::kPicker;
};

class CompactionPicker {
 public:
  virtual ~CompactionPicker() = default;
  // Returns nothing if there is nothing to do. The engine calls it while no other merge runs.
  // `in_burst` tells that a buffer is being flushed, or was within the last second: what can wait
  // until then should, and the engine asks again then.
  virtual std::optional<CompactionPick> Pick(const TreeShape& tree, const EngineOptions& options,
                                             bool in_burst) const = 0;
  // Returns how far the tree is behind its shape: 0 up to as many runs in the upper levels as a
  // burst gathers, growing with each further one; 1 means that there are several times as many as
  // there should be. The engine slows writers down by it.
  virtual double Debt(const TreeShape& tree, const EngineOptions& options) const = 0;
};

std::shared_ptr<const CompactionPicker> LazyLevelingPicker();

}  // namespace varve
