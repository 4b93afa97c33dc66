#include "db/compaction/compaction.h"

#include <algorithm>
#include <utility>

#include "db/compaction/merge_compression.h"
#include "db/compaction/merge_writer.h"
#include "db/compaction/value_recompression.h"
#include "db/compaction/value_separation.h"
#include "db/format/file_names.h"
#include "db/iterators/merging_iterator.h"
#include "db/iterators/run_iterator.h"
#include "db/segment/segment_caches.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"
#include "util/os/file_writer.h"
#include "util/os/thread_pace.h"

namespace varve {
namespace {

MergeOptions MergeOptionsFor(const CompactionContext& context) {
  MergeOptions options;
  options.file_system = context.file_system;
  options.directory = context.directory;
  options.caches = context.caches;
  options.next_file_number = context.next_file_number;
  options.segment_size = context.options->segment_size;
  options.snapshots = context.snapshots;
  options.is_live = context.is_live;
  options.forks = context.forks;
  options.kept = context.kept;
  options.filter = context.options->compaction_filter.get();
  options.purged = context.purged;
  options.compression.policy = context.compression;
  options.cancel = context.cancel;
  return options;
}

absl::StatusOr<CompactionResult> Merge(InternalIterator* input,
                                       std::vector<RangeTombstone> tombstones,
                                       const MergeOptions& options) {
  VARVE_ASSIGN_OR_RETURN(const MergeResult merged,
                         MergeToSegments(input, std::move(tombstones), options));
  CompactionResult result;
  result.records_read = merged.records_read;
  result.records_written = merged.records_written;
  result.filtered = merged.filtered || merged.records_purged != 0;
  result.records_purged = merged.records_purged;
  result.written = merged.written;
  const absl::Status opened = GuardMemory("opening what was merged", [&] {
    for (const SegmentInfo& info : merged.segments) {
      VARVE_ASSIGN_OR_RETURN(
          std::shared_ptr<Segment> segment,
          Segment::Open(options.file_system, options.directory, info, options.caches));
      result.bytes_written += info.file_size;
      result.segments.push_back(std::move(segment));
    }
    return absl::OkStatus();
  });
  if (opened.ok()) {
    if (options.separation != nullptr) {
      options.separation->Keep();
      result.bytes_written += options.separation->bytes_written();
    }
    return result;
  }
  result.segments.clear();
  for (const SegmentInfo& written : merged.segments) {
    TryWithMemory(
        [&] { RemoveFile(options.file_system, SegmentPath(options.directory, written.number)); });
  }
  return opened;
}

// First keys of the segments that stay in the run that the output joins.
std::vector<std::string> OutputBoundaries(const Version& version, const CompactionPlan& plan) {
  std::vector<std::string> boundaries;
  const size_t level = static_cast<size_t>(plan.output_level);
  if (!plan.joins_last_run || level >= version.levels().size()) return boundaries;
  std::vector<uint64_t> leaving;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments)
      leaving.push_back(segment->info().number);
  }
  std::sort(leaving.begin(), leaving.end());
  for (const Run& run : version.levels()[level].runs) {
    for (const std::shared_ptr<Segment>& segment : run.segments) {
      if (!std::binary_search(leaving.begin(), leaving.end(), segment->info().number)) {
        boundaries.push_back(segment->info().smallest);
      }
    }
  }
  return boundaries;
}

// Returns null if the merge leaves all values where they are.
std::unique_ptr<ValueSeparation> SeparationOf(const CompactionPlan& plan,
                                              const CompactionContext& context) {
  const ValueFileWriter::Options files = {.file_system = context.file_system,
                                          .directory = context.directory,
                                          .next_file_number = context.next_file_number,
                                          .registry = &context.caches->values};
  if (!plan.emptied_files.empty())
    return NewCollectionSeparation(plan.emptied_files, files, context.compression);
  if (plan.recompresses_values) return NewValueRecompression(files, context.compression);
  return nullptr;
}

CompactionResult Move(const CompactionPlan& plan) {
  CompactionResult result;
  for (const CompactionPlan::Input& input : plan.inputs) {
    result.segments.insert(result.segments.end(), input.segments.begin(), input.segments.end());
  }
  std::sort(result.segments.begin(), result.segments.end(),
            [](const std::shared_ptr<Segment>& a, const std::shared_ptr<Segment>& b) {
              return a->info().smallest < b->info().smallest;
            });
  return result;
}

}  // namespace

std::vector<SequenceNumber> SnapshotsAndForkPoints(const CompactionContext& context) {
  std::vector<SequenceNumber> sequences = context.snapshots;
  for (const NamespaceFork& fork : context.forks.all()) sequences.push_back(fork.fork_point);
  std::sort(sequences.begin(), sequences.end());
  sequences.erase(std::unique(sequences.begin(), sequences.end()), sequences.end());
  return sequences;
}

absl::StatusOr<CompactionResult> RunFlush(InternalIterator* input,
                                          std::vector<RangeTombstone> tombstones,
                                          const FlushSize& size, bool drops_tombstones,
                                          ValueSeparation* separation,
                                          const CompactionContext& context) {
  MergeOptions options = MergeOptionsFor(context);
  options.expected_entries = size.entries;
  options.average_record_size = size.entries == 0 ? 0 : size.bytes / size.entries;
  options.drops_tombstones = drops_tombstones;
  options.separation = separation;
  options.compression.leaves_records_alone = true;
  return Merge(input, std::move(tombstones), options);
}

absl::StatusOr<CompactionResult> RunCompaction(const Version& version, const CompactionPlan& plan,
                                               const CompactionContext& context) {
  if (plan.remove_only) return CompactionResult{};
  if (plan.move_only) return Move(plan);
  ThreadPace pace;  // until what was merged is to be installed, as locks are held there
  MergeOptions options = MergeOptionsFor(context);
  options.drops_tombstones = plan.drops_tombstones;
  options.rest = [&] { pace.Rest(context.is_urgent()); };
  options.boundaries = OutputBoundaries(version, plan);
  std::vector<std::unique_ptr<InternalIterator>> runs;
  std::vector<RangeTombstone> tombstones;
  uint64_t bytes = 0;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments) {
      bytes += segment->info().file_size;
      options.expected_entries += segment->info().entries;
      const std::vector<RangeTombstone>& more = segment->range_tombstones()->tombstones();
      tombstones.insert(tombstones.end(), more.begin(), more.end());
    }
    runs.push_back(NewRunIterator(input.segments, /*fill_cache=*/false));
  }
  if (options.expected_entries > 0) options.average_record_size = bytes / options.expected_entries;
  const std::unique_ptr<InternalIterator> input = NewMergingIterator(std::move(runs));
  const std::unique_ptr<ValueSeparation> separation = SeparationOf(plan, context);
  options.separation = separation.get();
  VARVE_ASSIGN_OR_RETURN(options.compression.dictionary,
                         ChooseMergeDictionary(version, plan, context.compression));
  VARVE_ASSIGN_OR_RETURN(CompactionResult result,
                         Merge(input.get(), std::move(tombstones), options));
  result.bytes_read = bytes;
  return result;
}

}  // namespace varve
