#include "tools/value_check.h"

#include <algorithm>

#include "db/format/file_names.h"
#include "db/format/large_operation.h"
#include "db/format/log_format.h"
#include "db/values/value_file.h"
#include "tools/segment_survey.h"
#include "type/tree_key.h"
#include "util/base/status.h"

namespace varve {

const ValueChecker::Opened& ValueChecker::Open(uint64_t number) {
  const auto [found, is_new] = files_.try_emplace(number);
  if (!is_new) return found->second;
  Opened& opened = found->second;
  const std::string path = ValueFilePath(directory_, number);
  absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForRead(path);
  if (absl::IsNotFound(file.status()))
    file = file_system_->OpenForRead(directory_ + "/" + LogFileName(number));
  if (file.ok()) {
    opened.file = *std::move(file);
  } else {
    opened.status = absl::IsNotFound(file.status()) ? Corruption(path, 0, "value file: missing")
                                                    : file.status();
  }
  return opened;
}

absl::Status ValueChecker::CheckPlace(const File& file, const ValueHandle& handle) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, file.Size());
  if (handle.offset <= size && handle.operation_size <= size - handle.offset)
    return absl::OkStatus();
  return Corruption(file.path(), size, "value file: it ends before a value that a record leads to");
}

absl::Status ValueChecker::Check(const RecordView& record) {
  if (!IsSeparated(record)) return absl::OkStatus();
  ValueHandle handle;
  // The segment's verifier says so.
  if (!DecodeValueHandle(record.value, &handle)) return absl::OkStatus();
  const Opened& opened = Open(handle.file_number);
  if (opened.file == nullptr) return UnsharedCopy(opened.status);
  if (trusted_.contains(handle.file_number)) return CheckPlace(*opened.file, handle);
  if (bytes_.size() < handle.operation_size) bytes_.resize(handle.operation_size);
  VARVE_ASSIGN_OR_RETURN(const size_t read,
                         opened.file->Read(handle.offset, handle.operation_size, bytes_.data()));
  RecordView operation;
  std::string_view damage = DamageOfValue(std::string_view(bytes_).substr(0, read), handle,
                                          UserKeyOf(record.key), record.sequence, &operation);
  if (damage.empty()) damage = DecompressOperation(&operation, &plain_);
  return damage.empty() ? absl::OkStatus() : Corruption(opened.file->path(), handle.offset, damage);
}

absl::StatusOr<std::optional<RecordView>> ValueChecker::OperationAt(uint64_t file_number,
                                                                    uint64_t offset) {
  const Opened& opened = Open(file_number);
  if (absl::IsDataLoss(opened.status)) return std::nullopt;
  if (opened.file == nullptr) return UnsharedCopy(opened.status);
  VARVE_ASSIGN_OR_RETURN(const uint64_t file_size, opened.file->Size());
  char header[kMaxLargeHeaderSize];
  VARVE_ASSIGN_OR_RETURN(const size_t header_size,
                         opened.file->Read(offset, sizeof(header), header));
  const uint64_t size = LargeOperationSize({header, header_size});
  if (size == 0 || size > file_size - std::min(file_size, offset)) return std::nullopt;
  if (bytes_.size() < size) bytes_.resize(size);
  VARVE_ASSIGN_OR_RETURN(const size_t read, opened.file->Read(offset, size, bytes_.data()));
  RecordView operation;
  if (DecodeLargeOperation(std::string_view(bytes_).substr(0, read), &operation) == 0)
    return std::nullopt;
  return operation;
}

absl::Status ValueChecker::CheckSegment(const SegmentInfo& info) {
  if (info.value_files.empty()) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system_->OpenForRead(SegmentPath(directory_, info.number)));
  return SurveySegment(
             *file, info.number, info.file_size,
             [this](uint64_t, uint64_t, const RecordView& record) { return Check(record); })
      .status();
}

}  // namespace varve
