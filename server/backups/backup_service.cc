#include "server/backups/backup_service.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "fmt/format.h"
#include "spdlog/spdlog.h"
#include "util/base/status.h"
#include "util/os/file_system.h"

namespace varve {
namespace {

constexpr std::string_view kSealing = ".sealing";  // behind the directory's name, while it is made

// Returns whether a checkpoint has files of that name, or the making of one.
bool IsOfCheckpoint(std::string_view name) {
  const auto ends = [&](std::string_view suffix) { return name.ends_with(suffix); };
  return ends(".seg") || ends(".val") || ends(".tim") || name.starts_with("MANIFEST");
}

void RemoveFilesIn(const std::string& directory) {
  const absl::StatusOr<std::vector<std::string>> names = PosixFileSystem()->List(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (IsOfCheckpoint(name)) RemoveFile(PosixFileSystem(), fmt::format("{}/{}", directory, name));
  }
}

absl::Status NotNow(std::string_view what, BackupState state, std::string_view instead) {
  return absl::FailedPreconditionError(
      fmt::format("{}: its state is {}; {}", what, NameOf(state), instead));
}

}  // namespace

std::string_view NameOf(BackupState state) {
  switch (state) {
    case BackupState::kIdle:
      return "idle";
    case BackupState::kSnapshotting:
      return "snapshotting";
    case BackupState::kIncrementing:
      return "incrementing";
    case BackupState::kSealed:
      return "sealed";
    case BackupState::kFailed:
      return "failed";
  }
  return "";
}

uint64_t BackupReport::bytes() const {
  uint64_t bytes = 0;
  for (const CheckpointFile& file : checkpoint.files) bytes += file.size;
  return bytes;
}

BackupService::BackupService(Store* store, std::string name)
    : store_(*store), name_(std::move(name)) {}

absl::StatusOr<std::string> BackupService::Directory() const {
  VARVE_ASSIGN_OR_RETURN(const std::string store, StoreDirectory(store_));
  return fmt::format("{}/{}", store, name_);
}

void BackupService::RemoveLeftovers() {
  absl::MutexLock work(&work_mutex_);
  RemoveFiles();
}

void BackupService::RemoveFiles() const {
  const absl::StatusOr<std::string> directory = Directory();
  if (!directory.ok()) return;
  RemoveFilesIn(*directory);
  const std::string sealing = *directory + std::string(kSealing);
  RemoveFilesIn(sealing);
  RemoveFile(PosixFileSystem(), sealing);
}

void BackupService::Enter(BackupState state, std::string error) {
  absl::MutexLock lock(&mutex_);
  report_.state = state;
  report_.error = std::move(error);
  last_use_ = std::chrono::steady_clock::now();
  holds_files_.store(state != BackupState::kIdle && state != BackupState::kFailed);
  in_progress_.store(state == BackupState::kSnapshotting || state == BackupState::kIncrementing);
}

absl::Status BackupService::Fail(absl::Status error) {
  {
    absl::MutexLock lock(&mutex_);
    ++report_.totals.failed;
  }
  Enter(BackupState::kFailed, std::string(error.message()));
  return error;
}

void BackupService::Forget() {
  const BackupTotals totals = report_.totals;
  report_ = {};
  report_.totals = totals;
}

// --- Steps ---------------------------------------------------------------------------------------

absl::Status BackupService::Start() {
  absl::MutexLock work(&work_mutex_);
  VARVE_ASSIGN_OR_RETURN(const std::string directory, Directory());
  {
    absl::MutexLock lock(&mutex_);
    if (report_.state != BackupState::kIdle && report_.state != BackupState::kFailed) {
      return NotNow("Backup already in progress", report_.state,
                    "BACKUP ABORT or BACKUP CLEANUP ends it");
    }
    Forget();
    report_.start_time = std::time(nullptr);
    report_.directory = directory;
  }
  Enter(BackupState::kSnapshotting);
  absl::StatusOr<Checkpoint> made = CreateCheckpoint(&store_, directory);
  if (!made.ok()) return Fail(made.status());
  {
    absl::MutexLock lock(&mutex_);
    report_.checkpoint = *std::move(made);
  }
  Enter(BackupState::kIncrementing);
  return absl::OkStatus();
}

absl::StatusOr<Checkpoint> BackupService::MakeSealed(const std::string& directory) const {
  const std::string sealing = directory + std::string(kSealing);
  const absl::Cleanup remove = [&] {
    RemoveFilesIn(sealing);
    RemoveFile(PosixFileSystem(), sealing);
  };
  VARVE_ASSIGN_OR_RETURN(Checkpoint made, CreateCheckpoint(&store_, sealing));
  // A name that is there already is one of the same file, as the store uses no number twice; but
  // the manifest is a new one, and may be the time file.
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, PosixFileSystem()->List(sealing));
  for (const std::string& name : names) {
    VARVE_RETURN_IF_ERROR(PosixFileSystem()->Rename(fmt::format("{}/{}", sealing, name),
                                                    fmt::format("{}/{}", directory, name)));
  }
  VARVE_RETURN_IF_ERROR(PosixFileSystem()->SyncDirectory(directory));
  return made;
}

absl::Status BackupService::Seal() {
  absl::MutexLock work(&work_mutex_);
  std::string directory;
  {
    absl::MutexLock lock(&mutex_);
    if (report_.state != BackupState::kIncrementing)
      return NotNow("No backup ready to seal", report_.state, "BACKUP START begins one");
    directory = report_.directory;
  }
  Enter(BackupState::kSnapshotting);
  absl::StatusOr<Checkpoint> made = MakeSealed(directory);
  if (!made.ok()) {
    RemoveFiles();
    return Fail(made.status());
  }
  {
    absl::MutexLock lock(&mutex_);
    report_.checkpoint = *std::move(made);
    report_.end_time = report_.totals.last_time = std::time(nullptr);
    report_.totals.last_version = report_.checkpoint.version;
    ++report_.totals.sealed;
  }
  Enter(BackupState::kSealed);
  return absl::OkStatus();
}

absl::Status BackupService::Abort() {
  absl::MutexLock work(&work_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    if (report_.state != BackupState::kIncrementing)
      return NotNow("No backup in progress", report_.state, "BACKUP CLEANUP removes a sealed one");
    report_.checkpoint = {};
  }
  RemoveFiles();
  Enter(BackupState::kFailed, "aborted by user");
  return absl::OkStatus();
}

absl::Status BackupService::Cleanup() {
  absl::MutexLock work(&work_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    if (report_.state == BackupState::kIdle) return absl::OkStatus();
    if (report_.state == BackupState::kIncrementing)
      return NotNow("Backup in progress", report_.state, "BACKUP ABORT ends it");
    Forget();
  }
  RemoveFiles();
  Enter(BackupState::kIdle);
  return absl::OkStatus();
}

void BackupService::EndIdle(Time now, std::chrono::seconds ttl) {
  if (!holds_files() || ttl.count() == 0) return;
  absl::MutexLock work(&work_mutex_);
  {
    absl::MutexLock lock(&mutex_);
    const bool holds =
        report_.state == BackupState::kSealed || report_.state == BackupState::kIncrementing;
    if (!holds || now - last_use_ < ttl) return;
    spdlog::info("backup: nobody has asked about it for {} s, its files are removed", ttl.count());
    Forget();
  }
  RemoveFiles();
  Enter(BackupState::kIdle);
}

// --- Reading -------------------------------------------------------------------------------------

BackupReport BackupService::Report(bool is_use) {
  absl::MutexLock lock(&mutex_);
  if (is_use) last_use_ = std::chrono::steady_clock::now();
  return report_;
}

absl::StatusOr<std::string> BackupService::Fetch(std::string_view name, uint64_t offset,
                                                 uint64_t length) {
  std::string path;
  {
    absl::MutexLock lock(&mutex_);
    if (report_.state != BackupState::kSealed)
      return NotNow("No sealed backup", report_.state, "BACKUP SEAL makes one");
    last_use_ = std::chrono::steady_clock::now();
    const std::vector<CheckpointFile>& files = report_.checkpoint.files;
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const CheckpointFile& each) { return each.name == name; });
    if (file == files.end()) return absl::NotFoundError("no such file in the backup");
    length = std::min(length, file->size - std::min(offset, file->size));
    path = fmt::format("{}/{}", report_.directory, file->name);
  }
  VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, PosixFileSystem()->OpenForRead(path));
  std::string bytes(length, '\0');
  VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(offset, bytes.size(), bytes.data()));
  if (read != bytes.size()) return Corruption(path, offset + read, "the file ends too early");
  return bytes;
}

}  // namespace varve
