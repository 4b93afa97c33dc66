#include "client/program/restore_command.h"

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "client/console/output.h"
#include "client/console/progress.h"
#include "client/console/text.h"
#include "client/console/time_text.h"
#include "client/program/archive_commands.h"
#include "client/program/backup_table.h"
#include "fmt/format.h"
#include "tools/backup/backup_check.h"
#include "tools/backup/restore.h"
#include "util/base/status.h"

namespace varve {
namespace {

RestoreTarget TargetOf(const CommandLine& line) {
  RestoreTarget target;
  if (line.copies.at_version > 0)
    target.at_version = static_cast<SequenceNumber>(line.copies.at_version);
  if (line.copies.at_time_ms >= 0)
    target.at_time_ms = static_cast<uint64_t>(line.copies.at_time_ms);
  if (!line.connection.namespace_name.empty()) target.name_space = line.connection.namespace_name;
  return target;
}

// Returns the directory of the backup that is asked for.
absl::StatusOr<std::string> DirectoryOf(const CommandLine& line, const RestoreTarget& target) {
  const std::string& place = line.words[1];
  VARVE_ASSIGN_OR_RETURN(const DirectoryContent content, ContentOf(PosixFileSystem(), place));
  if (content == DirectoryContent::kBackup && line.copies.backup.empty()) return place;
  VARVE_ASSIGN_OR_RETURN(const BackupListing listing, ListBackups(PosixFileSystem(), place));
  if (!line.copies.backup.empty()) {
    for (const BackupDescription& backup : listing.backups) {
      if (backup.id == line.copies.backup) return fmt::format("{}/{}", place, backup.id);
    }
    for (const absl::Status& unreadable : listing.unreadable) {
      if (unreadable.message().find(line.copies.backup) != absl::string_view::npos)
        return unreadable;
    }
    return absl::NotFoundError(fmt::format("{}: there is no backup {}; `{} backups {}` lists them",
                                           place, line.copies.backup, program_invocation_short_name,
                                           place));
  }
  for (const absl::Status& unreadable : listing.unreadable) {
    fmt::print(stderr, "{}: warning: a backup is left out: {}\n", program_invocation_short_name,
               std::string(unreadable.message()));
  }
  VARVE_ASSIGN_OR_RETURN(const std::string id, ChooseBackup(listing, target));
  return fmt::format("{}/{}", place, id);
}

void AppendNames(std::string_view field, const std::vector<std::string>& names, std::string* json) {
  *json += fmt::format(",\"{}\":[", field);
  for (const std::string& name : names) {
    if (json->back() != '[') *json += ',';
    AppendJsonBytes(name, json);
  }
  *json += ']';
}

std::string JsonLine(const RestoreReport& report, bool dry_run) {
  std::string json = "{\"backup\":";
  AppendJsonString(report.backup_id, &json);
  json += fmt::format(
      ",\"version\":{},\"time\":{},\"first_new_version\":{},\"files\":{},"
      "\"bytes\":{},\"dry_run\":{}",
      report.version, JsonTime(report.instant_ms), report.first_new_version, report.files,
      report.bytes, dry_run);
  AppendNames("rewound", report.rewound, &json);
  AppendNames("brought_back", report.brought_back, &json);
  AppendNames("dropped", report.dropped, &json);
  return json + "}\n";
}

std::string NamesLine(std::string_view what, const std::vector<std::string>& names) {
  if (names.empty()) return "";
  std::string line = fmt::format("{}:", what);
  for (const std::string& name : names) line += " " + Escaped(name);
  return line + "\n";
}

void PrintReport(const RestoreReport& report, const CommandLine& line) {
  const bool dry_run = line.copies.dry_run;
  if (Output::ForStandardOutput(line.style).style == OutputStyle::kJson)
    return PrintOut(JsonLine(report, dry_run));
  const std::string when =
      report.instant_ms == 0 ? "" : fmt::format(" of {}", TimeText(report.instant_ms));
  PrintOut(fmt::format("{}: {} to {}: {} files, {}, as of version {}{}; new versions begin at {}\n",
                       report.backup_id, dry_run ? "would be restored" : "restored", line.words[2],
                       report.files, HumanBytes(static_cast<double>(report.bytes)), report.version,
                       when, report.first_new_version));
  PrintOut(NamesLine("taken back to that version", report.rewound));
  PrintOut(NamesLine("dropped since, and back again", report.brought_back));
  PrintOut(NamesLine("gone, as they came later", report.dropped));
}

}  // namespace

absl::Status RestoreOf(const CommandLine& line) {
  const RestoreTarget target = TargetOf(line);
  VARVE_ASSIGN_OR_RETURN(const DirectoryContent content,
                         ContentOf(PosixFileSystem(), line.words[1]));
  if (content == DirectoryContent::kArchive) return RestoreArchiveOf(line, target);
  VARVE_ASSIGN_OR_RETURN(const std::string directory, DirectoryOf(line, target));
  Progress progress("restore", 0, line.progress);
  const absl::StatusOr<RestoreReport> report = RestoreBackup(
      PosixFileSystem(), directory, line.words[2],
      {.target = target, .dry_run = line.copies.dry_run},
      [&progress](uint64_t done, uint64_t total) { progress.UpdateBytes(done, total); });
  progress.Finish();
  if (!report.ok()) return report.status();
  PrintReport(*report, line);
  return absl::OkStatus();
}

}  // namespace varve
