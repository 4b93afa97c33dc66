#include "db/compaction/purge.h"

#include <algorithm>
#include <utility>

#include "db/format/expiry_index.h"
#include "db/format/file_names.h"
#include "db/values/value_file_format.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr size_t kReadSize = 1u << 20;

// Walks one segment in search of a key.
class SegmentSearch {
 public:
  SegmentSearch(Segment* segment, const PurgedKey& purged,
                const std::function<bool(NamespaceGeneration)>& is_live)
      : segment_(*segment), purged_(purged), is_live_(is_live) {}

  absl::StatusOr<bool> Finds() {
    const SegmentInfo& info = segment_.info();
    const NamespaceGeneration first = GenerationOf(info.smallest);
    if (first == GenerationOf(info.largest) && first != kExpiryGeneration) {
      if (is_live_(first) && !IsPurged(first)) return false;
      const TreeKey key(first, purged_.user_key);
      if (key.view() < info.smallest || !ReachesTo(info, key.view()) ||
          !segment_.MayContain(HashKey(key.view())))
        return false;
    }
    return Walk(first);
  }

 private:
  bool IsPurged(NamespaceGeneration generation) const {
    return std::binary_search(purged_.generations.begin(), purged_.generations.end(), generation);
  }

  // From one generation that the segment holds to the next.
  absl::StatusOr<bool> Walk(NamespaceGeneration first) {
    const std::unique_ptr<InternalIterator> records = segment_.NewIterator(/*fill_cache=*/false);
    std::string next = FirstTreeKey(first);
    for (records->Seek(next, kMaxSequence); records->Valid(); records->Seek(next, kMaxSequence)) {
      const NamespaceGeneration generation = GenerationOf(records->record().key);
      if (generation == kExpiryGeneration) return WalkIndex(records.get());
      if (!is_live_(generation) || IsPurged(generation)) {
        const TreeKey key(generation, purged_.user_key);
        records->Seek(key.view(), purged_.up_to);
        if (records->Valid() && records->record().key == key.view()) return true;
      }
      next = EndTreeKey(generation);
    }
    VARVE_RETURN_IF_ERROR(records->status());
    return false;
  }

  absl::StatusOr<bool> WalkIndex(InternalIterator* records) {
    for (; records->Valid(); records->Next()) {
      if (records->record().sequence <= purged_.up_to && IsOfKey(records->record().key))
        return true;
    }
    VARVE_RETURN_IF_ERROR(records->status());
    return false;
  }
  bool IsOfKey(std::string_view index_key) const {
    const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(UserKeyOf(index_key));
    if (!entry || UserKeyOf(entry->tree_key) != purged_.user_key) return false;
    const NamespaceGeneration generation = GenerationOf(entry->tree_key);
    return IsPurged(generation) || !is_live_(generation);
  }

  Segment& segment_;
  const PurgedKey& purged_;
  const std::function<bool(NamespaceGeneration)>& is_live_;
};

// Returns whether the file's bytes hold the user key behind a generation below `generations`.
absl::StatusOr<bool> HoldsKey(const File& file, std::string_view user_key,
                              NamespaceGeneration generations) {
  const size_t overlap = kGenerationSize + user_key.size() - 1;
  std::string bytes;  // what of the file lies before `offset`, as far as a key may begin there
  for (uint64_t offset = 0;;) {
    const size_t kept = bytes.size();
    bytes.resize(kept + kReadSize);
    VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(offset, kReadSize, bytes.data() + kept));
    bytes.resize(kept + read);
    const std::string_view view = bytes;
    for (size_t at = view.find(user_key, kGenerationSize); at != std::string_view::npos;
         at = view.find(user_key, at + 1)) {
      const NamespaceGeneration generation = GenerationOf(view.substr(at - kGenerationSize));
      if (generation != kNoGeneration && generation < generations) return true;
    }
    if (read < kReadSize) return false;
    offset += read;
    bytes.erase(0, bytes.size() - std::min(overlap, bytes.size()));
  }
}

// Returns whether segments point to all of the file but its header. Nothing of another key is in
// it then.
bool IsAllInUse(const Version::ValueFileUse& use) {
  const uint64_t size = use.file->Size();
  return size != 0 && size <= use.live_bytes + kValueFilePageSize;
}

}  // namespace

bool PurgedKey::Names(std::string_view tree_key) const {
  if (GenerationOf(tree_key) == kExpiryGeneration) {
    const std::optional<ExpiryIndexEntry> entry = DecodeExpiryIndexKey(UserKeyOf(tree_key));
    return entry && GenerationOf(entry->tree_key) != kExpiryGeneration && Names(entry->tree_key);
  }
  return UserKeyOf(tree_key) == user_key &&
         std::binary_search(generations.begin(), generations.end(), GenerationOf(tree_key));
}

absl::StatusOr<std::vector<CompactionPlan::Input>> SegmentsToPurge(
    const Version& version, const PurgedKey& purged,
    const std::function<bool(NamespaceGeneration)>& is_live) {
  std::vector<CompactionPlan::Input> found;
  for (size_t level = version.levels().size(); level-- > 0;) {
    const std::vector<Run>& runs = version.levels()[level].runs;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      for (const std::shared_ptr<Segment>& segment : run->segments) {
        VARVE_ASSIGN_OR_RETURN(const bool finds,
                               SegmentSearch(segment.get(), purged, is_live).Finds());
        if (finds) found.push_back({static_cast<int>(level), {segment}});
      }
    }
  }
  return found;
}

CompactionPlan PlanRewrite(CompactionPlan::Input input) {
  CompactionPlan plan;
  plan.reason = CompactionReason::kRange;
  plan.output_level = input.level;
  plan.in_place = true;
  plan.inputs.push_back(std::move(input));
  return plan;
}

absl::StatusOr<std::vector<uint64_t>> ValueFilesWithKey(FileSystem* file_system,
                                                        const std::string& directory,
                                                        const Version& version,
                                                        std::string_view user_key,
                                                        NamespaceGeneration generations) {
  std::vector<uint64_t> numbers;
  for (const Version::ValueFileUse& use : version.value_files()) {
    if (use.file->is_of_log() || IsAllInUse(use)) continue;
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForRead(ValueFilePath(directory, use.file->number())));
    VARVE_ASSIGN_OR_RETURN(const bool holds, HoldsKey(*file, user_key, generations));
    if (holds) numbers.push_back(use.file->number());
  }
  return numbers;
}

std::optional<CompactionPlan> PlanEmptying(const Version& version,
                                           const std::vector<uint64_t>& numbers) {
  for (size_t level = 0; level < version.levels().size(); ++level) {
    for (const Run& run : version.levels()[level].runs) {
      for (const std::shared_ptr<Segment>& segment : run.segments) {
        const std::vector<ValueReference>& files = segment->info().value_files;
        if (std::none_of(files.begin(), files.end(), [&](const ValueReference& reference) {
              return std::binary_search(numbers.begin(), numbers.end(), reference.file_number);
            }))
          continue;
        CompactionPlan plan = PlanRewrite({static_cast<int>(level), {segment}});
        plan.emptied_files = numbers;
        return plan;
      }
    }
  }
  return std::nullopt;
}

}  // namespace varve
