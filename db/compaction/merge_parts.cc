#include "db/compaction/merge_parts.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "db/segment/segment_index.h"
#include "type/tree_key.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// How closely the cuts part the bytes evenly: keys looked at for each part.
constexpr size_t kKeysPerPart = 64;

// A key, and the bytes of the segment that lie between it and the next key that was looked at.
struct Stretch {
  std::string key;
  double bytes = 0;
};

// Calls `visit` with about `wanted` fence keys of the segment; with none if they cannot be read,
// which the merge finds out, too.
template <typename Visit>
void VisitSomeFences(Segment* segment, size_t wanted, Visit visit) {
  if (const size_t count = segment->FencesBetween({}, {}); count > 0) {
    segment->VisitFences({}, {}, std::max<size_t>(count / wanted, 1), visit);
    return;
  }
  const absl::StatusOr<const SegmentFooter*> footer = segment->Footer();
  if (!footer.ok() || (*footer)->fence_count == 0) return;
  const auto loaded = LoadedFences::Load(segment->file(), **footer);
  if (!loaded.ok()) return;
  const SegmentFences& fences = (*loaded)->fences();
  const size_t stride = std::max<size_t>(fences.count() / wanted, 1);
  for (size_t i = stride; i < fences.count(); i += stride) visit(fences.Key(i));
}

void AddStretches(Segment* segment, size_t wanted, std::vector<Stretch>* stretches) {
  const size_t first = stretches->size();
  stretches->push_back({segment->info().smallest});
  VisitSomeFences(segment, wanted, [&](std::string_view key) {
    if (key.empty()) return;  // the first one's
    Stretch& stretch = stretches->emplace_back();
    stretch.key = key;
    // What separates two generations may be shorter.
    if (key.size() < kGenerationSize) stretch.key.resize(kGenerationSize);
  });
  const size_t count = stretches->size() - first;
  for (size_t i = first; i < stretches->size(); ++i)
    (*stretches)[i].bytes =
        static_cast<double>(segment->info().file_size) / static_cast<double>(count);
}

}  // namespace

std::vector<std::string> MergeCuts(const CompactionPlan& plan, size_t most, uint64_t smallest) {
  std::vector<std::string> cuts;
  if (plan.in_place || plan.move_only || plan.remove_only) return cuts;
  uint64_t bytes = 0;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments)
      bytes += segment->info().file_size;
  }
  const size_t parts = std::min<uint64_t>(most, bytes / std::max<uint64_t>(smallest, 1));
  if (parts < 2) return cuts;
  std::vector<Stretch> stretches;
  for (const CompactionPlan::Input& input : plan.inputs) {
    for (const std::shared_ptr<Segment>& segment : input.segments) {
      const uint64_t share = kKeysPerPart * parts * segment->info().file_size / bytes;
      AddStretches(segment.get(), share + 1, &stretches);
    }
  }
  std::sort(stretches.begin(), stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.key < b.key; });
  const double part_bytes = static_cast<double>(bytes) / static_cast<double>(parts);
  double before = 0;  // bytes in front of the stretch
  for (const Stretch& stretch : stretches) {
    const bool ascends = stretch.key > (cuts.empty() ? stretches.front().key : cuts.back());
    if (ascends && before >= part_bytes * static_cast<double>(cuts.size() + 1))
      cuts.push_back(stretch.key);
    if (cuts.size() + 1 == parts) break;
    before += stretch.bytes;
  }
  return cuts;
}

std::vector<MergePart> PartsBetween(absl::Span<const std::string> cuts) {
  VARVE_ASSERT(std::is_sorted(cuts.begin(), cuts.end()));
  std::vector<MergePart> parts(1);
  for (const std::string& cut : cuts) {
    VARVE_ASSERT(cut.size() >= kGenerationSize);
    parts.back().upper = cut;
    parts.push_back({.lower = cut, .upper = {}});
  }
  return parts;
}

std::vector<RangeTombstone> ClipTo(const MergePart& part, std::vector<RangeTombstone> tombstones) {
  for (RangeTombstone& tombstone : tombstones) {
    if (tombstone.begin < part.lower) tombstone.begin = part.lower;
    if (!part.upper.empty() && tombstone.end > part.upper) tombstone.end = part.upper;
  }
  std::erase_if(tombstones, [](const RangeTombstone& each) { return each.begin >= each.end; });
  return tombstones;
}

std::vector<std::shared_ptr<Segment>> SegmentsWithin(
    const MergePart& part, const std::vector<std::shared_ptr<Segment>>& segments) {
  std::vector<std::shared_ptr<Segment>> within;
  for (const std::shared_ptr<Segment>& segment : segments) {
    const bool begins_behind = !part.upper.empty() && segment->info().smallest >= part.upper;
    if (!begins_behind && ReachesTo(segment->info(), part.lower)) within.push_back(segment);
  }
  return within;
}

}  // namespace varve
