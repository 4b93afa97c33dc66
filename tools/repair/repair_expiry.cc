// RepairJob: the index of the keys that expire.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "db/format/expiry_index.h"
#include "db/segment/segment_caches.h"
#include "tools/repair/repair_job.h"
#include "tools/repair/repair_writer.h"
#include "type/tree_key.h"
#include "util/base/coding.h"
#include "util/base/status.h"
#include "util/os/clock.h"

namespace varve {
namespace {

constexpr size_t kEntriesInMemory = 64u << 20;  // bytes that become one segment

// By their tree keys: the earliest instant for which there is such an entry, as one of several
// versions of the key may have it, too.
using Entries = std::map<std::string, uint64_t>;

std::pair<std::string, uint64_t> EntryFor(const RecordView& record, uint64_t now_ms) {
  const ExpiryIndexEntry entry = ExpiryIndexEntryFor(record.key, record.expiry_ms, now_ms);
  std::string user_key;
  EncodeExpiryIndexKey(entry, &user_key);
  return {FirstTreeKey(kExpiryGeneration) + user_key,
          entry.due_ms - ((uint64_t{1} << entry.width) - 1)};
}

}  // namespace

// An entry may be lost while its record is there; and a record may be back whose entry was removed
// when something newer had taken its place. Without an entry nobody would remove the key, and it
// would be counted for ever. So each record gets one more, newer than all that may have been
// written in its place; those that are there already harm nothing.
absl::Status RepairJob::RebuildExpiryIndex() {
  const uint64_t now_ms = RealClock().WallMillis();
  SegmentCaches caches(0, 0);
  Entries entries;
  size_t bytes = 0;
  std::vector<SegmentInfos> runs;
  const auto write = [&]() -> absl::Status {
    const uint64_t number = NewNumber();
    RepairWriter writer(file_system_, directory_, number,
                        entries.empty() ? 0 : bytes / entries.size(), {});
    for (const auto& [key, earliest_ms] : entries) {
      std::string value;
      PutFixed64(&value, earliest_ms);
      VARVE_RETURN_IF_ERROR(
          writer.Add({.key = key, .value = value, .sequence = plan_.manifest.flushed_sequence}));
    }
    VARVE_ASSIGN_OR_RETURN(std::optional<SegmentInfo> info, writer.Finish());
    if (!info) return absl::OkStatus();
    Saved("index", fmt::format("{} entries of keys that expire are made anew in {}", entries.size(),
                               NameOf(number)));
    runs.push_back({*std::move(info)});
    entries.clear();
    bytes = 0;
    return absl::OkStatus();
  };
  for (const auto& level : plan_.manifest.levels) {
    for (const SegmentInfos& run : level) {
      for (const SegmentInfo& info : run) {
        VARVE_ASSIGN_OR_RETURN(const auto segment,
                               Segment::Open(file_system_, directory_, info, &caches));
        const std::unique_ptr<InternalIterator> records =
            segment->NewIterator(/*fill_cache=*/false);
        for (records->SeekToFirst(); records->Valid(); records->Next()) {
          const RecordView& record = records->record();
          if (GenerationOf(record.key) == kExpiryGeneration) break;
          if (record.kind != RecordKind::kValue || record.expiry_ms == 0) continue;
          const auto [entry, is_new] = entries.insert(EntryFor(record, now_ms));
          if (is_new) bytes += entry->first.size();
          if (bytes >= kEntriesInMemory) VARVE_RETURN_IF_ERROR(write());
        }
        VARVE_RETURN_IF_ERROR(records->status());
      }
    }
  }
  VARVE_RETURN_IF_ERROR(write());
  if (runs.empty()) return absl::OkStatus();
  auto& newest = plan_.manifest.levels.front();
  newest.insert(newest.begin(), runs.begin(), runs.end());
  return absl::OkStatus();
}

}  // namespace varve
