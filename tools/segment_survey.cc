#include "tools/segment_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "db/compression/value_codec.h"
#include "db/format/key_base.h"
#include "db/format/record_window.h"
#include "db/segment/segment_dictionary.h"
#include "db/segment/segment_format.h"
#include "db/segment/segment_index.h"
#include "db/segment/segment_values.h"
#include "structure/offset_table.h"
#include "type/tree_key.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

// While it looks for the next good record it believes no record to be longer than this.
constexpr uint64_t kLongestLostRecord = uint64_t{1} << 22;

class Surveyor {
 public:
  Surveyor(const File& file, uint64_t number, uint64_t file_size, VisitRecord visit,
           std::string_view first_key)
      : file_(file), number_(number), file_size_(file_size), visit_(visit), first_key_(first_key) {}

  absl::StatusOr<SurveyedSegment> Run() {
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, file_.Size());
    if (size != file_size_) {
      Note(std::min(size, file_size_),
           fmt::format("segment: the file has {} bytes instead of {}", size, file_size_));
    }
    // What was cut off or added says nothing of where the parts lie.
    absl::StatusOr<SegmentFooter> footer = ReadSegmentFooter(file_, number_, file_size_, nullptr);
    if (footer.ok()) {
      survey_.footer = *std::move(footer);
      window_.UseKeyBase(survey_.footer->key_base);
      VARVE_RETURN_IF_ERROR(CheckParts(*survey_.footer));
    } else {
      VARVE_RETURN_IF_ERROR(NoteOrFail(footer.status()));
      survey_.range_tombstones_are_lost = true;
      window_.UseKeyBase(KeyBaseOf(first_key_));
      VARVE_RETURN_IF_ERROR(window_.FindKeyBase(size));
      VARVE_RETURN_IF_ERROR(SearchDictionary(size));
    }
    // Without a footer any part of the file may be data.
    VARVE_RETURN_IF_ERROR(
        WalkRecords(std::min(size, survey_.footer ? survey_.footer->data_size : size)));
    if (survey_.footer) VARVE_RETURN_IF_ERROR(CheckPadding(*survey_.footer, size));
    return std::move(survey_);
  }

 private:
  void Note(uint64_t offset, std::string_view what) {
    survey_.damage.push_back(Corruption(file_.path(), offset, what));
  }
  absl::Status NoteOrFail(const absl::Status& status) {
    if (!absl::IsDataLoss(status)) return status;
    survey_.damage.push_back(status);
    return absl::OkStatus();
  }

  absl::Status CheckParts(const SegmentFooter& footer) {
    absl::StatusOr<std::vector<RangeTombstone>> tombstones =
        ReadSegmentRangeTombstones(file_, footer);
    if (tombstones.ok()) {
      survey_.range_tombstones = *std::move(tombstones);
    } else {
      VARVE_RETURN_IF_ERROR(NoteOrFail(tombstones.status()));
      survey_.range_tombstones_are_lost = true;
    }
    if (absl::Status fences = LoadedFences::Load(file_, footer).status(); !fences.ok()) {
      VARVE_RETURN_IF_ERROR(NoteOrFail(fences));
    }
    absl::StatusOr<std::shared_ptr<const ValueDictionary>> dictionary =
        ReadDictionary(file_, footer);
    if (dictionary.ok()) {
      survey_.dictionary = *std::move(dictionary);
    } else {
      VARVE_RETURN_IF_ERROR(NoteOrFail(dictionary.status()));
    }
    starts_are_known_ = footer.info.value_files.empty();  // else many slots lead to values
    for (const OffsetTableOverflow& entry : footer.overflow) starts_.push_back(entry.entry.offset);
    for (uint32_t page = 0; page < footer.table_pages; ++page)
      VARVE_RETURN_IF_ERROR(CheckTablePage(footer, page));
    std::sort(starts_.begin(), starts_.end());
    const auto first_value = std::find_if(starts_.begin(), starts_.end(), [&](uint64_t start) {
      return IsValueAddress(footer.info, start);
    });
    survey_.value_addresses.assign(first_value, starts_.end());
    starts_.erase(first_value, starts_.end());
    return absl::OkStatus();
  }

  // Looks for the dictionary without the footer, which would say where it lies.
  absl::Status SearchDictionary(uint64_t size) {
    constexpr uint64_t kPiece = uint64_t{1} << 20;
    constexpr uint64_t kLongest = kDictionaryHeaderSize + kMaxDictionarySize;
    std::string bytes;
    for (uint64_t offset = 0; offset < size && survey_.dictionary == nullptr; offset += kPiece) {
      bytes.resize(std::min(kPiece + kLongest, size - offset));
      VARVE_ASSIGN_OR_RETURN(const size_t read, file_.Read(offset, bytes.size(), bytes.data()));
      const std::string_view piece = std::string_view(bytes).substr(0, read);
      for (size_t at = piece.find(kDictionaryMagic);
           at != std::string_view::npos && survey_.dictionary == nullptr;
           at = piece.find(kDictionaryMagic, at + 1)) {
        if (at >= 8) survey_.dictionary = DecodeDictionary(piece.substr(at - 8), number_);
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckTablePage(const SegmentFooter& footer, uint32_t index) {
    alignas(64) char page[kOffsetTablePageSize];
    const uint64_t offset = footer.table_offset + uint64_t{index} * kOffsetTablePageSize;
    VARVE_ASSIGN_OR_RETURN(const size_t read, file_.Read(offset, sizeof(page), page));
    if (read != sizeof(page) || !OffsetTablePageIsIntact({page, sizeof(page)}, number_, index)) {
      starts_are_known_ = false;
      Note(offset, "segment offset table: wrong checksum of a page");
      return absl::OkStatus();
    }
    AppendOffsetsOfPage(page, &starts_);
    return absl::OkStatus();
  }

  absl::Status CheckPadding(const SegmentFooter& footer, uint64_t size) {
    std::string padding(footer.table_offset - footer.data_size, '\0');
    if (size < footer.table_offset) return absl::OkStatus();  // said already
    VARVE_ASSIGN_OR_RETURN(const size_t read,
                           file_.Read(footer.data_size, padding.size(), padding.data()));
    const size_t bad = padding.find_first_not_of('\0');
    if (bad < read) Note(footer.data_size + bad, "segment padding: not zero, which harms nothing");
    return absl::OkStatus();
  }

  // The record at `offset`, if it is whole, no longer than `longest` and behind the last one in the
  // order; 0 if not.
  absl::StatusOr<size_t> RecordAt(uint64_t offset, uint64_t longest, uint64_t end,
                                  RecordView* record) {
    VARVE_ASSIGN_OR_RETURN(const size_t decoded, window_.RecordAt(offset, longest, end, record));
    if (decoded == 0 || record->key.size() < kGenerationSize) return size_t{0};
    const bool follows =
        survey_.records == 0 || CompareInternal(key_, sequence_, record->key, record->sequence) < 0;
    return follows ? decoded : size_t{0};
  }

  // Where to try after `offset` failed.
  uint64_t NextStart(uint64_t offset, uint64_t end) const {
    if (!starts_are_known_) return offset + 1;
    const auto next = std::upper_bound(starts_.begin(), starts_.end(), offset);
    return next == starts_.end() ? end : std::min(*next, end);
  }

  absl::Status WalkRecords(uint64_t end) {
    uint64_t good_end = 0;
    for (uint64_t offset = 0; offset < end;) {
      RecordView record;
      const bool lost = offset != good_end && !starts_are_known_;
      VARVE_ASSIGN_OR_RETURN(const size_t size,
                             RecordAt(offset, lost ? kLongestLostRecord : end, end, &record));
      if (size == 0) {
        offset = NextStart(offset, end);
        continue;
      }
      if (offset != good_end) AddGap(good_end, offset, record.key);
      VARVE_RETURN_IF_ERROR(visit_(offset, size, record));
      ++survey_.records;
      key_.assign(record.key);
      sequence_ = record.sequence;
      offset = good_end = offset + size;
    }
    survey_.data_end = good_end;
    // Without a footer, what follows the last record may be something else; who knows the number of
    // records can tell.
    if (good_end != end && survey_.footer) AddGap(good_end, end, {});
    return absl::OkStatus();
  }

  void AddGap(uint64_t begin, uint64_t end, std::string_view before) {
    survey_.gaps.push_back({begin, end, key_, std::string(before)});
    Note(begin,
         fmt::format("segment record: wrong checksum or size; the next good one is at {}", end));
  }

  const File& file_;
  const uint64_t number_;
  const uint64_t file_size_;
  VisitRecord visit_;
  const std::string_view first_key_;
  SurveyedSegment survey_;
  std::vector<uint64_t> starts_;   // of the newest version of each key, ascending
  bool starts_are_known_ = false;  // all of them
  RecordWindow window_{file_, number_};
  std::string key_;  // of the last good record
  SequenceNumber sequence_ = kNoSequence;
};

}  // namespace

std::optional<std::string_view> PlainValueWith(const ValueDictionary* dictionary,
                                               const RecordView& record, std::string* buffer) {
  if (!IsCompressed(record)) return record.value;
  CompressedValue value;
  if (!ParseCompressedValue(record.value, &value)) return std::nullopt;
  if (buffer->size() < value.plain_size) buffer->resize(value.plain_size);
  if (!DecompressValue(value, dictionary, buffer->data())) return std::nullopt;
  return std::string_view(*buffer).substr(0, value.plain_size);
}

absl::StatusOr<SurveyedSegment> SurveySegment(const File& file, uint64_t number, uint64_t file_size,
                                              VisitRecord visit, std::string_view first_key) {
  return Surveyor(file, number, file_size, visit, first_key).Run();
}

}  // namespace varve
