#include "tools/archive/archive_chain.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
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

// Change files that follow each other.
struct Run {
  std::vector<ArchiveFileHeader> files;
  std::string broken_at;  // the first file that was lost behind them
  std::string base;       // whose list the first file names as before it; empty: none
};

// Files that were lost between two runs.
struct Loss {
  std::string file;              // the first of them
  std::optional<size_t> before;  // the run that they stood behind
  std::optional<size_t> behind;  // the run that follows
};

// Reads an archive file by file.
class ArchiveReader {
 public:
  ArchiveReader(FileSystem* file_system, const std::string& directory, bool every_byte)
      : file_system_(file_system),
        directory_(directory),
        bases_(fmt::format("{}/{}", directory, kArchiveBases)),
        changes_(fmt::format("{}/{}", directory, kArchiveChanges)),
        last_(fmt::format("{}/{}", directory, kArchiveLastName)),
        every_byte_(every_byte) {}

  absl::StatusOr<ArchiveContents> Read() {
    VARVE_ASSIGN_OR_RETURN(contents_.id, ReadArchiveId(file_system_, directory_));
    VARVE_RETURN_IF_ERROR(CheckFilesAreHere());
    VARVE_RETURN_IF_ERROR(ReadFirst());
    // Before the files: those that come meanwhile are not missed.
    const absl::Status position = ReadPosition();
    VARVE_RETURN_IF_ERROR(ListFiles());
    VARVE_RETURN_IF_ERROR(ReadBases());
    VARVE_RETURN_IF_ERROR(Report(position));
    for (uint64_t number = begin_; number <= newest_; ++number)
      VARVE_RETURN_IF_ERROR(AddFile(number));
    if (!lost_.empty()) losses_.push_back({std::exchange(lost_, ""), LastRun(), std::nullopt});
    std::stable_sort(contents_.chains.begin(), contents_.chains.end(),
                     [](const ArchiveChain& a, const ArchiveChain& b) {
                       return a.base.sealed_ms < b.base.sealed_ms;
                     });
    MakeChains();
    return std::move(contents_);
  }

 private:
  absl::Status CheckFilesAreHere() const {
    const std::string sent = fmt::format("{}/{}", directory_, kArchiveSentName);
    const absl::Status found = file_system_->OpenForRead(sent).status();
    if (absl::IsNotFound(found)) return absl::OkStatus();
    VARVE_RETURN_IF_ERROR(found);
    return absl::FailedPreconditionError(
        fmt::format("{}: the files of this archive were handed to a command; fetch them to another "
                    "directory and name that",
                    directory_));
  }

  // Returns the error if it ends the reading. What the device can't read counts as damage where all
  // of it is to be told; a restore and a pruning must not take it for damage.
  absl::Status Grave(const absl::Status& status) const {
    const bool is_damage = absl::IsDataLoss(status) || absl::IsNotFound(status) ||
                           (every_byte_ && absl::IsInternal(status));
    return is_damage ? absl::OkStatus() : status;
  }

  absl::Status ReadFirst() {
    absl::StatusOr<ArchiveFirst> first = ReadArchiveFirst(file_system_, directory_);
    VARVE_RETURN_IF_ERROR(Grave(first.status()));
    if (first.ok()) {
      contents_.first = *std::move(first);
    } else {
      AddDamage(std::string(kArchiveFirstName), PlaceOf(first.status()).what);
    }
    return absl::OkStatus();
  }

  absl::Status ReadPosition() {
    VARVE_ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file_system_, last_));
    VARVE_ASSIGN_OR_RETURN(contents_.position, DecodeArchivePosition(text, last_));
    return absl::OkStatus();
  }

  absl::Status Report(const absl::Status& position) {
    VARVE_RETURN_IF_ERROR(Grave(position));
    if (position.ok()) return position;
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
      for (const std::string& name : *names) NoteFile(name);
    }
    if (contents_.position) newest_ = std::max(newest_, contents_.position->number);
    if (contents_.first.number != 0) begin_ = contents_.first.number;
    if (begin_ == 0) begin_ = newest_ + 1;
    newest_ = std::max(newest_, begin_ - 1);
    return absl::OkStatus();
  }

  void NoteFile(const std::string& name) {
    const std::optional<uint64_t> number = ParseArchiveFileName(name);
    const bool is_needed = number.has_value() && *number >= contents_.first.number;
    if (!is_needed) {
      contents_.findings.push_back(
          {Kind::kLeftover, fmt::format("{}/{}", kArchiveChanges, name), 0,
           number ? "it was given up, and the archiver removes it when it starts"
                  : "it is no change file; nobody needs it"});
      return;
    }
    begin_ = begin_ == 0 ? *number : std::min(begin_, *number);
    newest_ = std::max(newest_, *number);
  }

  absl::Status ReadBases() {
    const absl::StatusOr<BackupListing> listing = ListBackups(file_system_, bases_);
    if (absl::IsNotFound(listing.status())) {
      AddDamage(std::string(kArchiveBases), "missing");
      return absl::OkStatus();
    }
    VARVE_RETURN_IF_ERROR(listing.status());
    for (const absl::Status& each : listing->unreadable)
      if (!absl::IsFailedPrecondition(each)) VARVE_RETURN_IF_ERROR(Grave(each));
    for (const BackupDescription& base : listing->backups) {
      if (contents_.first.IsGone(base.id)) continue;
      const absl::StatusOr<std::string> list =
          ReadWholeFile(file_system_, fmt::format("{}/{}/{}", bases_, base.id, kBackupListName));
      if (absl::IsNotFound(list.status())) continue;  // it was removed meanwhile
      VARVE_RETURN_IF_ERROR(list.status());
      contents_.chains.push_back({.base = base, .list_checksum = HashKey(*list)});
    }
    return absl::OkStatus();
  }

  // Returns null if there is no such base.
  ArchiveChain* FindBase(std::string_view id) {
    for (ArchiveChain& chain : contents_.chains)
      if (chain.base.id == id) return &chain;
    return nullptr;
  }

  // A change file names the base.
  void NeedBase(const std::string& id) {
    if (FindBase(id) != nullptr || contents_.first.IsGone(id)) return;
    if (std::find(lost_bases_.begin(), lost_bases_.end(), id) != lost_bases_.end()) return;
    lost_bases_.push_back(id);
    AddDamage(fmt::format("{}/{}", kArchiveBases, id),
              "missing, or its list is damaged, though change files stand on it");
  }

  absl::Status AddFile(uint64_t number) {
    const std::string name = fmt::format("{}/{}", kArchiveChanges, ArchiveFileName(number));
    const std::string path = fmt::format("{}/{}", changes_, ArchiveFileName(number));
    uint64_t checksum = 0;
    absl::StatusOr<ArchiveFileHeader> header = ReadHeader(path, &checksum);
    VARVE_RETURN_IF_ERROR(Grave(header.status()));
    if (header.ok() && header->number != number)
      header = Corruption(path, 16, fmt::format("it is change file {}", header->number));
    if (!header.ok()) {
      AddDamage(name, absl::IsNotFound(header.status()) ? "missing, though the chain needs it"
                                                        : PlaceOf(header.status()).what);
      if (lost_.empty()) lost_ = name;
      return absl::OkStatus();
    }
    ++contents_.files;
    NeedBase(header->base);
    Link(name, *header);
    checksum_before_ = checksum;
    return absl::OkStatus();
  }

  absl::StatusOr<ArchiveFileHeader> ReadHeader(const std::string& path, uint64_t* checksum) {
    if (!every_byte_) return ReadArchiveFileHeader(file_system_, path);
    VARVE_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(file_system_, path));
    contents_.bytes += bytes.size();
    *checksum = HashKey(bytes);
    VARVE_RETURN_IF_ERROR(DecodeArchiveFile(bytes, path, &decoded_));
    return decoded_.header;
  }

  // Adds the file to the run before, or begins another one with it.
  void Link(const std::string& name, const ArchiveFileHeader& header) {
    const std::string base = BaseBefore(header);
    if (lost_.empty() && base.empty() && Follows(header)) {
      runs_.back().files.push_back(header);
      return;
    }
    const std::optional<size_t> before = LastRun();
    Run& run = runs_.emplace_back();
    run.files.push_back(header);
    run.base = base;
    if (!lost_.empty()) {
      losses_.push_back({std::exchange(lost_, ""), before, LastRun()});
    } else if (base.empty() && header.number != contents_.first.number) {
      ReportUnlinked(name, header, before);
    }
  }

  // Returns the id of the base right behind which the file begins a run.
  std::string BaseBefore(const ArchiveFileHeader& header) const {
    for (const ArchiveChain& chain : contents_.chains) {
      if (chain.base.id == header.base && chain.base.version == header.after &&
          chain.list_checksum == header.predecessor && chain.base.history_id == header.history_id)
        return chain.base.id;
    }
    return "";
  }

  bool Follows(const ArchiveFileHeader& header) const {
    if (runs_.empty()) return false;
    const ArchiveFileHeader& before = runs_.back().files.back();
    return before.last == header.after && before.history_id == header.history_id &&
           (!every_byte_ || checksum_before_ == header.predecessor);
  }

  // The file follows nothing that is there.
  void ReportUnlinked(const std::string& name, const ArchiveFileHeader& header,
                      std::optional<size_t> before) {
    if (!before && FindBase(header.base) == nullptr) return;  // the base was reported
    const bool lacks_one = !before && header.number > 1;
    const std::string lost =
        lacks_one ? fmt::format("{}/{}", kArchiveChanges, ArchiveFileName(header.number - 1))
                  : name;
    AddDamage(lost, lacks_one ? "missing, though the chain needs it"
                              : "it does not follow what it names as before it");
    losses_.push_back({lost, before, LastRun()});
  }

  std::optional<size_t> LastRun() const {
    return runs_.empty() ? std::nullopt : std::optional<size_t>(runs_.size() - 1);
  }

  void MakeChains() {
    std::vector<std::optional<size_t>> places;
    for (const ArchiveChain& chain : contents_.chains) places.push_back(PlaceOfBase(chain));
    for (const Loss& loss : losses_) BreakAt(loss, places);
    for (size_t i = 0; i < places.size(); ++i) {
      ArchiveChain& chain = contents_.chains[i];
      chain.is_newest =
          contents_.position &&
          (contents_.position->base == chain.base.id ||
           (places[i] && places[i] == LastRun() && contents_.position->version == LastVersion()));
      if (!places[i]) continue;
      const Run& run = runs_[*places[i]];
      for (const ArchiveFileHeader& header : run.files)
        if (header.last > chain.base.version) chain.files.push_back(header);
      if (chain.broken_at.empty()) chain.broken_at = run.broken_at;
    }
  }

  SequenceNumber LastVersion() const { return runs_.back().files.back().last; }

  // Returns the run that the base begins or joins.
  std::optional<size_t> PlaceOfBase(const ArchiveChain& chain) const {
    const BackupDescription& base = chain.base;
    std::optional<size_t> place;
    for (size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].base == base.id) return i;
      const ArchiveFileHeader &front = runs_[i].files.front(), &back = runs_[i].files.back();
      if (front.history_id == base.history_id && front.after <= base.version &&
          base.version <= back.last)
        place = i;
    }
    if (place) return place;
    // It joined, and nothing has come since.
    const bool is_newest = contents_.position && contents_.position->base == base.id &&
                           !runs_.empty() && contents_.position->version == LastVersion() &&
                           base.version >= LastVersion() &&
                           runs_.back().files.back().history_id == base.history_id;
    return is_newest ? LastRun() : std::nullopt;
  }

  // Finds out whose changes were lost.
  void BreakAt(const Loss& loss, const std::vector<std::optional<size_t>>& places) {
    const Run* const before = loss.before ? &runs_[*loss.before] : nullptr;
    const Run* const behind = loss.behind ? &runs_[*loss.behind] : nullptr;
    const bool begins_chain = behind != nullptr && !behind->base.empty();
    const std::string id = behind != nullptr    ? behind->files.front().base
                           : contents_.position ? contents_.position->base
                                                : "";
    bool is_before = true;  // what was lost stood behind the run before
    for (size_t i = 0; i < places.size() && !begins_chain; ++i) {
      ArchiveChain& chain = contents_.chains[i];
      if (places[i] || !chain.broken_at.empty()) continue;
      const bool is_named = chain.base.id == id;
      if (!is_named && !LiesBetween(chain.base, before, behind)) continue;
      chain.broken_at = loss.file;
      if (is_named) is_before = false;
    }
    if (before != nullptr && is_before && before->broken_at.empty())
      runs_[*loss.before].broken_at = loss.file;
  }

  // Returns whether the base may have joined among the files that were lost between the runs.
  static bool LiesBetween(const BackupDescription& base, const Run* before, const Run* behind) {
    if (before == nullptr) return false;
    const ArchiveFileHeader& last = before->files.back();
    if (base.history_id != last.history_id || base.version < last.last) return false;
    return behind == nullptr || base.version <= behind->files.front().after;
  }

  void AddDamage(std::string file, std::string what) {
    contents_.findings.push_back({Kind::kDamage, std::move(file), 0, std::move(what)});
  }

  FileSystem* const file_system_;
  const std::string directory_;
  const std::string bases_;
  const std::string changes_;
  const std::string last_;
  const bool every_byte_;
  ArchiveContents contents_;
  uint64_t begin_ = 0;  // number of the first change file; 0: not known yet
  uint64_t newest_ = 0;
  std::vector<Run> runs_;
  std::vector<Loss> losses_;
  std::vector<std::string> lost_bases_;
  std::string lost_;     // the first of the files that were lost behind the last run
  ArchiveFile decoded_;  // whose memory each file uses again
  uint64_t checksum_before_ = 0;
};

// Returns whether the base has no list, which is sent last, and nothing stands on it.
bool IsPartOfBase(FileSystem* file_system, const std::string& bases, const std::string& id,
                  const ArchiveContents& contents) {
  const std::string list = fmt::format("{}/{}/{}", bases, id, kBackupListName);
  if (!absl::IsNotFound(file_system->OpenForRead(list).status())) return false;
  if (contents.position && contents.position->base == id) return false;
  const std::string name = fmt::format("{}/{}", kArchiveBases, id);
  return std::none_of(contents.findings.begin(), contents.findings.end(),
                      [&](const StoreFinding& each) { return each.file == name; });
}

// Adds what is wrong with the bases.
absl::Status CheckBases(FileSystem* file_system, const std::string& directory,
                        const VerifyProgress& progress, ArchiveContents* contents) {
  const std::string bases = fmt::format("{}/{}", directory, kArchiveBases);
  const absl::StatusOr<BackupsReport> report = VerifyBackups(file_system, bases, progress);
  if (absl::IsNotFound(report.status())) {
    if (contents->files == 0 && !contents->position && !contents->is_damaged()) {
      contents->findings.push_back(
          {Kind::kDamage, std::string(kArchiveBases), 0, "there is no base yet"});
    }
    return absl::OkStatus();
  }
  VARVE_RETURN_IF_ERROR(report.status());
  std::set<std::string> parts;
  for (const StoreFinding& finding : report->report.findings) {
    const std::string id = finding.file.substr(0, finding.file.find('/'));
    if (IsPartOfBase(file_system, bases, id, *contents)) {
      parts.insert(id);
      continue;
    }
    StoreFinding& added = contents->findings.emplace_back(finding);
    added.file = fmt::format("{}/{}", kArchiveBases, finding.file);
  }
  for (const std::string& id : parts) {
    contents->findings.push_back({Kind::kLeftover, fmt::format("{}/{}", kArchiveBases, id), 0,
                                  "a run that was ended sent a part of a base; nobody needs it"});
  }
  return absl::OkStatus();
}

}  // namespace

uint64_t ArchiveContents::ReachOf(const ArchiveChain& chain) const {
  const bool goes_on = chain.is_newest && chain.broken_at.empty() && position;
  return goes_on ? std::max(position->current_ms, chain.last_instant_ms())
                 : chain.last_instant_ms();
}

bool ArchiveContents::is_damaged() const {
  return std::any_of(findings.begin(), findings.end(),
                     [](const StoreFinding& each) { return each.kind == Kind::kDamage; });
}

absl::StatusOr<ArchiveContents> ReadArchive(FileSystem* file_system, const std::string& directory,
                                            bool every_byte) {
  for (;;) {
    VARVE_ASSIGN_OR_RETURN(ArchiveContents contents,
                           ArchiveReader(file_system, directory, every_byte).Read());
    if (!contents.is_damaged()) return contents;
    // What a pruning removed meanwhile is not missing.
    const absl::StatusOr<ArchiveFirst> first = ReadArchiveFirst(file_system, directory);
    if (!first.ok() || *first == contents.first) return contents;
  }
}

absl::StatusOr<ArchiveContents> CheckArchive(FileSystem* file_system, const std::string& directory,
                                             const VerifyProgress& progress) {
  VARVE_ASSIGN_OR_RETURN(ArchiveContents contents,
                         ReadArchive(file_system, directory, /*every_byte=*/true));
  VARVE_RETURN_IF_ERROR(CheckBases(file_system, directory, progress, &contents));
  // What a pruning removed meanwhile is not missing.
  const absl::StatusOr<ArchiveFirst> first = ReadArchiveFirst(file_system, directory);
  if (contents.is_damaged() && first.ok() && !(*first == contents.first))
    return CheckArchive(file_system, directory, progress);
  return contents;
}

}  // namespace varve
