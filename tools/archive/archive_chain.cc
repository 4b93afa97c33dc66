#include "tools/archive/archive_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "db/version/store_files.h"
#include "tools/archive/archive_place.h"
#include "tools/backup/backup_check.h"
#include "tools/backup/backup_place.h"
#include "util/base/hash.h"
#include "util/base/status.h"

namespace varve {
namespace {

using Kind = StoreFinding::Kind;

// Reads an archive file by file.
class ArchiveReader {
 public:
  ArchiveReader(FileSystem* file_system, const std::string& directory, bool every_byte)
      : file_system_(file_system),
        bases_(fmt::format("{}/{}", directory, kArchiveBases)),
        changes_(fmt::format("{}/{}", directory, kArchiveChanges)),
        last_(fmt::format("{}/{}", directory, kArchiveLastName)),
        every_byte_(every_byte) {}

  absl::StatusOr<ArchiveContents> Read(const std::string& directory) {
    VARVE_ASSIGN_OR_RETURN(contents_.id, ReadArchiveId(file_system_, directory));
    // Before the files: those that come meanwhile are not missed.
    const absl::Status position = ReadPosition();
    VARVE_RETURN_IF_ERROR(ListFiles());
    VARVE_RETURN_IF_ERROR(ReadBases());
    VARVE_RETURN_IF_ERROR(Report(position));
    for (uint64_t number = first_; number <= newest_; ++number)
      VARVE_RETURN_IF_ERROR(AddFile(number));
    if (contents_.position) BreakEnd(contents_.position->base);
    std::stable_sort(contents_.chains.begin(), contents_.chains.end(),
                     [](const ArchiveChain& a, const ArchiveChain& b) {
                       return a.base.sealed_ms < b.base.sealed_ms;
                     });
    return std::move(contents_);
  }

 private:
  absl::Status ReadPosition() {
    VARVE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file_system_, last_));
    VARVE_ASSIGN_OR_RETURN(contents_.position, DecodeArchivePosition(text, last_));
    return absl::OkStatus();
  }

  absl::Status Report(const absl::Status& position) {
    if (position.ok()) return position;
    if (absl::IsFailedPrecondition(position)) return position;
    if (!absl::IsNotFound(position)) {
      AddDamage(std::string(kArchiveLastName), PlaceOf(position).what);
    } else if (newest_ != 0) {
      AddDamage(std::string(kArchiveLastName),
                "missing, so nobody knows whether the newest change file is there");
    }
    return absl::OkStatus();
  }

  absl::Status ListFiles() {
    const absl::StatusOr<std::vector<std::string>> names = file_system_->List(changes_);
    if (absl::IsNotFound(names.status())) {
      AddDamage(std::string(kArchiveChanges), "missing");
    } else {
      VARVE_RETURN_IF_ERROR(names.status());
      for (const std::string& name : *names) {
        const std::optional<uint64_t> number = ParseArchiveFileName(name);
        if (!number) {
          contents_.findings.push_back({Kind::kLeftover,
                                        fmt::format("{}/{}", kArchiveChanges, name), 0,
                                        "it is no change file; nobody needs it"});
          continue;
        }
        if (first_ == 0) first_ = *number;
        first_ = std::min(first_, *number);
        newest_ = std::max(newest_, *number);
      }
    }
    if (contents_.position) newest_ = std::max(newest_, contents_.position->number);
    if (first_ == 0) first_ = newest_ + (newest_ == 0 ? 1 : 0);
    return absl::OkStatus();
  }

  absl::Status ReadBases() {
    const absl::StatusOr<BackupListing> listing = ListBackups(file_system_, bases_);
    if (absl::IsNotFound(listing.status())) {
      AddDamage(std::string(kArchiveBases), "missing");
      return absl::OkStatus();
    }
    VARVE_RETURN_IF_ERROR(listing.status());
    for (const BackupDescription& base : listing->backups) {
      VARVE_ASSIGN_OR_RETURN(
          const std::string list,
          ReadWholeFile(file_system_, fmt::format("{}/{}/{}", bases_, base.id, kBackupListName)));
      contents_.chains.push_back({.base = base, .list_checksum = HashKey(list)});
    }
    return absl::OkStatus();
  }

  // Returns null, after saying so, if there is no such base.
  ArchiveChain* FindBase(const std::string& id) {
    for (ArchiveChain& chain : contents_.chains)
      if (chain.base.id == id) return &chain;
    if (std::find(lost_.begin(), lost_.end(), id) == lost_.end()) {
      lost_.push_back(id);
      AddDamage(fmt::format("{}/{}", kArchiveBases, id),
                "missing, or its list is damaged, though change files stand on it");
    }
    return nullptr;
  }

  absl::Status AddFile(uint64_t number) {
    const std::string name = fmt::format("{}/{}", kArchiveChanges, ArchiveFileName(number));
    const std::string path = fmt::format("{}/{}", changes_, ArchiveFileName(number));
    uint64_t checksum = 0;
    absl::StatusOr<ArchiveFileHeader> header = ReadHeader(path, &checksum);
    if (absl::IsFailedPrecondition(header.status()) || absl::IsResourceExhausted(header.status()))
      return header.status();
    if (header.ok() && header->number != number)
      header = Corruption(path, 16, fmt::format("it is change file {}", header->number));
    if (!header.ok()) {
      AddDamage(name, absl::IsNotFound(header.status()) ? "missing, though the chain needs it"
                                                        : PlaceOf(header.status()).what);
      if (broken_.empty()) broken_ = name;
      before_.reset();
      return absl::OkStatus();
    }
    ++contents_.files;
    Link(name, *header, checksum);
    return absl::OkStatus();
  }

  absl::StatusOr<ArchiveFileHeader> ReadHeader(const std::string& path, uint64_t* checksum) {
    if (!every_byte_) return ReadArchiveFileHeader(file_system_, path);
    VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
    contents_.bytes += bytes.size();
    *checksum = HashKey(bytes);
    VARVE_ASSIGN_OR_RETURN(ArchiveFile file, DecodeArchiveFile(bytes, path));
    return std::move(file.header);
  }

  // Adds the file to the chain that it belongs to.
  void Link(const std::string& name, const ArchiveFileHeader& header, uint64_t checksum) {
    ArchiveChain* const chain = FindBase(header.base);
    if (chain != nullptr) {
      const bool follows_base =
          chain->files.empty() && chain->broken_at.empty() && header.after == chain->base.version &&
          header.predecessor == chain->list_checksum && header.history_id == chain->base.history_id;
      // Lost files in front of a chain are of the chain before.
      if (!broken_.empty()) BreakEnd(follows_base ? chain_ : header.base);
      if (follows_base || (chain->broken_at.empty() && Follows(header, *chain))) {
        chain->files.push_back(header);
      } else if (chain->broken_at.empty()) {
        Break(name, header, chain);
      }
      chain_ = header.base;
    }
    broken_.clear();
    before_ = header;
    checksum_before_ = checksum;
  }

  bool Follows(const ArchiveFileHeader& header, const ArchiveChain& chain) const {
    return !chain.files.empty() && before_ && before_->base == header.base &&
           before_->last == header.after && header.history_id == chain.base.history_id &&
           (!every_byte_ || checksum_before_ == header.predecessor);
  }

  // The chain ends where the last files were lost.
  void BreakEnd(const std::string& id) {
    if (id.empty()) return;
    ArchiveChain* const chain = FindBase(id);
    if (chain != nullptr && chain->broken_at.empty()) chain->broken_at = broken_;
  }

  void Break(const std::string& name, const ArchiveFileHeader& header, ArchiveChain* chain) {
    const bool lacks_first = chain->files.empty() && header.after != chain->base.version &&
                             header.number == first_ && header.number > 1;
    chain->broken_at =
        lacks_first ? fmt::format("{}/{}", kArchiveChanges, ArchiveFileName(header.number - 1))
                    : name;
    AddDamage(chain->broken_at, lacks_first ? "missing, though the chain needs it"
                                            : "it does not follow what it names as before it");
  }

  void AddDamage(std::string file, std::string what) {
    contents_.findings.push_back({Kind::kDamage, std::move(file), 0, std::move(what)});
  }

  FileSystem* const file_system_;
  const std::string bases_;
  const std::string changes_;
  const std::string last_;
  const bool every_byte_;
  ArchiveContents contents_;
  uint64_t first_ = 0;  // number of the first change file; 0: not known yet
  uint64_t newest_ = 0;
  std::vector<std::string> lost_;            // bases
  std::string chain_;                        // the id of the base of the file before
  std::string broken_;                       // the first of the lost files behind that one
  std::optional<ArchiveFileHeader> before_;  // of the file before
  uint64_t checksum_before_ = 0;
};

}  // namespace

uint64_t ArchiveContents::ReachOf(const ArchiveChain& chain) const {
  const bool is_newest =
      position && position->base == chain.base.id && position->version == chain.last();
  return is_newest ? std::max(position->current_ms, chain.last_instant_ms())
                   : chain.last_instant_ms();
}

bool ArchiveContents::is_damaged() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const StoreFinding& each) { return each.kind == Kind::kDamage; });
}

absl::StatusOr<ArchiveContents> ReadArchive(FileSystem* file_system, const std::string& directory,
                                            bool every_byte) {
  return ArchiveReader(file_system, directory, every_byte).Read(directory);
}

absl::StatusOr<ArchiveContents> CheckArchive(FileSystem* file_system, const std::string& directory,
                                             const VerifyProgress& progress) {
  VARVE_ASSIGN_OR_RETURN(ArchiveContents contents,
                         ReadArchive(file_system, directory, /*every_byte=*/true));
  const std::string bases = fmt::format("{}/{}", directory, kArchiveBases);
  const absl::StatusOr<BackupsReport> report = VerifyBackups(file_system, bases, progress);
  if (absl::IsNotFound(report.status())) {
    if (contents.files == 0 && !contents.position && !contents.is_damaged()) {
      contents.findings.push_back(
          {Kind::kDamage, std::string(kArchiveBases), 0, "there is no base yet"});
    }
    return contents;
  }
  VARVE_RETURN_IF_ERROR(report.status());
  for (const StoreFinding& finding : report->report.findings) {
    StoreFinding& added = contents.findings.emplace_back(finding);
    added.file = fmt::format("{}/{}", kArchiveBases, finding.file);
  }
  return contents;
}

}  // namespace varve
