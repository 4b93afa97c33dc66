#include "tools/backup/backup_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "db/format/file_names.h"
#include "db/version/manifest.h"
#include "util/base/assert.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Only files that are never written to again may have a second name.
bool MayBeShared(const std::string& name) {
  return ParseSegmentName(name).has_value() || ParseValueFileName(name).has_value();
}

}  // namespace

BackupWriter::BackupWriter(BackupPlace* place, VerifyProgress progress)
    : place_(*place), progress_(std::move(progress)) {}

BackupWriter::~BackupWriter() {
  if (state_ == State::kBegun || state_ == State::kInFile)
    After(absl::CancelledError("the backup was not sealed")).IgnoreError();
}

absl::Status BackupWriter::After(absl::Status status) {
  if (status.ok()) return status;
  state_ = State::kFailed;
  writer_.reset();
  if (!backup_.id.empty()) RemoveDirectoryWithFiles(place_.file_system(), Path()).IgnoreError();
  if (!absl::IsResourceExhausted(status)) return status;
  return absl::ResourceExhaustedError(
      fmt::format("{}; no backup was made, and {} is as it was before",
                  std::string(status.message()), place_.directory()));
}

absl::Status BackupWriter::CheckState(State wanted) const {
  if (state_ == wanted) return absl::OkStatus();
  return absl::FailedPreconditionError(state_ == State::kFailed
                                           ? "the backup has failed; begin another one"
                                           : "the backup is not where this call belongs");
}

absl::Status BackupWriter::Begin(const BackupOrigin& origin, bool incremental) {
  VARVE_RETURN_IF_ERROR(CheckState(State::kNew));
  return After(TryBegin(origin, incremental));
}

absl::Status BackupWriter::TryBegin(const BackupOrigin& origin, bool incremental) {
  FileSystem* const file_system = place_.file_system();
  const std::string id = BackupIdOf(origin.sealed_ms, origin.version);
  if (!IsBackupId(id)) {
    return absl::InvalidArgumentError(fmt::format(
        "the server says that it sealed the backup at {} ms, which is no time", origin.sealed_ms));
  }
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names,
                         file_system->List(place_.directory()));
  std::string free = id;
  for (int i = 2; std::find(names.begin(), names.end(), free) != names.end(); ++i)
    free = fmt::format("{}-{}", id, i);
  if (incremental) {
    VARVE_ASSIGN_OR_RETURN(earlier_, place_.List());
    std::erase_if(earlier_.backups, [&](const BackupDescription& backup) {
      return backup.store_id != origin.store_id || backup.history_id != origin.history_id;
    });
  }
  backup_ = {.id = free,
             .store_id = origin.store_id,
             .history_id = origin.history_id,
             .version = origin.version,
             .instant_ms = origin.instant_ms,
             .sealed_ms = origin.sealed_ms};
  VARVE_RETURN_IF_ERROR(file_system->CreateDirectory(Path()));
  state_ = State::kBegun;
  return absl::OkStatus();
}

absl::Status BackupWriter::CheckName(const std::string& name) const {
  if (!IsBackupFileName(name))
    return absl::InvalidArgumentError(fmt::format("no backup has a file of the name '{}'", name));
  if (names_.contains(name))
    return absl::InvalidArgumentError(fmt::format("the backup has {} already", name));
  return absl::OkStatus();
}

absl::StatusOr<bool> BackupWriter::Share(const std::string& name, uint64_t size) {
  VARVE_RETURN_IF_ERROR(CheckState(State::kBegun));
  absl::StatusOr<bool> shared = TryShare(name, size);
  if (!shared.ok()) return After(shared.status());
  return shared;
}

absl::StatusOr<bool> BackupWriter::TryShare(const std::string& name, uint64_t size) {
  VARVE_RETURN_IF_ERROR(CheckName(name));
  if (!MayBeShared(name)) return false;
  for (auto earlier = earlier_.backups.rbegin(); earlier != earlier_.backups.rend(); ++earlier) {
    const BackupFile* const file = earlier->Find(name);
    if (file == nullptr || file->size != size) continue;
    VARVE_ASSIGN_OR_RETURN(const bool linked, LinkFrom(*earlier, *file));
    if (!linked) continue;
    names_.insert(name);
    backup_.files.push_back(*file);
    backup_.shared_bytes += size;
    shared_.insert(name);
    return true;
  }
  return false;
}

absl::StatusOr<bool> BackupWriter::LinkFrom(const BackupDescription& earlier,
                                            const BackupFile& file) {
  FileSystem* const file_system = place_.file_system();
  const std::string path = place_.PathOf(earlier.id) + "/" + file.name;
  const absl::StatusOr<std::unique_ptr<File>> opened = file_system->OpenForRead(path);
  if (absl::IsNotFound(opened.status())) return false;
  VARVE_RETURN_IF_ERROR(opened.status());
  VARVE_ASSIGN_OR_RETURN(const uint64_t size, (*opened)->Size());
  if (size != file.size) return false;
  const absl::Status linked = file_system->Link(path, Path() + "/" + file.name);
  // Where there are no hard links, the file is sent.
  if (absl::IsPermissionDenied(linked)) return false;
  VARVE_RETURN_IF_ERROR(linked);
  return true;
}

absl::Status BackupWriter::BeginFile(const std::string& name, uint64_t size) {
  VARVE_RETURN_IF_ERROR(CheckState(State::kBegun));
  VARVE_RETURN_IF_ERROR(After(CheckName(name)));
  absl::StatusOr<std::unique_ptr<FileWriter>> writer =
      FileWriter::Create(place_.file_system(), Path() + "/" + name);
  VARVE_RETURN_IF_ERROR(After(writer.status()));
  writer_ = *std::move(writer);
  file_ = {.name = name, .size = size};
  checksum_ = FileChecksum();
  state_ = State::kInFile;
  return absl::OkStatus();
}

absl::Status BackupWriter::Append(std::string_view bytes) {
  VARVE_RETURN_IF_ERROR(CheckState(State::kInFile));
  if (bytes.size() > file_.size - writer_->size()) {
    return After(absl::DataLossError(fmt::format(
        "{}: more bytes came than the {} that were announced", file_.name, file_.size)));
  }
  checksum_.Add(bytes);
  return After(writer_->Append(bytes));
}

absl::Status BackupWriter::EndFile() {
  VARVE_RETURN_IF_ERROR(CheckState(State::kInFile));
  return After(TryEndFile());
}

absl::Status BackupWriter::TryEndFile() {
  if (writer_->size() != file_.size) {
    return absl::DataLossError(fmt::format("{}: {} bytes came of the {} that were announced",
                                           file_.name, writer_->size(), file_.size));
  }
  VARVE_RETURN_IF_ERROR(writer_->Finish());
  writer_->Keep();
  writer_.reset();
  file_.checksum = checksum_.value();
  backup_.new_bytes += file_.size;
  names_.insert(file_.name);
  backup_.files.push_back(std::move(file_));
  state_ = State::kBegun;
  return absl::OkStatus();
}

absl::StatusOr<std::string> BackupWriter::Seal() {
  VARVE_RETURN_IF_ERROR(CheckState(State::kBegun));
  VARVE_RETURN_IF_ERROR(After(TrySeal()));
  state_ = State::kSealed;
  return backup_.id;
}

absl::Status BackupWriter::TrySeal() {
  if (!names_.contains("MANIFEST"))
    return absl::DataLossError("MANIFEST: the server did not send it");
  VARVE_RETURN_IF_ERROR(Verify());
  VARVE_RETURN_IF_ERROR(CheckManifest());
  std::sort(backup_.files.begin(), backup_.files.end(),
            [](const BackupFile& a, const BackupFile& b) { return a.name < b.name; });
  VARVE_RETURN_IF_ERROR(WriteList());
  return GiveName();
}

absl::Status BackupWriter::Verify() const {
  VARVE_ASSIGN_OR_RETURN(
      const VerifyReport report,
      VerifyStore(place_.file_system(), Path(), progress_,
                  {.is_known = [this](const auto& name) { return shared_.contains(name); }}));
  if (report.damaged_places == 0) return absl::OkStatus();
  const auto damage = std::find_if(
      report.findings.begin(), report.findings.end(),
      [](const StoreFinding& each) { return each.kind == StoreFinding::Kind::kDamage; });
  VARVE_ASSERT(damage != report.findings.end());
  // The disk of the place can't read back what was written to it.
  if (damage->file.empty())
    return absl::InternalError(fmt::format("{}; no backup was made", damage->what));
  const std::string more = report.damaged_places == 1 ? ""
                                                      : fmt::format(" ({} more places are damaged)",
                                                                    report.damaged_places - 1);
  return Corruption(damage->file, damage->offset,
                    fmt::format("{}{}; no backup was made. Verify the store itself: either its "
                                "file is damaged, or what came from it",
                                damage->what, more));
}

absl::Status BackupWriter::CheckManifest() const {
  VARVE_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(place_.file_system(), Path()));
  if (manifest.store_id == backup_.store_id && manifest.history_id == backup_.history_id &&
      manifest.flushed_sequence == backup_.version)
    return absl::OkStatus();
  return absl::DataLossError(
      fmt::format("MANIFEST: it is that of store {:016x}, history {:016x}, version {}, but the "
                  "server said that "
                  "it sealed store {:016x}, history {:016x}, version {}; no backup was made",
                  manifest.store_id, manifest.history_id, manifest.flushed_sequence,
                  backup_.store_id, backup_.history_id, backup_.version));
}

absl::Status BackupWriter::WriteList() const {
  FileSystem* const file_system = place_.file_system();
  VARVE_ASSIGN_OR_RETURN(
      const std::unique_ptr<File> file,
      file_system->OpenForWrite(fmt::format("{}/{}", Path(), kBackupListName), /*create=*/true));
  VARVE_RETURN_IF_ERROR(file->Write(0, EncodeBackupList(backup_)));
  VARVE_RETURN_IF_ERROR(file->Sync());
  return file_system->SyncDirectory(Path());
}

absl::Status BackupWriter::GiveName() {
  FileSystem* const file_system = place_.file_system();
  const std::string path = place_.PathOf(backup_.id);
  VARVE_RETURN_IF_ERROR(file_system->Rename(Path(), path));
  const absl::Status synced = file_system->SyncDirectory(place_.directory());
  // A power cut could take the name back, so it goes at once.
  if (!synced.ok()) file_system->Rename(path, Path()).IgnoreError();
  return synced;
}

}  // namespace varve
