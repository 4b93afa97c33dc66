#include "tools/archive/archive_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "tools/archive/archive_file.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kMarkerWord = "varve-archive ";
constexpr std::string_view kMarkerBegin = "varve-archive 1\nid ";
constexpr size_t kIdDigits = 16;
constexpr std::string_view kBeside = ".incomplete";
constexpr std::string_view kLockName = "LOCK";
constexpr std::string_view kBaseBegunName = "BASE";
constexpr std::string_view kBaseBegunWord = "varve-archive-base 1 ";

bool IsOurs(const std::string& name) {
  return name == kArchiveName || name == kArchiveLastName || name == kArchiveBases ||
         name == kArchiveChanges || name == kLockName || name == kBaseBegunName ||
         name.ends_with(kBeside);
}

std::string NewId() {
  std::random_device device;
  return fmt::format("{:016x}", uint64_t{device()} << 32 | device());
}

bool IsId(std::string_view id) {
  return id.size() == kIdDigits &&
         id.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

absl::StatusOr<uint64_t> ChecksumOfList(FileSystem* file_system, const std::string& base) {
  VARVE_ASSIGN_OR_RETURN(const std::string list,
                         ReadWholeFile(file_system, fmt::format("{}/{}", base, kBackupListName)));
  return HashKey(list);
}

}  // namespace

absl::StatusOr<std::string> ReadArchiveId(FileSystem* file_system, const std::string& directory) {
  const std::string path = fmt::format("{}/{}", directory, kArchiveName);
  VARVE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file_system, path));
  if (text.starts_with(kMarkerBegin)) {
    const std::string id = text.substr(kMarkerBegin.size(), kIdDigits);
    if (IsId(id) && text == fmt::format("{}{}\n", kMarkerBegin, id)) return id;
  } else if (text.starts_with(kMarkerWord)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: a later version of Varve has written it, or it is damaged", path));
  }
  return Corruption(path, 0, "this is not how an archive begins");
}

std::string ArchivePlace::ChangesPath() const {
  return fmt::format("{}/{}", directory_, kArchiveChanges);
}

absl::StatusOr<std::unique_ptr<ArchivePlace>> ArchivePlace::Open(FileSystem* file_system,
                                                                 const std::string& directory) {
  std::unique_ptr<ArchivePlace> place(new ArchivePlace(file_system, directory));
  VARVE_RETURN_IF_ERROR(place->Prepare());
  VARVE_RETURN_IF_ERROR(place->FindPosition());
  return place;
}

absl::Status ArchivePlace::Prepare() {
  VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(directory_));
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
  const auto other =
      std::find_if(names.begin(), names.end(), [](const auto& name) { return !IsOurs(name); });
  const bool is_archive = std::find(names.begin(), names.end(), kArchiveName) != names.end();
  if (!is_archive && other != names.end()) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {} is there, and no archive; name a directory that is new or empty",
                    directory_, *other));
  }
  absl::StatusOr<std::unique_ptr<FileLock>> lock =
      file_system_->Lock(fmt::format("{}/{}", directory_, kLockName));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        fmt::format("{}: another run writes this archive", directory_));
  }
  VARVE_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(ChangesPath()));
  VARVE_ASSIGN_OR_RETURN(
      bases_, BackupPlace::Open(file_system_, fmt::format("{}/{}", directory_, kArchiveBases)));
  VARVE_RETURN_IF_ERROR(ReadOrWriteMarker());
  VARVE_RETURN_IF_ERROR(ReadBegun());
  for (const std::string& each : {directory_, ChangesPath()}) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> left, file_system_->List(each));
    for (const std::string& name : left) {
      if (name.ends_with(kBeside))
        VARVE_RETURN_IF_ERROR(file_system_->Remove(fmt::format("{}/{}", each, name)));
    }
  }
  return absl::OkStatus();
}

absl::Status ArchivePlace::ReadOrWriteMarker() {
  absl::StatusOr<std::string> id = ReadArchiveId(file_system_, directory_);
  if (id.ok()) {
    id_ = *std::move(id);
    return absl::OkStatus();
  }
  if (!absl::IsNotFound(id.status())) return id.status();
  id_ = NewId();
  VARVE_RETURN_IF_ERROR(
      WriteFile(directory_, kArchiveName, fmt::format("{}{}\n", kMarkerBegin, id_)));
  const absl::Status synced = file_system_->SyncDirectory(ParentDirectory(directory_));
  // A program may write to a directory without having the right to sync the one above it.
  return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

absl::Status ArchivePlace::FindPosition() {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(ChangesPath()));
  for (const std::string& name : names)
    newest_number_ = std::max(newest_number_, ParseArchiveFileName(name).value_or(0));
  const std::string path = fmt::format("{}/{}", directory_, kArchiveLastName);
  const absl::StatusOr<std::string> text = ReadWholeFile(file_system_, path);
  if (absl::IsNotFound(text.status())) {
    NeedBase(newest_number_ == 0 ? "the archive is new" : "LAST is missing");
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(text.status());
  absl::StatusOr<ArchivePosition> position = DecodeArchivePosition(*text, path);
  if (absl::IsFailedPrecondition(position.status())) return position.status();
  if (position.ok()) {
    newest_number_ = std::max(newest_number_, position->number);
    position_ = *std::move(position);
  }
  const absl::Status followed = position_ ? FollowFiles() : position.status();
  if (absl::IsDataLoss(followed) || absl::IsNotFound(followed)) {
    NeedBase(std::string(followed.message()));
    return absl::OkStatus();
  }
  return followed;
}

absl::Status ArchivePlace::CheckNewestFile() const {
  const std::string base = bases_->PathOf(position_->base);
  VARVE_RETURN_IF_ERROR(ReadBackupList(file_system_, base).status());
  VARVE_ASSIGN_OR_RETURN(const uint64_t list, ChecksumOfList(file_system_, base));
  if (list == position_->predecessor) return absl::OkStatus();
  const std::string path = fmt::format("{}/{}", ChangesPath(), ArchiveFileName(position_->number));
  VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
  if (HashKey(bytes) == position_->predecessor) return absl::OkStatus();
  return Corruption(path, 0, "it is not the file that LAST tells of");
}

absl::Status ArchivePlace::FollowFiles() {
  VARVE_RETURN_IF_ERROR(CheckNewestFile());
  ArchivePosition position = *position_;
  while (position.number < newest_number_) {
    const std::string path =
        fmt::format("{}/{}", ChangesPath(), ArchiveFileName(position.number + 1));
    VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
    VARVE_ASSIGN_OR_RETURN(const ArchiveFile file, DecodeArchiveFile(bytes, path));
    const ArchiveFileHeader& header = file.header;
    if (header.number != position.number + 1 || header.predecessor != position.predecessor ||
        header.after != position.version || header.base != position.base)
      return Corruption(path, 0, "it does not follow the file before");
    position.number = header.number;
    position.version = header.last;
    position.instant_ms = header.last_instant_ms;
    position.current_ms = std::max(position.current_ms, header.last_instant_ms);
    position.predecessor = HashKey(bytes);
  }
  return position == *position_ ? absl::OkStatus() : WritePosition(position);
}

void ArchivePlace::NeedBase(std::string_view why) {
  position_.reset();
  why_base_ = why;
}

absl::Status ArchivePlace::BeginChain(const BackupDescription& base) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t list,
                         ChecksumOfList(file_system_, bases_->PathOf(base.id)));
  VARVE_RETURN_IF_ERROR(WritePosition({.history_id = base.history_id,
                                       .base = base.id,
                                       .number = newest_number_,
                                       .version = base.version,
                                       .instant_ms = base.instant_ms,
                                       .current_ms = base.instant_ms,
                                       .predecessor = list}));
  return ForgetBaseBegun();
}

absl::Status ArchivePlace::ForgetBaseBegun() {
  base_began_s_.reset();
  const absl::Status removed =
      file_system_->Remove(fmt::format("{}/{}", directory_, kBaseBegunName));
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

absl::Status ArchivePlace::NoteBaseBegins(uint64_t server_s) {
  VARVE_RETURN_IF_ERROR(
      WriteFile(directory_, kBaseBegunName, fmt::format("{}{}\n", kBaseBegunWord, server_s)));
  base_began_s_ = server_s;
  return absl::OkStatus();
}

absl::Status ArchivePlace::ReadBegun() {
  const absl::StatusOr<std::string> text =
      ReadWholeFile(file_system_, fmt::format("{}/{}", directory_, kBaseBegunName));
  if (absl::IsNotFound(text.status())) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(text.status());
  uint64_t second = 0;
  // One that is damaged tells nothing; the server then gives the backup up by itself.
  const bool is_whole = text->starts_with(kBaseBegunWord) && text->ends_with('\n');
  if (is_whole && absl::SimpleAtoi(text->substr(kBaseBegunWord.size()), &second))
    base_began_s_ = second;
  return absl::OkStatus();
}

absl::Status ArchivePlace::Append(absl::Span<const Change> commits) {
  VARVE_ASSERT(position_.has_value());
  ArchivePosition position = *position_;
  VARVE_ASSIGN_OR_RETURN(const std::string bytes,
                         EncodeArchiveFile({.number = position.number + 1,
                                            .history_id = position.history_id,
                                            .after = position.version,
                                            .predecessor = position.predecessor,
                                            .base = position.base},
                                           commits));
  VARVE_RETURN_IF_ERROR(WriteFile(ChangesPath(), ArchiveFileName(position.number + 1), bytes));
  newest_number_ = ++position.number;
  position.version = commits.back().version;
  position.instant_ms = commits.back().instant_ms;
  position.current_ms = std::max(position.current_ms, position.instant_ms);
  position.predecessor = HashKey(bytes);
  return WritePosition(position);
}

absl::Status ArchivePlace::NoteCurrent(uint64_t current_ms) {
  VARVE_ASSERT(position_.has_value());
  if (current_ms <= position_->current_ms) return absl::OkStatus();
  ArchivePosition position = *position_;
  position.current_ms = current_ms;
  return WritePosition(position);
}

absl::Status ArchivePlace::WriteFile(const std::string& directory, std::string_view name,
                                     std::string_view bytes) const {
  const std::string path = fmt::format("{}/{}", directory, name);
  const std::string beside = fmt::format("{}{}", path, kBeside);
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                         file_system_->OpenForWrite(beside, /*create=*/true));
  VARVE_RETURN_IF_ERROR(file->Write(0, bytes));
  VARVE_RETURN_IF_ERROR(file->Sync());
  VARVE_RETURN_IF_ERROR(file_system_->Rename(beside, path));
  return file_system_->SyncDirectory(directory);
}

absl::Status ArchivePlace::WritePosition(const ArchivePosition& position) {
  VARVE_RETURN_IF_ERROR(WriteFile(directory_, kArchiveLastName, EncodeArchivePosition(position)));
  position_ = position;
  return absl::OkStatus();
}

}  // namespace varve
