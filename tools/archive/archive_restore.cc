#include "tools/archive/archive_restore.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tools/archive/archive_files_ahead.h"
#include "tools/archive/archive_place.h"
#include "tools/archive/commit_replay.h"
#include "util/base/status.h"

namespace varve {
namespace {

// Returns the chains as people read them: from which version and time to which.
std::string ShownRanges(const ArchiveContents& contents) {
  std::string text;
  for (const ArchiveChain& chain : contents.chains) {
    if (!text.empty()) text += ", and ";
    text += fmt::format("versions {} ({}) to {} ({})", chain.base.version,
                        ShownInstant(chain.base.instant_ms), chain.last(),
                        ShownInstant(contents.ReachOf(chain)));
  }
  return text;
}

std::string ShownPoint(const ArchivePoint& point) {
  return point.at_version ? fmt::format("version {}", *point.at_version)
                          : ShownInstant(*point.at_time_ms);
}

bool BeginsBefore(const ArchiveChain& chain, const ArchivePoint& point) {
  if (point.at_version) return chain.base.version <= *point.at_version;
  return chain.base.instant_ms <= *point.at_time_ms;
}

bool Reaches(const ArchiveContents& contents, const ArchiveChain& chain,
             const ArchivePoint& point) {
  if (point.at_version) return *point.at_version <= chain.last();
  return *point.at_time_ms <= contents.ReachOf(chain);
}

absl::Status Lost(const ArchiveChain& chain) {
  return absl::DataLossError(fmt::format(
      "{}: it is missing or damaged, so the changes behind version {} ({}) can't be had from "
      "base {}; `archive-check` names all that is",
      chain.broken_at, chain.last(), ShownInstant(chain.last_instant_ms()), chain.base.id));
}

// Applies the files of a chain to the restored base.
class ChainReplay final : public RestoreReplay {
 public:
  ChainReplay(FileSystem* file_system, std::string changes, const ArchiveChain& chain,
              const ArchivePoint& point)
      : file_system_(file_system),
        changes_(std::move(changes)),
        chain_(chain),
        point_(point),
        predecessor_(chain.files.empty() ? 0 : chain.files.front().predecessor) {
    report_.base = chain.base.id;
    report_.version = chain.base.version;
    report_.instant_ms = chain.base.instant_ms;
  }

  absl::Status Run(Store* store) override {
    VARVE_RETURN_IF_ERROR(replay_.Begin(store));
    std::vector<std::string> paths;
    for (const ArchiveFileHeader& header : chain_.files) paths.push_back(PathOf(header));
    ArchiveFilesAhead ahead(file_system_, std::move(paths));
    for (const ArchiveFileHeader& header : chain_.files) {
      VARVE_ASSIGN_OR_RETURN(const ArchiveFilesAhead::Entry* const entry, ahead.Next());
      VARVE_RETURN_IF_ERROR(ApplyFile(header, *entry));
      if (report_.next_version != kNoSequence) break;
    }
    VARVE_RETURN_IF_ERROR(replay_.End());
    report_.without_options.assign(replay_.created().begin(), replay_.created().end());
    const std::set<std::string> unnamed = replay_.Unnamed();
    report_.without_names.assign(unnamed.begin(), unnamed.end());
    return absl::OkStatus();
  }
  uint64_t NowMillis() const override { return replay_.NowMillis(); }

  ArchiveRestoreReport TakeReport() { return std::move(report_); }

 private:
  bool IsWanted(const Change& commit) const {
    return (!point_.at_version || commit.version <= *point_.at_version) &&
           (!point_.at_time_ms || commit.instant_ms <= *point_.at_time_ms);
  }

  std::string PathOf(const ArchiveFileHeader& header) const {
    return fmt::format("{}/{}", changes_, ArchiveFileName(header.number));
  }

  absl::Status ApplyFile(const ArchiveFileHeader& header, const ArchiveFilesAhead::Entry& entry) {
    const ArchiveFile& file = entry.file;
    if (!(file.header == header) || header.predecessor != predecessor_) {
      return Corruption(PathOf(header), 72,
                        fmt::format("the checksum of the file before is {:016x}, and {:016x} "
                                    "according to this one",
                                    predecessor_, file.header.predecessor));
    }
    predecessor_ = entry.checksum;
    bool is_used = false;
    for (const Change& commit : file.commits) {
      if (commit.version <= chain_.base.version) continue;  // the base has it
      if (!IsWanted(commit)) {
        report_.next_version = commit.version;
        report_.next_instant_ms = commit.instant_ms;
        break;
      }
      VARVE_RETURN_IF_ERROR(replay_.Apply(commit));
      is_used = true;
      report_.version = commit.version;
      report_.instant_ms = commit.instant_ms;
      ++report_.commits;
    }
    if (is_used) ++report_.change_files;
    return absl::OkStatus();
  }

  FileSystem* const file_system_;
  const std::string changes_;
  const ArchiveChain& chain_;
  const ArchivePoint point_;
  CommitReplay replay_;
  uint64_t predecessor_;
  ArchiveRestoreReport report_;
};

}  // namespace

absl::StatusOr<const ArchiveChain*> ChooseChain(const ArchiveContents& contents,
                                                const ArchivePoint& point) {
  if (point.at_version && point.at_time_ms)
    return absl::InvalidArgumentError(
        "a restore goes to a version or to a time: name one of the two");
  const std::vector<ArchiveChain>& chains = contents.chains;
  if (chains.empty()) return absl::NotFoundError("the archive has no base yet");
  if (!point.at_version && !point.at_time_ms) {
    // A base that nobody went on from, as a killed run leaves one, has what its chain has.
    const std::string& wanted = contents.position ? contents.position->base : chains.back().base.id;
    for (const ArchiveChain& chain : chains) {
      if (chain.base.id != wanted) continue;
      if (!chain.broken_at.empty()) return Lost(chain);
      return &chain;
    }
    return absl::DataLossError(
        fmt::format("{}/{}: the base that LAST names is missing or damaged; there is {}",
                    kArchiveBases, wanted, ShownRanges(contents)));
  }
  const ArchiveChain* broken = nullptr;
  for (auto chain = chains.rbegin(); chain != chains.rend(); ++chain) {
    if (!BeginsBefore(*chain, point)) continue;
    if (Reaches(contents, *chain, point)) return &*chain;
    if (broken == nullptr && !chain->broken_at.empty()) broken = &*chain;
  }
  if (broken != nullptr) return Lost(*broken);
  return absl::OutOfRangeError(fmt::format("the archive does not have {}; it has {}",
                                           ShownPoint(point), ShownRanges(contents)));
}

absl::StatusOr<ArchiveRestoreReport> RestoreArchive(FileSystem* file_system,
                                                    const std::string& directory,
                                                    const std::string& new_directory,
                                                    const ArchivePoint& point, bool dry_run,
                                                    const RestoreProgress& on_progress) {
  VARVE_ASSIGN_OR_RETURN(const ArchiveContents contents,
                         ReadArchive(file_system, directory, /*every_byte=*/false));
  VARVE_ASSIGN_OR_RETURN(const ArchiveChain* const chain, ChooseChain(contents, point));
  ChainReplay replay(file_system, fmt::format("{}/{}", directory, kArchiveChanges), *chain, point);
  VARVE_ASSIGN_OR_RETURN(
      const RestoreReport restored,
      RestoreBackup(file_system, fmt::format("{}/{}/{}", directory, kArchiveBases, chain->base.id),
                    new_directory, {.dry_run = dry_run, .replay = &replay}, on_progress));
  ArchiveRestoreReport report = replay.TakeReport();
  report.first_new_version = restored.first_new_version;
  return report;
}

}  // namespace varve
