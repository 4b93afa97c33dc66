#include "tools/backup/backup_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "db/version/store_files.h"
#include "tools/backup/backup_list.h"
#include "util/base/file_checksum.h"
#include "util/base/status.h"
#include "util/os/file_identity.h"

namespace varve {
namespace {

using Kind = StoreFinding::Kind;

constexpr size_t kPiece = size_t{1} << 20;

bool Has(const std::vector<std::string>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string_view LastNameOf(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path.substr(path.find_last_of('/') + 1);
}

// Verifies one backup after the other.
class BackupsVerifier {
 public:
  BackupsVerifier(FileSystem* file_system, const VerifyProgress& progress)
      : file_system_(file_system), progress_(progress) {}

  // Each byte is read for its checksum, and by VerifyStore.
  void Expect(const BackupDescription& backup) {
    total_ += 2 * (backup.new_bytes + backup.shared_bytes);
  }

  absl::Status Verify(const std::string& directory, std::string_view id) {
    id_ = id;
    findings_.clear();
    identities_.clear();
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory));
    const absl::StatusOr<BackupDescription> list = ReadBackupList(file_system_, directory);
    const BackupDescription backup = list.ok() ? *list : BackupDescription();
    std::vector<StoreFinding> of_list;
    if (!list.ok()) {
      AddList(list.status());
    } else {
      VARVE_ASSIGN_OR_RETURN(of_list, CheckFiles(directory, backup));
      FindForeign(names, backup, &of_list);
    }
    VerifyAsStore(directory, backup);
    // The store's own findings say more of a file.
    for (StoreFinding& finding : of_list) {
      const bool is_damage = finding.kind == Kind::kDamage;
      if (!IsFound(finding.file, is_damage)) findings_.push_back(std::move(finding));
    }
    for (const auto& [name, identity] : identities_) {
      if (!IsFound(name, /*as_damage=*/false))
        known_.insert({identity, backup.Find(name)->checksum});
    }
    Report();
    return absl::OkStatus();
  }

  BackupsReport TakeReport() { return std::move(report_); }

 private:
  void AddList(const absl::Status& status) {
    const DamagedPlace place = PlaceOf(status);
    findings_.push_back({Kind::kDamage, std::string(kBackupListName), place.offset, place.what});
  }

  // Returns what is wrong with the files of the list.
  absl::StatusOr<std::vector<StoreFinding>> CheckFiles(const std::string& directory,
                                                       const BackupDescription& backup) {
    std::vector<StoreFinding> findings;
    for (const BackupFile& file : backup.files) {
      const std::string path = directory + "/" + file.name;
      const std::optional<FileIdentity> identity = IdentityOf(path);
      if (identity) identities_[file.name] = *identity;
      const absl::Status checked = identity && known_.contains({*identity, file.checksum})
                                       ? Done(file.size)
                                       : CheckFile(path, file);
      if (absl::IsResourceExhausted(checked)) return checked;
      if (checked.ok()) continue;
      const DamagedPlace place = PlaceOf(checked);
      findings.push_back({Kind::kDamage, file.name, place.offset, place.what});
    }
    return findings;
  }

  absl::Status CheckFile(const std::string& path, const BackupFile& expected) {
    const absl::StatusOr<std::unique_ptr<File>> file = file_system_->OpenForRead(path);
    if (absl::IsNotFound(file.status()))
      return Corruption(path, 0, "missing, though the list of the backup names it");
    VARVE_RETURN_IF_ERROR(file.status());
    VARVE_ASSIGN_OR_RETURN(const uint64_t size, (*file)->Size());
    if (size != expected.size) {
      return Corruption(path, std::min(size, expected.size),
                        fmt::format("the file has {} bytes, and {} according to the list of the "
                                    "backup",
                                    size, expected.size));
    }
    FileChecksum checksum;
    std::string piece(kPiece, '\0');
    for (uint64_t offset = 0; offset < size;) {
      VARVE_ASSIGN_OR_RETURN(const size_t read, (*file)->Read(offset, kPiece, piece.data()));
      if (read == 0) break;
      checksum.Add(std::string_view(piece).substr(0, read));
      offset += read;
      VARVE_RETURN_IF_ERROR(Done(read));
    }
    if (checksum.value() == expected.checksum) return absl::OkStatus();
    return Corruption(path, 0,
                      fmt::format("the checksum of the file is {:016x}, and {:016x} according to "
                                  "the list of the backup",
                                  checksum.value(), expected.checksum));
  }

  static void FindForeign(const std::vector<std::string>& names, const BackupDescription& backup,
                          std::vector<StoreFinding>* findings) {
    for (const std::string& name : names) {
      if (name == kBackupListName || backup.Find(name) != nullptr) continue;
      findings->push_back({Kind::kLeftover, name, 0,
                           "the list of the backup does not name it; a restore leaves it out"});
    }
  }

  void VerifyAsStore(const std::string& directory, const BackupDescription& backup) {
    const uint64_t before = done_;
    const VerifyProgress progress = [&](uint64_t done, uint64_t) {
      if (progress_) progress_(before + done, total_);
    };
    absl::StatusOr<VerifyReport> verified =
        VerifyStore(file_system_, directory, progress, {.is_known = [&](const std::string& name) {
                      const BackupFile* const file = backup.Find(name);
                      const auto identity = identities_.find(name);
                      return file != nullptr && identity != identities_.end() &&
                             known_.contains({identity->second, file->checksum});
                    }});
    done_ = before + backup.new_bytes + backup.shared_bytes;
    if (!verified.ok()) {
      findings_.push_back({Kind::kDamage, "MANIFEST", 0, std::string(verified.status().message())});
      return;
    }
    VerifyReport& total = report_.report;
    total.files += verified->files;
    total.bytes += verified->bytes;
    total.records += verified->records;
    total.operations += verified->operations;
    for (StoreFinding& finding : verified->findings) findings_.push_back(std::move(finding));
  }

  bool IsFound(const std::string& file, bool as_damage) const {
    return std::any_of(findings_.begin(), findings_.end(), [&](const StoreFinding& finding) {
      return finding.file == file && (!as_damage || finding.kind == Kind::kDamage);
    });
  }

  void Report() {
    ++report_.backups;
    for (StoreFinding& finding : findings_) {
      finding.file = id_ + "/" + finding.file;
      if (finding.kind == Kind::kDamage) ++report_.report.damaged_places;
      report_.report.findings.push_back(std::move(finding));
    }
    findings_.clear();
  }

  absl::Status Done(uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
    return absl::OkStatus();
  }

  FileSystem* const file_system_;
  const VerifyProgress& progress_;
  BackupsReport report_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
  // Files that are good, with the checksum that is theirs.
  std::set<std::pair<FileIdentity, uint64_t>> known_;
  // The backup at hand.
  std::string id_;
  std::map<std::string, FileIdentity> identities_;  // of the files that the list names
  std::vector<StoreFinding> findings_;
};

}  // namespace

absl::StatusOr<DirectoryContent> ContentOf(FileSystem* file_system, const std::string& directory) {
  VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  if (Has(names, "ARCHIVE")) return DirectoryContent::kArchive;
  if (Has(names, kBackupListName)) return DirectoryContent::kBackup;
  if (std::any_of(names.begin(), names.end(), IsBackupId)) return DirectoryContent::kBackups;
  const absl::Status store = ListStoreFiles(file_system, directory).status();
  if (absl::IsNotFound(store)) return DirectoryContent::kNothing;
  VARVE_RETURN_IF_ERROR(store);
  return DirectoryContent::kStore;
}

absl::StatusOr<BackupsReport> VerifyBackups(FileSystem* file_system, const std::string& directory,
                                            const VerifyProgress& progress) {
  VARVE_ASSIGN_OR_RETURN(const DirectoryContent content, ContentOf(file_system, directory));
  std::vector<std::pair<std::string, std::string>> backups;  // directory, and id
  if (content == DirectoryContent::kBackup) {
    backups.emplace_back(directory, LastNameOf(directory));
  } else if (content == DirectoryContent::kBackups) {
    VARVE_ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
    for (const std::string& name : names) {
      if (IsBackupId(name)) backups.emplace_back(directory + "/" + name, name);
    }
  } else {
    return absl::NotFoundError(fmt::format("{}: no backups are here", directory));
  }
  BackupsVerifier verifier(file_system, progress);
  for (const auto& [path, id] : backups) {
    const absl::StatusOr<BackupDescription> backup = ReadBackupList(file_system, path);
    if (backup.ok()) verifier.Expect(*backup);
  }
  for (const auto& [path, id] : backups) VARVE_RETURN_IF_ERROR(verifier.Verify(path, id));
  return verifier.TakeReport();
}

}  // namespace varve
