#include "tools/backup/restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "db/history/time_file.h"
#include "db/version/manifest.h"
#include "tools/backup/rewind.h"
#include "util/base/file_checksum.h"
#include "util/base/hash.h"
#include "util/base/status.h"
#include "util/os/clock.h"
#include "util/os/file_writer.h"
#include "varve/compaction_picker.h"
#include "varve/storage_engine.h"

namespace varve {
namespace {

constexpr size_t kCopiedPiece = size_t{1} << 20;
constexpr std::string_view kLockName = "RESTORE.lock";
// A rewind writes a few records alone.
constexpr size_t kCacheSize = size_t{8} << 20;
constexpr size_t kLogFileSize = size_t{1} << 20;

// The time does not go on while the engine has the store open, lest versions that the backup still
// keeps become too old. The store's clock shows what it had come to; a replay takes it along.
class StillClock final : public Clock {
 public:
  explicit StillClock(const RestoreReplay* replay) : replay_(replay) {}

  uint64_t WallMillis() const override { return replay_ == nullptr ? 0 : replay_->NowMillis(); }
  uint64_t MonotonicNanos() const override { return RealClock().MonotonicNanos(); }

 private:
  const RestoreReplay* const replay_;
};

// Nothing is merged, which would take long and is the server's work.
class NoMerges final : public CompactionPicker {
 public:
  std::optional<CompactionPick> Pick(const TreeShape&, const EngineOptions&, bool) const override {
    return std::nullopt;
  }
  double Debt(const TreeShape&, const EngineOptions&) const override { return 0; }
};

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

absl::Status OtherBytes(const std::string& path, uint64_t found, uint64_t expected) {
  return Corruption(path, 0,
                    fmt::format("the checksum of the file is {:016x}, and {:016x} according to the "
                                "list of the backup",
                                found, expected));
}

absl::Status OtherSize(const std::string& path, uint64_t found, uint64_t expected) {
  return Corruption(path, std::min(found, expected),
                    fmt::format("the file has {} bytes, and {} according to the list of the backup",
                                found, expected));
}

// The directory in which the store is built. It goes with the object unless it got its name.
class BuildingSite {
 public:
  BuildingSite(FileSystem* file_system, const std::string& new_directory)
      : file_system_(file_system),
        target_(WithoutSlashes(new_directory)),
        parent_(ParentDirectory(target_)),
        path_(fmt::format("{}/.incomplete-{}", parent_,
                          target_.substr(target_.find_last_of('/') + 1))) {}
  ~BuildingSite() {
    if (is_ours_) RemoveDirectoryWithFiles(file_system_, path_).IgnoreError();
  }
  BuildingSite(const BuildingSite&) = delete;
  BuildingSite& operator=(const BuildingSite&) = delete;

  const std::string& path() const { return path_; }

  // The target must be missing or empty.
  absl::Status CheckTarget() const {
    const absl::StatusOr<std::vector<std::string>> names = file_system_->List(target_);
    if (absl::IsNotFound(names.status())) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(names.status());
    if (names->empty()) return absl::OkStatus();
    return absl::FailedPreconditionError(fmt::format(
        "{}: it is not empty; a restore needs a directory that is new or empty", target_));
  }

  // Takes the directory, and removes what a killed restore left in it.
  absl::Status Begin() {
    VARVE_RETURN_IF_ERROR(file_system_->CreateDirectory(path_));
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(path_));
    if (!names.empty() && std::find(names.begin(), names.end(), kLockName) == names.end()) {
      return absl::FailedPreconditionError(fmt::format(
          "{}: a restore would work here, but it holds other files; move them away", path_));
    }
    absl::StatusOr<std::unique_ptr<FileLock>> lock =
        file_system_->Lock(fmt::format("{}/{}", path_, kLockName));
    if (absl::IsFailedPrecondition(lock.status())) {
      return absl::FailedPreconditionError(
          fmt::format("{}: another restore to this directory is under way", target_));
    }
    if (!lock.ok()) {
      if (names.empty()) file_system_->Remove(path_).IgnoreError();
      return lock.status();
    }
    lock_ = *std::move(lock);
    is_ours_ = true;
    for (const std::string& name : names) {
      if (name != kLockName) VARVE_RETURN_IF_ERROR(file_system_->Remove(path_ + "/" + name));
    }
    return absl::OkStatus();
  }

  // Gives the directory the name of the target.
  absl::Status Finish() {
    VARVE_RETURN_IF_ERROR(file_system_->SyncDirectory(path_));
    VARVE_RETURN_IF_ERROR(file_system_->Rename(path_, target_));
    const absl::Status synced = file_system_->SyncDirectory(parent_);
    if (!synced.ok()) {
      // A power cut could take the name back, so it goes at once.
      file_system_->Rename(target_, path_).IgnoreError();
      return synced;
    }
    is_ours_ = false;
    file_system_->Remove(fmt::format("{}/{}", target_, kLockName)).IgnoreError();
    return absl::OkStatus();
  }

 private:
  FileSystem* const file_system_;
  const std::string target_;
  const std::string parent_;
  const std::string path_;
  std::unique_ptr<FileLock> lock_;
  bool is_ours_ = false;
};

class Restore {
 public:
  Restore(FileSystem* file_system, const std::string& backup_directory,
          const RestoreProgress& on_progress)
      : file_system_(file_system),
        from_(WithoutSlashes(backup_directory)),
        on_progress_(on_progress) {}

  absl::StatusOr<RestoreReport> Run(const std::string& new_directory,
                                    const RestoreOptions& options) {
    VARVE_ASSIGN_OR_RETURN(backup_, ReadBackupList(file_system_, from_));
    VARVE_RETURN_IF_ERROR(ReadManifestOfBackup());
    VARVE_RETURN_IF_ERROR(CheckFiles());
    VARVE_RETURN_IF_ERROR(Plan(options.target));
    BuildingSite site(file_system_, new_directory);
    VARVE_RETURN_IF_ERROR(site.CheckTarget());
    if (options.dry_run) return Report();
    VARVE_RETURN_IF_ERROR(site.Begin());
    VARVE_RETURN_IF_ERROR(CheckSpace(site.path()));
    for (const BackupFile& file : backup_.files) VARVE_RETURN_IF_ERROR(Copy(file, site.path()));
    VARVE_RETURN_IF_ERROR(WriteManifest(file_system_, site.path(), manifest_));
    VARVE_RETURN_IF_ERROR(OpenStore(site.path(), options.replay));
    VARVE_RETURN_IF_ERROR(site.Finish());
    return Report();
  }

 private:
  std::string PathOf(const BackupFile& file) const { return from_ + "/" + file.name; }

  absl::Status ReadManifestOfBackup() {
    const BackupFile& listed = *backup_.Find("MANIFEST");
    const std::string path = PathOf(listed);
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, Open(listed));
    std::string bytes(listed.size, '\0');
    VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, bytes.size(), bytes.data()));
    if (read != bytes.size()) return OtherSize(path, read, bytes.size());
    if (const uint64_t checksum = HashKey(bytes); checksum != listed.checksum)
      return OtherBytes(path, checksum, listed.checksum);
    VARVE_ASSIGN_OR_RETURN(manifest_, DecodeManifest(bytes, path));
    return absl::OkStatus();
  }

  absl::Status Plan(const RestoreTarget& target) {
    std::vector<TimeMark> marks;
    if (manifest_.times.number != 0) {
      VARVE_ASSIGN_OR_RETURN(marks, ReadTimeFile(file_system_, from_, manifest_.times));
    }
    VARVE_ASSIGN_OR_RETURN(plan_, PlanRestore(backup_, manifest_, marks, target));
    return MakeManifestOfRestored(plan_, &manifest_);
  }

  absl::StatusOr<std::unique_ptr<File>> Open(const BackupFile& file) const {
    const std::string path = PathOf(file);
    absl::StatusOr<std::unique_ptr<File>> opened = file_system_->OpenForRead(path);
    if (absl::IsNotFound(opened.status()))
      return Corruption(path, 0, "missing, though the list of the backup names it");
    VARVE_RETURN_IF_ERROR(opened.status());
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, (*opened)->Size());
    if (size != file.size) return OtherSize(path, size, file.size);
    return opened;
  }

  // All files are there and have their sizes, so that a restore does not fail late.
  absl::Status CheckFiles() const {
    for (const BackupFile& file : backup_.files) VARVE_RETURN_IF_ERROR(Open(file).status());
    return absl::OkStatus();
  }

  uint64_t Bytes() const { return backup_.new_bytes + backup_.shared_bytes; }

  absl::Status CheckSpace(const std::string& path) const {
    const absl::StatusOr<uint64_t> free = file_system_->FreeSpace(path);
    if (!free.ok() || *free >= Bytes()) return absl::OkStatus();
    return absl::ResourceExhaustedError(fmt::format(
        "{}: the disk has {} bytes left, and the backup takes {}", path, *free, Bytes()));
  }

  absl::Status Copy(const BackupFile& file, const std::string& to) {
    if (file.name == "MANIFEST") return Done(file.size);  // the store gets another one
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> source, Open(file));
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<FileWriter> copy,
                           FileWriter::Create(file_system_, to + "/" + file.name));
    FileChecksum checksum;
    std::string piece(kCopiedPiece, '\0');
    while (copy->size() < file.size) {
      const size_t wanted = std::min<uint64_t>(kCopiedPiece, file.size - copy->size());
      VARVE_ASSIGN_OR_RETURN(const size_t read, source->Read(copy->size(), wanted, piece.data()));
      if (read != wanted) return OtherSize(PathOf(file), copy->size() + read, file.size);
      const std::string_view bytes = std::string_view(piece).substr(0, read);
      checksum.Add(bytes);
      VARVE_RETURN_IF_ERROR(copy->Append(bytes));
      VARVE_RETURN_IF_ERROR(Done(read));
    }
    if (checksum.value() != file.checksum)
      return OtherBytes(PathOf(file), checksum.value(), file.checksum);
    VARVE_RETURN_IF_ERROR(copy->Finish());
    copy->Keep();
    return absl::OkStatus();
  }

  absl::Status Done(uint64_t bytes) {
    done_ += bytes;
    if (on_progress_) on_progress_(done_, Bytes());
    return absl::OkStatus();
  }

  absl::Status OpenStore(const std::string& path, RestoreReplay* replay) const {
    const StillClock clock(replay);
    EngineOptions options;
    options.create_if_missing = false;
    options.history = plan_.history;
    options.file_system = file_system_;
    options.clock = &clock;
    options.compaction_picker = std::make_shared<NoMerges>();
    if (replay == nullptr) options.log_file_size = kLogFileSize;
    options.offset_table_cache_size = options.block_cache_size = kCacheSize;
    for (bool rewinds = plan_.rewinds;; rewinds = false) {
      VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<StorageEngine> store,
                             StorageEngine::Open(path, options));
      if (rewinds) VARVE_RETURN_IF_ERROR(RewindStore(plan_, store.get()));
      if (!rewinds && replay != nullptr) {
        VARVE_RETURN_IF_ERROR(replay->Run(store.get()));
        VARVE_RETURN_IF_ERROR(store->Flush());
      }
      VARVE_RETURN_IF_ERROR(store->Close());
      if (!rewinds) return absl::OkStatus();
    }
  }

  RestoreReport Report() const {
    const auto names = [](const std::vector<NamespaceDescription>& spaces) {
      std::vector<std::string> shown;
      for (const NamespaceDescription& space : spaces)
        shown.push_back(space.name.empty() ? fmt::to_string(space.id) : space.name);
      return shown;
    };
    return {.backup_id = backup_.id,
            .version = plan_.version,
            .instant_ms = plan_.instant_ms,
            .first_new_version = manifest_.flushed_sequence + 1,
            .files = backup_.files.size(),
            .bytes = Bytes(),
            .rewound = names(plan_.rewound),
            .brought_back = names(plan_.brought_back),
            .dropped = names(plan_.dropped)};
  }

  FileSystem* const file_system_;
  const std::string from_;
  const RestoreProgress& on_progress_;
  BackupDescription backup_;
  Manifest manifest_;  // of the backup; then, of the restored store
  RestorePlan plan_;
  uint64_t done_ = 0;
};

}  // namespace

absl::StatusOr<RestoreReport> RestoreBackup(FileSystem* file_system,
                                            const std::string& backup_directory,
                                            const std::string& new_directory,
                                            const RestoreOptions& options,
                                            const RestoreProgress& on_progress) {
  return Restore(file_system, backup_directory, on_progress).Run(new_directory, options);
}

absl::StatusOr<std::string> ChooseBackup(const BackupListing& listing,
                                         const RestoreTarget& target) {
  if (listing.backups.empty()) return absl::NotFoundError("there is no backup to restore");
  const BackupDescription& newest = listing.backups.back();
  for (const BackupDescription& backup : listing.backups) {
    if (backup.store_id != newest.store_id || backup.history_id != newest.history_id) continue;
    const bool reaches = target.at_version   ? backup.version >= *target.at_version
                         : target.at_time_ms ? backup.sealed_ms >= *target.at_time_ms
                                             : &backup == &newest;
    if (reaches) return backup.id;
  }
  return absl::OutOfRangeError(fmt::format(
      "no backup reaches so far: the newest one, {}, has version {} and was sealed at {}",
      newest.id, newest.version, ShownInstant(newest.sealed_ms)));
}

}  // namespace varve
