#include "server/following/incoming_store.h"

#include <algorithm>
#include <vector>

#include "fmt/format.h"
#include "util/base/status.h"
#include "varve/replication.h"

namespace varve {
namespace {

constexpr std::string_view kDirectory = "incoming";
constexpr std::string_view kComplete = "COMPLETE";
constexpr std::string_view kRemoved = "REMOVED";
constexpr std::string_view kManifest = "MANIFEST";

std::string In(const std::string& directory, std::string_view name) {
  return fmt::format("{}/{}", directory, name);
}

absl::StatusOr<bool> Exists(FileSystem& files, const std::string& path) {
  const absl::Status opened = files.OpenForRead(path).status();
  if (absl::IsNotFound(opened)) return false;
  VARVE_RETURN_IF_ERROR(opened);
  return true;
}

absl::Status MakeMark(FileSystem& files, const std::string& directory, std::string_view name) {
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> mark,
                         files.OpenForWrite(In(directory, name), /*create=*/true));
  VARVE_RETURN_IF_ERROR(mark->Sync());
  return files.SyncDirectory(directory);
}

// Removes the directory and its files: first the mark without which they are nothing, and last
// `last`.
absl::Status RemoveAll(FileSystem& files, const std::string& directory, std::string_view last) {
  const absl::StatusOr<std::vector<std::string>> names = files.List(directory);
  if (absl::IsNotFound(names.status())) return absl::OkStatus();
  VARVE_RETURN_IF_ERROR(names.status());
  if (std::find(names->begin(), names->end(), kComplete) != names->end()) {
    VARVE_RETURN_IF_ERROR(files.Remove(In(directory, kComplete)));
    VARVE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  }
  for (const std::string& name : *names) {
    if (name != last && name != kComplete) VARVE_RETURN_IF_ERROR(files.Remove(In(directory, name)));
  }
  VARVE_RETURN_IF_ERROR(files.SyncDirectory(directory));
  if (std::find(names->begin(), names->end(), last) != names->end())
    VARVE_RETURN_IF_ERROR(files.Remove(In(directory, last)));
  return files.Remove(directory);
}

absl::Status RemoveOldStore(FileSystem& files, const std::string& store,
                            const std::string& incoming) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(store));
  // Without a manifest the rest is no store.
  for (const bool manifests : {true, false}) {
    for (const std::string& name : names) {
      if ((IsStoreFile(name) || name == kReplicationFile) &&
          name.starts_with(kManifest) == manifests)
        VARVE_RETURN_IF_ERROR(files.Remove(In(store, name)));
    }
    VARVE_RETURN_IF_ERROR(files.SyncDirectory(store));
  }
  return MakeMark(files, incoming, kRemoved);
}

absl::Status MoveIn(FileSystem& files, const std::string& store, const std::string& incoming) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(incoming));
  for (const bool manifests : {false, true}) {
    for (const std::string& name : names) {
      if (name == kComplete || name == kRemoved || (name == kManifest) != manifests) continue;
      VARVE_RETURN_IF_ERROR(files.Rename(In(incoming, name), In(store, name)));
    }
    VARVE_RETURN_IF_ERROR(files.SyncDirectory(store));
    VARVE_RETURN_IF_ERROR(files.SyncDirectory(incoming));
  }
  return absl::OkStatus();
}

}  // namespace

IncomingStore::IncomingStore(FileSystem* file_system, const std::string& store)
    : file_system_(*file_system), store_(store), directory_(In(store, kDirectory)) {}

absl::Status IncomingStore::Begin() {
  VARVE_RETURN_IF_ERROR(RemoveAll(file_system_, directory_, kRemoved));
  VARVE_RETURN_IF_ERROR(file_system_.CreateDirectory(directory_));
  return file_system_.SyncDirectory(store_);
}

absl::Status IncomingStore::Share(const std::string& name) {
  return file_system_.Link(In(store_, name), In(directory_, name));
}

absl::Status IncomingStore::BeginFile(const std::string& name) {
  VARVE_ASSIGN_OR_RETURN(file_, file_system_.OpenForWrite(In(directory_, name), /*create=*/true));
  written_ = 0;
  return absl::OkStatus();
}

absl::Status IncomingStore::Append(std::string_view bytes) {
  VARVE_RETURN_IF_ERROR(file_->Write(written_, bytes));
  written_ += bytes.size();
  return absl::OkStatus();
}

absl::Status IncomingStore::EndFile() {
  const std::unique_ptr<File> file = std::move(file_);
  return file->Sync();
}

absl::Status IncomingStore::Seal(const ReplicationRecord& record) {
  VARVE_RETURN_IF_ERROR(WriteReplicationFile(&file_system_, directory_, record));
  VARVE_RETURN_IF_ERROR(file_system_.SyncDirectory(directory_));
  return MakeMark(file_system_, directory_, kComplete);
}

void IncomingStore::Abandon() {
  file_ = nullptr;
  // What can't be removed now goes with the next copy, or with the next start.
  RemoveAll(file_system_, directory_, kRemoved).IgnoreError();
}

absl::StatusOr<bool> InstallIncomingStore(FileSystem* file_system, const std::string& store) {
  FileSystem& files = *file_system;
  const std::string incoming = In(store, kDirectory);
  if (absl::IsNotFound(files.List(incoming).status())) return false;
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock, files.Lock(store + "/LOCK"));
  VARVE_ASSIGN_OR_RETURN(const bool is_complete, Exists(files, In(incoming, kComplete)));
  if (!is_complete) {
    VARVE_RETURN_IF_ERROR(RemoveAll(files, incoming, kRemoved));
    return false;
  }
  VARVE_ASSIGN_OR_RETURN(const bool is_removed, Exists(files, In(incoming, kRemoved)));
  if (!is_removed) VARVE_RETURN_IF_ERROR(RemoveOldStore(files, store, incoming));
  VARVE_RETURN_IF_ERROR(MoveIn(files, store, incoming));
  // Without this mark the rest of the directory is what an incomplete copy leaves.
  VARVE_RETURN_IF_ERROR(files.Remove(In(incoming, kComplete)));
  VARVE_RETURN_IF_ERROR(files.SyncDirectory(incoming));
  VARVE_RETURN_IF_ERROR(RemoveAll(files, incoming, kRemoved));
  return true;
}

}  // namespace varve
