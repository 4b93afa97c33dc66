// The sections, numbers as varints but where a size is given:
//
//   count, and of each, ascending by tag: tag, size, content
//     1  history id (8 bytes)
//     2  time file: number, bytes that hold; absent if there is none
//     3  horizons: count, and of each, ascending by namespace: id, the oldest version that can be
//        read, limit by time in milliseconds, limit in bytes, count of points, and of each,
//        ascending: the version since the point before (or since the oldest), bytes
//     4  generations that horizons keep: count, and of each, oldest first: id of the namespace,
//        generation, the version that retired it, dropped (1 byte: 0 or 1); if it was dropped: the
//        description (db/format/namespace_change.h)
//     5  retained changes: the version behind which they are retained, count of change files, and
//        of each, ascending: number, bytes that hold, the last version that it covers, the instant
//        of its last commit; a file covers what is behind the one before (or behind the first
//        version); absent if no changes are retained
//     6  feeds: count, and of each, ascending by name: name (string), position, namespace + 1 (0:
//        all of them), prefix (string), most bytes, most age in ms, instants of its creation and
//        of its last acknowledgement, lost (1 byte: 0 or 1)
//     8  clones of the past: count, and of each, ascending: generation, the instant by which keys
//        of its parent had expired (db/format/namespace_forks.h)
//     9  namespaces of which nothing is older than their horizon: count, and ids, ascending
//    10  segments of ingests: count, and of each, ascending by number: number, the version of the
//        ingest (SegmentInfo::ingested_at)
//
// A section that would be empty is absent. A reader refuses a tag that it does not know.
#include "db/version/manifest_sections.h"

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "db/format/namespace_change.h"
#include "fmt/format.h"
#include "util/base/assert.h"

namespace varve {
namespace {

// Tags. They are on disk and never change.
constexpr uint32_t kHistoryIdSection = 1, kTimesSection = 2, kHorizonsSection = 3,
                   kRetiredSection = 4, kChangesSection = 5, kFeedsSection = 6,
                   kPastClonesSection = 8, kWholeSection = 9, kIngestedSection = 10,
                   kCompressedSection = 12;
// The fewest bytes that one of each takes: a declared count never asks for more than the bytes at
// hand can hold.
constexpr size_t kMinSectionSize = 2;
constexpr size_t kMinHorizonSize = 5;
constexpr size_t kMinPointSize = 2;
constexpr size_t kMinRetiredSize = 4;
constexpr size_t kMinChangeFileSize = 4;
constexpr size_t kMinFeedSize = 9;
constexpr size_t kMinPastCloneSize = 2;
constexpr size_t kMinIngestedSize = 2;
constexpr size_t kMinCompressedSize = 7;
constexpr size_t kMinCompressedBytesSize = 5;

bool ReadCount(ByteReader* reader, size_t min_size, size_t* count) {
  uint64_t declared = 0;
  if (!reader->ReadVarint64(&declared) || declared > reader->rest().size() / min_size) return false;
  *count = declared;
  return true;
}

std::string EncodeHorizons(const std::vector<Horizon>& horizons) {
  std::string content;
  PutVarint64(&content, horizons.size());
  for (const Horizon& horizon : horizons) {
    PutVarint32(&content, horizon.space);
    PutVarint64(&content, horizon.first);
    PutVarint64(&content, horizon.limits.time_ms);
    PutVarint64(&content, horizon.limits.bytes);
    PutVarint64(&content, horizon.points.size());
    SequenceNumber before = horizon.first;
    for (const HistoryPoint& point : horizon.points) {
      VARVE_ASSERT(point.last > before);
      PutVarint64(&content, point.last - before);
      PutVarint64(&content, point.bytes);
      before = point.last;
    }
  }
  return content;
}

bool DecodePoints(ByteReader* reader, Horizon* horizon) {
  size_t count = 0;
  if (!ReadCount(reader, kMinPointSize, &count)) return false;
  SequenceNumber before = horizon->first;
  for (; count > 0; --count) {
    uint64_t since = 0, bytes = 0;
    if (!reader->ReadVarint64(&since) || !reader->ReadVarint64(&bytes)) return false;
    if (since == 0 || since > kMaxSequence - before) return false;
    before += since;
    horizon->points.push_back({before, bytes});
  }
  return true;
}

bool DecodeHorizons(ByteReader reader, std::vector<Horizon>* horizons) {
  size_t count = 0;
  if (!ReadCount(&reader, kMinHorizonSize, &count)) return false;
  for (; count > 0; --count) {
    Horizon horizon;
    if (!reader.ReadVarint32(&horizon.space) || !reader.ReadVarint64(&horizon.first) ||
        !reader.ReadVarint64(&horizon.limits.time_ms) ||
        !reader.ReadVarint64(&horizon.limits.bytes) || horizon.first > kMaxSequence ||
        !DecodePoints(&reader, &horizon)) {
      return false;
    }
    if (!horizons->empty() && horizons->back().space >= horizon.space) return false;
    horizons->push_back(std::move(horizon));
  }
  return reader.empty();
}

std::string EncodeWhole(const std::vector<Horizon>& horizons) {
  std::string ids;
  uint64_t count = 0;
  for (const Horizon& horizon : horizons) {
    if (!horizon.is_whole) continue;
    PutVarint32(&ids, horizon.space);
    ++count;
  }
  std::string content;
  if (count == 0) return content;
  PutVarint64(&content, count);
  return content.append(ids);
}

bool DecodeWhole(ByteReader reader, std::vector<Horizon>* horizons) {
  size_t count = 0;
  if (!ReadCount(&reader, 1, &count) || count == 0) return false;
  auto horizon = horizons->begin();
  for (; count > 0; --count) {
    NamespaceId space = 0;
    if (!reader.ReadVarint32(&space)) return false;
    while (horizon != horizons->end() && horizon->space < space) ++horizon;
    if (horizon == horizons->end() || horizon->space != space || horizon->is_whole) return false;
    horizon->is_whole = true;
  }
  return reader.empty();
}

std::string EncodeRetired(const std::vector<RetiredGeneration>& retired) {
  std::string content;
  PutVarint64(&content, retired.size());
  for (const RetiredGeneration& each : retired) {
    PutVarint32(&content, each.space);
    PutVarint32(&content, each.generation);
    PutVarint64(&content, each.retired_at);
    content.push_back(static_cast<char>(each.dropped != nullptr ? 1 : 0));
    if (each.dropped != nullptr) EncodeDescription(*each.dropped, &content);
  }
  return content;
}

bool DecodeRetired(ByteReader reader, std::vector<RetiredGeneration>* retired) {
  size_t count = 0;
  if (!ReadCount(&reader, kMinRetiredSize, &count)) return false;
  for (; count > 0; --count) {
    RetiredGeneration each;
    uint8_t dropped = 0;
    if (!reader.ReadVarint32(&each.space) || !reader.ReadVarint32(&each.generation) ||
        !reader.ReadVarint64(&each.retired_at) || !reader.ReadByte(&dropped) || dropped > 1) {
      return false;
    }
    if (!retired->empty() && retired->back().retired_at > each.retired_at) return false;
    if (dropped == 1) {
      NamespaceDescription description;
      description.id = each.space;
      if (!DecodeDescription(&reader, &description)) return false;
      each.dropped = std::make_shared<const NamespaceDescription>(std::move(description));
    }
    retired->push_back(std::move(each));
  }
  return reader.empty();
}

std::string EncodeChanges(const RetainedChanges& changes) {
  std::string content;
  PutVarint64(&content, changes.first);
  PutVarint64(&content, changes.files.size());
  SequenceNumber before = changes.first;
  for (const ChangeFilePlace& file : changes.files) {
    VARVE_ASSERT(file.after == before && file.last > before);
    PutVarint64(&content, file.number);
    PutVarint64(&content, file.size);
    PutVarint64(&content, file.last - before);
    PutVarint64(&content, file.last_ms);
    before = file.last;
  }
  return content;
}

bool DecodeChanges(ByteReader reader, RetainedChanges* changes) {
  size_t count = 0;
  changes->on = true;
  if (!reader.ReadVarint64(&changes->first) || changes->first > kMaxSequence ||
      !ReadCount(&reader, kMinChangeFileSize, &count))
    return false;
  SequenceNumber before = changes->first;
  for (; count > 0; --count) {
    ChangeFilePlace file;
    uint64_t covers = 0;
    if (!reader.ReadVarint64(&file.number) || !reader.ReadVarint64(&file.size) ||
        !reader.ReadVarint64(&covers) || !reader.ReadVarint64(&file.last_ms) || file.number == 0 ||
        covers == 0 || covers > kMaxSequence - before)
      return false;
    file.after = before;
    file.last = before += covers;
    changes->files.push_back(file);
  }
  return reader.empty();
}

std::string EncodeFeeds(const std::vector<FeedPlace>& feeds) {
  std::string content;
  PutVarint64(&content, feeds.size());
  for (const FeedPlace& feed : feeds) {
    PutLengthPrefixed(&content, feed.name);
    PutVarint64(&content, feed.position);
    PutVarint64(&content, feed.space ? uint64_t{*feed.space} + 1 : 0);
    PutLengthPrefixed(&content, feed.prefix);
    PutVarint64(&content, feed.most_bytes);
    PutVarint64(&content, feed.most_age_ms);
    PutVarint64(&content, feed.created_ms);
    PutVarint64(&content, feed.acknowledged_ms);
    content.push_back(static_cast<char>(feed.lost ? 1 : 0));
  }
  return content;
}

bool DecodeFeeds(ByteReader reader, std::vector<FeedPlace>* feeds) {
  size_t count = 0;
  if (!ReadCount(&reader, kMinFeedSize, &count)) return false;
  for (; count > 0; --count) {
    FeedPlace feed;
    std::string_view name, prefix;
    uint64_t space = 0;
    uint8_t lost = 0;
    if (!reader.ReadLengthPrefixed(&name) || !reader.ReadVarint64(&feed.position) ||
        !reader.ReadVarint64(&space) || !reader.ReadLengthPrefixed(&prefix) ||
        !reader.ReadVarint64(&feed.most_bytes) || !reader.ReadVarint64(&feed.most_age_ms) ||
        !reader.ReadVarint64(&feed.created_ms) || !reader.ReadVarint64(&feed.acknowledged_ms) ||
        !reader.ReadByte(&lost) || lost > 1 || space > uint64_t{~NamespaceId{0}} + 1 ||
        feed.position > kMaxSequence)
      return false;
    if (!feeds->empty() && feeds->back().name >= name) return false;
    feed.name = name;
    feed.prefix = prefix;
    feed.space = space == 0 ? std::nullopt : std::optional(static_cast<NamespaceId>(space - 1));
    feed.lost = lost == 1;
    feeds->push_back(std::move(feed));
  }
  return reader.empty();
}

std::string EncodePastClones(const std::vector<NamespaceFork>& forks) {
  std::string content;
  size_t count = 0;
  for (const NamespaceFork& fork : forks) {
    if (fork.expired_by_ms == 0) continue;
    ++count;
    PutVarint32(&content, fork.generation);
    PutVarint64(&content, fork.expired_by_ms);
  }
  if (count == 0) return {};
  std::string counted;
  PutVarint64(&counted, count);
  return counted + content;
}

bool DecodePastClones(ByteReader reader, std::vector<NamespaceFork>* forks) {
  size_t count = 0;
  if (!ReadCount(&reader, kMinPastCloneSize, &count)) return false;
  for (auto fork = forks->begin(); count > 0; --count, ++fork) {
    uint32_t generation = 0;
    if (!reader.ReadVarint32(&generation)) return false;
    fork = std::find_if(fork, forks->end(),
                        [&](const NamespaceFork& each) { return each.generation == generation; });
    if (fork == forks->end() || !reader.ReadVarint64(&fork->expired_by_ms)) return false;
  }
  return reader.empty();
}

// Calls `visit` with each segment of the manifest, which has the constness of it.
template <typename Levels, typename Visit>
void ForEachSegment(Levels* levels, const Visit& visit) {
  for (auto& level : *levels) {
    for (auto& run : level) {
      for (auto& segment : run) visit(&segment);
    }
  }
}

std::string EncodeIngested(const Manifest& manifest) {
  std::map<uint64_t, SequenceNumber> ingested;
  ForEachSegment(&manifest.levels, [&](const SegmentInfo* segment) {
    if (segment->ingested_at != kNoSequence) ingested[segment->number] = segment->ingested_at;
  });
  std::string content;
  if (ingested.empty()) return content;
  PutVarint64(&content, ingested.size());
  for (const auto& [number, version] : ingested) {
    PutVarint64(&content, number);
    PutVarint64(&content, version);
  }
  return content;
}

bool DecodeIngested(ByteReader reader, Manifest* manifest) {
  size_t count = 0;
  if (!ReadCount(&reader, kMinIngestedSize, &count) || count == 0) return false;
  std::unordered_map<uint64_t, SegmentInfo*> segments;
  ForEachSegment(&manifest->levels,
                 [&](SegmentInfo* segment) { segments[segment->number] = segment; });
  uint64_t last = 0;
  for (; count > 0; --count) {
    uint64_t number = 0, version = 0;
    if (!reader.ReadVarint64(&number) || !reader.ReadVarint64(&version) || number <= last)
      return false;
    last = number;
    const auto found = segments.find(number);
    if (found == segments.end() || version != found->second->largest_sequence) return false;
    found->second->ingested_at = version;
  }
  return reader.empty();
}

std::string EncodeCompressed(const Manifest& manifest) {
  std::map<uint64_t, const SegmentInfo*> compressed;
  ForEachSegment(&manifest.levels, [&](const SegmentInfo* segment) {
    if (!segment->compressed.empty()) compressed[segment->number] = segment;
  });
  std::string content;
  if (compressed.empty()) return content;
  PutVarint64(&content, compressed.size());
  for (const auto& [number, segment] : compressed) {
    PutVarint64(&content, number);
    PutVarint64(&content, segment->compressed.size());
    for (const CompressedBytes& each : segment->compressed) {
      PutVarint32(&content, each.generation);
      PutCompression(each.compression, &content);
      PutVarint64(&content, each.plain_bytes);
      PutVarint64(&content, each.stored_bytes);
    }
  }
  return content;
}

bool DecodeCompressedBytes(ByteReader* reader, std::vector<CompressedBytes>* compressed) {
  size_t count = 0;
  if (!ReadCount(reader, kMinCompressedBytesSize, &count) || count == 0) return false;
  for (; count > 0; --count) {
    CompressedBytes each;
    if (!reader->ReadVarint32(&each.generation) || !ReadCompression(reader, &each.compression) ||
        !reader->ReadVarint64(&each.plain_bytes) || !reader->ReadVarint64(&each.stored_bytes) ||
        (!compressed->empty() && compressed->back().generation >= each.generation))
      return false;
    compressed->push_back(each);
  }
  return true;
}

bool DecodeCompressed(ByteReader reader, Manifest* manifest) {
  size_t count = 0;
  if (!ReadCount(&reader, kMinCompressedSize, &count) || count == 0) return false;
  std::unordered_map<uint64_t, SegmentInfo*> segments;
  ForEachSegment(&manifest->levels,
                 [&](SegmentInfo* segment) { segments[segment->number] = segment; });
  uint64_t last = 0;
  for (; count > 0; --count) {
    uint64_t number = 0;
    if (!reader.ReadVarint64(&number) || number <= last) return false;
    last = number;
    const auto found = segments.find(number);
    if (found == segments.end() || !DecodeCompressedBytes(&reader, &found->second->compressed))
      return false;
  }
  return reader.empty();
}

bool DecodeSection(uint32_t tag, ByteReader content, Manifest* manifest) {
  switch (tag) {
    case kHistoryIdSection:
      return content.ReadFixed64(&manifest->history_id) && content.empty();
    case kTimesSection:
      return content.ReadVarint64(&manifest->times.number) &&
             content.ReadVarint64(&manifest->times.size) && content.empty() &&
             manifest->times.number != 0;
    case kHorizonsSection:
      return DecodeHorizons(content, &manifest->horizons);
    case kRetiredSection:
      return DecodeRetired(content, &manifest->retired);
    case kChangesSection:
      return DecodeChanges(content, &manifest->changes);
    case kFeedsSection:
      return DecodeFeeds(content, &manifest->feeds);
    case kWholeSection:
      return DecodeWhole(content, &manifest->horizons);
    case kIngestedSection:
      return DecodeIngested(content, manifest);
    case kCompressedSection:
      return DecodeCompressed(content, manifest);
    case kPastClonesSection:
      return DecodePastClones(content, &manifest->forks);
    default:
      return false;
  }
}

}  // namespace

void EncodeSections(const Manifest& manifest, std::string* bytes) {
  VARVE_ASSERT(manifest.history_id != 0);
  std::string id;
  PutFixed64(&id, manifest.history_id);
  std::vector<std::pair<uint32_t, std::string>> sections = {{kHistoryIdSection, std::move(id)}};
  if (manifest.times.number != 0) {
    std::string times;
    PutVarint64(&times, manifest.times.number);
    PutVarint64(&times, manifest.times.size);
    sections.emplace_back(kTimesSection, std::move(times));
  }
  if (!manifest.horizons.empty())
    sections.emplace_back(kHorizonsSection, EncodeHorizons(manifest.horizons));
  if (!manifest.retired.empty())
    sections.emplace_back(kRetiredSection, EncodeRetired(manifest.retired));
  if (manifest.changes.on) sections.emplace_back(kChangesSection, EncodeChanges(manifest.changes));
  if (!manifest.feeds.empty()) sections.emplace_back(kFeedsSection, EncodeFeeds(manifest.feeds));
  if (std::string past = EncodePastClones(manifest.forks); !past.empty())
    sections.emplace_back(kPastClonesSection, std::move(past));
  if (std::string whole = EncodeWhole(manifest.horizons); !whole.empty())
    sections.emplace_back(kWholeSection, std::move(whole));
  if (std::string ingested = EncodeIngested(manifest); !ingested.empty())
    sections.emplace_back(kIngestedSection, std::move(ingested));
  if (std::string compressed = EncodeCompressed(manifest); !compressed.empty())
    sections.emplace_back(kCompressedSection, std::move(compressed));
  PutVarint64(bytes, sections.size());
  for (const auto& [tag, content] : sections) {
    PutVarint32(bytes, tag);
    PutLengthPrefixed(bytes, content);
  }
}

std::string DecodeSections(ByteReader* reader, Manifest* manifest) {
  manifest->has_history = true;
  size_t count = 0;
  if (!ReadCount(reader, kMinSectionSize, &count)) return "count of sections";
  uint32_t last = 0;
  for (; count > 0; --count) {
    uint32_t tag = 0;
    std::string_view content;
    if (!reader->ReadVarint32(&tag) || tag <= last || !reader->ReadLengthPrefixed(&content))
      return "section";
    last = tag;
    if (!DecodeSection(tag, ByteReader(content), manifest)) return fmt::format("section {}", tag);
  }
  return manifest->history_id != 0 ? "" : "history id";
}

}  // namespace varve
