// RepairJob: finds out which segments the store consists of.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "db/compaction/merge_writer.h"
#include "db/format/log_format.h"
#include "db/iterators/merging_iterator.h"
#include "db/namespaces/namespace_table.h"
#include "db/segment/segment_caches.h"
#include "db/version/manifest.h"
#include "db/version/version.h"
#include "tools/repair/repair_job.h"
#include "tools/segment_verifier.h"
#include "type/tree_key.h"
#include "util/base/assert.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {

absl::StatusOr<bool> RepairJob::TakeManifest() {
  absl::StatusOr<Manifest> manifest = ReadManifest(file_system_, directory_);
  absl::StatusOr<Manifest> copy = ReadManifestCopy(file_system_, directory_);
  for (const absl::Status& status : {manifest.status(), copy.status()}) {
    if (!status.ok() && !absl::IsDataLoss(status) && !absl::IsNotFound(status)) return status;
  }
  if (manifest.ok()) {
    plan_.manifest = *std::move(manifest);
    if (absl::IsDataLoss(copy.status())) {
      Lost(copy.status(), "it is written anew, nothing is lost");
      Move("MANIFEST.copy");
    }
    return true;
  }
  const bool copy_is_good = copy.ok() && AllSegmentsAreThere(*copy);
  const std::string_view consequence = copy_is_good ? "its copy takes its place, nothing is lost"
                                                    : "without a copy the tree is rebuilt";
  if (absl::IsDataLoss(manifest.status())) {
    Lost(manifest.status(), consequence);
  } else {
    Lost("MANIFEST", 0, fmt::format("missing; {}", consequence));
  }
  Move("MANIFEST");
  if (copy_is_good) {
    plan_.manifest = *std::move(copy);
    return true;
  }
  if (absl::IsDataLoss(copy.status())) Lost(copy.status());
  if (copy.ok()) {
    Lost("MANIFEST.copy", 0, "names segments that are not there");
    outdated_ = *std::move(copy);
  }
  Move("MANIFEST.copy");
  return false;
}

bool RepairJob::AllSegmentsAreThere(const Manifest& manifest) const {
  for (const auto& level : manifest.levels) {
    for (const SegmentInfos& run : level) {
      for (const SegmentInfo& info : run) {
        if (!HasFile(NameOf(info.number))) return false;
      }
    }
  }
  return true;
}

uint64_t RepairJob::StoreIdOfLogs() const {
  for (const StoreFile& found : files_) {
    const std::optional<uint64_t> number = ParseLogFileName(found.name);
    if (!number) continue;
    const std::string path = directory_ + "/" + found.name;
    const absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForRead(path);
    std::string page(kLogPageSize, '\0');
    if (!file.ok() || (*file)->Read(0, page.size(), page.data()).value_or(0) != page.size())
      continue;
    const uint64_t store_id = DecodeFixed64(page.data() + 24);
    if (CheckLogHeaderPage(page, path, *number, store_id).ok()) return store_id;
  }
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

// A damaged segment is replaced by what is intact of it (numbers in `made`), so that the merge
// reads whole ones.
absl::StatusOr<std::vector<std::shared_ptr<Segment>>> RepairJob::OpenForMerge(
    SegmentCaches* caches, std::set<uint64_t>* made) {
  std::vector<std::shared_ptr<Segment>> segments;
  for (const StoreFile& found : files_) {
    const std::optional<uint64_t> number = ParseSegmentName(found.name);
    if (!number) continue;
    Move(found.name);
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system_->OpenForRead(directory_ + "/" + found.name));
    const absl::StatusOr<SegmentFooter> footer =
        ReadSegmentFooter(*file, *number, found.size, nullptr);
    std::optional<SegmentInfo> info;
    if (footer.ok() && VerifySegment(file_system_, file->path(), footer->info).ok() &&
        values_.CheckSegment(footer->info).ok()) {
      info = footer->info;
      Saved(found.name, fmt::format("its {} records are merged into the tree", info->entries));
    } else {
      VARVE_ASSIGN_OR_RETURN(info, Salvage(*number, found.size, nullptr));
      if (info) made->insert(info->number);
    }
    Done(found.size);
    if (!info) continue;
    VARVE_ASSIGN_OR_RETURN(auto segment, Segment::Open(file_system_, directory_, *info, caches));
    segments.push_back(std::move(segment));
  }
  return segments;
}

// The files themselves don't say which namespace a generation belongs to. An outdated manifest
// does, unless there are generations that it doesn't know; without one the highest generation is
// taken for the default namespace's.
void RepairJob::TakeNamespaces(NamespaceGeneration highest) {
  Manifest& manifest = plan_.manifest;
  manifest.namespaces = {{kDefaultNamespace, highest}};
  manifest.next_generation = highest + 1;
  knows_namespaces_ = false;
  if (!outdated_) return;
  manifest.clock_mark = outdated_->clock_mark;
  manifest.next_named_namespace = outdated_->next_named_namespace;
  if (highest >= outdated_->next_generation) return;
  manifest.namespaces = outdated_->namespaces;
  manifest.descriptions = outdated_->descriptions;
  manifest.forks = outdated_->forks;
  manifest.next_generation = outdated_->next_generation;
  knows_namespaces_ = true;
}

// An earlier rebuild that was interrupted may have left segments of its own.
absl::Status RepairJob::RemoveOwnSegments() {
  VARVE_ASSIGN_OR_RETURN(const uint64_t first_own,
                         BeginRebuild(file_system_, directory_, plan_.manifest.next_file_number));
  const auto is_own = [first_own](const StoreFile& file) {
    return ParseSegmentName(file.name).value_or(0) >= first_own;
  };
  for (const StoreFile& file : files_) {
    if (is_own(file)) VARVE_RETURN_IF_ERROR(file_system_->Remove(directory_ + "/" + file.name));
  }
  std::erase_if(files_, is_own);
  return absl::OkStatus();
}

absl::StatusOr<NamespaceGeneration> RepairJob::HighestGenerationIn(Segment* segment) {
  const SegmentInfo& info = segment->info();
  if (!ReachesTo(info, FirstTreeKey(kExpiryGeneration))) {
    const bool ends_before = info.largest_is_exclusive && info.largest.size() == kGenerationSize;
    return GenerationOf(info.largest) - (ends_before ? 1 : 0);
  }
  const std::unique_ptr<InternalIterator> records = segment->NewIterator(/*fill_cache=*/false);
  records->Seek(FirstTreeKey(kExpiryGeneration), kNoSequence);
  records->Valid() ? records->Prev() : records->SeekToLast();
  VARVE_RETURN_IF_ERROR(records->status());
  return records->Valid() ? GenerationOf(records->record().key) : kNoGeneration;
}

// The records' sequences say which of them are newer. The files don't say which segments a merge
// had replaced already.
absl::Status RepairJob::RebuildManifest() {
  Manifest& manifest = plan_.manifest;
  manifest.store_id = StoreIdOfLogs();
  // Versions may have been taken back, so this is another history.
  manifest.has_history = true;
  manifest.shares_keys = true;  // as segments may do that are kept
  manifest.history_id = NewHistoryId();
  is_rebuilt_ = true;
  VARVE_RETURN_IF_ERROR(RemoveOwnSegments());
  SegmentCaches caches(0, 0);
  std::set<uint64_t> made;
  VARVE_ASSIGN_OR_RETURN(std::vector<std::shared_ptr<Segment>> segments,
                         OpenForMerge(&caches, &made));
  const size_t found = segments.size();
  NamespaceGeneration generation = 1;
  for (const std::shared_ptr<Segment>& segment : segments) {
    const SegmentInfo& info = segment->info();
    last_in_segments_ = std::max(last_in_segments_, info.largest_sequence);
    // A segment that is whole holds the end of a flush, and everything before that was flushed
    // earlier.
    if (!made.contains(info.number))
      manifest.flushed_sequence = std::max(manifest.flushed_sequence, info.largest_sequence);
    VARVE_ASSIGN_OR_RETURN(const NamespaceGeneration highest, HighestGenerationIn(segment.get()));
    generation = std::max(generation, highest);
  }
  VARVE_ASSERT(manifest.flushed_sequence <= last_in_segments_);
  TakeNamespaces(generation);
  VARVE_RETURN_IF_ERROR(RepairLog());
  for (const auto& level : manifest.levels) {
    for (const SegmentInfos& run : level) {
      for (const SegmentInfo& info : run) {
        VARVE_ASSIGN_OR_RETURN(auto segment,
                               Segment::Open(file_system_, directory_, info, &caches));
        segments.push_back(std::move(segment));
        made.insert(info.number);
      }
    }
  }
  Lost("MANIFEST", 0,
       fmt::format("the tree is {} segments and the log merged into one, in generation {}; "
                   "segments that a merge had replaced and a crash left behind, and ranges emptied "
                   "since, can't be told: keys that were deleted may be back",
                   found, manifest.namespaces.front().generation));
  VARVE_RETURN_IF_ERROR(MergeInto(segments, made));
  NameOtherGenerations();
  return absl::OkStatus();
}

// It can't be told which generations belonged to other namespaces, and which were emptied. They are
// kept for somebody to look at.
void RepairJob::NameOtherGenerations() {
  NamespaceTable namespaces(plan_.manifest);
  std::set<NamespaceGeneration> found;
  for (const auto& level : plan_.manifest.levels) {
    for (const SegmentInfos& run : level) {
      for (const SegmentInfo& info : run) {
        for (const GenerationKeyCounts::Entry& entry : info.live.entries())
          found.insert(entry.generation);
      }
    }
  }
  for (const NamespaceGeneration generation : found) {
    if (generation == kExpiryGeneration || namespaces.Holds(generation)) continue;
    const NamespaceDescription space{.id = namespaces.next_named(),
                                     .name = fmt::format("recovered-{}", generation)};
    if (!namespaces.Apply({.space = space, .generation = generation}).ok()) {
      Lost("MANIFEST", 0,
           fmt::format("generation {} is left out, as there are too many", generation));
      continue;
    }
    Saved(
        "MANIFEST",
        fmt::format("keys of generation {}, of another namespace or emptied, are in namespace '{}'",
                    generation, space.name));
  }
  namespaces.WriteTo(&plan_.manifest);
  plan_.manifest.next_generation =
      std::max(plan_.manifest.next_generation, namespaces.HighestGeneration() + 1);
}

absl::Status RepairJob::MergeInto(const std::vector<std::shared_ptr<Segment>>& segments,
                                  const std::set<uint64_t>& made) {
  MergeOptions options;
  options.file_system = file_system_;
  options.directory = directory_;
  options.next_file_number = [this] { return NewNumber(); };
  options.forks = NamespaceTable(plan_.manifest).forks();
  options.drops_tombstones = true;
  std::vector<std::unique_ptr<InternalIterator>> children;
  std::vector<RangeTombstone> tombstones;
  uint64_t bytes = 0;
  for (const std::shared_ptr<Segment>& segment : segments) {
    options.expected_entries += segment->info().entries;
    bytes += segment->info().file_size;
    children.push_back(segment->NewIterator(/*fill_cache=*/false));
    const std::vector<RangeTombstone>& more = segment->range_tombstones()->tombstones();
    tombstones.insert(tombstones.end(), more.begin(), more.end());
  }
  VARVE_ASSERT(children.size() == segments.size());
  plan_.manifest.levels.clear();
  if (children.empty()) return absl::OkStatus();
  if (options.expected_entries > 0) options.average_record_size = bytes / options.expected_entries;
  const std::unique_ptr<InternalIterator> input = NewMergingIterator(std::move(children));
  VARVE_ASSIGN_OR_RETURN(MergeResult merged,
                         MergeToSegments(input.get(), std::move(tombstones), options));
  if (!merged.segments.empty()) plan_.manifest.levels = {{}, {std::move(merged.segments)}};
  for (const uint64_t number : made)
    VARVE_RETURN_IF_ERROR(file_system_->Remove(SegmentPath(directory_, number)));
  return absl::OkStatus();
}

}  // namespace varve
