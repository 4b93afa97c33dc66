#include "db/compaction/compaction.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/mutex.h"
#include "db/compaction/merge_compression.h"
#include "db/compaction/merge_parts.h"
#include "db/compaction/merge_writer.h"
#include "db/compaction/value_recompression.h"
#include "db/compaction/value_separation.h"
#include "db/format/file_names.h"
#include "db/iterators/merging_iterator.h"
#include "db/iterators/run_iterator.h"
#include "db/segment/segment_caches.h"
#include "structure/job_threads.h"
#include "util/base/assert.h"
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
  options.spares = context.spares;
  options.next_file_number = context.next_file_number;
  options.segment_size = context.options->segment_size;
  options.shares_keys = context.shares_keys;
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

void RemoveOutput(const MergeOptions& options, uint64_t number) {
  TryWithMemory([&] { RemoveFile(options.file_system, SegmentPath(options.directory, number)); });
}

// The caller keeps the value files of the separation, if it is content with the result.
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
  if (options.hurry) options.hurry();
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
    if (options.separation != nullptr) result.bytes_written += options.separation->bytes_written();
    return result;
  }
  result.segments.clear();
  for (const SegmentInfo& written : merged.segments) RemoveOutput(options, written.number);
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

// Appends what a part gave.
void Append(const CompactionResult& part, CompactionResult* whole) {
  whole->segments.insert(whole->segments.end(), part.segments.begin(), part.segments.end());
  whole->bytes_written += part.bytes_written;
  whole->records_read += part.records_read;
  whole->records_written += part.records_written;
  whole->filtered |= part.filtered;
  whole->records_purged += part.records_purged;
  for (const auto& [generation, bytes] : part.written) {
    if (whole->written.empty() || whole->written.back().first != generation)
      whole->written.emplace_back(generation, 0);
    whole->written.back().second += bytes;
  }
}

// A merge in parts, each of which a thread of the jobs may take. The first failure stops the other
// parts.
class PartedMerge {
 public:
  PartedMerge(const CompactionPlan& plan, const CompactionContext& context, MergeOptions options,
              absl::Span<const std::string> cuts)
      : plan_(plan), context_(context), options_(std::move(options)) {
    for (MergePart& range : PartsBetween(cuts))
      parts_.push_back({std::move(range), SeparationOf(plan, context)});
  }

  absl::StatusOr<CompactionResult> Run() {
    std::vector<std::function<void()>> jobs;
    for (Part& part : parts_) {
      jobs.emplace_back([this, &part] {
        part.result = GuardMemory("merging", [&] { return MergeOne(part); });
        if (!part.result.ok()) NoteFailure(part.result.status());
      });
    }
    JobGroup(context_.jobs, std::move(jobs), /*is_urgent=*/false).FinishAll();
    absl::Cleanup remove_outputs = [this] { RemoveOutputs(); };
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    CompactionResult whole;
    for (const Part& part : parts_) Append(*part.result, &whole);
    for (const Part& part : parts_) {
      if (part.separation != nullptr) part.separation->Keep();
    }
    std::move(remove_outputs).Cancel();
    return whole;
  }

 private:
  struct Part {
    MergePart range;
    std::unique_ptr<ValueSeparation> separation;  // removes its files unless they are kept
    absl::StatusOr<CompactionResult> result = absl::AbortedError("merge: not done");
  };

  // Removes what the parts wrote that did not fail.
  void RemoveOutputs() {
    for (Part& part : parts_) {
      if (!part.result.ok()) continue;
      for (std::shared_ptr<Segment>& segment : part.result->segments) {
        const uint64_t number = segment->number();
        segment.reset();
        RemoveOutput(options_, number);
      }
    }
  }

  absl::StatusOr<CompactionResult> MergeOne(const Part& part) {
    ThreadPace pace;  // until what was merged is to be installed, as locks are held there
    MergeOptions options = options_;
    options.rest = [&] { pace.Rest(context_.is_urgent()); };
    options.hurry = [&] { pace.TakeShare(); };
    if (parts_.size() > 1) {
      options.lower = part.range.lower;
      options.upper = part.range.upper;
      options.cancel = &stop_;
      options.rest = [&] {
        PassCancelOn();
        pace.Rest(context_.is_urgent());
      };
      PassCancelOn();
    }
    std::vector<std::unique_ptr<InternalIterator>> runs;
    std::vector<RangeTombstone> tombstones;
    for (const CompactionPlan::Input& input : plan_.inputs) {
      std::vector<std::shared_ptr<Segment>> segments = SegmentsWithin(part.range, input.segments);
      if (segments.empty()) continue;
      for (const std::shared_ptr<Segment>& segment : segments) {
        const std::vector<RangeTombstone>& more = segment->range_tombstones()->tombstones();
        tombstones.insert(tombstones.end(), more.begin(), more.end());
      }
      runs.push_back(NewRunIterator(std::move(segments), /*fill_cache=*/false));
    }
    const std::unique_ptr<InternalIterator> input = NewMergingIterator(std::move(runs));
    tombstones = ClipTo(part.range, std::move(tombstones));
    options.separation = part.separation.get();
    return Merge(input.get(), std::move(tombstones), options);
  }

  // Stops all parts once the merge is cancelled.
  void PassCancelOn() {
    if (context_.cancel != nullptr && context_.cancel->load(std::memory_order_relaxed))
      stop_.store(true, std::memory_order_relaxed);
  }

  void NoteFailure(const absl::Status& failure) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = UnsharedCopy(failure);
    stop_.store(true, std::memory_order_relaxed);
  }

  const CompactionPlan& plan_;
  const CompactionContext& context_;
  const MergeOptions options_;
  std::vector<Part> parts_;
  std::atomic<bool> stop_{false};
  absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // the first one
};

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
  options.bytes_elsewhere = size.large_bytes;
  options.drops_tombstones = drops_tombstones;
  options.separation = separation;
  options.compression.leaves_records_alone = true;
  absl::StatusOr<CompactionResult> result = Merge(input, std::move(tombstones), options);
  if (result.ok() && separation != nullptr) separation->Keep();
  return result;
}

absl::StatusOr<CompactionResult> RunCompaction(const Version& version, const CompactionPlan& plan,
                                               const CompactionContext& context,
                                               absl::Span<const std::string> cuts) {
  if (plan.remove_only) return CompactionResult{};
  if (plan.move_only) return Move(plan);
  MergeOptions options = MergeOptionsFor(context);
  options.drops_tombstones = plan.drops_tombstones;
  options.boundaries = OutputBoundaries(version, plan);
  uint64_t bytes = 0;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments) {
      bytes += segment->info().file_size;
      options.expected_entries += segment->info().entries;
    }
  }
  if (options.expected_entries > 0) options.average_record_size = bytes / options.expected_entries;
  options.expected_entries /= cuts.size() + 1;  // the parts have about as many bytes each
  VARVE_ASSIGN_OR_RETURN(options.compression.dictionary,
                         ChooseMergeDictionary(version, plan, context.compression));
  VARVE_ASSIGN_OR_RETURN(CompactionResult result,
                         PartedMerge(plan, context, std::move(options), cuts).Run());
  result.bytes_read = bytes;
  return result;
}

}  // namespace varve
