#include "tools/segment_verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "db/format/key_base.h"
#include "db/format/record_format.h"
#include "db/format/value_handle.h"
#include "db/segment/segment_dictionary.h"
#include "db/segment/segment_fences.h"
#include "db/segment/segment_footer.h"
#include "db/segment/segment_format.h"
#include "db/segment/segment_index.h"
#include "db/segment/segment_values.h"
#include "tools/segment_survey.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;

// Reads the data from front to back.
class DataVerifier {
 public:
  DataVerifier(const File& file, const SegmentFooter& footer, const SegmentIndex& index,
               const ValueDictionary* dictionary)
      : file_(file),
        footer_(footer),
        index_(index),
        dictionary_(dictionary),
        fences_(footer.block_size) {
    keys_.SetBase(footer.key_base);
  }

  absl::Status Run() {
    uint64_t wanted = kPiece;
    while (offset_ < footer_.data_size) {
      const uint64_t size = std::min(wanted, footer_.data_size - offset_);
      piece_.resize(size);
      VARVE_ASSIGN_OR_RETURN(const size_t read, file_.Read(offset_, size, piece_.data()));
      if (read != size)
        return Corruption(file_.path(), offset_ + read, "segment: the file ends within its data");
      VARVE_ASSIGN_OR_RETURN(wanted, CheckPiece());
    }
    VARVE_RETURN_IF_ERROR(CheckFences());
    referenced_.resize(footer_.info.value_files.size());
    for (size_t i = 0; i < referenced_.size(); ++i) {
      if (referenced_[i] == footer_.info.value_files[i].bytes) continue;
      return Corruption(
          file_.path(), footer_.range_tombstones_offset + footer_.range_tombstones_size,
          "segment footer: it counts other bytes of values than its records refer to");
    }
    if (entries_ != footer_.info.entries || tombstones_ != footer_.info.tombstones) {
      return Corruption(
          file_.path(), footer_.range_tombstones_offset + footer_.range_tombstones_size,
          fmt::format(
              "segment footer: it counts {} records and {} tombstones, but there are {} and {}",
              footer_.info.entries, footer_.info.tombstones, entries_, tombstones_));
    }
    return absl::OkStatus();
  }

 private:
  // Checks the records that are whole in piece_; returns how much to read next.
  absl::StatusOr<uint64_t> CheckPiece() {
    std::string_view rest = piece_;
    while (!rest.empty()) {
      RecordView record;
      uint32_t shared = 0;
      const size_t size =
          DecodeRecord(rest, footer_.info.number, ChecksumMode::kVerify, &record, &shared);
      if (size == 0) {
        const uint64_t available = footer_.data_size - offset_;
        const uint64_t needed = std::max<uint64_t>(RecordSize(rest), kMaxRecordHeaderSize);
        if (needed <= rest.size() || rest.size() == available || RecordSize(rest) > available) {
          return Corruption(file_.path(), offset_, "segment record: wrong checksum or size");
        }
        return std::max(kPiece, needed);
      }
      VARVE_RETURN_IF_ERROR(MakeKeyWhole(shared, &record));
      VARVE_RETURN_IF_ERROR(CheckRecord(record, size));
      rest.remove_prefix(size);
      offset_ += size;
    }
    return kPiece;
  }

  // The key base is the beginning of the first key, and each record leaves as much to it as it can,
  // or nothing.
  absl::Status MakeKeyWhole(uint32_t shared, RecordView* record) {
    const std::string& base = footer_.key_base;
    const bool is_first = entries_ == 0;
    if (shared == 0 && (!is_first || base.empty() || KeyBaseOf(record->key) == base))
      return absl::OkStatus();
    const size_t readable = record->key.size() + record->value.size();
    if (!is_first && shared != 0 && keys_.Join(shared, readable, &record->key) &&
        SharedBytes(base, record->key) == shared)
      return absl::OkStatus();
    return Corruption(file_.path(), offset_, "segment record: its key and the key base don't fit");
  }

  absl::Status CheckRecord(const RecordView& record, size_t size) {
    if (record.kind != RecordKind::kValue && record.kind != RecordKind::kTombstone) {
      return Corruption(file_.path(), offset_, "segment record: neither value nor tombstone");
    }
    VARVE_RETURN_IF_ERROR(CheckPlace(record));
    VARVE_RETURN_IF_ERROR(CheckCompressed(record));
    const bool first = entries_ == 0;
    if (!first && CompareInternal(key_, sequence_, record.key, record.sequence) >= 0) {
      return Corruption(file_.path(), offset_, "segment record: out of order");
    }
    if (first || record.key != key_) {
      OffsetTableCandidates candidates;
      index_.table().Lookup(HashKey(record.key), &candidates);
      const bool found =
          std::any_of(candidates.begin(), candidates.end(),
                      [&](const OffsetTableEntry& entry) { return LeadsTo(entry, record, size); });
      if (!found)
        return Corruption(file_.path(), offset_,
                          "segment record: the offset table doesn't lead to it");
    }
    fences_.Add(record.key, offset_, key_);
    if (first || record.key != key_) key_.assign(record.key);
    sequence_ = record.sequence;
    ++entries_;
    if (record.kind == RecordKind::kTombstone) ++tombstones_;
    return absl::OkStatus();
  }

  absl::Status CheckCompressed(const RecordView& record) {
    if (!IsCompressed(record)) return absl::OkStatus();
    if (footer_.holds_compressed && record.kind == RecordKind::kValue &&
        (IsSeparated(record) || PlainValueWith(dictionary_, record, &plain_)))
      return absl::OkStatus();
    return Corruption(file_.path(), offset_, "segment record: its value can't be decompressed");
  }

  // Counts what the record refers to.
  absl::Status CheckPlace(const RecordView& record) {
    if (!IsSeparated(record)) return absl::OkStatus();
    const auto& named = footer_.info.value_files;
    const bool is_place =
        record.kind == RecordKind::kValue && DecodeValueHandle(record.value, &handle_);
    file_index_ = 0;
    while (is_place && file_index_ < named.size() &&
           named[file_index_].file_number != handle_.file_number)
      ++file_index_;
    if (!is_place || file_index_ == named.size()) {
      return Corruption(file_.path(), offset_,
                        "segment record: the place of its value makes no sense");
    }
    referenced_.resize(named.size());
    referenced_[file_index_] += handle_.operation_size;
    return absl::OkStatus();
  }

  // Whether a reader that follows the entry reads the whole record at offset_, or the value it
  // points to.
  bool LeadsTo(const OffsetTableEntry& entry, const RecordView& record, size_t size) const {
    uint64_t target = offset_;
    if (IsSeparated(record) && IsAddressable(file_index_, handle_.offset)) {
      target = ValueAddress(file_index_, handle_.offset);
      size = handle_.operation_size;
    }
    return entry.offset == target && (entry.length_class == kUnboundedLengthClass ||
                                      LengthClassLimit(entry.length_class) >= size);
  }

  // The records have exactly one encoding of fences.
  absl::Status CheckFences() const {
    const std::string_view found(
        index_.table_bytes() + uint64_t{footer_.table_pages} * kOffsetTablePageSize,
        footer_.fences_size);
    std::string expected(fences_.size(), '\0');
    fences_.Write(footer_.info.number, expected.data());
    if (found == expected) return absl::OkStatus();
    const auto differs =
        std::mismatch(found.begin(), found.end(), expected.begin(), expected.end()).first;
    return Corruption(file_.path(),
                      footer_.fences_offset + static_cast<uint64_t>(differs - found.begin()),
                      "segment fences: not those of the records");
  }

  const File& file_;
  const SegmentFooter& footer_;
  const SegmentIndex& index_;
  const ValueDictionary* const dictionary_;
  std::string plain_;
  SegmentFencesBuilder fences_;
  std::string piece_;
  KeyJoiner keys_;
  uint64_t offset_ = 0;
  std::string key_;
  SequenceNumber sequence_ = kNoSequence;
  uint64_t entries_ = 0;
  uint64_t tombstones_ = 0;
  ValueHandle handle_;  // of the record at hand, and its file's index in the footer
  size_t file_index_ = 0;
  std::vector<uint64_t> referenced_;
};

absl::Status CheckPadding(const File& file, const SegmentFooter& footer) {
  char padding[kSegmentPageSize];
  const size_t size = footer.table_offset - footer.data_size;
  VARVE_ASSIGN_OR_RETURN(const size_t read, file.Read(footer.data_size, size, padding));
  if (read != size)
    return Corruption(file.path(), footer.data_size + read,
                      "segment: the file ends in its padding");
  for (size_t i = 0; i < size; ++i) {
    if (padding[i] != 0)
      return Corruption(file.path(), footer.data_size + i, "segment padding: not zero");
  }
  return absl::OkStatus();
}

struct OpenedSegment {
  std::unique_ptr<File> file;
  SegmentFooter footer;
};

absl::StatusOr<OpenedSegment> OpenSegment(FileSystem* file_system, const std::string& path,
                                          const SegmentInfo& info) {
  OpenedSegment opened;
  VARVE_ASSIGN_OR_RETURN(opened.file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, opened.file->Size());
  if (size != info.file_size) {
    return Corruption(
        path, std::min(size, info.file_size),
        fmt::format("segment: the file has {} bytes, and {} according to the manifest", size,
                    info.file_size));
  }
  VARVE_ASSIGN_OR_RETURN(opened.footer,
                         ReadSegmentFooter(*opened.file, info.number, size, nullptr));
  return opened;
}

}  // namespace

absl::Status VerifySegment(FileSystem* file_system, const std::string& path,
                           const SegmentInfo& info) {
  VARVE_ASSIGN_OR_RETURN(const OpenedSegment opened, OpenSegment(file_system, path, info));
  VARVE_ASSIGN_OR_RETURN(const auto index, SegmentIndex::Load(*opened.file, opened.footer));
  VARVE_RETURN_IF_ERROR(ReadSegmentRangeTombstones(*opened.file, opened.footer).status());
  VARVE_RETURN_IF_ERROR(CheckPadding(*opened.file, opened.footer));
  VARVE_ASSIGN_OR_RETURN(const std::shared_ptr<const ValueDictionary> dictionary,
                         ReadDictionary(*opened.file, opened.footer));
  return DataVerifier(*opened.file, opened.footer, *index, dictionary.get()).Run();
}

absl::Status VerifySegmentFooter(FileSystem* file_system, const std::string& path,
                                 const SegmentInfo& info) {
  VARVE_ASSIGN_OR_RETURN(const OpenedSegment opened, OpenSegment(file_system, path, info));
  const SegmentInfo& found = opened.footer.info;
  if (found.entries == info.entries && found.tombstones == info.tombstones &&
      found.smallest == info.smallest && found.largest == info.largest &&
      found.value_files == info.value_files)
    return absl::OkStatus();
  return Corruption(path,
                    opened.footer.range_tombstones_offset + opened.footer.range_tombstones_size,
                    "segment footer: not that of the segment which the manifest names");
}

}  // namespace varve
