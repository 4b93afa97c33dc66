// The fields behind the header, numbers as varints but where a size is given:
//
//   store id (8 bytes), next file number, flushed sequence, next generation,
//   clean end (1 byte: 0 or 1)
//   namespaces: count, and of each: id, generation
//   log ends:   count, and of each: file number, offset, last sequence
//   levels:     count, and of each: count of runs, and of each: count of segments, and of each:
//     number, file size, records, tombstones, range tombstones, smallest sequence, largest
//     sequence, flags (1 byte; bit 0: the largest key is exclusive, bit 1: the segment holds
//     records of a clone's generation, from version 4 on bit 2: the key counts do not say what
//     expires), smallest key, largest key (length-prefixed), key counts of its live keys; from
//     version 3 on: value files: count, and of each: number, bytes referred to
//   counted groups: count, and of each: count of segments, the number of each, ascending; key
//   counts
//
//   from version 2 on:
//   clock mark, the next id of a named namespace, less the first id that a named one may have
//   descriptions of namespaces: count, and of each, ascending: id, and the description that
//     db/format/namespace_change.h draws
//   forks: count, and of each, ascending: generation, its parent, the fork point
//   key counts of the parents at the fork points, by forked generation, where they are known
//
//   from version 5 on:
//   sections: count, and of each, ascending by tag: tag (varint32), size (varint32), content
//     db/version/manifest_sections.cc draws them
//
//   key counts: count, and of each, ascending: generation, keys, bytes (both zigzag); from version
//     4 on: keys that expire (zigzag), the sum of the instants at which they expire, in
//     milliseconds since the epoch: its upper 64 bits (zigzag), its lower 64 bits
//
// The checksum is seeded with the format version.
#include "db/version/manifest.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "db/format/file_names.h"
#include "db/format/namespace_change.h"
#include "db/version/manifest_sections.h"
#include "fmt/format.h"
#include "type/version.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kMagic = "VARVEMAN";
// Of each manifest of a store that shares keys, and of each other one with declared groups, whose
// store shares keys once it is opened again.
constexpr uint32_t kVersionOfSharedKeys = 7;
constexpr uint32_t kVersionOfEviction = 6;     // of each other manifest with eviction rules
constexpr uint32_t kVersionOfHistory = 5;      // of each other manifest of a store with history
constexpr uint32_t kVersionOfExpiry = 4;       // and of no manifest where no key may expire
constexpr uint32_t kVersionOfValues = 3;       // and of no manifest without
constexpr uint32_t kVersionWithoutValues = 2;  // also today
constexpr uint32_t kOldestFormatVersion = 1;
static_assert(kManifestFormatVersion == kVersionOfSharedKeys);
constexpr size_t kChecksumOffset = 12;
constexpr size_t kCheckedOffset = 16;
constexpr size_t kFieldsOffset = 24;
// The fewest bytes that one of each takes: a declared count never asks for more than the bytes at
// hand can hold.
constexpr size_t kMinNamespaceSize = 2;
constexpr size_t kMinLogEndSize = 3;
constexpr size_t kMinSegmentSize = 11 + 2 * kGenerationSize;
constexpr size_t kMinCountedGroupSize = 2;
constexpr size_t kMinValueReferenceSize = 2;
constexpr size_t kMinKeyCountsSize = 3;
constexpr size_t kMinDescriptionSize = 7;
constexpr size_t kMinForkSize = 3;
constexpr uint8_t kLargestIsExclusive = 1, kOfClones = 2, kExpiryUncounted = 4;  // of a segment

absl::StatusOr<Manifest> ReadManifestFile(FileSystem* file_system, const std::string& path) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  std::string bytes(size, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.size(), bytes.data()));
  bytes.resize(read);
  return DecodeManifest(bytes, path);
}

// Under a temporary name, synced, then under its own.
absl::Status PutInPlace(FileSystem* file_system, std::string_view bytes,
                        const std::string& temporary, const std::string& path) {
  const absl::Status written = [&]() -> absl::Status {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system->OpenForWrite(temporary, /*create=*/true));
    VARVE_RETURN_IF_ERROR(file->Write(0, bytes));
    return file->Sync();
  }();
  if (written.ok()) return file_system->Rename(temporary, path);
  (void)file_system->Remove(temporary);  // the space may be needed
  return written;
}

// Small numbers of either sign become small ones without.
uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1 ^ (0 - (value & 1))); }

void EncodeKeyCounts(const GenerationKeyCounts& counts, uint32_t version, std::string* bytes) {
  PutVarint64(bytes, counts.entries().size());
  for (const GenerationKeyCounts::Entry& entry : counts.entries()) {
    PutVarint32(bytes, entry.generation);
    PutVarint64(bytes, ZigZag(entry.counts.keys));
    PutVarint64(bytes, ZigZag(entry.counts.bytes));
    if (version < kVersionOfExpiry) continue;
    PutVarint64(bytes, ZigZag(entry.counts.expiring));
    PutVarint64(bytes, ZigZag(absl::Int128High64(entry.counts.expiry_ms)));
    PutVarint64(bytes, absl::Int128Low64(entry.counts.expiry_ms));
  }
}

void EncodeSegment(const SegmentInfo& segment, uint32_t version, std::string* bytes) {
  PutVarint64(bytes, segment.number);
  PutVarint64(bytes, segment.file_size);
  PutVarint64(bytes, segment.entries);
  PutVarint64(bytes, segment.tombstones);
  PutVarint64(bytes, segment.range_tombstones);
  PutVarint64(bytes, segment.smallest_sequence);
  PutVarint64(bytes, segment.largest_sequence);
  bytes->push_back(static_cast<char>((segment.largest_is_exclusive ? kLargestIsExclusive : 0) |
                                     (segment.of_clones ? kOfClones : 0) |
                                     (segment.expiry_is_counted ? 0 : kExpiryUncounted)));
  PutLengthPrefixed(bytes, segment.smallest);
  PutLengthPrefixed(bytes, segment.largest);
  EncodeKeyCounts(segment.live, version, bytes);
  if (version < kVersionOfValues) return;
  PutVarint64(bytes, segment.value_files.size());
  for (const ValueReference& file : segment.value_files) {
    PutVarint64(bytes, file.file_number);
    PutVarint64(bytes, file.bytes);
  }
}

bool CountsExpiry(const GenerationKeyCounts& counts) {
  return std::any_of(counts.entries().begin(), counts.entries().end(), [](const auto& entry) {
    return entry.counts.expiring != 0 || entry.counts.expiry_ms != 0;
  });
}

// Returns whether something in the manifest needs the version that counts what expires.
bool NeedsPlaceForExpiry(const Manifest& manifest) {
  if (MayHoldExpiries(manifest) || CountsExpiry(manifest.parent_counts)) return true;
  for (const CountedGroup& group : manifest.counted_groups) {
    if (CountsExpiry(group.change)) return true;
  }
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) {
        if (!segment.expiry_is_counted || CountsExpiry(segment.live)) return true;
      }
    }
  }
  return false;
}

bool HasEvictionRules(const Manifest& manifest) {
  return std::any_of(manifest.descriptions.begin(), manifest.descriptions.end(),
                     [](const NamespaceDescription& space) { return space.options.eviction.on(); });
}

bool DeclaresGroups(const Manifest& manifest) {
  return std::any_of(
      manifest.descriptions.begin(), manifest.descriptions.end(),
      [](const NamespaceDescription& space) { return space.options.grouping.declared(); });
}

uint32_t VersionWithHistory(const Manifest& manifest) {
  if (manifest.shares_keys || DeclaresGroups(manifest)) return kVersionOfSharedKeys;
  return HasEvictionRules(manifest) ? kVersionOfEviction : kVersionOfHistory;
}

// The oldest one that has a place for everything: what refers to no value files and knows no
// expiries is as it always was.
uint32_t VersionFor(const Manifest& manifest) {
  if (manifest.shares_keys || manifest.has_history) return VersionWithHistory(manifest);
  if (manifest.counts_expiry && NeedsPlaceForExpiry(manifest)) return kVersionOfExpiry;
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) {
        if (!segment.value_files.empty()) return kVersionOfValues;
      }
    }
  }
  return kVersionWithoutValues;
}

// Reads the fields in order and remembers what was wrong first.
class ManifestReader {
 public:
  ManifestReader(std::string_view fields, uint32_t version, const std::string& path)
      : reader_(fields), version_(version), path_(path) {}

  absl::Status Read(Manifest* manifest) {
    if (!reader_.ReadFixed64(&manifest->store_id)) return Damaged("store id");
    if (!reader_.ReadVarint64(&manifest->next_file_number)) return Damaged("next file number");
    if (!reader_.ReadVarint64(&manifest->flushed_sequence)) return Damaged("flushed sequence");
    if (!reader_.ReadVarint32(&manifest->next_generation)) return Damaged("next generation");
    if (!ReadBool(&manifest->clean_end)) return Damaged("clean end");
    size_t count = 0;
    if (!ReadCount(kMinNamespaceSize, &count)) return Damaged("count of namespaces");
    manifest->namespaces.resize(count);
    for (size_t i = 0; i < count; ++i) {
      ManifestNamespace& space = manifest->namespaces[i];
      if (!reader_.ReadVarint32(&space.id) || !reader_.ReadVarint32(&space.generation))
        return Damaged("namespace");
      if (i > 0 && manifest->namespaces[i - 1].id >= space.id)
        return Damaged("namespaces are out of order");
    }
    if (!ReadCount(kMinLogEndSize, &count)) return Damaged("count of log ends");
    manifest->log_ends.resize(count);
    for (LogEnd& end : manifest->log_ends) {
      if (!reader_.ReadVarint64(&end.file_number) || !reader_.ReadVarint64(&end.offset) ||
          !reader_.ReadVarint64(&end.last_sequence)) {
        return Damaged("log end");
      }
    }
    VARVE_RETURN_IF_ERROR(ReadLevels(&manifest->levels));
    VARVE_RETURN_IF_ERROR(ReadCountedGroups(&manifest->counted_groups));
    if (version_ >= 2 && !reader_.ReadVarint64(&manifest->clock_mark)) return Damaged("clock mark");
    if (version_ >= 2) VARVE_RETURN_IF_ERROR(ReadDescriptions(manifest));
    if (version_ >= 2) VARVE_RETURN_IF_ERROR(ReadForks(manifest));
    if (version_ == kVersionOfValues && !refers_to_values_)
      return Damaged("it refers to no value files");
    manifest->counts_expiry = version_ >= kVersionOfExpiry;
    if (version_ == kVersionOfExpiry && !NeedsPlaceForExpiry(*manifest))
      return Damaged("it holds no key that expires");
    manifest->shares_keys = version_ == kVersionOfSharedKeys;
    if (version_ >= kVersionOfHistory && version_ != VersionWithHistory(*manifest))
      return Damaged("its namespaces have options of another version");
    if (version_ >= kVersionOfHistory) {
      const std::string damaged = DecodeSections(&reader_, manifest);
      if (!damaged.empty()) return Damaged(damaged);
    }
    return reader_.empty() ? absl::OkStatus() : Damaged("bytes behind the last field");
  }

 private:
  absl::Status ReadLevels(std::vector<std::vector<std::vector<SegmentInfo>>>* levels) {
    size_t count = 0;
    if (!ReadCount(1, &count)) return Damaged("count of levels");
    levels->resize(count);
    for (std::vector<std::vector<SegmentInfo>>& level : *levels) {
      if (!ReadCount(1, &count)) return Damaged("count of runs");
      level.resize(count);
      for (std::vector<SegmentInfo>& run : level) {
        if (!ReadCount(kMinSegmentSize, &count)) return Damaged("count of segments");
        run.resize(count);
        for (size_t i = 0; i < count; ++i) {
          if (!ReadSegment(&run[i])) return Damaged("segment");
          if (i > 0 && !Follows(run[i - 1], run[i])) return Damaged("segments of a run overlap");
        }
      }
    }
    return absl::OkStatus();
  }

  bool ReadSegment(SegmentInfo* segment) {
    std::string_view smallest, largest;
    uint8_t flags = 0;
    if (!reader_.ReadVarint64(&segment->number) || !reader_.ReadVarint64(&segment->file_size) ||
        !reader_.ReadVarint64(&segment->entries) || !reader_.ReadVarint64(&segment->tombstones) ||
        !reader_.ReadVarint64(&segment->range_tombstones) ||
        !reader_.ReadVarint64(&segment->smallest_sequence) ||
        !reader_.ReadVarint64(&segment->largest_sequence) || !reader_.ReadByte(&flags) ||
        !reader_.ReadLengthPrefixed(&smallest) || !reader_.ReadLengthPrefixed(&largest) ||
        !ReadKeyCounts(&segment->live) ||
        (version_ >= kVersionOfValues && !ReadValueFiles(&segment->value_files))) {
      return false;
    }
    if (smallest.size() < kGenerationSize || largest.size() < kGenerationSize || smallest > largest)
      return false;
    const uint8_t known =
        kLargestIsExclusive | kOfClones | (version_ >= kVersionOfExpiry ? kExpiryUncounted : 0);
    if ((flags & ~known) != 0) return false;
    segment->largest_is_exclusive = (flags & kLargestIsExclusive) != 0;
    segment->of_clones = (flags & kOfClones) != 0;
    segment->expiry_is_counted = (flags & kExpiryUncounted) == 0;
    segment->smallest = smallest;
    segment->largest = largest;
    return true;
  }

  bool ReadValueFiles(std::vector<ValueReference>* files) {
    size_t count = 0;
    if (!ReadCount(kMinValueReferenceSize, &count)) return false;
    refers_to_values_ |= count > 0;
    files->resize(count);
    return std::all_of(files->begin(), files->end(), [this](ValueReference& file) {
      return reader_.ReadVarint64(&file.file_number) && reader_.ReadVarint64(&file.bytes) &&
             file.file_number != 0;
    });
  }

  absl::Status ReadCountedGroups(std::vector<CountedGroup>* groups) {
    size_t count = 0;
    if (!ReadCount(kMinCountedGroupSize, &count)) return Damaged("count of counted groups");
    groups->resize(count);
    for (CountedGroup& group : *groups) {
      if (!ReadCount(1, &count)) return Damaged("counted group");
      group.segments.resize(count);
      for (size_t i = 0; i < count; ++i) {
        if (!reader_.ReadVarint64(&group.segments[i])) return Damaged("counted group");
        if (i > 0 && group.segments[i] <= group.segments[i - 1])
          return Damaged("counted group is out of order");
      }
      if (!ReadKeyCounts(&group.change)) return Damaged("counted group");
    }
    return absl::OkStatus();
  }

  absl::Status ReadDescriptions(Manifest* manifest) {
    uint32_t named = 0;
    if (!reader_.ReadVarint32(&named) || named > kSelectedNamespace - kFirstNamedNamespace) {
      return Damaged("next namespace");
    }
    manifest->next_named_namespace = kFirstNamedNamespace + named;
    size_t count = 0;
    if (!ReadCount(kMinDescriptionSize, &count)) return Damaged("count of descriptions");
    manifest->descriptions.resize(count);
    for (size_t i = 0; i < count; ++i) {
      NamespaceDescription& space = manifest->descriptions[i];
      if (!reader_.ReadVarint32(&space.id) || !DecodeDescription(&reader_, &space))
        return Damaged("description");
      if (i > 0 && manifest->descriptions[i - 1].id >= space.id)
        return Damaged("descriptions are out of order");
    }
    return absl::OkStatus();
  }

  absl::Status ReadForks(Manifest* manifest) {
    size_t count = 0;
    if (!ReadCount(kMinForkSize, &count)) return Damaged("count of forks");
    manifest->forks.resize(count);
    for (size_t i = 0; i < count; ++i) {
      NamespaceFork& fork = manifest->forks[i];
      if (!reader_.ReadVarint32(&fork.generation) || !reader_.ReadVarint32(&fork.parent) ||
          !reader_.ReadVarint64(&fork.fork_point)) {
        return Damaged("fork");
      }
      // Generations are numbered as they come, so a generation that descends from itself is
      // refused.
      if (fork.parent >= fork.generation) return Damaged("a parent is younger than its clone");
      if (i > 0 && manifest->forks[i - 1].generation >= fork.generation)
        return Damaged("forks are out of order");
    }
    return ReadKeyCounts(&manifest->parent_counts) ? absl::OkStatus()
                                                   : Damaged("key counts of parents");
  }

  bool ReadKeyCounts(GenerationKeyCounts* counts) {
    size_t count = 0;
    if (!ReadCount(kMinKeyCountsSize, &count)) return false;
    for (; count > 0; --count) {
      NamespaceGeneration generation = 0;
      uint64_t keys = 0, bytes = 0, expiring = 0, expiry_high = 0, expiry_low = 0;
      if (!reader_.ReadVarint32(&generation) || !reader_.ReadVarint64(&keys) ||
          !reader_.ReadVarint64(&bytes)) {
        return false;
      }
      if (version_ >= kVersionOfExpiry &&
          (!reader_.ReadVarint64(&expiring) || !reader_.ReadVarint64(&expiry_high) ||
           !reader_.ReadVarint64(&expiry_low))) {
        return false;
      }
      if (!counts->entries().empty() && counts->entries().back().generation >= generation)
        return false;
      counts->Add(generation, {UnZigZag(keys), UnZigZag(bytes), UnZigZag(expiring),
                               absl::MakeInt128(UnZigZag(expiry_high), expiry_low)});
    }
    return true;
  }

  static bool Follows(const SegmentInfo& before, const SegmentInfo& after) {
    return before.largest_is_exclusive ? before.largest <= after.smallest
                                       : before.largest < after.smallest;
  }

  bool ReadCount(size_t min_size, size_t* count) {
    uint64_t declared = 0;
    if (!reader_.ReadVarint64(&declared) || declared > reader_.rest().size() / min_size)
      return false;
    *count = declared;
    return true;
  }

  bool ReadBool(bool* value) {
    uint8_t byte = 0;
    if (!reader_.ReadByte(&byte) || byte > 1) return false;
    *value = byte == 1;
    return true;
  }

  absl::Status Damaged(std::string_view what) const {
    return Corruption(path_, kFieldsOffset + reader_.position(), fmt::format("manifest: {}", what));
  }

  ByteReader reader_;
  bool refers_to_values_ = false;
  const uint32_t version_;
  const std::string& path_;
};

}  // namespace

std::unordered_set<uint64_t> ValueFileNumbers(const Manifest& manifest) {
  std::unordered_set<uint64_t> numbers;
  for (const auto& level : manifest.levels) {
    for (const auto& run : level) {
      for (const SegmentInfo& segment : run) {
        for (const ValueReference& file : segment.value_files) numbers.insert(file.file_number);
      }
    }
  }
  return numbers;
}

std::string EncodeManifest(const Manifest& manifest) {
  const uint32_t version = VersionFor(manifest);
  std::string bytes(kMagic);
  PutFixed32(&bytes, version);
  PutFixed32(&bytes, 0);  // checksum and size follow when the rest is known
  PutFixed64(&bytes, 0);
  PutFixed64(&bytes, manifest.store_id);
  PutVarint64(&bytes, manifest.next_file_number);
  PutVarint64(&bytes, manifest.flushed_sequence);
  PutVarint32(&bytes, manifest.next_generation);
  bytes.push_back(manifest.clean_end ? '\1' : '\0');
  PutVarint64(&bytes, manifest.namespaces.size());
  for (const ManifestNamespace& space : manifest.namespaces) {
    PutVarint32(&bytes, space.id);
    PutVarint32(&bytes, space.generation);
  }
  PutVarint64(&bytes, manifest.log_ends.size());
  for (const LogEnd& end : manifest.log_ends) {
    PutVarint64(&bytes, end.file_number);
    PutVarint64(&bytes, end.offset);
    PutVarint64(&bytes, end.last_sequence);
  }
  PutVarint64(&bytes, manifest.levels.size());
  for (const std::vector<std::vector<SegmentInfo>>& level : manifest.levels) {
    PutVarint64(&bytes, level.size());
    for (const std::vector<SegmentInfo>& run : level) {
      PutVarint64(&bytes, run.size());
      for (const SegmentInfo& segment : run) EncodeSegment(segment, version, &bytes);
    }
  }
  PutVarint64(&bytes, manifest.counted_groups.size());
  for (const CountedGroup& group : manifest.counted_groups) {
    PutVarint64(&bytes, group.segments.size());
    for (const uint64_t number : group.segments) PutVarint64(&bytes, number);
    EncodeKeyCounts(group.change, version, &bytes);
  }
  PutVarint64(&bytes, manifest.clock_mark);
  PutVarint32(&bytes, manifest.next_named_namespace - kFirstNamedNamespace);
  PutVarint64(&bytes, manifest.descriptions.size());
  for (const NamespaceDescription& space : manifest.descriptions) {
    PutVarint32(&bytes, space.id);
    EncodeDescription(space, &bytes);
  }
  PutVarint64(&bytes, manifest.forks.size());
  for (const NamespaceFork& fork : manifest.forks) {
    PutVarint32(&bytes, fork.generation);
    PutVarint32(&bytes, fork.parent);
    PutVarint64(&bytes, fork.fork_point);
  }
  EncodeKeyCounts(manifest.parent_counts, version, &bytes);
  if (version >= kVersionOfHistory) EncodeSections(manifest, &bytes);
  EncodeFixed64(bytes.data() + kCheckedOffset, bytes.size() - kFieldsOffset);
  const std::string_view checked = std::string_view(bytes).substr(kCheckedOffset);
  EncodeFixed32(bytes.data() + kChecksumOffset, Checksum(checked, version));
  return bytes;
}

absl::StatusOr<Manifest> DecodeManifest(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kFieldsOffset)
    return Corruption(path, bytes.size(), "manifest: shorter than its header");
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return Corruption(path, 0, "manifest: no manifest begins like this");
  const uint32_t version = DecodeFixed32(bytes.data() + kMagic.size());
  const uint64_t size = DecodeFixed64(bytes.data() + kCheckedOffset);
  const uint32_t expected = DecodeFixed32(bytes.data() + kChecksumOffset);
  const uint32_t checksum = Checksum(bytes.substr(kCheckedOffset), version);
  if (version < kOldestFormatVersion || version > kManifestFormatVersion) {
    const std::string what = fmt::format("manifest: format version {}, this program reads {} to {}",
                                         version, kOldestFormatVersion, kManifestFormatVersion);
    // A repair must not take what a newer program has written for damaged.
    const bool is_whole = size == bytes.size() - kFieldsOffset && checksum == expected;
    if (is_whole && version > kManifestFormatVersion)
      return absl::FailedPreconditionError(fmt::format("{}: {}; use a newer one", path, what));
    return Corruption(path, kMagic.size(), what);
  }
  if (size != bytes.size() - kFieldsOffset) {
    return Corruption(path, kCheckedOffset,
                      fmt::format("manifest: {} bytes of fields, expected {}",
                                  bytes.size() - kFieldsOffset, size));
  }
  if (checksum != expected) {
    return Corruption(
        path, kCheckedOffset,
        fmt::format("manifest: checksum {:#010x}, expected {:#010x}", checksum, expected));
  }
  Manifest manifest;
  VARVE_RETURN_IF_ERROR(ManifestReader(bytes.substr(kFieldsOffset), version, path).Read(&manifest));
  return manifest;
}

absl::StatusOr<Manifest> ReadManifest(FileSystem* file_system, const std::string& directory) {
  return ReadManifestFile(file_system, ManifestPath(directory));
}

absl::StatusOr<Manifest> ReadManifestCopy(FileSystem* file_system, const std::string& directory) {
  return ReadManifestFile(file_system, ManifestCopyPath(directory));
}

absl::Status WriteManifest(FileSystem* file_system, const std::string& directory,
                           const Manifest& manifest) {
  const std::string bytes = EncodeManifest(manifest);
  const std::string temporary = ManifestPath(directory) + ".tmp";
  VARVE_RETURN_IF_ERROR(PutInPlace(file_system, bytes, temporary, ManifestPath(directory)));
  VARVE_RETURN_IF_ERROR(PutInPlace(file_system, bytes, temporary, ManifestCopyPath(directory)));
  return file_system->SyncDirectory(directory);
}

}  // namespace varve
