#include "db/segment/segment_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <unordered_map>
#include <utility>

#include "db/format/compressed_value.h"
#include "db/format/file_names.h"
#include "db/format/key_base.h"
#include "db/format/record_format.h"
#include "db/format/value_handle.h"
#include "db/segment/segment_caches.h"
#include "db/segment/segment_dictionary.h"
#include "db/segment/segment_fences.h"
#include "db/segment/segment_footer.h"
#include "db/segment/segment_format.h"
#include "db/segment/segment_index.h"
#include "db/segment/segment_values.h"
#include "structure/offset_table.h"
#include "util/base/assert.h"
#include "util/base/checksum.h"
#include "util/base/coding.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "util/os/file_writer.h"

namespace varve {
namespace {

constexpr uint64_t kRecordsPerBlock = 8;
constexpr uint64_t kMaxFenceKeyBytes = uint64_t{1} << 32;

}  // namespace

SegmentBuilder::SegmentBuilder(FileSystem* file_system, const Options& options,
                               std::unique_ptr<FileWriter> file)
    : file_system_(file_system),
      options_(options),
      file_(std::move(file)),
      fences_(options.block_size) {
  info_.number = options.number;
  table_.Reserve(options.expected_entries);
}

absl::Status SegmentBuilder::CheckOrder(const RecordView& record) const {
  if (record.kind != RecordKind::kValue && record.kind != RecordKind::kTombstone) {
    return absl::InvalidArgumentError(
        fmt::format("segment {}: a record of kind {} is neither value nor tombstone", file_->path(),
                    static_cast<int>(record.kind)));
  }
  if (info_.entries > 0 &&
      CompareInternal(last_key_, last_sequence_, record.key, record.sequence) >= 0) {
    return absl::InvalidArgumentError(
        fmt::format("segment {}: record {} comes out of order: sequence {} of a key of {} bytes "
                    "follows sequence {} of one of {}",
                    file_->path(), info_.entries, record.sequence, record.key.size(),
                    last_sequence_, last_key_.size()));
  }
  return absl::OkStatus();
}

absl::Status SegmentBuilder::Add(const RecordView& record) {
  VARVE_RETURN_IF_ERROR(file_->status());
  VARVE_RETURN_IF_ERROR(CheckOrder(record));
  const uint64_t offset = file_size();
  if (offset >= DataLimit(info_.value_files.size()) ||
      fences_.key_bytes() + record.key.size() >= kMaxFenceKeyBytes) {
    return absl::ResourceExhaustedError(
        fmt::format("segment {}: more than {} GiB of data; start another one", file_->path(),
                    DataLimit(info_.value_files.size()) >> 30));
  }
  if (IsCompressed(record)) VARVE_RETURN_IF_ERROR(NoteCompressed(record));
  uint64_t target = offset;
  const uint32_t shared = SharedBytesOf(record);
  holds_shared_ |= shared != 0;
  size_t size = AppendRecord(record, options_.number, file_->buffer(), shared);
  if (IsSeparated(record)) VARVE_RETURN_IF_ERROR(Refer(record, &target, &size));
  fences_.Add(record.key, offset, last_key_);
  // Older versions follow their newest one, which the table points to.
  if (info_.entries == 0 || record.key != last_key_) {
    table_.Add(HashKey(record.key), target, size);
    if (info_.entries == 0) {
      info_.smallest = record.key;
      key_base_ = KeyBaseOf(record.key);
    }
    last_key_.assign(record.key);
  }
  last_sequence_ = record.sequence;
  ++info_.entries;
  if (record.kind == RecordKind::kTombstone) ++info_.tombstones;
  CoverSequence(record.sequence);
  VARVE_ASSERT(table_.size() <= info_.entries && info_.smallest <= last_key_);
  return file_->WriteFull();
}

uint32_t SegmentBuilder::SharedBytesOf(const RecordView& record) const {
  // Few records have a cause, and their kinds have no counterpart that shares bytes.
  if (!options_.shares_keys || record.cause != WriteCause::kWrite) return 0;
  return SharedBytes(key_base_, record.key);
}

absl::Status SegmentBuilder::NoteCompressed(const RecordView& record) {
  holds_compressed_ = true;
  if (IsSeparated(record)) return absl::OkStatus();
  CompressedValue value;
  if (!ParseCompressedValue(record.value, &value) ||
      (value.codec == ValueCodec::kZstdWithDictionary && options_.dictionary == nullptr)) {
    return absl::InvalidArgumentError(
        fmt::format("segment {}: a compressed value makes no sense", file_->path()));
  }
  uses_dictionary_ |= value.codec == ValueCodec::kZstdWithDictionary;
  return absl::OkStatus();
}

absl::Status SegmentBuilder::Refer(const RecordView& record, uint64_t* target, size_t* size) {
  ValueHandle handle;
  if (!DecodeValueHandle(record.value, &handle)) {
    return absl::InvalidArgumentError(
        fmt::format("segment {}: the place of a value makes no sense", file_->path()));
  }
  const auto [found, is_new] =
      value_file_indexes_.try_emplace(handle.file_number, info_.value_files.size());
  if (is_new) info_.value_files.push_back({handle.file_number, 0});
  VARVE_ASSERT(found->second < info_.value_files.size());
  info_.value_files[found->second].bytes += handle.operation_size;
  if (is_new && file_size() > DataLimit(info_.value_files.size())) {
    return absl::ResourceExhaustedError(fmt::format(
        "segment {}: too much data for values in so many files; start another one", file_->path()));
  }
  if (IsAddressable(found->second, handle.offset)) {
    *target = ValueAddress(found->second, handle.offset);
    *size = handle.operation_size;
  }
  return absl::OkStatus();
}

absl::Status SegmentBuilder::AddRangeTombstone(const RangeTombstone& tombstone) {
  VARVE_RETURN_IF_ERROR(file_->status());
  if (tombstone.begin >= tombstone.end) {
    return absl::InvalidArgumentError(
        fmt::format("segment {}: a range tombstone is empty", file_->path()));
  }
  range_tombstones_.push_back(tombstone);
  CoverSequence(tombstone.sequence);
  return absl::OkStatus();
}

void SegmentBuilder::CoverSequence(SequenceNumber sequence) {
  info_.smallest_sequence = std::min(info_.smallest_sequence, sequence);
  info_.largest_sequence = std::max(info_.largest_sequence, sequence);
  VARVE_ASSERT(info_.smallest_sequence <= info_.largest_sequence);
}

void SegmentBuilder::CoverRangeTombstones() {
  info_.largest = last_key_;
  bool is_empty = info_.entries == 0;
  for (const RangeTombstone& tombstone : range_tombstones_) {
    if (is_empty || tombstone.begin < info_.smallest) info_.smallest = tombstone.begin;
    if (is_empty || tombstone.end > info_.largest) {
      info_.largest = tombstone.end;
      info_.largest_is_exclusive = true;
    }
    is_empty = false;
  }
  info_.range_tombstones = range_tombstones_.size();
  VARVE_ASSERT(info_.smallest <= info_.largest);
}

AlignedBytes SegmentBuilder::EncodeIndex(SegmentFooter* footer) {
  table_.Place();
  footer->table_pages = table_.page_count();
  footer->overflow = table_.overflow();
  const uint64_t table_size = uint64_t{footer->table_pages} * kOffsetTablePageSize;
  footer->fences_offset = footer->table_offset + table_size;
  footer->fences_size = fences_.size();
  footer->fence_count = fences_.count();
  AlignedBytes bytes(table_size + footer->fences_size);
  table_.WritePages(options_.number, bytes.data());
  fences_.Write(options_.number, bytes.data() + table_size);
  return bytes;
}

void SegmentBuilder::AppendRangeTombstones(std::string* destination) const {
  if (range_tombstones_.empty()) return;
  const size_t start = destination->size();
  for (const RangeTombstone& tombstone : range_tombstones_) {
    PutLengthPrefixed(destination, tombstone.begin);
    PutLengthPrefixed(destination, tombstone.end);
    PutFixed64(destination, tombstone.sequence);
  }
  const std::string_view bytes = std::string_view(*destination).substr(start);
  PutFixed32(destination,
             Checksum(bytes, SegmentPartSeed(options_.number, SegmentPart::kRangeTombstones)));
}

absl::StatusOr<SegmentInfo> SegmentBuilder::Finish() {
  VARVE_ASSERT(info_.tombstones <= info_.entries && table_.size() <= info_.entries);
  CoverRangeTombstones();
  SegmentFooter footer;
  footer.info = info_;
  footer.block_size = options_.block_size;
  footer.data_size = file_size();
  footer.table_offset =
      (footer.data_size + kSegmentPageSize - 1) / kSegmentPageSize * kSegmentPageSize;
  file_->buffer()->append(footer.table_offset - footer.data_size, '\0');
  AlignedBytes index = EncodeIndex(&footer);
  VARVE_RETURN_IF_ERROR(file_->Append({index.data(), index.size()}));
  VARVE_ASSERT(file_size() == footer.table_offset + index.size());
  footer.holds_compressed = holds_compressed_;
  if (holds_shared_) footer.key_base = key_base_;
  if (uses_dictionary_) AppendDictionary(*options_.dictionary, options_.number, file_->buffer());
  footer.dictionary_size = file_size() - footer.dictionary_offset();
  footer.range_tombstones_offset = file_size();
  AppendRangeTombstones(file_->buffer());
  footer.range_tombstones_size = file_size() - footer.range_tombstones_offset;
  AppendSegmentFooter(footer, file_->buffer());
  if (options_.hurry) options_.hurry();
  VARVE_RETURN_IF_ERROR(file_->Finish());
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(options_.directory));

  file_->Keep();
  info_.file_size = footer.info.file_size = file_size();
  if (options_.caches != nullptr) {
    options_.caches->tables.Leave(
        std::make_shared<const SegmentIndex>(std::move(footer), std::move(index)));
  }
  return info_;
}

uint32_t SegmentBuilder::BlockSizeFor(uint64_t average_record_size) {
  const uint64_t wanted =
      std::clamp<uint64_t>(average_record_size * kRecordsPerBlock, kMinBlockSize, kMaxBlockSize);
  return static_cast<uint32_t>(std::bit_ceil(wanted));
}

absl::StatusOr<std::unique_ptr<SegmentBuilder>> SegmentBuilder::Create(FileSystem* file_system,
                                                                       const Options& options) {
  if (!std::has_single_bit(options.block_size) || options.block_size < kMinBlockSize ||
      options.block_size > kMaxBlockSize) {
    return absl::InvalidArgumentError(
        fmt::format("segment block size {} is no power of two from {} to {}", options.block_size,
                    kMinBlockSize, kMaxBlockSize));
  }
  VARVE_ASSIGN_OR_RETURN(
      auto file, FileWriter::Create(file_system, SegmentPath(options.directory, options.number),
                                    options.spares, options.expected_size));
  return std::unique_ptr<SegmentBuilder>(new SegmentBuilder(file_system, options, std::move(file)));
}

}  // namespace varve
