#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "db/format/record_format.h"
#include "db/format/record_window.h"
#include "db/segment/segment_dictionary.h"
#include "db/segment/segment_footer.h"
#include "db/segment/segment_index.h"
#include "structure/offset_table.h"
#include "tools/dump.h"
#include "tools/dump_printer.h"
#include "tools/segment_survey.h"
#include "tools/segment_verifier.h"
#include "util/base/coding.h"
#include "util/base/status.h"

namespace varve {
namespace {

// While it looks for the next good record it believes no record to be longer than this.
constexpr uint64_t kLongestWhenLost = uint64_t{1} << 22;

class SegmentDumper {
 public:
  SegmentDumper(const File& file, uint64_t number, uint64_t size, const DumpLine& print)
      : file_(file), number_(number), size_(size), printer_(print) {}

  // Prints the file and returns how many places of it are damaged.
  absl::StatusOr<size_t> Run() {
    printer_.Title(fmt::format("{}: segment {}, {} bytes", file_.path(), number_, size_));
    const absl::StatusOr<SegmentFooter> footer = ReadSegmentFooter(file_, number_, size_, nullptr);
    if (footer.ok()) {
      window_.UseKeyBase(footer->key_base);
      DumpFooter(*footer);
    } else {
      VARVE_RETURN_IF_ERROR(window_.FindKeyBase(size_));
      printer_.Damage(size_, std::string(footer.status().message()));
    }
    // Without a footer any part of the file may be data.
    VARVE_RETURN_IF_ERROR(DumpRecords(footer.ok() ? footer->data_size : size_));
    return printer_.damaged();
  }

 private:
  void DumpFooter(const SegmentFooter& footer) {
    const SegmentInfo& info = footer.info;
    printer_.Line(0, fmt::format("data: {} bytes, {} records ({} deletes), sequences {} to {}",
                                 footer.data_size, info.entries, info.tombstones,
                                 info.smallest_sequence, info.largest_sequence));
    printer_.Line(footer.table_offset, fmt::format("offset table: {} pages, {} keys beside it",
                                                   footer.table_pages, footer.overflow.size()));
    printer_.Line(footer.fences_offset,
                  fmt::format("fences: {}, {} bytes, of blocks of {} bytes", footer.fence_count,
                              footer.fences_size, footer.block_size));
    if (footer.dictionary_size != 0) DumpDictionary(footer);
    if (!footer.key_base.empty())
      printer_.Line(footer.range_tombstones_offset + footer.range_tombstones_size,
                    fmt::format("key base: \"{}\"", absl::CHexEscape(footer.key_base)));
    CheckTable(footer);
    if (const absl::Status fences = LoadedFences::Load(file_, footer).status(); !fences.ok()) {
      printer_.Damage(footer.fences_offset, std::string(fences.message()));
    }
    const absl::StatusOr<std::vector<RangeTombstone>> tombstones =
        ReadSegmentRangeTombstones(file_, footer);
    if (!tombstones.ok())
      return printer_.Damage(footer.range_tombstones_offset,
                             std::string(tombstones.status().message()));
    for (const RangeTombstone& tombstone : *tombstones) {
      RecordView record;
      record.kind = RecordKind::kRangeTombstone;
      record.key = tombstone.begin;
      record.value = tombstone.end;
      printer_.Line(footer.range_tombstones_offset,
                    fmt::format("{} {}", tombstone.sequence, DescribeRecord(record)));
    }
  }

  void DumpDictionary(const SegmentFooter& footer) {
    absl::StatusOr<std::shared_ptr<const ValueDictionary>> dictionary =
        ReadDictionary(file_, footer);
    if (!dictionary.ok())
      return printer_.Damage(footer.dictionary_offset(),
                             std::string(dictionary.status().message()));
    dictionary_ = *std::move(dictionary);
    printer_.Line(
        footer.dictionary_offset(),
        fmt::format("dictionary of compressed values: {} bytes", dictionary_->content().size()));
  }

  // What people read of a record.
  std::string Describe(const RecordView& record) {
    if (!IsCompressed(record)) return DescribeRecord(record);
    RecordView plain = record;
    plain.flags &= static_cast<uint8_t>(~kCompressed);
    if (IsSeparated(record)) return DescribeRecord(plain) + ", compressed";
    const std::optional<std::string_view> value =
        PlainValueWith(dictionary_.get(), record, &buffer_);
    if (!value) return "a compressed value that can't be read";
    plain.value = *value;
    return fmt::format("{}, compressed to {} bytes", DescribeRecord(plain), record.value.size());
  }

  // Page by page, so that each damaged one is named.
  void CheckTable(const SegmentFooter& footer) {
    std::string page(kOffsetTablePageSize, '\0');
    for (uint32_t i = 0; i < footer.table_pages; ++i) {
      const uint64_t offset = footer.table_offset + uint64_t{i} * kOffsetTablePageSize;
      const absl::StatusOr<size_t> read = file_.Read(offset, page.size(), page.data());
      if (!read.ok()) return printer_.Damage(offset, std::string(read.status().message()));
      if (OffsetTablePageIsIntact(std::string_view(page).substr(0, *read), number_, i)) continue;
      printer_.Damage(offset, fmt::format("page {} of the offset table: wrong checksum", i));
    }
  }

  // Why there is no record at `offset`, of data that ends at `end`.
  absl::StatusOr<std::string> DescribeDamage(uint64_t offset, uint64_t end) {
    VARVE_ASSIGN_OR_RETURN(std::string_view bytes,
                           window_.Bytes(offset, kMaxRecordHeaderSize, end));
    const uint64_t size = RecordSize(bytes);
    if (size == 0) return std::string("its header makes no sense");
    if (size > end - offset)
      return fmt::format("it says that it has {} bytes, but {} are left", size, end - offset);
    VARVE_ASSIGN_OR_RETURN(bytes, window_.Bytes(offset, size, end));
    if (bytes.size() < size) return std::string("the file ends in it");
    return DescribeChecksums(DecodeFixed32(bytes.data()),
                             RecordChecksum(bytes.substr(0, size), number_), size);
  }

  absl::Status DumpLostRecord(uint64_t offset, uint64_t next, uint64_t end) {
    VARVE_ASSIGN_OR_RETURN(const std::string why, DescribeDamage(offset, end));
    printer_.Damage(offset, fmt::format("record: {}; no other up to {}", why, next));
    return absl::OkStatus();
  }

  absl::Status DumpRecords(uint64_t end) {
    uint64_t good_end = 0;  // behind the last good record
    for (uint64_t offset = 0; offset < end;) {
      RecordView record;
      VARVE_ASSIGN_OR_RETURN(
          const size_t size,
          window_.RecordAt(offset, offset == good_end ? end : kLongestWhenLost, end, &record));
      if (size == 0) {
        ++offset;
        continue;
      }
      if (offset != good_end) {
        // It moves the window on which the record lies.
        VARVE_RETURN_IF_ERROR(DumpLostRecord(good_end, offset, end));
        VARVE_RETURN_IF_ERROR(window_.RecordAt(offset, kLongestWhenLost, end, &record).status());
      }
      printer_.Line(offset, fmt::format("{} {}", record.sequence, Describe(record)));
      offset = good_end = offset + size;
    }
    return good_end == end ? absl::OkStatus() : DumpLostRecord(good_end, end, end);
  }

  const File& file_;
  const uint64_t number_;
  const uint64_t size_;
  DumpPrinter printer_;
  RecordWindow window_{file_, number_};
  std::shared_ptr<const ValueDictionary> dictionary_;
  std::string buffer_;
};

std::optional<uint64_t> NumberOf(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || std::string_view(end) != ".seg") return std::nullopt;
  return number;
}

}  // namespace

absl::Status DumpSegment(FileSystem* file_system, const std::string& path, const DumpLine& print) {
  const std::optional<uint64_t> number = NumberOf(path);
  if (!number) {
    return absl::InvalidArgumentError(fmt::format(
        "{}: a segment's checksums go with its number, so that its name must be NNNNNN.seg", path));
  }
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system->OpenForRead(path));
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file->Size());
  VARVE_ASSIGN_OR_RETURN(const size_t damaged, SegmentDumper(*file, *number, size, print).Run());
  if (damaged > 0) return absl::DataLossError(fmt::format("{}: {} damaged places", path, damaged));
  VARVE_ASSIGN_OR_RETURN(const SegmentFooter footer,
                         ReadSegmentFooter(*file, *number, size, nullptr));
  return VerifySegment(file_system, path, footer.info);
}

}  // namespace varve
