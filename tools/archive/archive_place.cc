#include "tools/archive/archive_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "absl/strings/numbers.h"
#include "tools/archive/archive_chain.h"
#include "tools/archive/archive_file.h"
#include "util/base/assert.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "util/os/clock.h"

namespace varve {
namespace {

constexpr std::string_view kMarkerWord = "varve-archive ";
constexpr std::string_view kMarkerBegin = "varve-archive 1\nid ";
constexpr size_t kIdDigits = 16;
constexpr std::string_view kBeside = ".incomplete";
constexpr std::string_view kLockName = "LOCK";
constexpr std::string_view kSentText = "varve-archive-sent 1\n";
constexpr std::string_view kBaseBegunName = "BASE";
constexpr std::string_view kBaseBegunWord = "varve-archive-base 1 ";
// LAST is sent behind each change file, and so often where none comes.
constexpr uint64_t kSendPositionMs = 60'000;

bool IsOurs(const std::string& name) {
  static constexpr std::string_view kNames[] = {
      kArchiveName,      kArchiveLastName, kArchiveBases,  kArchiveChanges,    kLockName,
      kArchiveFirstName, kArchiveSentName, kBaseBegunName, kArchiveMetricsName};
  return name.ends_with(kBeside) ||
         std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

absl::Status NotFoundIsDone(const absl::Status& removed) {
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
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

std::string ArchivePlace::ChangesPath() const { return PathOf(kArchiveChanges); }

std::string ArchivePlace::PathOf(std::string_view name) const {
  return fmt::format("{}/{}", directory_, name);
}

absl::StatusOr<std::unique_ptr<ArchivePlace>> ArchivePlace::Open(FileSystem* file_system,
                                                                 const std::string& directory,
                                                                 ArchiveSender* sender) {
  std::unique_ptr<ArchivePlace> place(new ArchivePlace(file_system, directory, sender));
  VARVE_RETURN_IF_ERROR(place->Prepare());
  VARVE_RETURN_IF_ERROR(place->FindPosition());
  if (sender != nullptr) VARVE_RETURN_IF_ERROR(place->RemoveSent());
  place->WriteMetrics();
  return place;
}

absl::Status ArchivePlace::CheckNames() const {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
  const auto other =
      std::find_if(names.begin(), names.end(), [](const auto& name) { return !IsOurs(name); });
  if (!Has(names, kArchiveName) && other != names.end()) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {} is there, and no archive; name a directory that is new or empty",
                    directory_, *other));
  }
  const bool is_sent = Has(names, kArchiveSentName);
  if (sender_ == nullptr && is_sent) {
    return absl::FailedPreconditionError(
        fmt::format("{}: the files of this archive are handed to a command; name it again (--exec)",
                    directory_));
  }
  if (sender_ != nullptr && !is_sent && Has(names, kArchiveName)) {
    return absl::FailedPreconditionError(
        fmt::format("{}: this archive has its files here; name another directory for one whose "
                    "files go to a command",
                    directory_));
  }
  return absl::OkStatus();
}

absl::Status ArchivePlace::Prepare() {
  VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(directory_));
  VARVE_RETURN_IF_ERROR(CheckNames());
  absl::StatusOr<std::unique_ptr<FileLock>> lock = file_system_->Lock(PathOf(kLockName));
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(
        fmt::format("{}: another run writes this archive", directory_));
  }
  VARVE_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  VARVE_RETURN_IF_ERROR(CheckNames());  // another run may have been here before the lock
  if (sender_ != nullptr) VARVE_RETURN_IF_ERROR(MarkSent());
  VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(ChangesPath()));
  VARVE_ASSIGN_OR_RETURN(bases_, BackupPlace::Open(file_system_, PathOf(kArchiveBases)));
  VARVE_RETURN_IF_ERROR(ReadOrWriteMarker());
  VARVE_RETURN_IF_ERROR(ReadBegun());
  const absl::StatusOr<std::string> figures =
      ReadWholeFile(file_system_, PathOf(kArchiveMetricsName));
  if (figures.ok()) metrics_ = DecodeArchiveCounters(*figures);
  return RemoveIncomplete();
}

absl::Status ArchivePlace::RemoveIncomplete() const {
  for (const std::string& each : {directory_, ChangesPath()}) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> left, file_system_->List(each));
    for (const std::string& name : left) {
      if (name.ends_with(kBeside))
        VARVE_RETURN_IF_ERROR(file_system_->Remove(fmt::format("{}/{}", each, name)));
    }
  }
  const absl::StatusOr<ArchiveFirst> first = ReadArchiveFirst(file_system_, directory_);
  if (absl::IsDataLoss(first.status())) return absl::OkStatus();  // the check names it
  VARVE_RETURN_IF_ERROR(first.status());
  return first->number == 0 ? absl::OkStatus() : RemovePruned(*first);
}

absl::Status ArchivePlace::MarkSent() const {
  const absl::StatusOr<std::string> there = ReadWholeFile(file_system_, PathOf(kArchiveSentName));
  if (!absl::IsNotFound(there.status())) return there.status();
  return WriteFile(directory_, kArchiveSentName, kSentText);
}

absl::Status ArchivePlace::RemoveSent() const {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> changes, file_system_->List(ChangesPath()));
  for (const std::string& name : changes) {
    if (ParseArchiveFileName(name))
      VARVE_RETURN_IF_ERROR(file_system_->Remove(fmt::format("{}/{}", ChangesPath(), name)));
  }
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> bases,
                         file_system_->List(bases_->directory()));
  for (const std::string& id : bases) {
    if (!IsBackupId(id)) continue;
    if (!position_ || position_->base != id) {
      VARVE_RETURN_IF_ERROR(bases_->Remove(id));
      continue;
    }
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                           file_system_->List(bases_->PathOf(id)));
    for (const std::string& file : files) {
      if (file == kBackupListName) continue;
      VARVE_RETURN_IF_ERROR(file_system_->Remove(fmt::format("{}/{}", bases_->PathOf(id), file)));
    }
  }
  return absl::OkStatus();
}

absl::Status ArchivePlace::RemovePruned(const ArchiveFirst& first) const {
  for (const std::string& base : first.gone)
    VARVE_RETURN_IF_ERROR(NotFoundIsDone(bases_->Remove(base)));
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(ChangesPath()));
  for (const std::string& name : names) {
    if (ParseArchiveFileName(name).value_or(first.number) < first.number)
      VARVE_RETURN_IF_ERROR(file_system_->Remove(fmt::format("{}/{}", ChangesPath(), name)));
  }
  return absl::OkStatus();
}

absl::StatusOr<ArchiveFirst> ArchivePlace::FirstOf(const ArchiveContents& contents,
                                                   size_t kept) const {
  ArchiveFirst first{.number = newest_number_ + 1};
  std::vector<ArchiveFileHeader> files;
  for (size_t i = 0; i < contents.chains.size(); ++i) {
    const ArchiveChain& chain = contents.chains[i];
    if (i < kept) {
      first.gone.push_back(chain.base.id);
      continue;
    }
    files.insert(files.end(), chain.files.begin(), chain.files.end());
    const bool has_joined = chain.is_newest && chain.list_checksum != position_->predecessor;
    if (!chain.files.empty() || !has_joined) continue;
    // The next file names the newest one as before it.
    const std::string path =
        fmt::format("{}/{}", ChangesPath(), ArchiveFileName(position_->number));
    VARVE_ASSIGN_OR_RETURN(files.emplace_back(), ReadArchiveFileHeader(file_system_, path));
  }
  for (const ArchiveFileHeader& header : files)
    first.number = std::min(first.number, header.number);
  // Those that went before count for as long as a file that is kept names them.
  for (const ArchiveFileHeader& header : files)
    if (contents.first.IsGone(header.base) && !first.IsGone(header.base))
      first.gone.push_back(header.base);
  return first;
}

absl::StatusOr<uint64_t> ArchivePlace::Prune(uint64_t keep_ms) {
  VARVE_ASSERT(position_.has_value() && sender_ == nullptr);
  VARVE_ASSIGN_OR_RETURN(const ArchiveContents contents,
                         ReadArchive(file_system_, directory_, /*every_byte=*/false));
  const uint64_t since_ms = position_->current_ms - std::min(position_->current_ms, keep_ms);
  size_t kept = contents.chains.size();  // the first of them
  for (size_t i = 0; i < contents.chains.size(); ++i) {
    const ArchiveChain& chain = contents.chains[i];
    if (chain.base.instant_ms <= since_ms && chain.broken_at.empty()) kept = i;
  }
  if (kept == contents.chains.size() || kept == 0) return 0;
  VARVE_ASSIGN_OR_RETURN(const ArchiveFirst first, FirstOf(contents, kept));
  VARVE_RETURN_IF_ERROR(WriteFile(directory_, kArchiveFirstName, EncodeArchiveFirst(first)));
  VARVE_RETURN_IF_ERROR(RemovePruned(first));
  return kept;
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
  if (sender_ == nullptr) {
    for (const std::string& name : names)
      newest_number_ = std::max(newest_number_, ParseArchiveFileName(name).value_or(0));
  }
  const std::string path = PathOf(kArchiveLastName);
  const absl::StatusOr<std::string> text = ReadWholeFile(file_system_, path);
  if (absl::IsNotFound(text.status())) {
    NeedBase(newest_number_ == 0 ? "the archive is new" : "LAST is missing");
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(text.status());
  absl::StatusOr<ArchivePosition> position = DecodeArchivePosition(*text, path);
  if (absl::IsFailedPrecondition(position.status())) return position.status();
  // Nobody knows which numbers were given to files that are elsewhere.
  if (sender_ != nullptr && !position.ok()) return position.status();
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

absl::Status ArchivePlace::CheckNewestFile() {
  const std::string base = bases_->PathOf(position_->base);
  VARVE_ASSIGN_OR_RETURN(base_, ReadBackupList(file_system_, base));
  if (sender_ != nullptr) return absl::OkStatus();  // it is elsewhere
  VARVE_ASSIGN_OR_RETURN(const uint64_t list, ChecksumOfList(file_system_, base));
  if (list == position_->predecessor) return absl::OkStatus();
  const std::string path = fmt::format("{}/{}", ChangesPath(), ArchiveFileName(position_->number));
  VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
  if (HashKey(bytes) == position_->predecessor) return absl::OkStatus();
  return Corruption(path, 0, "it is not the file that LAST tells of");
}

absl::Status ArchivePlace::FollowFiles() {
  VARVE_RETURN_IF_ERROR(CheckNewestFile());
  // A file that was not sent comes again.
  if (sender_ != nullptr) return absl::OkStatus();
  ArchivePosition position = *position_;
  while (position.number < newest_number_) {
    const std::string path =
        fmt::format("{}/{}", ChangesPath(), ArchiveFileName(position.number + 1));
    VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
    VARVE_ASSIGN_OR_RETURN(const ArchiveFile file, DecodeArchiveFile(bytes, path));
    const ArchiveFileHeader& header = file.header;
    if (header.number != position.number + 1 || header.predecessor != position.predecessor ||
        header.after != position.version || header.history_id != position.history_id)
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
  const bool is_new = !position_ && newest_number_ == 0 && why_base_.empty();
  if (!is_new && !metrics_.gap) {
    metrics_.gap = true;
    ++metrics_.gaps;
  }
  position_.reset();
  why_base_ = why;
  WriteMetrics();
}

absl::Status ArchivePlace::SendBase(const BackupDescription& base,
                                    const std::function<bool()>& stopped) const {
  if (sender_ == nullptr) return absl::OkStatus();
  const auto send = [&](const std::string& name) {
    return stopped() ? absl::CancelledError("the base was given up while its files were sent")
                     : sender_->Send(name, PathOf(name));
  };
  VARVE_RETURN_IF_ERROR(send(std::string(kArchiveName)));
  const std::string directory = fmt::format("{}/{}", kArchiveBases, base.id);
  for (const BackupFile& file : base.files)
    VARVE_RETURN_IF_ERROR(send(fmt::format("{}/{}", directory, file.name)));
  // The list comes last, so that a base that has one is whole.
  return send(fmt::format("{}/{}", directory, kBackupListName));
}

absl::Status ArchivePlace::BeginChain(const BackupDescription& base) {
  VARVE_ASSIGN_OR_RETURN(const uint64_t list,
                         ChecksumOfList(file_system_, bases_->PathOf(base.id)));
  return GoOnFrom(base, {.history_id = base.history_id,
                         .base = base.id,
                         .number = newest_number_,
                         .version = base.version,
                         .instant_ms = base.instant_ms,
                         .current_ms = base.instant_ms,
                         .predecessor = list});
}

absl::Status ArchivePlace::JoinBase(const BackupDescription& base) {
  VARVE_ASSERT(position_.has_value() && position_->history_id == base.history_id);
  ArchivePosition position = *position_;
  position.base = base.id;
  return GoOnFrom(base, position);
}

absl::Status ArchivePlace::GoOnFrom(const BackupDescription& base,
                                    const ArchivePosition& position) {
  VARVE_RETURN_IF_ERROR(WritePosition(position));
  base_ = base;
  metrics_.gap = false;
  ++metrics_.bases;
  metrics_.bytes += base.new_bytes;
  WriteMetrics();
  VARVE_RETURN_IF_ERROR(ForgetBaseBegun());
  if (sender_ == nullptr) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(SendPosition());
  return RemoveSent();
}

absl::Status ArchivePlace::ForgetBaseBegun() {
  base_began_s_.reset();
  return NotFoundIsDone(file_system_->Remove(PathOf(kBaseBegunName)));
}

absl::Status ArchivePlace::NoteBaseBegins(uint64_t server_s) {
  VARVE_RETURN_IF_ERROR(
      WriteFile(directory_, kBaseBegunName, fmt::format("{}{}\n", kBaseBegunWord, server_s)));
  base_began_s_ = server_s;
  return absl::OkStatus();
}

absl::Status ArchivePlace::ReadBegun() {
  const absl::StatusOr<std::string> text = ReadWholeFile(file_system_, PathOf(kBaseBegunName));
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
  const std::string name = ArchiveFileName(position.number + 1);
  VARVE_RETURN_IF_ERROR(WriteFile(ChangesPath(), name, bytes));
  const std::string path = fmt::format("{}/{}", ChangesPath(), name);
  if (sender_ != nullptr)
    VARVE_RETURN_IF_ERROR(sender_->Send(fmt::format("{}/{}", kArchiveChanges, name), path));
  newest_number_ = ++position.number;
  position.version = commits.back().version;
  position.instant_ms = commits.back().instant_ms;
  position.current_ms = std::max(position.current_ms, position.instant_ms);
  position.predecessor = HashKey(bytes);
  VARVE_RETURN_IF_ERROR(WritePosition(position));
  ++metrics_.files;
  metrics_.bytes += bytes.size();
  WriteMetrics();
  if (sender_ == nullptr) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(NotFoundIsDone(file_system_->Remove(path)));
  return SendPosition();
}

absl::Status ArchivePlace::NoteCurrent(uint64_t current_ms) {
  VARVE_ASSERT(position_.has_value());
  if (current_ms > position_->current_ms) {
    ArchivePosition position = *position_;
    position.current_ms = current_ms;
    VARVE_RETURN_IF_ERROR(WritePosition(position));
    WriteMetrics();
  }
  const bool is_sent =
      sender_ == nullptr || (sent_ms_ != 0 && position_->current_ms < sent_ms_ + kSendPositionMs);
  return is_sent ? absl::OkStatus() : SendPosition();
}

absl::Status ArchivePlace::SendPosition() {
  sent_ms_ = 0;
  VARVE_RETURN_IF_ERROR(sender_->Send(std::string(kArchiveLastName), PathOf(kArchiveLastName)));
  sent_ms_ = position_->current_ms;
  return absl::OkStatus();
}

void ArchivePlace::WriteMetrics() const {
  const std::string path = PathOf(kArchiveMetricsName);
  const std::string beside = fmt::format("{}{}", path, kBeside);
  absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForWrite(beside, /*create=*/true);
  if (!file.ok()) return;
  const absl::Status written =
      (*file)->Write(0, EncodeArchiveMetrics(metrics_, position_, RealClock().WallMillis()));
  file->reset();
  if (written.ok()) {
    file_system_->Rename(beside, path).IgnoreError();
  } else {
    file_system_->Remove(beside).IgnoreError();
  }
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
