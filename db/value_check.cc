#include "db/value_check.h"

#include "db/file_names.h"
#include "db/log_format.h"
#include "db/segment_survey.h"
#include "db/value_file.h"
#include "type/tree_key.h"
#include "util/status.h"

namespace varve {

const ValueChecker::Opened& ValueChecker::Open(uint64_t number) {
  const auto [found, is_new] = files_.try_emplace(number);
  if (!is_new) return found->second;
  Opened& opened = found->second;
  const std::string path = ValueFilePath(directory_, number);
  absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForRead(path);
  if (absl::IsNotFound(file.status())) file = file_system_->OpenForRead(directory_ + "/" + LogFileName(number));
  if (file.ok()) {
    opened.file = *std::move(file);
  } else {
    opened.status = absl::IsNotFound(file.status()) ? Corruption(path, 0, "value file: missing") : file.status();
  }
  return opened;
}

absl::Status ValueChecker::Check(const RecordView& record) {
  if (!IsSeparated(record)) return absl::OkStatus();
  ValuePlace place;
  if (!DecodeValuePlace(record.value, &place)) return absl::OkStatus();  // the segment's verifier says so
  const Opened& opened = Open(place.file_number);
  if (opened.file == nullptr) return UnsharedCopy(opened.status);
  if (bytes_.size() < place.operation_size) bytes_.resize(place.operation_size);
  VARVE_ASSIGN_OR_RETURN(const size_t read, opened.file->Read(place.offset, place.operation_size, bytes_.data()));
  RecordView operation;
  const std::string_view damage = DamageOfValue(std::string_view(bytes_).substr(0, read), place, UserKeyOf(record.key),
                                                record.sequence, &operation);
  return damage.empty() ? absl::OkStatus() : Corruption(opened.file->path(), place.offset, damage);
}

absl::Status ValueChecker::CheckSegment(const SegmentInfo& info) {
  if (info.value_files.empty()) return absl::OkStatus();
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system_->OpenForRead(SegmentPath(directory_, info.number)));
  return SurveySegment(*file, info.number, info.file_size,
                       [this](uint64_t, uint64_t, const RecordView& record) { return Check(record); })
      .status();
}

}  // namespace varve
