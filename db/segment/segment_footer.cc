#include "db/segment/segment_footer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "db/format/key_base.h"
#include "db/segment/segment_format.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kFirstRead = 4096;
constexpr size_t kOverflowEntrySize = 17;
constexpr size_t kTailChecked = 20;  // bytes of the tail before its checksum

struct Tail {
  uint64_t footer_offset = 0;
  uint32_t footer_size = 0;
  uint32_t footer_checksum = 0;
  uint32_t version = 0;
};

absl::StatusOr<Tail> DecodeTail(std::string_view bytes, uint64_t number, uint64_t file_size,
                                const std::string& path) {
  const uint64_t offset = file_size - kSegmentTailSize;
  if (std::memcmp(bytes.data() + 24, kSegmentMagic, sizeof(kSegmentMagic)) != 0) {
    return Corruption(path, offset + 24,
                      "segment tail: the magic is wrong; the file is no segment or was cut short");
  }
  const uint32_t expected =
      Checksum(bytes.substr(0, kTailChecked), SegmentPartSeed(number, SegmentPart::kTail));
  if (DecodeFixed32(bytes.data() + kTailChecked) != expected) {
    return Corruption(path, offset, "segment tail: wrong checksum");
  }
  if (const uint32_t version = DecodeFixed32(bytes.data() + 12);
      version < kSegmentWithoutValues || version > kSegmentFormatVersion) {
    return absl::FailedPreconditionError(
        fmt::format("{}: segment format version {} is not known to this program (it reads up to "
                    "{}); use a newer one",
                    path, version, kSegmentFormatVersion));
  }
  const Tail tail = {DecodeFixed64(bytes.data()), DecodeFixed32(bytes.data() + 8),
                     DecodeFixed32(bytes.data() + 16), DecodeFixed32(bytes.data() + 12)};
  if (tail.footer_offset > offset || tail.footer_size != offset - tail.footer_offset) {
    return Corruption(path, offset, "segment tail: the footer doesn't end where the tail begins");
  }
  return tail;
}

bool ReadValueFiles(ByteReader* reader, bool may_be_none, std::vector<ValueReference>* files) {
  uint64_t count = 0;
  if (!reader->ReadVarint64(&count) || (count == 0 && !may_be_none) ||
      count > reader->rest().size() / 2)
    return false;
  files->resize(count);
  return std::all_of(files->begin(), files->end(), [&](ValueReference& file) {
    return reader->ReadVarint64(&file.file_number) && reader->ReadVarint64(&file.bytes) &&
           file.file_number != 0;
  });
}

// Reads what each version has behind the overflow of the table.
bool ReadLaterFields(ByteReader* reader, uint32_t version, SegmentFooter* footer) {
  if (version == kSegmentWithoutValues) return true;
  footer->holds_compressed = version == kSegmentOfWholeKeys;
  if (!ReadValueFiles(reader, version > kSegmentOfPlainValues, &footer->info.value_files))
    return false;
  if (version > kSegmentOfPlainValues && !reader->ReadVarint64(&footer->dictionary_size))
    return false;
  if (version <= kSegmentOfWholeKeys) return true;
  uint8_t holds_compressed = 0;
  std::string_view base;
  if (!reader->ReadByte(&holds_compressed) || holds_compressed > 1 ||
      !reader->ReadLengthPrefixed(&base) || base.size() < kLeastSharedBytes ||
      base.size() > kMaxKeyBase)
    return false;
  footer->holds_compressed = holds_compressed != 0;
  footer->key_base = base;
  return footer->holds_compressed || footer->dictionary_size == 0;
}

bool DecodeBody(std::string_view bytes, uint32_t version, SegmentFooter* footer) {
  ByteReader reader(bytes);
  SegmentInfo& info = footer->info;
  uint64_t block_size = 0, table_pages = 0, fence_count = 0;
  for (uint64_t* field : {&info.number, &footer->data_size, &block_size, &footer->table_offset,
                          &table_pages, &footer->fences_offset, &footer->fences_size, &fence_count,
                          &footer->range_tombstones_offset, &footer->range_tombstones_size,
                          &info.entries, &info.tombstones, &info.range_tombstones,
                          &info.smallest_sequence, &info.largest_sequence}) {
    if (!reader.ReadFixed64(field)) return false;
  }
  uint8_t exclusive = 0;
  std::string_view smallest, largest;
  uint64_t overflow_count = 0;
  if (!reader.ReadByte(&exclusive) || !reader.ReadLengthPrefixed(&smallest) ||
      !reader.ReadLengthPrefixed(&largest) || !reader.ReadVarint64(&overflow_count) ||
      overflow_count > reader.rest().size() / kOverflowEntrySize) {
    return false;
  }
  if (block_size < kMinBlockSize || block_size > kMaxBlockSize ||
      !std::has_single_bit(block_size) || table_pages > UINT32_MAX || fence_count > UINT32_MAX ||
      exclusive > 1) {
    return false;
  }
  info.largest_is_exclusive = exclusive != 0;
  info.smallest = smallest;
  info.largest = largest;
  footer->block_size = static_cast<uint32_t>(block_size);
  footer->table_pages = static_cast<uint32_t>(table_pages);
  footer->fence_count = static_cast<uint32_t>(fence_count);
  footer->overflow.resize(overflow_count);
  for (OffsetTableOverflow& entry : footer->overflow) {
    if (!reader.ReadFixed64(&entry.hash) || !reader.ReadFixed64(&entry.entry.offset) ||
        !reader.ReadByte(&entry.entry.length_class)) {
      return false;
    }
  }
  return ReadLaterFields(&reader, version, footer) && reader.empty() &&
         std::is_sorted(footer->overflow.begin(), footer->overflow.end(),
                        [](const auto& a, const auto& b) { return a.hash < b.hash; });
}

// Returns whether the parts lie one behind the other without a gap.
bool IsConsistent(const SegmentFooter& footer, uint64_t number, uint64_t footer_offset) {
  for (const uint64_t part : {footer.data_size, footer.fences_size, footer.dictionary_size,
                              footer.range_tombstones_size}) {
    if (part > footer_offset) return false;
  }
  const uint64_t padded =
      (footer.data_size + kSegmentPageSize - 1) / kSegmentPageSize * kSegmentPageSize;
  return footer.info.number == number && footer.table_offset == padded &&
         footer.fences_offset ==
             footer.table_offset + uint64_t{footer.table_pages} * kOffsetTablePageSize &&
         footer.range_tombstones_offset == footer.dictionary_offset() + footer.dictionary_size &&
         footer_offset == footer.range_tombstones_offset + footer.range_tombstones_size &&
         (footer.data_size == 0) == (footer.fence_count == 0) &&
         (footer.data_size == 0) == (footer.table_pages == 0);
}

// The oldest one that has a place for everything.
uint32_t VersionFor(const SegmentFooter& footer) {
  if (!footer.key_base.empty()) return kSegmentFormatVersion;
  if (footer.holds_compressed) return kSegmentOfWholeKeys;
  return footer.info.value_files.empty() ? kSegmentWithoutValues : kSegmentOfPlainValues;
}

}  // namespace

void AppendSegmentFooter(const SegmentFooter& footer, std::string* destination) {
  const SegmentInfo& info = footer.info;
  const size_t start = destination->size();
  for (const uint64_t field :
       {info.number, footer.data_size, uint64_t{footer.block_size}, footer.table_offset,
        uint64_t{footer.table_pages}, footer.fences_offset, footer.fences_size,
        uint64_t{footer.fence_count}, footer.range_tombstones_offset, footer.range_tombstones_size,
        info.entries, info.tombstones, info.range_tombstones, info.smallest_sequence,
        info.largest_sequence}) {
    PutFixed64(destination, field);
  }
  destination->push_back(info.largest_is_exclusive ? 1 : 0);
  PutLengthPrefixed(destination, info.smallest);
  PutLengthPrefixed(destination, info.largest);
  PutVarint64(destination, footer.overflow.size());
  for (const OffsetTableOverflow& entry : footer.overflow) {
    PutFixed64(destination, entry.hash);
    PutFixed64(destination, entry.entry.offset);
    destination->push_back(static_cast<char>(entry.entry.length_class));
  }
  const uint32_t version = VersionFor(footer);
  if (version > kSegmentWithoutValues) PutVarint64(destination, info.value_files.size());
  for (const ValueReference& file : info.value_files) {
    PutVarint64(destination, file.file_number);
    PutVarint64(destination, file.bytes);
  }
  if (version > kSegmentOfPlainValues) PutVarint64(destination, footer.dictionary_size);
  if (version > kSegmentOfWholeKeys) {
    destination->push_back(footer.holds_compressed ? 1 : 0);
    PutLengthPrefixed(destination, footer.key_base);
  }
  const std::string_view body = std::string_view(*destination).substr(start);
  const uint32_t checksum = Checksum(body, SegmentPartSeed(info.number, SegmentPart::kFooter));
  std::string tail;
  PutFixed64(&tail, footer.range_tombstones_offset + footer.range_tombstones_size);
  PutFixed32(&tail, static_cast<uint32_t>(body.size()));
  PutFixed32(&tail, version);
  PutFixed32(&tail, checksum);
  PutFixed32(&tail, Checksum(tail, SegmentPartSeed(info.number, SegmentPart::kTail)));
  tail.append(kSegmentMagic, sizeof(kSegmentMagic));
  destination->append(tail);
}

absl::StatusOr<SegmentFooter> ReadSegmentFooter(const File& file, uint64_t number,
                                                uint64_t file_size, uint64_t* reads) {
  if (file_size < kSegmentTailSize)
    return Corruption(file.path(), 0, "segment: shorter than its tail");
  std::string bytes(std::min(file_size, kFirstRead), '\0');
  uint64_t begin = file_size - bytes.size();
  VARVE_ASSIGN_OR_RETURN(size_t size, file.Read(begin, bytes.size(), bytes.data()));
  if (reads != nullptr) ++*reads;
  if (size != bytes.size()) {
    return Corruption(
        file.path(), begin + size,
        fmt::format("segment: the file ends here, but has {} bytes according to the manifest",
                    file_size));
  }
  const std::string_view tail_bytes =
      std::string_view(bytes).substr(bytes.size() - kSegmentTailSize);
  VARVE_ASSIGN_OR_RETURN(const Tail tail, DecodeTail(tail_bytes, number, file_size, file.path()));
  if (tail.footer_offset < begin) {
    begin = tail.footer_offset;
    bytes.resize(tail.footer_size);
    VARVE_ASSIGN_OR_RETURN(size, file.Read(begin, bytes.size(), bytes.data()));
    if (reads != nullptr) ++*reads;
    if (size != bytes.size())
      return Corruption(file.path(), begin + size, "segment footer: the file ends in it");
  }
  const std::string_view body =
      std::string_view(bytes).substr(tail.footer_offset - begin, tail.footer_size);
  if (Checksum(body, SegmentPartSeed(number, SegmentPart::kFooter)) != tail.footer_checksum) {
    return Corruption(file.path(), tail.footer_offset, "segment footer: wrong checksum");
  }
  SegmentFooter footer;
  if (!DecodeBody(body, tail.version, &footer) ||
      !IsConsistent(footer, number, tail.footer_offset)) {
    return Corruption(file.path(), tail.footer_offset,
                      "segment footer: its fields contradict each other");
  }
  footer.info.file_size = file_size;
  return footer;
}

absl::StatusOr<std::vector<RangeTombstone>> ReadSegmentRangeTombstones(
    const File& file, const SegmentFooter& footer) {
  if (footer.range_tombstones_size == 0) return std::vector<RangeTombstone>();
  std::string bytes(footer.range_tombstones_size, '\0');
  const uint64_t offset = footer.range_tombstones_offset;
  VARVE_ASSIGN_OR_RETURN(const size_t size, file.Read(offset, bytes.size(), bytes.data()));
  std::vector<RangeTombstone> tombstones;
  if (size == bytes.size() && size >= 4) {
    const std::string_view body = std::string_view(bytes).substr(0, size - 4);
    const uint64_t seed = SegmentPartSeed(footer.info.number, SegmentPart::kRangeTombstones);
    ByteReader reader(body);
    bool good = DecodeFixed32(bytes.data() + body.size()) == Checksum(body, seed);
    while (good && !reader.empty()) {
      std::string_view begin, end;
      RangeTombstone tombstone;
      good = reader.ReadLengthPrefixed(&begin) && reader.ReadLengthPrefixed(&end) &&
             reader.ReadFixed64(&tombstone.sequence);
      tombstone.begin = begin;
      tombstone.end = end;
      tombstones.push_back(std::move(tombstone));
    }
    if (good) return tombstones;
  }
  return Corruption(file.path(), offset, "segment range tombstones: wrong checksum, or cut short");
}

}  // namespace varve
