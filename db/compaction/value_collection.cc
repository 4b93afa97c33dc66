#include "db/compaction/value_collection.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/values/value_file_format.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Collecting begins when this part of all bytes is garbage.
constexpr uint64_t kGarbageShare = 5;
constexpr uint64_t kUrgentGarbageShare = 3;  // and comes first from here on
// What is copied together from the files that are being emptied, at least. More where the tree is
// large: each of its segments may have to be written for it.
constexpr uint64_t kSmallestRound = uint64_t{16} << 20;

using Use = Version::ValueFileUse;

// Each file has a header, however full it is.
uint64_t GarbageOf(const Use& use) {
  const uint64_t size = use.file->Size(), used = use.live_bytes + kValueFilePageSize;
  return size > used ? size - used : 0;
}

// Numbers of the emptiest files, ascending.
std::vector<uint64_t> EmptiestFiles(const Version& version) {
  std::vector<const Use*> candidates;
  for (const Use& use : version.value_files()) {
    // Moving what is nearly full costs more than it gives.
    if (!use.file->is_of_log() && !use.file->is_damaged() &&
        GarbageOf(use) * kGarbageShare >= use.file->Size()) {
      candidates.push_back(&use);
    }
  }
  std::sort(candidates.begin(), candidates.end(), [](const Use* a, const Use* b) {
    return a->live_bytes * static_cast<double>(b->file->Size()) <
           b->live_bytes * static_cast<double>(a->file->Size());
  });
  const uint64_t round = std::max(kSmallestRound, version.bytes());
  std::vector<uint64_t> numbers;
  uint64_t copied = 0;
  for (const Use* use : candidates) {
    if (!numbers.empty() && copied + use->live_bytes > round) break;
    copied += use->live_bytes;
    numbers.push_back(use->file->number());
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

absl::Status FindValueFiles(FileSystem* file_system, const std::string& directory,
                            const Version& version) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  const std::unordered_set<std::string> present(names.begin(), names.end());
  for (const Use& use : version.value_files()) {
    const uint64_t number = use.file->number();
    const bool is_own =
        present.contains(ValueFilePath(directory, number).substr(directory.size() + 1));
    if (!is_own && present.contains(LogFileName(number))) continue;
    use.file->TakeOver(0);
    if (!is_own)
      // Is logged.
      use.file->Damaged(0, "value file: missing, with the values that lay in it").IgnoreError();
  }
  return absl::OkStatus();
}

ValueSpace ValueSpaceOf(const Version& version) {
  ValueSpace space;
  for (const Use& use : version.value_files()) {
    if (use.file->is_of_log()) continue;
    ++space.files;
    space.bytes += use.file->Size();
    space.garbage += GarbageOf(use);
  }
  return space;
}

ValueSpace KnownValueSpaceOf(const Version& version) {
  ValueSpace space;
  for (const Use& use : version.value_files()) {
    const uint64_t size = use.file->known_size();
    const uint64_t used = use.live_bytes + kValueFilePageSize;
    if (use.file->is_of_log()) continue;
    ++space.files;
    space.bytes += size;
    space.garbage += size > used ? size - used : 0;
  }
  return space;
}

bool IsUrgent(const ValueSpace& space) { return space.garbage * kUrgentGarbageShare > space.bytes; }

std::optional<CompactionPlan> PlanCollection(const Version& version) {
  const ValueSpace space = ValueSpaceOf(version);
  if (space.garbage * kGarbageShare <= space.bytes) return std::nullopt;
  CompactionPlan plan;
  plan.reason = CompactionReason::kValueGarbage;
  plan.emptied_files = EmptiestFiles(version);
  if (plan.emptied_files.empty()) return std::nullopt;
  // The segment that points to the most of it.
  uint64_t most = 0;
  for (size_t level = 0; level < version.levels().size(); ++level) {
    for (const Run& run : version.levels()[level].runs) {
      for (const std::shared_ptr<Segment>& segment : run.segments) {
        if (segment->is_damaged()) continue;
        uint64_t bytes = 0;
        for (const ValueReference& reference : segment->info().value_files) {
          const auto& numbers = plan.emptied_files;
          if (std::binary_search(numbers.begin(), numbers.end(), reference.file_number))
            bytes += reference.bytes;
        }
        if (bytes <= most) continue;
        most = bytes;
        plan.inputs = {{static_cast<int>(level), {segment}}};
      }
    }
  }
  if (plan.inputs.empty()) return std::nullopt;
  plan.output_level = plan.inputs.front().level;
  plan.in_place = true;
  return plan;
}

}  // namespace varve
