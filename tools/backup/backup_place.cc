#include "tools/backup/backup_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "db/format/log_format.h"
#include "util/base/status.h"

namespace varve {
namespace {

constexpr std::string_view kIncomplete = ".incomplete-";

// Returns whether a directory with such a file is something else than a place for backups.
bool IsOfAnother(const std::string& name) {
  return name == kBackupListName || name == "ARCHIVE" || name.starts_with("MANIFEST") ||
         IsBackupFileName(name) || ParseLogFileName(name).has_value();
}

bool IsIncomplete(std::string_view name) {
  return name.starts_with(kIncomplete) && IsBackupId(name.substr(kIncomplete.size()));
}

// A program may write to a directory without having the right to sync the one above it.
absl::Status SyncNameOf(FileSystem* file_system, const std::string& directory) {
  const absl::Status synced = file_system->SyncDirectory(ParentDirectory(directory));
  return absl::IsPermissionDenied(synced) ? absl::OkStatus() : synced;
}

}  // namespace

absl::StatusOr<BackupListing> ListBackups(FileSystem* file_system, const std::string& directory) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  BackupListing listing;
  for (const std::string& name : names) {
    if (!IsBackupId(name)) continue;
    const std::string path = directory + "/" + name;
    absl::StatusOr<BackupDescription> backup = ReadBackupList(file_system, path);
    if (backup.ok() && backup->id != name) {
      backup = Corruption(fmt::format("{}/{}", path, kBackupListName), 0,
                          fmt::format("list of a backup: it is that of {}", backup->id));
    }
    if (backup.ok()) {
      listing.backups.push_back(*std::move(backup));
    } else {
      listing.unreadable.push_back(backup.status());
    }
  }
  std::stable_sort(listing.backups.begin(), listing.backups.end(),
                   [](const BackupDescription& a, const BackupDescription& b) {
                     return a.sealed_ms < b.sealed_ms ||
                            (a.sealed_ms == b.sealed_ms && a.version < b.version);
                   });
  return listing;
}

absl::Status RemoveDirectoryWithFiles(FileSystem* file_system, const std::string& path) {
  const absl::StatusOr<std::vector<std::string>> names = file_system->List(path);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(names.status());
  for (const std::string& name : *names) {
    const absl::Status removed = file_system->Remove(path + "/" + name);
    if (!removed.ok() && !absl::IsNotFound(removed)) return removed;
  }
  const absl::Status removed = file_system->Remove(path);
  return absl::IsNotFound(removed) ? absl::OkStatus() : removed;
}

std::string BackupPlace::IncompletePathOf(const std::string& id) const {
  return fmt::format("{}/{}{}", directory_, kIncomplete, id);
}

absl::StatusOr<std::unique_ptr<BackupPlace>> BackupPlace::Open(FileSystem* file_system,
                                                               const std::string& directory) {
  VARVE_RETURN_IF_ERROR(file_system->CreateDirectory(directory));
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> found, file_system->List(directory));
  const auto other = std::find_if(found.begin(), found.end(), IsOfAnother);
  if (other != found.end()) {
    return absl::FailedPreconditionError(
        fmt::format("{}: {} is there, so this is no place for backups; name another directory",
                    directory, *other));
  }
  if (found.empty()) VARVE_RETURN_IF_ERROR(SyncNameOf(file_system, directory));
  std::unique_ptr<BackupPlace> place(new BackupPlace(file_system, directory));
  absl::StatusOr<std::unique_ptr<FileLock>> lock = file_system->Lock(directory + "/LOCK");
  if (absl::IsFailedPrecondition(lock.status())) {
    return absl::FailedPreconditionError(fmt::format(
        "{}: another run writes backups here; wait for its end, or name another directory",
        directory));
  }
  VARVE_RETURN_IF_ERROR(lock.status());
  place->lock_ = *std::move(lock);
  // Another run may have been here between the list before and the lock.
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  for (const std::string& name : names) {
    if (IsIncomplete(name))
      VARVE_RETURN_IF_ERROR(RemoveDirectoryWithFiles(file_system, directory + "/" + name));
  }
  return place;
}

absl::Status BackupPlace::Remove(const std::string& id) {
  const std::string path = PathOf(id);
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
  if (!IsBackupId(id) || std::find(names.begin(), names.end(), id) == names.end())
    return absl::NotFoundError(fmt::format("{}: there is no backup {}", directory_, id));
  VARVE_RETURN_IF_ERROR(file_system_->Rename(path, IncompletePathOf(id)));
  VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(directory_));
  VARVE_RETURN_IF_ERROR(RemoveDirectoryWithFiles(file_system_, IncompletePathOf(id)));
  return file_system_->SyncDirectory(directory_);
}

}  // namespace varve
