// The jobs of the background: a write buffer or the inputs of a plan become new segments. A merge
// that is cut into parts (db/compaction/merge_parts.h) uses several threads.
//
// Nothing here changes a Version: db/version/version_edit.h says what the next one looks like.
// After an error, or when cancelled (Aborted), no output is left on disk.
//
// Thread-safety: functions without state of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "db/format/internal_iterator.h"
#include "db/format/namespace_forks.h"
#include "db/format/range_tombstone.h"
#include "db/history/horizons.h"
#include "db/namespaces/compression_policy.h"
#include "db/segment/segment.h"
#include "db/version/compaction_plan.h"
#include "db/version/version.h"
#include "type/tree_key.h"
#include "util/os/file_system.h"
#include "varve/options.h"
#include "varve/types.h"

namespace varve {

struct PurgedKey;
class JobThreads;
class SpareFiles;
class ValueSeparation;

// The context is what the engine lends to a job. Snapshots and live generations are taken before
// the job begins and after its inputs are fixed: a snapshot that begins later sees all of the
// inputs, newest versions only.
struct CompactionContext {
  FileSystem* file_system = nullptr;
  std::string directory;
  const EngineOptions* options = nullptr;  // segment_size, compaction_filter
  bool shares_keys = false;                // of the outputs (SegmentBuilder::Options)
  SegmentCaches* caches = nullptr;
  SpareFiles* spares = nullptr;  // over which outputs are written; may be null
  std::function<uint64_t()> next_file_number;
  std::vector<SequenceNumber> snapshots;  // those held, ascending
  // Returns whether a generation is live now or in one of the snapshots; null: all are.
  std::function<bool(NamespaceGeneration)> is_live;
  NamespaceForks forks;               // forks of the live generations
  KeptVersions kept;                  // by horizons
  const PurgedKey* purged = nullptr;  // null: nothing is
  CompressionPolicy compression;
  const std::atomic<bool>* cancel = nullptr;
  // Returns whether somebody waits for the merge by now. Flushes need none: they are always waited
  // for. Threads of several parts call it.
  std::function<bool()> is_urgent;
  JobThreads* jobs = nullptr;  // help with the parts of a merge; null: none do
};

// Returns the sequences at which something has to stay visible, whatever generation it belongs to:
// the snapshots and the fork points of clones, ascending.
std::vector<SequenceNumber> SnapshotsAndForkPoints(const CompactionContext& context);

struct CompactionResult {
  std::vector<std::shared_ptr<Segment>> segments;  // ascending and disjoint, on disk and open
  uint64_t bytes_read = 0;                         // size of the files that were merged
  uint64_t bytes_written = 0;
  uint64_t records_read = 0;
  uint64_t records_written = 0;
  bool filtered = false;  // the filter dropped something, or something was purged
  uint64_t records_purged = 0;
  // The keys and values of the records written, in bytes, by generation, ascending.
  std::vector<std::pair<NamespaceGeneration, uint64_t>> written;
};

// The size of a write buffer's records; estimates for the layout.
struct FlushSize {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t large_bytes = 0;  // bytes among them of values that are kept apart
};

// Writes what a full write buffer holds. `drops_tombstones`: the tree has no segment that overlaps.
// `separation` decides where large values go; null leaves every value in its record.
[[nodiscard]] absl::StatusOr<CompactionResult> RunFlush(
    InternalIterator* input, std::vector<RangeTombstone> tombstones, const FlushSize& size,
    bool drops_tombstones, ValueSeparation* separation, const CompactionContext& context);

// Merges the inputs of a plan that was made for `version`, in the parts between `cuts` (MergeCuts).
[[nodiscard]] absl::StatusOr<CompactionResult> RunCompaction(
    const Version& version, const CompactionPlan& plan, const CompactionContext& context,
    absl::Span<const std::string> cuts = {});

}  // namespace varve
