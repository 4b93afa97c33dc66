#include "tools/verify.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "db/changes/change_file.h"
#include "db/format/batch_codec.h"
#include "db/format/file_names.h"
#include "db/format/log_format.h"
#include "db/history/time_file.h"
#include "db/log/log_recovery.h"
#include "db/values/value_file_format.h"
#include "db/version/manifest.h"
#include "db/version/store_files.h"
#include "fmt/format.h"
#include "tools/patchy_files.h"
#include "tools/segment_survey.h"
#include "tools/segment_verifier.h"
#include "tools/value_check.h"
#include "util/base/status.h"

namespace varve {
namespace {

using Kind = StoreFinding::Kind;

class Verifier {
 public:
  Verifier(FileSystem* file_system, const std::string& directory, const VerifyProgress& progress,
           const VerifyOptions& options)
      : file_system_(file_system),
        directory_(directory),
        progress_(progress),
        is_known_(options.is_known) {}

  absl::StatusOr<VerifyReport> Run() {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<FileLock> lock,
                           LockForReading(file_system_, directory_));
    VARVE_ASSIGN_OR_RETURN(files_, ListStoreFiles(file_system_, directory_));
    for (const StoreFile& file : files_) {
      total_ += file.size;
      const std::optional<uint64_t> number = ParseValueFileName(file.name);
      if (number && IsKnown(file.name)) values_.Trust(*number);
    }
    VARVE_RETURN_IF_ERROR(VerifyManifests());
    VARVE_RETURN_IF_ERROR(VerifySegments());
    VARVE_RETURN_IF_ERROR(VerifyValueFiles());
    VARVE_RETURN_IF_ERROR(VerifyTimeFiles());
    VARVE_RETURN_IF_ERROR(VerifyChangeFiles());
    VARVE_RETURN_IF_ERROR(VerifyLogs());
    report_.files = files_.size();
    report_.bytes = total_;
    return std::move(report_);
  }

 private:
  void Add(Kind kind, std::string file, uint64_t offset, std::string what) {
    if (kind == Kind::kDamage) ++report_.damaged_places;
    report_.findings.push_back({kind, std::move(file), offset, std::move(what)});
  }
  void AddDamage(const absl::Status& status, std::string_view more = {}) {
    const DamagedPlace place = PlaceOf(status);
    Add(Kind::kDamage, place.file, place.offset,
        more.empty() ? place.what : fmt::format("{}; {}", place.what, more));
  }
  void Done(uint64_t bytes) {
    done_ += bytes;
    if (progress_) progress_(done_, total_);
  }

  absl::Status VerifyManifests() {
    if (HasFile("REPAIR"))
      Add(Kind::kDamage, "REPAIR", 0, "a repair was interrupted; start it again");
    absl::StatusOr<Manifest> manifest = ReadManifest(file_system_, directory_);
    absl::StatusOr<Manifest> copy = ReadManifestCopy(file_system_, directory_);
    if (manifest.ok()) {
      manifest_ = *manifest;
    } else if (absl::IsNotFound(manifest.status())) {
      Add(Kind::kDamage, "MANIFEST", 0, "missing; the store doesn't open without it");
    } else {
      if (!absl::IsDataLoss(manifest.status())) return manifest.status();
      AddDamage(manifest.status(), "the store doesn't open without it");
    }
    if (absl::IsDataLoss(copy.status())) {
      AddDamage(copy.status(), "only a repair would need it");
    } else if (copy.ok() && !manifest_) {
      manifest_ = *std::move(copy);
    } else if (!copy.ok() && !absl::IsNotFound(copy.status())) {
      return copy.status();
    }
    Done(SizeOf("MANIFEST") + SizeOf("MANIFEST.copy"));
    return absl::OkStatus();
  }

  absl::Status VerifySegments() {
    std::set<uint64_t> named;
    if (manifest_) {
      for (const auto& level : manifest_->levels) {
        for (const auto& run : level) {
          for (const SegmentInfo& info : run) {
            named.insert(info.number);
            for (const ValueReference& file : info.value_files)
              value_files_.insert(file.file_number);
            VARVE_RETURN_IF_ERROR(VerifyNamed(info));
          }
        }
      }
    }
    for (const StoreFile& file : files_) {
      if (IsSpareName(file.name)) {
        Done(file.size);
        Add(Kind::kLeftover, file.name, 0,
            "it is out of use, and a crash left it behind; the next start removes it");
        continue;
      }
      const std::optional<uint64_t> number = ParseSegmentName(file.name);
      if (!number || named.contains(*number)) continue;
      Done(file.size);
      if (manifest_) {
        Add(Kind::kLeftover, file.name, 0, "a crash left it behind; the next start removes it");
      } else {
        VARVE_RETURN_IF_ERROR(Survey(file.name, *number, file.size, nullptr));
      }
    }
    return absl::OkStatus();
  }

  absl::Status VerifyNamed(const SegmentInfo& info) {
    const std::string path = SegmentPath(directory_, info.number);
    const std::string name = path.substr(directory_.size() + 1);
    if (!HasFile(name)) {
      Add(Kind::kDamage, name, 0,
          fmt::format("missing, with its {} records; the store doesn't open", info.entries));
      return absl::OkStatus();
    }
    const bool is_known = IsKnown(name);
    const absl::Status whole = is_known ? VerifySegmentFooter(file_system_, path, info)
                                        : VerifySegment(file_system_, path, info);
    Done(SizeOf(name));
    if (whole.ok()) {
      report_.records += info.entries;
      const bool leads_to_known = std::all_of(
          info.value_files.begin(), info.value_files.end(), [this](const ValueReference& file) {
            return IsKnown(ValueFilePath("", file.file_number).substr(1));
          });
      if (is_known && leads_to_known) return VerifyFilesOf(name, info);
      return VerifyValuesOf(name, info);
    }
    if (!absl::IsDataLoss(whole)) return whole;
    if (is_known) {
      AddDamage(whole);
      return absl::OkStatus();
    }
    const uint64_t before = report_.damaged_places;
    VARVE_RETURN_IF_ERROR(Survey(name, info.number, info.file_size, &info));
    if (report_.damaged_places == before) AddDamage(whole);
    return absl::OkStatus();
  }

  // Looks whether the files with values are there that a segment names which is known to be good.
  absl::Status VerifyFilesOf(const std::string& name, const SegmentInfo& info) {
    for (const ValueReference& file : info.value_files) {
      const std::string path = ValueFilePath(directory_, file.file_number);
      if (HasFile(path.substr(directory_.size() + 1)) || HasFile(LogFileName(file.file_number)))
        continue;
      const absl::Status missing = Corruption(path, 0, "value file: missing");
      if (!IsFound(missing))
        AddDamage(missing, fmt::format("{} leads there; such keys can't be read", name));
    }
    return absl::OkStatus();
  }

  // Values that a record can't lead to; those of one file that is missing once.
  absl::Status VerifyValuesOf(const std::string& name, const SegmentInfo& info) {
    if (info.value_files.empty()) return absl::OkStatus();
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system_->OpenForRead(directory_ + "/" + name));
    return SurveySegment(*file, info.number, info.file_size,
                         [this](uint64_t, uint64_t, const RecordView& record) -> absl::Status {
                           const absl::Status value = values_.Check(record);
                           if (!value.ok() && !absl::IsDataLoss(value)) return value;
                           if (!value.ok() && !IsFound(value))
                             AddDamage(value, "keys whose values lie there can't be read");
                           return absl::OkStatus();
                         })
        .status();
  }

  // What of them no record leads to is looked at, too.
  absl::Status VerifyValueFiles() {
    for (const StoreFile& found : files_) {
      const std::optional<uint64_t> number = ParseValueFileName(found.name);
      if (!number) continue;
      Done(found.size);
      if (manifest_ && !value_files_.contains(*number)) {
        Add(Kind::kLeftover, found.name, 0, "a crash left it behind; the next start removes it");
        continue;
      }
      if (IsKnown(found.name)) continue;
      VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                             file_system_->OpenForRead(directory_ + "/" + found.name));
      VARVE_RETURN_IF_ERROR(SurveyValueFile(
          *file, *number, manifest_ ? manifest_->store_id : 0, [this](const absl::Status& damage) {
            const DamagedPlace place = PlaceOf(damage);
            if (!IsFound(damage))
              Add(Kind::kUnused, place.file, place.offset, place.what + "; nothing leads there");
          }));
    }
    return absl::OkStatus();
  }

  // The store opens without its time file.
  absl::Status VerifyTimeFiles() {
    const TimeFilePlace place = manifest_ ? manifest_->times : TimeFilePlace();
    const std::string name = TimeFilePath("", place.number).substr(1);
    if (place.number != 0 && !HasFile(name))
      Add(Kind::kDamage, name, 0, "missing, with the times of old versions");
    for (const StoreFile& found : files_) {
      if (!ParseTimeFileName(found.name)) continue;
      Done(found.size);
      if (place.number == 0 || found.name != name) {
        Add(Kind::kLeftover, found.name, 0, "a crash left it behind; the next start removes it");
        continue;
      }
      const absl::Status read = ReadTimeFile(file_system_, directory_, place).status();
      if (!read.ok() && !absl::IsDataLoss(read)) return read;
      if (!read.ok()) AddDamage(read, "times of old versions can't be read");
    }
    return absl::OkStatus();
  }

  // The store opens without its change files, too.
  absl::Status VerifyChangeFiles() {
    std::map<std::string, ChangeFilePlace> places;
    if (manifest_) {
      for (const ChangeFilePlace& place : manifest_->changes.files)
        places[ChangeFilePath("", place.number).substr(1)] = place;
    }
    for (const auto& [name, place] : places) {
      if (!HasFile(name)) Add(Kind::kDamage, name, 0, "missing, with retained changes");
    }
    for (const StoreFile& found : files_) {
      if (!ParseChangeFileName(found.name)) continue;
      Done(found.size);
      const auto place = places.find(found.name);
      if (place == places.end()) {
        Add(Kind::kLeftover, found.name, 0, "a crash left it behind; the next start removes it");
        continue;
      }
      ChangeFile file(file_system_, directory_, place->second.number, /*remover=*/nullptr);
      const absl::Status read =
          file.Verify(place->second.size, place->second.after, place->second.last);
      if (!read.ok() && !absl::IsDataLoss(read)) return read;
      if (!read.ok()) AddDamage(read, "retained changes can't be read");
    }
    return absl::OkStatus();
  }

  bool IsFound(const absl::Status& status) const {
    const DamagedPlace place = PlaceOf(status);
    return std::any_of(report_.findings.begin(), report_.findings.end(),
                       [&](const StoreFinding& finding) {
                         return finding.file == place.file && finding.offset == place.offset;
                       });
  }

  // `named`: what the manifest says of the segment; null: nothing.
  absl::Status Survey(const std::string& name, uint64_t number, uint64_t file_size,
                      const SegmentInfo* named) {
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                           file_system_->OpenForRead(directory_ + "/" + name));
    VARVE_ASSIGN_OR_RETURN(
        const SurveyedSegment survey,
        SurveySegment(
            *file, number, file_size,
            [](uint64_t, uint64_t, const RecordView&) { return absl::OkStatus(); },
            named == nullptr ? std::string_view() : FirstKeyOf(*named)));
    report_.records += survey.records;
    for (size_t i = 0; i < survey.damage.size(); ++i) {
      std::string more;
      if (i + 1 == survey.damage.size() && named != nullptr && survey.records < named->entries) {
        more = fmt::format("{} of the segment's {} records can be read", survey.records,
                           named->entries);
      }
      AddDamage(survey.damage[i], more);
    }
    return absl::OkStatus();
  }

  absl::Status VerifyLogs() {
    for (const StoreFile& file : files_) {
      const std::optional<uint64_t> number = ParseLogFileName(file.name);
      if (number) VARVE_RETURN_IF_ERROR(VerifyLogHeader(file, *number));
      if (ParseLogTemporaryName(file.name)) {
        Add(Kind::kLeftover, file.name, 0, "a crash left it behind; the next start removes it");
      }
      if (number || ParseLogTemporaryName(file.name)) Done(file.size);
    }
    if (!manifest_) return absl::OkStatus();  // what of it is needed stands in the manifest
    const auto count = [this](std::string_view operations, SequenceNumber first,
                              uint32_t size) -> absl::Status {
      BatchReader reader(operations);
      RecordView operation;
      uint32_t read = 0;
      while (reader.Next(&operation)) ++read;
      if (!reader.ok() || read != size) {
        return absl::DataLossError(fmt::format(
            "log in {}: the batch at sequence {} has a good checksum but makes no sense",
            directory_, first));
      }
      report_.operations += size;
      return absl::OkStatus();
    };
    VARVE_ASSIGN_OR_RETURN(const LogSurvey survey,
                           SurveyLog(file_system_, directory_, manifest_->store_id,
                                     manifest_->flushed_sequence, manifest_->log_ends, count));
    for (const LogGap& gap : survey.gaps) AddLogDamage(gap);
    if (survey.gaps.empty() && survey.recovery.torn_bytes > 0) {
      Add(Kind::kTear, survey.recovery.torn_path.substr(directory_.size() + 1),
          survey.recovery.torn_offset,
          fmt::format(
              "{} bytes of a write that was never acknowledged; the next start cuts them away",
              survey.recovery.torn_bytes));
    }
    return absl::OkStatus();
  }

  void AddLogDamage(const LogGap& gap) {
    const DamagedPlace place = PlaceOf(gap.damage);
    for (const StoreFinding& finding : report_.findings) {
      // Found in the header already.
      if (finding.file == place.file && finding.offset == place.offset) return;
    }
    AddDamage(
        gap.damage,
        gap.last + 1 == gap.first
            ? "no operation is lost; the store doesn't open"
            : fmt::format("the store doesn't open; operations from {} {} can't be read", gap.first,
                          gap.last == kNoSequence ? "on" : fmt::format("to {}", gap.last)));
  }

  absl::Status VerifyLogHeader(const StoreFile& found, uint64_t number) {
    const std::string path = directory_ + "/" + found.name;
    VARVE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, file_system_->OpenForRead(path));
    std::string page(kLogPageSize, '\0');
    VARVE_ASSIGN_OR_RETURN(const size_t read, file->Read(0, page.size(), page.data()));
    page.resize(read);
    const absl::Status header =
        CheckLogHeaderPage(page, path, number, manifest_ ? manifest_->store_id : 0);
    if (absl::IsDataLoss(header)) {
      AddDamage(header);
    } else if (manifest_ && absl::IsFailedPrecondition(header)) {
      Add(Kind::kDamage, found.name, 0, std::string(header.message()));
    } else if (read < kLogPageSize) {
      Add(Kind::kDamage, found.name, read, "log: the file ends within its first page");
    } else if (header.ok()) {
      const size_t bad = page.find_first_not_of('\0', kLogHeaderSize);
      if (bad != std::string::npos)
        Add(Kind::kDamage, found.name, bad, "log header: not zero, which harms nothing");
    }
    return absl::OkStatus();
  }

  bool IsKnown(const std::string& name) const { return is_known_ && is_known_(name); }
  bool HasFile(std::string_view name) const {
    return std::any_of(files_.begin(), files_.end(),
                       [&](const StoreFile& file) { return file.name == name; });
  }
  uint64_t SizeOf(std::string_view name) const {
    for (const StoreFile& file : files_) {
      if (file.name == name) return file.size;
    }
    return 0;
  }

  FileSystem* const file_system_;
  const std::string& directory_;
  const VerifyProgress& progress_;
  const std::function<bool(const std::string& name)>& is_known_;
  std::vector<StoreFile> files_;
  std::optional<Manifest> manifest_;
  ValueChecker values_{file_system_, directory_};
  std::set<uint64_t> value_files_;  // that segments point into
  VerifyReport report_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

absl::StatusOr<VerifyReport> VerifyStore(FileSystem* file_system, const std::string& directory,
                                         const VerifyProgress& progress,
                                         const VerifyOptions& options) {
  PatchyFileSystem patchy(file_system);
  VARVE_ASSIGN_OR_RETURN(VerifyReport report,
                         Verifier(&patchy, directory, progress, options).Run());
  for (const absl::Status& error : patchy.errors()) {
    report.findings.push_back({StoreFinding::Kind::kDamage, "", 0, std::string(error.message())});
    ++report.damaged_places;
  }
  return report;
}

}  // namespace varve
