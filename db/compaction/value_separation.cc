#include "db/compaction/value_separation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "db/compression/value_codec.h"
#include "db/format/file_names.h"
#include "db/format/large_operation.h"
#include "db/segment/segment_values.h"
#include "db/values/value_file_format.h"
#include "util/base/assert.h"
#include "util/base/kept_buffer.h"
#include "util/base/memory_guard.h"
#include "util/base/status.h"

namespace varve {
namespace {

// So that offset tables can address each of its values.
constexpr uint64_t kMaxValueFileSize = kValueWindowSize;

// Writers wait for a flush. Level 1 of zstd takes three quarters of the time of level 3 and leaves,
// of smaller values than this, at most 3 % more.
constexpr uint8_t kLevelOfFlush = 1, kReplacedLevel = 3;
constexpr size_t kReplacedBelow = size_t{32} << 10;

Compression InFlush(Compression wanted, size_t value_size) {
  if (wanted.method == CompressionMethod::kZstd && wanted.level <= kReplacedLevel &&
      value_size < kReplacedBelow) {
    wanted.level = kLevelOfFlush;
  }
  return wanted;
}

// Has `record`, which has the plain value, view the compressed one if that saves enough. Returns
// whether it does.
bool CompressLarge(const Compression& how, ValueCompressor* compressor, RecordView* record) {
  const std::string_view compressed = compressor->Compress(how, record->value);
  if (compressed.empty()) return false;
  record->value = compressed;
  record->flags |= kCompressed;
  return true;
}

class FlushSeparation final : public ValueSeparation {
 public:
  FlushSeparation(FlushSeparationOptions options, ValueFileWriter::Options files)
      : options_(std::move(options)), writer_(std::move(files)) {
    VARVE_ASSERT(std::is_sorted(
        options_.log_blocks.begin(), options_.log_blocks.end(),
        [](const LogBlockPlace& a, const LogBlockPlace& b) { return a.first < b.first; }));
  }

  absl::StatusOr<RecordView> Separate(const RecordView& record) override {
    if (record.value.size() < kSmallestLargeValue || record.kind != RecordKind::kValue)
      return record;
    const uint64_t separation_size = options_.separation_size(GenerationOf(record.key));
    if (separation_size == 0 || record.value.size() < separation_size) return record;
    const absl::Cleanup give_back = [this] {
      GiveBackIfLarge(&operation_);
      compressor_.GiveBack();
    };
    RecordView result = record;
    const Compression how =
        InFlush(options_.compression.Of(GenerationOf(record.key)), record.value.size());
    const bool is_compressed = CompressLarge(how, &compressor_, &result);
    std::optional<ValueHandle> handle = is_compressed ? std::nullopt : InLog(record);
    if (!handle) {
      operation_.clear();
      AppendLargeOperation(result, &operation_);
      VARVE_ASSIGN_OR_RETURN(handle,
                             writer_.Add(operation_, static_cast<uint32_t>(record.value.size())));
    }
    encoded_handle_.clear();
    AppendValueHandle(*handle, &encoded_handle_);
    result.value = encoded_handle_;
    result.flags |= kSeparatedValue;
    return result;
  }
  absl::Status Finish() override { return writer_.Finish(); }
  void Keep() override { writer_.Keep(); }
  uint64_t bytes_written() const override { return writer_.bytes_written(); }

 private:
  std::optional<ValueHandle> InLog(const RecordView& record) const {
    if (record.log_offset == 0) return std::nullopt;
    auto block =
        std::upper_bound(options_.log_blocks.begin(), options_.log_blocks.end(), record.sequence,
                         [](SequenceNumber sequence, const LogBlockPlace& candidate) {
                           return sequence < candidate.first;
                         });
    if (block == options_.log_blocks.begin() || (--block)->file_number == 0) return std::nullopt;
    return ValueHandle{block->file_number, block->payload_offset + record.log_offset,
                       static_cast<uint32_t>(LargeOperationSizeOf(record)),
                       static_cast<uint32_t>(record.value.size())};
  }

  const FlushSeparationOptions options_;
  ValueFileWriter writer_;
  ValueCompressor compressor_{nullptr};
  std::string operation_;
  std::string encoded_handle_;
};

class CollectionSeparation final : public ValueSeparation {
 public:
  CollectionSeparation(std::vector<uint64_t> emptied, ValueFileWriter::Options files,
                       CompressionPolicy compression)
      : emptied_(std::move(emptied)),
        registry_(files.registry),
        compression_(std::move(compression)),
        writer_(std::move(files)) {
    VARVE_ASSERT(std::is_sorted(emptied_.begin(), emptied_.end()));
  }

  absl::StatusOr<RecordView> Separate(const RecordView& record) override {
    ValueHandle handle;
    if (!IsSeparated(record) || !DecodeValueHandle(record.value, &handle) ||
        !std::binary_search(emptied_.begin(), emptied_.end(), handle.file_number)) {
      return record;
    }
    const std::shared_ptr<ValueFile> file = registry_->Find(handle.file_number);
    if (file == nullptr)
      return absl::InternalError("a value file is gone that a segment points into");
    const absl::Cleanup give_back = [this] {
      GiveBackIfLarge(&operation_);
      GiveBackIfLarge(&compressed_);
      compressor_.GiveBack();
    };
    RecordView operation;
    VARVE_RETURN_IF_ERROR(file->ReadStoredOperation(handle, UserKeyOf(record.key), record.sequence,
                                                    &operation_, &operation));
    RecordView result = record;
    std::string_view bytes = std::string_view(operation_).substr(0, handle.operation_size);
    const Compression how = compression_.Of(GenerationOf(operation.key));
    if (!IsCompressed(operation) && CompressLarge(how, &compressor_, &operation)) {
      compressed_.clear();
      AppendLargeOperation(operation, &compressed_);
      bytes = compressed_;
      result.flags |= kCompressed;
    }
    VARVE_ASSIGN_OR_RETURN(handle, writer_.Add(bytes, handle.value_size));
    encoded_handle_.clear();
    AppendValueHandle(handle, &encoded_handle_);
    result.value = encoded_handle_;
    return result;
  }
  absl::Status Finish() override { return writer_.Finish(); }
  void Keep() override { writer_.Keep(); }
  uint64_t bytes_written() const override { return writer_.bytes_written(); }

 private:
  const std::vector<uint64_t> emptied_;
  ValueFiles* const registry_;
  const CompressionPolicy compression_;
  ValueFileWriter writer_;
  ValueCompressor compressor_{nullptr};
  std::string operation_;
  std::string compressed_;
  std::string encoded_handle_;
};

}  // namespace

ValueFileWriter::~ValueFileWriter() {
  if (kept_) return;
  files_.clear();
  for (const std::string& path : paths_) RemoveFile(options_.file_system, path);
}

absl::Status ValueFileWriter::Begin() {
  VARVE_ASSERT(file_ == nullptr);
  number_ = options_.next_file_number();
  const std::string path = ValueFilePath(options_.directory, number_);
  paths_.reserve(paths_.size() + 1);
  VARVE_ASSIGN_OR_RETURN(file_, FileWriter::Create(options_.file_system, path));
  file_->buffer()->append(EncodeValueFileHeader(number_));
  return absl::OkStatus();
}

absl::StatusOr<ValueHandle> ValueFileWriter::Add(std::string_view operation, uint32_t value_size) {
  VARVE_ASSERT(!operation.empty() && !kept_);
  if (file_ != nullptr && file_->size() + operation.size() > kMaxValueFileSize)
    VARVE_RETURN_IF_ERROR(EndFile());
  if (file_ == nullptr) VARVE_RETURN_IF_ERROR(Begin());
  const ValueHandle handle{number_, file_->size(), static_cast<uint32_t>(operation.size()),
                           value_size};
  file_->buffer()->append(operation);
  VARVE_RETURN_IF_ERROR(file_->WriteFull());
  return handle;
}

absl::Status ValueFileWriter::EndFile() {
  VARVE_ASSERT(file_ != nullptr);
  VARVE_RETURN_IF_ERROR(file_->Finish());
  files_.push_back(options_.registry->Acquire(options_.file_system, options_.directory, number_));
  files_.back()->TakeOver(file_->size());
  bytes_written_ += file_->size();
  paths_.push_back(file_->path());
  file_->Keep();
  file_.reset();
  return absl::OkStatus();
}

absl::Status ValueFileWriter::Finish() {
  if (file_ != nullptr) VARVE_RETURN_IF_ERROR(EndFile());
  return files_.empty() ? absl::OkStatus()
                        : options_.file_system->SyncDirectory(options_.directory);
}

std::unique_ptr<ValueSeparation> NewFlushSeparation(FlushSeparationOptions options,
                                                    ValueFileWriter::Options files) {
  return std::make_unique<FlushSeparation>(std::move(options), std::move(files));
}

std::unique_ptr<ValueSeparation> NewCollectionSeparation(std::vector<uint64_t> emptied,
                                                         ValueFileWriter::Options files,
                                                         CompressionPolicy compression) {
  return std::make_unique<CollectionSeparation>(std::move(emptied), std::move(files),
                                                std::move(compression));
}

}  // namespace varve
